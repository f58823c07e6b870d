# SPDX-License-Identifier: Apache-2.0

"""The demand of a flavor: in total for Placement, and cell by cell.

Placement compares the totals of a host; the filter and the claim compare its
cells.
"""

import dataclasses
import typing

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary

#: The local disk of a host if it is not known.
UNKNOWN_DISK_GIB = 2 ** 53


class Resources(typing.NamedTuple):
    """Amounts of Placement's resource classes."""

    pcpus: int
    vcpus: int
    memory_mib: int
    disk_gib: int = 0

    def minus(self, other: 'Resources') -> 'Resources':
        return Resources(*(own - its for own, its
                           in zip(self, other, strict=True)))

    def plus(self, other: 'Resources') -> 'Resources':
        return Resources(*map(sum, zip(self, other, strict=True)))

    def times(self, other: 'Resources') -> int:
        """Return how often these amounts contain the other ones."""
        return max(0, min([own // its for own, its
                           in zip(self, other, strict=True) if its],
                          default=0))


@dataclasses.dataclass(frozen=True)
class Guest:
    """An instance of a flavor.

    :ivar shape: its CPUs, memory and devices as the extra specs request them
    :ivar demand: the resources for which the claim searches, cell by cell
    :ivar sums: the resources that Placement allocates
    :ivar required: the traits that a host must have
    :ivar forbidden: the traits that a host must not have
    """

    shape: shape_model.Shape
    demand: demands.Demand
    sums: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


def compile_flavor(flavor: flavor_model.Flavor) -> Guest:
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
    shape = dataclasses.replace(shape, devices=(*shape.devices, *(
        shape_model.GuestDevices(None, number, resource_class=name)
        for name, number in resources.devices(flavor.extra_specs).items())))
    guest = compile_shape(shape, flavor.vcpus, flavor.ram_mib)
    return dataclasses.replace(
        guest, sums=guest.sums._replace(disk_gib=flavor.disk_gib),
        required=resources.traits(flavor.extra_specs, vocabulary.REQUIRED),
        forbidden=resources.traits(flavor.extra_specs, vocabulary.FORBIDDEN))


def compile_shape(shape: shape_model.Shape, vcpus: int, ram_mib: int) -> Guest:
    """Compile a shape.

    :param vcpus: the vCPUs, which a shape without cells does not have
    """
    if shape.cells:
        vcpus = shape.cpus
    pinned = sum(cell.pcpus for cell in shape.cells)
    return Guest(shape, demands.compile_shape(shape),
                 Resources(shape.pcpus, vcpus - pinned, ram_mib))
