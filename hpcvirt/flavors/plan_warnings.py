# SPDX-License-Identifier: Apache-2.0

"""Find what an operator should know about a plan, its hosts and devices.

With sets of devices, a host has an allocation candidate for each choice of one
device for each place of the set (:func:`count_on_host`). Most mix sets, and
the filter drops them; nova-scheduler must get all of them to see each free
set.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model

#: What a plan assumes where the topology says nothing. Unknown pages and
#: unknown devices have warnings of their own.
_ASSUMED = {
    host_model.Unknown.SOCKETS:
        'which cells share a socket; each counts as a socket of its own',
    host_model.Unknown.CACHES:
        'which cores share a last-level cache; those of a cell count as '
        'sharing one, so that parts of a cell may cut a cache',
}

_CodeAndText = tuple[warning.WarningCode, str]


def find_warnings(hosts: Sequence[plans.PlannedHost],
                  flavors: Sequence[plans.PlannedFlavor],
                  profile: profiles.Profile) -> Iterator[warning.PlanWarning]:
    """Find the warnings about hosts and flavors of a plan."""
    if (not profile.housekeeping_cores_per_cell
            and profile.shared_cores_per_cell is not None
            and not all(map(_keeps_a_core, hosts))):
        yield warning.PlanWarning(
            warning.WarningCode.NO_HOUSEKEEPING,
            "all cores are dedicated to guests, so the host's own processes "
            f'slow guests down (by 1 to 2 % in {plans.HS06_STUDY}); set '
            'housekeeping_cores_per_cell to keep cores for the host')
    for planned in hosts:
        for code, what in _of_host(planned, flavors, profile):
            yield warning.PlanWarning(code, what, (planned.name,))
    yield from _mixed_smt(hosts, flavors)


def _keeps_a_core(planned: plans.PlannedHost) -> bool:
    """Whether the host's own processes have a core.

    It may be outside of ``--cpus``, or one of the shared cores, on which these
    processes run beside the guests without dedicated CPUs.
    """
    dedicated = planned.settings.dedicated
    cores = itertools.chain.from_iterable(
        cell.siblings for cell in planned.host.cells)
    return any(dedicated.isdisjoint(core) for core in cores)


def _of_host(planned: plans.PlannedHost,
             flavors: Sequence[plans.PlannedFlavor],
             profile: profiles.Profile) -> Iterator[_CodeAndText]:
    if not any(item.per_host[planned.name] for item in flavors):
        yield warning.WarningCode.HOST_NOT_SERVED, 'none of the flavors fits'
    for unknown, assumed in _ASSUMED.items():
        if unknown in planned.host.unknown:
            yield (warning.WarningCode.TOPOLOGY_UNKNOWN,
                   f'the topology does not say {assumed}')
    yield from _parts(planned, profile)
    if any(len(share.llc) > 1 and max(share.llc) > 1
           for share in planned.partition.cells):
        yield warning.WarningCode.LLC_NOT_SEEN, (
            'cells have several last-level caches, which Nova does not '
            'know; a part of a cell has the size of whole caches, but its '
            'CPUs may belong to several unless the firmware presents each '
            'cache as a NUMA cell')
    yield from _lost_pages(planned, profile)
    for wanted in profile.devices:
        yield from _devices(planned, wanted)


def _parts(planned: plans.PlannedHost,
           profile: profiles.Profile) -> Iterator[_CodeAndText]:
    """Warn if no size is smaller than a cell, and say how to get one."""
    widths = {len(share.cores) for share in planned.partition.cells}
    by_devices = (profile.device is not None
                  and profile.device.kind is not device_choice.DeviceKind.VF)
    if len(widths) != 1 or by_devices:
        return
    width = widths.pop()
    sizes = cpu_partition.sizes(planned.partition, profile.host_steps,
                                profile.smallest_cores)
    cuts = [str(part) for part in range(width // 8 or 1, width)
            if width % part == 0 and part > 1]
    if cuts and all(max(size.cores) == width for size in sizes):
        reason = ('share a cache' if profile.smallest_cores is None else
                  f'have no part of {profile.smallest_cores} cores or more')
        yield warning.WarningCode.NO_PARTS, (
            f'no flavor is smaller than a cell, because its {width} cores '
            f'{reason}; set smallest_cores to allow parts of '
            f'{" or ".join(cuts)} cores')


def _lost_pages(planned: plans.PlannedHost,
                profile: profiles.Profile) -> Iterator[_CodeAndText]:
    """Warn about huge pages that the host has now but not under the plan."""
    small = memory.small_page_kib(planned.host)
    kept = {size for size, _ in profile.host_pages_per_cell}
    lost: dict[int, int] = {}
    for cell in planned.host.cells:
        for pool in cell.pages:
            if (pool.size_kib not in (small, planned.page_kib, *kept)
                    and pool.total):
                lost[pool.size_kib] = lost.get(pool.size_kib, 0) + pool.total
    for size, count in lost.items():
        yield warning.WarningCode.HUGE_PAGES_GIVEN_BACK, (
            f'the host has {count} pages of {memory.page_name(size)} now and '
            'none under this plan; set host_pages_per_cell to keep pages for '
            'programs of the host')


def _mixed_smt(hosts: Sequence[plans.PlannedHost],
               flavors: Sequence[plans.PlannedFlavor],
               ) -> Iterator[warning.PlanWarning]:
    """Warn about hosts with SMT that take flavors for hosts without it."""
    wide = [planned.name for planned in hosts
            if planned.partition.threads > 1]
    for name in wide if len(wide) < len(hosts) else ():
        if any(item.guest.thread_policy is not shape_model.ThreadPolicy.REQUIRE
               and item.per_host[name] for item in flavors):
            yield warning.PlanWarning(
                warning.WarningCode.SMT_MIXED,
                'takes flavors for hosts without SMT, whose vCPUs then run on '
                'siblings of a core; if that matters, separate hosts with and '
                'without SMT by aggregates', (name,))


def _devices(planned: plans.PlannedHost,
             wanted: device_choice.Devices) -> Iterator[_CodeAndText]:
    planned = dataclasses.replace(planned, offered=tuple(
        item for item in planned.offered if item.wanted == wanted))
    if wanted.kind is device_choice.DeviceKind.WHOLE:
        yield from _other_type(planned, wanted)
        yield from _unsure_type(planned)
    if not planned.offered and not (
            planned.profile.has_sets
            and offered_devices.find_matching(planned.host, wanted)):
        missing = warn_missing(planned.host, wanted)
        yield missing.code, missing.what
    yield from (_vgpus(planned) if wanted.kind is device_choice.DeviceKind.VGPU
                else _without_cell(planned, wanted))
    if wanted.kind is device_choice.DeviceKind.VF:
        yield from _unknown_products(planned, wanted)
        yield from _cells_without_vfs(planned, wanted)


def warn_missing(host: host_model.Host,
                 wanted: device_choice.Devices) -> warning.PlanWarning:
    """Warn that a host lacks the devices, or that they are unknown."""
    is_vf = wanted.kind is device_choice.DeviceKind.VF
    unknown = (host_model.Unknown.VFS if is_vf
               else host_model.Unknown.DEVICES) in host.unknown
    return warning.PlanWarning(
        warning.WarningCode.DEVICES_MISSING,
        ('the topology does not say whether the host has a ' if unknown
         else 'the host has no ')
        + ('device with virtual functions' if is_vf else 'usable device')
        + (f' of vendor {wanted.vendor_id}' if wanted.vendor_id else '')
        + (f' and product {wanted.product_id}' if wanted.product_id else ''),
        (host.name,))


def warn_not_shared(host: str, found: Sequence[offered_devices.OfferedDevice],
                    ) -> warning.PlanWarning:
    """Warn that no guest of a host is large enough for its devices."""
    number = sum(item.count for item in found)
    key = 'sizes' if found[0].wanted.sets is not None else 'per_instance'
    return warning.PlanWarning(
        warning.WarningCode.DEVICES_NOT_SHARED,
        f'devices.{key} is not the share of any size in the {number} '
        'devices of the host; choose another number', (host,))


def _other_type(planned: plans.PlannedHost,
                wanted: device_choice.Devices) -> Iterator[_CodeAndText]:
    """Warn about devices that do not have the type of the PCI alias."""
    kind = next((alias['device_type'] for alias in planned.settings.pci_alias
                 if alias['product_id'] == wanted.product_id
                 and alias['vendor_id'] == wanted.vendor_id), None)
    others = [device.address
              for device in offered_devices.find_matching(planned.host, wanted)
              if bool(device.total_vfs) != (kind == offered_devices.TYPE_PF)]
    if others and kind is not None:
        yield warning.WarningCode.DEVICE_TYPE_DIFFERS, (
            f'guests cannot get {_addresses(others)}: other devices of this '
            f'product support SR-IOV, so Nova calls them {kind}, and a PCI '
            'alias has one type')


def _unsure_type(planned: plans.PlannedHost) -> Iterator[_CodeAndText]:
    """Warn if the topology, like that of lstopo, lacks drivers and VFs."""
    unknown = host_model.Unknown.VFS in planned.host.unknown or not any(
        device.driver or device.total_vfs for device in planned.host.devices)
    if planned.offered and unknown:
        yield warning.WarningCode.DEVICE_TYPE_UNSURE, (
            'the topology does not say whether devices support SR-IOV; if '
            'they do, Nova calls them type-PF: read the topology from sysfs')


def _without_cell(planned: plans.PlannedHost,
                  wanted: device_choice.Devices) -> Iterator[_CodeAndText]:
    unknown = [item.device.address for item in planned.offered
               if item.device.cell is None]
    if unknown and len(planned.partition.cells) > 1:
        yield warning.WarningCode.DEVICE_WITHOUT_CELL, (
            f'the cell of {_addresses(unknown)} is unknown, so the affinity '
            f'policy {wanted.affinity} has no effect on '
            f'{"it" if len(unknown) == 1 else "them"}')


def _cells_without_vfs(planned: plans.PlannedHost,
                       wanted: device_choice.Devices,
                       ) -> Iterator[_CodeAndText]:
    """Warn if guests of some cells can only have VFs of other cells."""
    near: set[int] = set()
    for item in planned.offered:
        if item.device.cell is None:
            return
        near.add(item.device.cell)
    far = [share.id for share in planned.partition.cells
           if share.id not in near]
    if wanted.affinity is shape_model.PCIAffinity.PREFERRED and near and far:
        yield warning.WarningCode.CELLS_WITHOUT_VFS, (
            f'guests on {reasons.cells(far)} get virtual functions of '
            f'{reasons.cells(sorted(near))}; the affinity required keeps '
            'guests with virtual functions off such cells')


def _unknown_products(planned: plans.PlannedHost,
                      wanted: device_choice.Devices,
                      ) -> Iterator[_CodeAndText]:
    for item in planned.offered:
        if wanted.product_id is None and item.device.vf_product_id is None:
            yield warning.WarningCode.VF_PRODUCT_UNKNOWN, (
                'the product id of the virtual functions of '
                f'{item.device.address} is unknown, so its device_spec also '
                'offers the card itself to instances; set devices.product_id '
                '(lspci -nn shows it once a virtual function exists)')


def _vgpus(planned: plans.PlannedHost) -> Iterator[_CodeAndText]:
    given = planned.offered
    if given and len(planned.partition.cells) > 1:
        yield warning.WarningCode.VGPU_AFFINITY, (
            'Nova takes the vGPUs of an instance from any card, whatever '
            'the cells of its CPUs and its memory; if that matters, give '
            'whole devices or virtual functions')
    sriov = [item.device.address for item in given if item.device.total_vfs]
    if sriov:
        yield warning.WarningCode.VGPU_ON_SRIOV, (
            f'{_addresses(sriov)} can have virtual functions; if the vGPU '
            'types belong to these, create them, read the topology again, '
            'and name their product with vgpus_per_device: 1')


def _addresses(devices: Sequence[str]) -> str:
    return words.join_names(devices, 'devices')


#: Nova's default of ``max_placement_results``.
DEFAULT_RESULTS = 1000

#: The most that was measured: 32 hosts with 16 GPUs, 2.2 seconds and 83 MiB in
#: Placement 16.
MAX_MEASURED = 8192


def count_on_host(requests: Iterable[devices.DeviceRequest],
                  pools: Sequence[devices.Pool]) -> int:
    """Count the candidates of a host for requests."""
    found = 1
    for request in requests:
        offered = sum(devices.is_offered(pool, request) for pool in pools)
        found *= offered ** request.count
    return found


def _count_candidates(row: plans.PlannedFlavor, plan: plans.Plan) -> int:
    """Count the candidates of a flavor on all empty hosts with sets."""
    requests = demands.compile_shape(row.guest).requests
    # Hosts of one kind share their state.
    kinds = collections.Counter(id(host.state) for host in plan.hosts
                                if host.settings.has_sets)
    states = {id(host.state): host.state for host in plan.hosts}
    found = 0
    for kind, number in kinds.items():
        pools = states[kind].supply.pools or ()
        found += number * count_on_host(requests, pools)
    return found


def find_results(plan: plans.Plan) -> int | None:
    """Return the ``max_placement_results`` that the plan needs.

    :returns: None if no host has sets
    """
    counts = [_count_candidates(row, plan) for row in plan.flavors]
    most = max(counts, default=0)
    return max(DEFAULT_RESULTS, len(plan.hosts), most) if most else None


def warn_many(plan: plans.Plan) -> Iterator[warning.PlanWarning]:
    """Warn about flavors with more candidates than were measured."""
    for row in plan.flavors:
        count = _count_candidates(row, plan)
        if count > MAX_MEASURED:
            yield warning.PlanWarning(
                warning.WarningCode.MANY_CANDIDATES,
                f'a request has {count} allocation candidates if all hosts '
                f'are empty, and only {MAX_MEASURED} were measured, which '
                'take 2.2 s and 83 MiB; divide the hosts among aggregates or '
                'traits', (row.flavor.name,))
