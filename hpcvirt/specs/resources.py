# SPDX-License-Identifier: Apache-2.0

"""Read and write the resources of Placement that a flavor requests."""

from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.specs import vocabulary


def write(resource_class: str, count: int,
          traits: Iterable[str] = ()) -> dict[str, str]:
    """Write a request for resources of one class on a host with traits."""
    specs = {vocabulary.RESOURCES.at(group='', resource=resource_class):
             str(count)}
    for trait in traits:
        specs[vocabulary.TRAIT.at(group='', trait=trait)] = vocabulary.REQUIRED
    return specs


def traits(specs: Mapping[str, str], wish: str) -> frozenset[str]:
    """Return the traits that a flavor requires or forbids.

    :param wish: ``vocabulary.REQUIRED`` or ``vocabulary.FORBIDDEN``
    """
    prefix = vocabulary.TRAIT.at(group='', trait='')
    return frozenset(name.removeprefix(prefix) for name, value
                     in specs.items()
                     if value == wish and name.startswith(prefix))


def drop_traits(specs: Mapping[str, str],
                names: Iterable[str]) -> dict[str, str]:
    """Remove the extra specs that name certain traits."""
    keys = {vocabulary.TRAIT.at(group='', trait=name) for name in names}
    return {name: value for name, value in specs.items() if name not in keys}


def is_device(resource_class: str) -> bool:
    """Whether a class is VGPU or a custom class."""
    return resource_class == 'VGPU' or resource_class.startswith('CUSTOM_')


def devices(specs: Mapping[str, str]) -> Mapping[str, int]:
    """Count the devices that a flavor requests from Placement, by class."""
    counts = {}
    prefix = vocabulary.RESOURCES.at(group='', resource='')
    for name in specs:
        resource = name.removeprefix(prefix)
        if resource == name:
            continue
        if is_device(resource):
            counts[resource] = read(resource, specs)
    return {name: count for name, count in counts.items() if count}


def read(resource_class: str, specs: Mapping[str, str]) -> int:
    """Read the amount of a class that one provider must have.

    Numbered groups do not count, because each may use another provider.
    """
    name = vocabulary.RESOURCES.at(group='', resource=resource_class)
    return vocabulary.integer(specs.get(name, '0')) or 0
