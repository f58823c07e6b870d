# SPDX-License-Identifier: Apache-2.0

"""A flavor compiled for all questions about its instances.

Placement compares the totals and the traits of a host; the filter and the
claim compare its cells. :func:`hpcvirt.flavors.compiled_flavor.make`
compiles a flavor.
"""

import collections
import dataclasses
import typing
from collections.abc import Mapping

from hpcvirt.fit import demand as demands
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model

#: The local disk of a host if it is not known.
UNKNOWN_DISK_GIB = 2 ** 53

#: The flavor of a guest without one.
UNNAMED = flavor_model.Flavor('', 0, 0, 0, {})


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

    For example, a flavor of 8 vCPUs and 16 GiB in two cells with dedicated
    CPUs has a shape and a demand of two cells with 4 PCPUs and 8,192 MiB each,
    and the sums ``Resources(8, 0, 16384, 20)`` if it has 20 GiB of disk.

    :ivar shape: its CPUs, memory and devices as the extra specs request them
    :ivar demand: the resources for which the claim searches, cell by cell
    :ivar sums: the resources that Placement allocates
    :ivar required: the traits that a host must have
    :ivar forbidden: the traits that a host must not have
    :ivar grouped: the amounts of resource classes that numbered groups of
        extra specs request; they are compared with what the host has free, and
        not charged
    :ivar address_bits: the width of physical addresses that a host must have;
        None if it does not matter
    :ivar flavor: the flavor; :data:`UNNAMED` for a guest that is only tried
    """

    shape: shape_model.Shape
    demand: demands.Demand
    sums: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    grouped: tuple[tuple[str, int], ...] = ()
    address_bits: int | None = None
    flavor: flavor_model.Flavor = UNNAMED

    @property
    def name(self) -> str:
        """The name of the flavor."""
        return self.flavor.name

    @property
    def cpus(self) -> int:
        """The vCPUs, without a CPU of isolated emulator threads."""
        return self.shape.cpus or self.sums.pcpus + self.sums.vcpus

    @property
    def pages_mib(self) -> Mapping[int, int]:
        """Its memory in pages of each size that it names, by size in KiB."""
        needed: collections.Counter[int] = collections.Counter()
        for cell in self.demand.cells:
            if cell.page_kib is not None and cell.page_kib > 0:
                needed[int(cell.page_kib)] += cell.memory_mib
        return needed


def compile_shape(shape: shape_model.Shape, vcpus: int, ram_mib: int) -> Guest:
    """Compile a shape.

    :param vcpus: the vCPUs, which a shape without cells does not have
    """
    if shape.cells:
        vcpus = shape.cpus
    pinned = sum(cell.pcpus for cell in shape.cells)
    return Guest(shape, demands.compile_shape(shape),
                 Resources(shape.pcpus, vcpus - pinned, ram_mib))
