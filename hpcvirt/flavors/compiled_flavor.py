# SPDX-License-Identifier: Apache-2.0

"""Compile a flavor for all questions about its instances.

Nova places the devices of a flavor without an affinity policy by the
``numa_policy`` of the alias that the flavor names. A flavor is completed by it
before it is compiled.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.fit import guest as guests
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary


def make(flavor: flavor_model.Flavor) -> guests.Guest:
    """Compile a flavor.

    :raises InvalidInput: naming the flavor and the key, if Nova would refuse
        the flavor
    """
    try:
        shape = codec.decode(flavor.vcpus, flavor.ram_mib,
                             flavor.extra_specs)
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(f'flavor {flavor.name[:64]}',
                                     str(exc)) from exc
    # Only Placement knows vGPUs and other resources of a class.
    of_classes = tuple(
        shape_model.GuestDevices(None, number, resource_class=name)
        for name, number in codec.read_device_classes(
            flavor.extra_specs).items())
    shape = dataclasses.replace(shape, devices=(*shape.devices, *of_classes))
    guest = guests.compile_shape(shape, flavor.vcpus, flavor.ram_mib)
    return dataclasses.replace(
        guest, flavor=flavor,
        sums=guest.sums._replace(disk_gib=flavor.disk_gib),
        required=codec.read_traits(flavor.extra_specs, vocabulary.REQUIRED),
        forbidden=codec.read_traits(flavor.extra_specs, vocabulary.FORBIDDEN),
        grouped=tuple(codec.read_grouped_classes(flavor.extra_specs).items()),
        address_bits=_read_bits(flavor.extra_specs))


def _read_bits(specs: Mapping[str, str]) -> int | None:
    """Read the width of addresses for which the scheduler looks."""
    text = specs.get(vocabulary.MAXPHYSADDR_BITS.name, '')
    return int(text) if vocabulary.MAXPHYSADDR_BITS.accepts(text) else None


def read_policies(aliases: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the policy of each alias.

    :param aliases: the items of ``[pci]alias``
    """
    return {alias['name']: alias['numa_policy'] for alias in aliases
            if 'name' in alias and 'numa_policy' in alias}


def complete(flavor: flavor_model.Flavor,
             policies: Mapping[str, str]) -> flavor_model.Flavor:
    """Add the policy of its aliases to a flavor that has none."""
    specs = dict(flavor.extra_specs)
    add_policy(specs, policies)
    if specs == flavor.extra_specs:
        return flavor
    return dataclasses.replace(flavor, extra_specs=specs)


def add_policy(specs: dict[str, str], policies: Mapping[str, str]) -> None:
    """Add the policy of its aliases to extra specs that have none.

    Aliases with different policies cannot be written as one extra spec.

    :param policies: alias -> its policy
    """
    wanted = specs.get(vocabulary.PCI_ALIAS.name, '')
    if not wanted or vocabulary.PCI_NUMA_AFFINITY_POLICY.name in specs:
        return
    names = [term.split(':')[0].strip() for term in wanted.split(',')]
    found = {policies[name] for name in names if name in policies}
    if len(found) == 1 and found != {shape_model.PCIAffinity.LEGACY.value}:
        specs[vocabulary.PCI_NUMA_AFFINITY_POLICY.name] = found.pop()
