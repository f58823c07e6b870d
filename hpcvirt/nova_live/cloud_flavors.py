# SPDX-License-Identifier: Apache-2.0

"""Read flavors from Nova's API database."""

import typing
from collections.abc import Mapping

from nova import objects
from nova import utils
from nova.pci import request as pci_request

from hpcvirt.flavors import compiled_flavor
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import scheduler_keys


def read(context: typing.Any) -> list[flavor_model.Flavor]:
    """Read all flavors of the cloud."""
    found = []
    for flavor in objects.FlavorList.get_all(context):
        projects = None if flavor.is_public else tuple(flavor.projects)
        found.append(translate(flavor, projects=projects))
    return sorted(found, key=lambda flavor: (
        flavor.vcpus, flavor.ram_mib, flavor.name))


def translate(flavor: typing.Any,
              image: Mapping[str, typing.Any] | None = None,
              projects: tuple[str, ...] | None = None,
              from_volume: bool = False) -> flavor_model.Flavor:
    """Translate a flavor of Nova.

    :param image: properties of the image, which count as extra specs of the
        flavor if Nova allows it
    :param from_volume: whether the root disk is a volume
    """
    specs = {f'hw:{key.removeprefix("hw_")}': str(value)
             for key, value in (image or {}).items()
             if key.startswith('hw_')}
    page = scheduler_keys.MEM_PAGE_SIZE.name
    own = dict(flavor.extra_specs)
    # Only these values let the image choose a page size.
    if own.get(page, '').upper() in ('ANY', 'LARGE') and page in specs:
        del own[page]
    specs |= own
    aliases = pci_request.get_alias_from_config()
    compiled_flavor.add_policy(specs, {
        name: policy for name, (policy, _) in aliases.items()})
    return flavor_model.Flavor(
        flavor.name, flavor.vcpus, flavor.memory_mb,
        (0 if from_volume else flavor.root_gb) + flavor.ephemeral_gb
        + -(-flavor.swap // 1024), specs, projects)


def image_properties(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of an image from the metadata of an instance."""
    prefix = utils.SM_IMAGE_PROP_PREFIX
    return {key.removeprefix(prefix): value
            for key, value in metadata.items()
            if key.startswith(f'{prefix}hw_')}
