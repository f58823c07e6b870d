# SPDX-License-Identifier: Apache-2.0

"""What Nova and Placement know of a host, and what Placement would allocate.

A :class:`HostState` is what a host has left. Placement compares its totals:
free amounts, the most of one instance (``max_unit``), and traits. It knows no
cells, and devices only by their resource classes.

For a thread policy, nova-scheduler asks for a trait (``ResourceRequest`` in
``nova/scheduler/utils.py``): ``require`` needs :data:`SMT_TRAIT`, and
``isolate`` forbids it. By default, Nova asks once more for VCPUs and without
the trait, for hosts of old releases. The claim refuses the hosts that only
this finds, except for ``isolate`` on a host whose CPU sets have one thread of
each core; answers are therefore as with
``[workarounds]disable_fallback_pcpu_query``.
"""

import collections
import dataclasses
import itertools
import sys

from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: nova-compute reports it if any core of the host has several threads, whether
#: these are in its CPU sets or not (``has_hyperthreading`` in
#: ``nova/virt/libvirt/host.py``).
SMT_TRAIT = 'HW_CPU_HYPERTHREADING'


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
    :ivar kept_for: the traits that an instance must require, because an
        aggregate keeps all others off the host (``trait:NAME = required`` of
        its metadata, with ``[scheduler]enable_isolated_aggregate_filtering``)
    :ivar address_bits: the width of its physical addresses; None if unknown
    :ivar has_smt: whether it will report :data:`SMT_TRAIT`, as its topology
        says; None if there is none, and ``traits`` say it
    """

    supply: supplies.Supply
    free: guests.Resources
    closed: str | None = None
    traits: frozenset[str] | None = None
    quarantined: bool = False
    kept_for: frozenset[str] = frozenset()
    has_smt: bool | None = None
    address_bits: int | None = None

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
            host.quarantined, host.traits, host.kept_for, host.has_smt,
            host.address_bits, host.supply.cpu_ratio,
            host.supply.ram_ratio, host.supply.packing,
            host.supply.spares_devices)


_CLASSES = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')


def explain_unfit(guest: guests.Guest,
                  host: HostState) -> reasons.Misfit | None:
    """Say why a host takes no such instance, whatever it has free.

    :returns: the reason; None if it may take one
    """
    return (_explain_closed(guest, host) or _explain_smt(guest, host)
            or _explain_width(guest, host))


def _explain_width(guest: guests.Guest,
                   host: HostState) -> reasons.Misfit | None:
    """Compare widths of addresses, as ComputeCapabilitiesFilter of Nova."""
    needed, found = guest.address_bits, host.address_bits
    if needed is None or found is None or needed <= found:
        return None
    return reasons.Misfit(reasons.Code.ADDRESS_BITS,
                          {'total': found, 'needed': needed})


def _explain_smt(guest: guests.Guest,
                 host: HostState) -> reasons.Misfit | None:
    """Say why a host is no candidate for a thread policy."""
    has_smt = host.has_smt
    if has_smt is None and host.traits is not None:
        has_smt = SMT_TRAIT in host.traits
    threads = guest.shape.thread_policy
    if threads is shape_model.ThreadPolicy.REQUIRE and has_smt is False:
        return reasons.Misfit(reasons.Code.TRAIT, {'trait': SMT_TRAIT})
    if threads is shape_model.ThreadPolicy.ISOLATE and has_smt:
        return reasons.Misfit(reasons.Code.FORBIDDEN_TRAIT,
                              {'trait': SMT_TRAIT})
    return None


def _explain_closed(guest: guests.Guest,
                    host: HostState) -> reasons.Misfit | None:
    """Say why a host takes no such instance, by its state and its traits.

    The trait of SMT is left out for hosts that have a topology: a flavor that
    names it has a thread policy.

    :returns: the reason; None if it may take one
    """
    if host.closed is not None:
        code = (reasons.Code.QUARANTINED if host.quarantined
                else reasons.Code.CLOSED)
        return reasons.Misfit(code, {'what': host.closed})
    # Nova's request filter isolate_aggregates: each trait of the aggregate
    # must be required, whether the host has it or not.
    unasked = sorted(host.kept_for - guest.required)
    if unasked:
        return reasons.Misfit(reasons.Code.AGGREGATE, {'trait': unasked[0]})
    if host.traits is None:
        return None
    required = guest.required
    if host.has_smt is not None:
        required -= {SMT_TRAIT}
    missing = sorted(required - host.traits)
    if missing:
        return reasons.Misfit(reasons.Code.TRAIT, {'trait': missing[0]})
    unwanted = sorted(guest.forbidden & host.traits)
    if unwanted:
        return reasons.Misfit(reasons.Code.FORBIDDEN_TRAIT,
                              {'trait': unwanted[0]})
    return None


def check(guest: guests.Guest,
          host: HostState) -> reasons.Misfit | None:
    """Say why Placement offers no allocation for a guest on a host."""
    unfit = explain_unfit(guest, host)
    if unfit is not None:
        return unfit
    for name, free, most, needed in zip(
            _CLASSES, host.free, host.max_unit, guest.sums, strict=True):
        if needed > most:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': name, 'free': most, 'which': 'in all',
                'needed': needed})
        if needed > free:
            return _too_little(name, max(free, 0), needed)
    for request in guest.demand.requests:
        if not request.one_pool:
            continue
        most = most_of_one_pool(request, host.supply)
        if request.count > most:
            return _too_little(request.name, most, request.count)
    return _check_groups(guest, host.supply)


def _check_groups(guest: guests.Guest,
                  supply: supplies.Supply) -> reasons.Misfit | None:
    """Compare what numbered groups request with all providers of a host."""
    for name, needed in guest.grouped:
        free = _count_free(name, supply)
        if needed > free:
            return _too_little(name, free, needed)
    return None


def _count_free(resource_class: str, supply: supplies.Supply) -> int:
    """Count the free devices of a class on all providers of a host."""
    return sum(pool.free for pool in supply.pools or ()
               if pool.tags.get('resource_class', '').lower()
               == resource_class.lower())


def _too_little(name: str, free: int, needed: int) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.RESOURCES, {
        'resource': name, 'free': free, 'which': 'free', 'needed': needed})


def most_of_one_pool(request: devices.DeviceRequest,
                     supply: supplies.Supply) -> int:
    """Count the free devices of the largest pool for a request.

    Placement takes the resources of a class from one provider.
    """
    return max(devices.free_devices(request, supply.pools or ()), default=0)


def count(guest: guests.Guest, host: HostState) -> int:
    """Count the guests for which the totals of a host are enough."""
    if explain_unfit(guest, host) is not None:
        return 0
    if not host.max_unit.times(guest.sums):
        return 0
    by_groups = [_count_free(name, host.supply) // needed
                 for name, needed in guest.grouped]
    return min(host.free.times(guest.sums),
               _count_by_devices(guest, host.supply), *by_groups)


def _count_by_devices(guest: guests.Guest, supply: supplies.Supply) -> int:
    """Count the guests that get their devices, on whichever cells."""
    pools = supply.pools or ()
    # Requests that the same pools serve share their devices.
    wanted: collections.Counter[tuple[bool, tuple[bool, ...]]] = (
        collections.Counter())
    for request in guest.demand.requests:
        matching = tuple(request.accepts(pool)[0] for pool in pools)
        wanted[request.one_pool, matching] += request.count
    most = guests.UNKNOWN_DISK_GIB
    for (one_pool, matching), needed in wanted.items():
        if needed < 1:
            continue
        free = [pool.free for pool in itertools.compress(pools, matching)]
        if one_pool:
            most = min(most, sum(each // needed for each in free))
        else:
            most = min(most, sum(free) // needed)
    return most
