# SPDX-License-Identifier: Apache-2.0

"""What Nova and Placement know of a host: what it has left."""

import dataclasses
import sys

from hpcvirt.fit import guest as guests
from hpcvirt.fit import supply as supplies


@dataclasses.dataclass(frozen=True)
class HostState:
    """The resources that a host has left.

    For example, an empty host has two cells of 16 PCPUs and 64 GiB, and
    reserves 512 MiB. Its ``free`` is ``Resources(32, 0, 130560)``, and it
    takes guests of up to ``max_unit``, ``Resources(32, 0, 131072)``.

    :ivar supply: the resources of each cell
    :ivar free: the totals of Placement; zero if the host is closed
    :ivar traits: the traits of its resource provider; None if unknown
    :ivar closed: why Nova sends no new instance to the host; None if it does
    :ivar quarantined: whether a quarantine closes the host; ``closed`` then
        says who put the host into it, and why
    """

    supply: supplies.Supply
    free: guests.Resources
    closed: str | None = None
    traits: frozenset[str] | None = None
    quarantined: bool = False

    @property
    def max_unit(self) -> guests.Resources:
        """The most that one instance may take, free or not.

        nova-compute reports all resources of a class, without the allocation
        ratio, as ``max_unit``; its ``step_size`` is 1
        (``update_provider_tree`` in ``nova/virt/libvirt/driver.py``). For a
        host without cells, they are unknown.
        """
        cells = self.supply.cells
        if not cells:
            return guests.Resources(*[sys.maxsize] * 4)
        return guests.Resources(
            sum(len(cell.dedicated) for cell in cells),
            sum(len(cell.shared) for cell in cells),
            sum(cell.memory_mib for cell in cells), sys.maxsize)


def add_up(supply: supplies.Supply) -> HostState:
    """Add up the totals of a host that reserves nothing in Placement."""
    pcpus = vcpus = memory_mib = 0
    for cell in supply.cells:
        pcpus += len(cell.free)
        vcpus += int(len(cell.shared) * supply.cpu_ratio) - cell.cpu_usage
        memory_mib += (int(cell.memory_mib * supply.ram_ratio)
                       - cell.memory_used_mib)
    return HostState(supply, guests.Resources(pcpus, vcpus, memory_mib,
                                              guests.UNKNOWN_DISK_GIB))


def describe(host: HostState) -> object:
    """Return a key that only equal states share."""
    pools = host.supply.pools or ()
    providers = [pool.provider for pool in pools]
    devices = []
    for pool in pools:
        provider: object = pool.provider
        if pool.provider and pool.free:
            # A refusal names only the devices that are in use.
            provider = providers.index(pool.provider)
        devices.append((pool.cell, pool.free,
                        tuple(sorted(pool.tags.items())), provider))
    return (host.supply.cells, tuple(devices), host.free, host.closed,
            host.quarantined, host.traits, host.supply.cpu_ratio,
            host.supply.ram_ratio, host.supply.packing,
            host.supply.spares_devices)
