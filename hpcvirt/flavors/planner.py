# SPDX-License-Identifier: Apache-2.0

"""Plan the flavors of a fleet, their number on each host, and its settings.

Guests are proposed for each host from its sizes and its memory: a guest cell
gets pages of its host cell in proportion to its cores, rounded down. If the
cells of a host differ in memory by more than the tolerance, a size is proposed
once for each level of memory at which it fits (:func:`propose`). Proposals of
several hosts are merged, and the hosts are filled with what is left.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import address_width
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import equal_cells
from hpcvirt.flavors import host_part
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import own_flavors
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import planned_settings
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import scheduler_keys


def memory_parts(size: cpu_partition.GuestSize,
                 profile: profiles.Profile) -> Iterator[memory.MemoryPart]:
    """List the parts of a guest, each on a host cell of its own."""
    guest = _guest(size, [1] * len(size.cores), None, profile)
    if guest is not None:
        yield from memory.memory_parts(guest)


def propose(partition: cpu_partition.Partition,
            sizes: Sequence[cpu_partition.GuestSize],
            pools: Sequence[memory.CellPool],
            profile: profiles.Profile,
            given: Sequence[offered_devices.OfferedDevice] = (),
            sets: planned_sets.PlannedSets = planned_sets.NONE,
            ) -> tuple[catalogue.Offer, ...]:
    """Propose guests for one host, smallest first.

    A size is left out if its memory rounds to zero, if isolated emulator
    threads leave it no vCPU, or if its share of the devices is not a whole
    number.

    :param given: the devices that guests get
    :param sets: the sets of devices that guests get
    """
    by_id = {pool.id: pool for pool in pools}
    found = []
    for size in sizes:
        devices = offered_devices.device_numbers(partition, size, given,
                                                 profile.device)
        for count, in_cell in devices.items():
            for memory_mib in _memories(partition, size, by_id, profile,
                                        in_cell):
                guest = _guest(size, memory_mib, pools[0].page_kib, profile)
                if guest is not None:
                    guest = _add_devices(guest, count, profile.device, sets)
                    found.append(catalogue.Offer(
                        guest, {partition.host.name: size.share}))
    return tuple(found)


def _memories(partition: cpu_partition.Partition,
              size: cpu_partition.GuestSize,
              pools: Mapping[int, memory.CellPool],
              profile: profiles.Profile,
              in_cell: int | None) -> Iterator[tuple[int, ...]]:
    """List the memory of the guest cells in MiB, once for every level.

    :param in_cell: the number of guests that use up a cell, if it does not
        follow from the cores. These guests may leave some cores unused, but
        they get the memory of these cores.
    """
    if len(set(size.cores)) > 1:
        yield _uneven_memory(partition, size, pools, profile)
        return
    cores, count = size.cores[0], len(size.cores)
    able = _cells_for(partition, cores)
    if size.trimmed_from:
        # A trimmed guest cell gets the memory of a whole cell.
        able = [cell for cell in partition.cells if len(cell.cores) >= cores]
        in_cell = 1
    shares = {
        cell.id: pools[cell.id].share_mib(len(cell.cores)) // in_cell
        if in_cell else pools[cell.id].share_mib(cores) for cell in able}
    for level in _levels(list(shares.values()),
                         profile.memory_tolerance_percent):
        enough = [cell for cell in able if shares[cell.id] >= level]
        if _room_for(count, enough, size.one_socket):
            yield (_rounded(level, pools, profile),) * count


def _cells_for(partition: cpu_partition.Partition,
               cores: int) -> list[cpu_partition.CellShare]:
    """List the cells for which a size was made.

    These are the cells that it divides evenly, if there are any. Otherwise a
    small guest would also be proposed with the memory of a larger cell.
    """
    tiled = [cell for cell in partition.cells if len(cell.cores) % cores == 0]
    return tiled or [cell for cell in partition.cells
                     if len(cell.cores) > cores]


def _levels(amounts: Sequence[int], tolerance_percent: int) -> list[int]:
    """Group amounts within the tolerance; return the least of each group."""
    levels: list[int] = []
    for amount in sorted(amounts):
        if not levels or amount * 100 > levels[-1] * (
                100 + tolerance_percent):
            levels.append(amount)
    return levels


def _room_for(count: int, cells: Sequence[cpu_partition.CellShare],
              one_socket: bool) -> bool:
    if not one_socket:
        return len(cells) >= count
    sockets = [cell.socket for cell in cells]
    return any(sockets.count(socket) >= count for socket in sockets)


def _uneven_memory(partition: cpu_partition.Partition,
                   size: cpu_partition.GuestSize,
                   pools: Mapping[int, memory.CellPool],
                   profile: profiles.Profile) -> tuple[int, ...]:
    """Return the memory of unequal guest cells in MiB.

    Each gets the memory of the host cells of its width, but no more than the
    cell before it. If a guest has a cell with fewer CPUs and more memory than
    another, Nova's claim accepts it on hosts where it does not fit, without
    pins and with pages that do not exist (defect A).
    """
    shares = (min(pools[cell.id].share_mib(cores) for cell in partition.cells
                  if len(cell.cores) == cores) for cores in size.cores)
    return tuple(_rounded(share, pools, profile)
                 for share in itertools.accumulate(shares, min))


def _rounded(memory_mib: int, pools: Mapping[int, memory.CellPool],
             profile: profiles.Profile) -> int:
    page_kib = next(iter(pools.values())).page_kib
    return memory.round_down(memory_mib, profile.memory_step_mib, page_kib)


def _guest(size: cpu_partition.GuestSize, memory_mib: Sequence[int],
           page_kib: int | None,
           profile: profiles.Profile) -> shape_model.Shape | None:
    isolated = profile.emulator_threads is shape_model.EmulatorThreads.ISOLATE
    # Nova takes the emulator's CPU from the host cell of guest cell 0 only,
    # but every guest cell gives up a core: the claim fails with unequal cells.
    cores = [number - isolated for number in size.cores]
    if min(cores) < 1 or min(memory_mib) < 1:
        return None
    threads = size.threads
    vcpus = sum(cores) * threads
    sockets = size.sockets if sum(cores) % size.sockets == 0 else 1
    return shape_model.Shape(
        cells=tuple(
            shape_model.GuestCell(number * threads, 0, mib, page_kib)
            for number, mib in zip(cores, memory_mib, strict=True)),
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        thread_policy=(shape_model.ThreadPolicy.REQUIRE if threads > 1
                       else None),
        emulator_threads=profile.emulator_threads,
        topology=shape_model.GuestTopology(
            sockets, vcpus // (sockets * threads), threads),
        numa_scope=(shape_model.NUMAScope.SOCKET
                    if size.one_socket and profile.socket_scope
                    else shape_model.NUMAScope.HOST),
        exclusive_cells=scheduler_keys.exclusive_cells(
            dict(profile.extra_specs)))


def _add_devices(guest: shape_model.Shape, count: int,
                 wanted: device_choice.Devices | None,
                 sets: planned_sets.PlannedSets) -> shape_model.Shape:
    if wanted is None or not count:
        return guest
    if wanted.sets is None:
        return dataclasses.replace(guest,
                                   devices=(wanted.make_request(count),))
    kind, requests = sets.make_requests(count, len(guest.cells))
    return dataclasses.replace(guest, devices=requests, device_set=kind)


class HostFiller:
    """Fills hosts with guests, and remembers the results."""

    def __init__(self, names: Mapping[str, tuple[str, ...]],
                 packing: bool) -> None:
        self._names = names
        self._packing = packing
        self._fillings: dict[tuple[shape_model.Shape, str, bool],
                             capacity.Filling] = {}

    def __call__(self, guest: shape_model.Shape, host: plans.PlannedHost,
                 packing: bool | None = None) -> capacity.Filling:
        packing = self._packing if packing is None else packing
        key = guest, host.name, packing
        if key not in self._fillings:
            state = dataclasses.replace(
                host.state, supply=dataclasses.replace(host.state.supply,
                                                       packing=packing))
            compiled = guests.compile_shape(guest, guest.cpus,
                                            guest.memory_mib)
            self._fillings[key] = capacity.fill(compiled, state)
        return self._fillings[key]

    def join_twins(self, *hosts: plans.PlannedHost) -> str:
        """Name hosts and all hosts like them."""
        found: list[str] = []
        for host in hosts:
            found += self._names[host.name]
        return words.join_names(found, 'hosts')


def drop_costly_scope(
        guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
        profile: profiles.Profile, fill: HostFiller,
        ) -> tuple[shape_model.Shape, str | None]:
    """Drop the socket scope if hosts would take fewer guests with it.

    Nova's claim chooses cells by their free memory, not by their socket. If
    cell 0 has a little less memory than the others, as on most machines, the
    claim starts at cell 1. The filter can only refuse such a host, which then
    stays empty. Without the scope, the counts of the plan hold with the filter
    and without it.

    :returns: the guest, and why it lost its scope; None if it kept it
    """
    if guest.numa_scope is not shape_model.NUMAScope.SOCKET:
        return guest, None
    losing = _losing(guest, hosts, fill, profile.pack_cells)
    if not losing:
        return guest, None
    reason = ('the cells of a guest may be in different sockets on '
              f'{fill.join_twins(*losing)}, because of the order in '
              'which Nova uses cells there')
    if not profile.pack_cells and not _losing(guest, hosts, fill, True):
        reason += ('; with pack_cells they would be in one, see '
                   'packing_host_numa_cells_allocation_strategy')
    return _without_scope(guest), reason


def _losing(guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
            fill: HostFiller, packing: bool) -> list[plans.PlannedHost]:
    """List the hosts that take fewer guests because of the socket scope."""
    return [host for host in hosts
            if fill(guest, host, packing).count
            < fill(_without_scope(guest), host, packing).count]


def _without_scope(guest: shape_model.Shape) -> shape_model.Shape:
    return dataclasses.replace(guest, numa_scope=shape_model.NUMAScope.HOST)


@dataclasses.dataclass(frozen=True, slots=True)
class _DividedHost:
    """A host whose CPUs are divided and whose settings are not known yet."""

    partition: cpu_partition.Partition
    devices: tuple[offered_devices.OfferedDevice, ...]
    sets: planned_sets.PlannedSets
    sizes: tuple[cpu_partition.GuestSize, ...]
    page_kib: int
    warnings: tuple[warning.PlanWarning, ...]


def plan_hosts(hosts: Sequence[host_model.Host], profile: profiles.Profile,
               part: host_part.HostPart = host_part.WHOLE) -> plans.Plan:
    """Plan the settings of hosts, and the flavors for which they have room.

    Equal hosts are planned once.

    :param hosts: hosts with different names
    :param part: the part of each host that guests may have
    :raises InvalidInput: if two hosts have one name, or if a host lacks CPUs
        or pages that the operator asks for
    """
    _check_names(hosts)
    kinds = {same[0].name: same for same in host_model.group_twins(
        hosts, planned_sets.make_key if profile.has_sets else None)}
    found = plans.extend_to_twins(hosts, kinds, _plan_kinds(
        [same[0] for same in kinds.values()],
        {name: tuple(host.name for host in same)
         for name, same in kinds.items()}, profile, part))
    return dataclasses.replace(found, warnings=(
        *found.warnings, *plan_warnings.warn_many(found)))


def plan(hosts: Sequence[host_model.Host], profile: profiles.Profile,
         part: host_part.HostPart = host_part.WHOLE) -> plans.Plan:
    """Plan flavors for hosts, at least one.

    :param part: the part of each host that guests may have
    :raises InvalidInput: as :func:`plan_hosts`, or if no host takes a guest
    """
    found = plan_hosts(hosts, profile, part)
    check_flavors(found)
    return found


def check_flavors(plan: plans.Plan) -> None:
    """Check that a plan has flavors.

    :raises InvalidInput: saying why it has none
    """
    if plan.flavors:
        return
    causes = plan.warnings
    # A device that a host lacks is the cause of the others.
    for code in (warning.WarningCode.DEVICES_MISSING,
                 warning.WarningCode.SIZE_NOT_PLACED):
        found = tuple(item for item in plan.warnings if item.code is code)
        if found:
            causes = found
            break
    names = tuple(host.name for host in plan.hosts)
    why = '; '.join(item.what if item.subjects == names else item.message
                    for item in warning.gather(causes))
    raise exception.InvalidInput(
        words.join_names(names, 'hosts'),
        f'no guest fits: {why}' if why else 'no guest fits')


def _plan_kinds(hosts: Sequence[host_model.Host],
                names: Mapping[str, tuple[str, ...]],
                profile: profiles.Profile,
                part: host_part.HostPart) -> plans.Plan:
    """Plan flavors for hosts that differ.

    :param names: host -> the names of all hosts like it, for messages
    """
    profile = host_part.choices(profile, part)
    types = {wanted: offered_devices.device_type(wanted, hosts)
             for wanted in profile.devices}
    divided_hosts = [_divide(host, profile, part, types) for host in hosts]
    everyone = words.join_names(
        list(itertools.chain.from_iterable(names.values())), 'hosts')
    _check_smallest(divided_hosts, profile, everyone)
    pieces = _find_pieces(divided_hosts, profile)
    warnings: list[warning.PlanWarning] = []
    offers: list[catalogue.Offer] = []
    host_pools = []
    for divided in divided_hosts:
        partition = divided.partition
        pools = memory.pools(partition, profile, pieces, divided.page_kib)
        host_pools.append(pools)
        warnings += divided.warnings
        warnings += memory.warn_uneven(partition.host, pools)
        proposals = propose(
            partition, divided.sizes, pools,
            planned_sets.narrow(profile, divided.sets), divided.devices,
            divided.sets)
        if profile.device and not proposals and divided.devices:
            warnings.append(plan_warnings.warn_not_shared(
                partition.host.name, divided.devices))
        elif profile.device and not proposals and not profile.has_sets:
            warnings.append(plan_warnings.warn_missing(
                partition.host, profile.device))
        offers += proposals
    merged = catalogue.merge(offers, profile.memory_tolerance_percent)
    warnings += catalogue.warn_reducing(
        offers, merged, profile.memory_tolerance_percent,
        {divided.partition.host.name: len(divided.partition.dedicated)
         for divided in divided_hosts},
        {name: len(same) for name, same in names.items()})
    while True:
        shapes = [offer.guest for offer in merged]
        planned = tuple(
            _host(divided, pools, shapes, profile, types)
            for divided, pools in zip(divided_hosts, host_pools, strict=True))
        fill = HostFiller(names, profile.pack_cells)
        placed, left_out = _placed(merged, planned, profile, fill)
        warnings += left_out.values()
        useless = equal_cells.find_useless(
            [offer for offer, _ in placed], planned, fill)
        if not placed or not (left_out or useless):
            break
        # Hosts need no pages for what is left out.
        merged = tuple(
            offer for offer in merged if offer.guest not in left_out
            and not any(equal_cells.is_same(offer.guest, guest)
                        for guest in useless))
    named = catalogue.assign_names([offer.guest for offer, _ in placed],
                                   profile.name_prefix, profile.disk_gib,
                                   profile.name_template)
    flavors = []
    for name, (offer, scope_warning) in zip(named, placed, strict=True):
        flavors.append(_flavor(name, offer, planned, profile, fill))
        if scope_warning is not None:
            warnings.append(warning.PlanWarning(
                warning.WarningCode.SOCKET_SCOPE_NOT_HELD, scope_warning,
                (name,)))
        if (profile.device
                and profile.device.kind is device_choice.DeviceKind.WHOLE):
            warnings += _far_devices(name, offer.guest, planned, fill)
        for host in planned:
            filling = fill(offer.guest, host)
            if (filling.misfit is not None and filling.misfit.code
                    is reasons.Code.CLAIM_TOO_LONG):
                warnings.append(warning.PlanWarning(
                    warning.WarningCode.CLAIM_TOO_LONG,
                    f'{fill.join_twins(host)} takes only {filling.count}; for '
                    "one more, Nova's claim would try millions of "
                    'arrangements of cells; use smaller flavors on such '
                    'hosts, or set pack_cells: false', (name,)))
    warnings += plan_warnings.find_warnings(planned, flavors, profile)
    warnings += address_width.find_warnings(planned, flavors)
    warnings += own_flavors.warn(planned, flavors, {
        name: len(same) for name, same in names.items()})
    return plans.Plan(planned, tuple(flavors), warning.gather(
        item.name_all(names) for item in warnings))


def _check_names(hosts: Sequence[host_model.Host]) -> None:
    if not hosts:
        raise exception.InvalidInput('hosts', 'none is given')
    name, count = collections.Counter(
        host.name for host in hosts).most_common(1)[0]
    if count > 1:
        raise exception.InvalidInput(
            name, 'is the name of two hosts; give each host a different name')


def _find_pieces(hosts: Iterable[_DividedHost],
                 profile: profiles.Profile) -> set[memory.MemoryPart]:
    """Find the parts of guests of all sizes, on all hosts."""
    pieces: set[memory.MemoryPart] = set()
    for divided in hosts:
        for size in divided.sizes:
            pieces.update(memory_parts(size, profile))
    return pieces


def _check_smallest(hosts: Sequence[_DividedHost],
                    profile: profiles.Profile, names: str) -> None:
    widths: list[int] = []
    for divided in hosts:
        widths += [len(share.cores) for share in divided.partition.cells]
    if widths and (profile.smallest_cores or 0) > max(widths):
        raise exception.InvalidInput(
            names, f'smallest_cores is {profile.smallest_cores}, but no cell '
            f'has more than {max(widths)} cores for guests')


def _divide(host: host_model.Host, profile: profiles.Profile,
            part: host_part.HostPart,
            types: Mapping[device_choice.Devices, str]) -> _DividedHost:
    host_part.check(host, part)
    partition = cpu_partition.divide(host, profile, part)
    warnings = list(partition.warnings)
    poor = memory.poor_cells(partition, profile)
    if poor:
        partition = dataclasses.replace(partition, cells=tuple(
            share for share in partition.cells if share.id not in poor))
        room = ', '.join(str(mib) for mib in sorted(set(poor.values())))
        warnings.append(warning.PlanWarning(
            warning.WarningCode.CELL_NOT_USED,
            f'{cpu_partition.format_cells(poor)} {room} MiB for guests, '
            f'less than {memory.MIN_MIB_PER_CPU} MiB for each CPU; the host '
            'keeps it', (host.name,)))
    page_kib, page_warnings = memory.choose_page(partition, profile)
    sets = planned_sets.NONE
    devices: tuple[offered_devices.OfferedDevice, ...] = ()
    if profile.has_sets:
        sets = planned_sets.plan_sets(host, profile.devices, types)
        warnings += [warning.PlanWarning(code, what, (host.name,))
                     for code, what in sets.problems]
        devices = tuple(item for item in sets.offered
                        if item.wanted == profile.device)
    elif profile.device is not None:
        devices = offered_devices.choose_devices(host, profile.device,
                                                 types[profile.device])
    sizes = cpu_partition.sizes(
        partition, profile.host_steps, profile.smallest_cores,
        profile.all_host_steps,
        {item.cores: item.guests for item in offered_devices.cell_portions(
            partition, devices, planned_sets.narrow(profile, sets).device)})
    return _DividedHost(partition, devices, sets, sizes, page_kib,
                        (*warnings, *page_warnings))


def _host(divided: _DividedHost, pools: Sequence[memory.CellPool],
          shapes: Sequence[shape_model.Shape],
          profile: profiles.Profile,
          types: Mapping[device_choice.Devices, str]) -> plans.PlannedHost:
    host = divided.partition.host
    sets = divided.sets
    offered = sets.offered if profile.has_sets else divided.devices
    settings, rest_mib = planned_settings.make_settings(
        divided.partition, pools, shapes, profile, offered, types, sets)
    return plans.PlannedHost(
        profile, host, divided.partition, divided.page_kib, settings,
        host_settings.make_empty_host(host, settings), rest_mib, offered)


def _placed(offers: Sequence[catalogue.Offer],
            hosts: Sequence[plans.PlannedHost], profile: profiles.Profile,
            fill: HostFiller,
            ) -> tuple[list[tuple[catalogue.Offer, str | None]],
                       dict[shape_model.Shape, warning.PlanWarning]]:
    """Choose the offers that some host takes.

    :returns: these offers, each with the reason why it lost its socket scope
        or None; and the guests of the others with a warning about each
    """
    found: dict[shape_model.Shape, tuple[catalogue.Offer, str | None]] = {}
    left_out = {}
    for offer in offers:
        guest, scope_warning = drop_costly_scope(
            offer.guest, hosts, profile, fill)
        fillings = [fill(guest, host) for host in hosts]
        too_long = catalogue.find_long(guest)
        if any(filling.count for filling in fillings) and not too_long:
            same = found.get(guest)
            shares = {**offer.shares, **(same[0].shares if same else {})}
            found[guest] = catalogue.Offer(guest, shares), scope_warning
            continue
        reason = next((filling.misfit.message for filling in fillings
                       if filling.misfit), '')
        left_out[offer.guest] = warning.PlanWarning(
            warning.WarningCode.SIZE_NOT_PLACED,
            'left out, because '
            + (too_long or f'no host takes one: {reason}'),
            (catalogue.make_name(guest, profile.name_prefix, profile.disk_gib,
                                 profile.name_template),))
    return list(found.values()), left_out


def _flavor(name: str, offer: catalogue.Offer,
            hosts: Sequence[plans.PlannedHost], profile: profiles.Profile,
            fill: HostFiller) -> plans.PlannedFlavor:
    """Count the guests of an offer on every host."""
    fillings = {host.name: fill(offer.guest, host) for host in hosts}
    return plans.PlannedFlavor(
        catalogue.flavor(offer.guest, profile, name), offer.guest,
        offer.shares,
        {host: filling.count for host, filling in fillings.items()},
        {host.name: plans.measure_left(host, offer.guest, fillings[host.name])
         for host in hosts})


def _far_devices(name: str, guest: shape_model.Shape,
                 hosts: Sequence[plans.PlannedHost],
                 fill: HostFiller) -> list[warning.PlanWarning]:
    """Warn if some guests of a full host are far from their whole devices.

    Guests of several cells are left out: with the policy required, their
    claim has defect B, so that the comparison would say little.
    """
    near = dataclasses.replace(guest, devices=tuple(
        dataclasses.replace(device,
                            affinity=shape_model.PCIAffinity.REQUIRED)
        for device in guest.devices))
    if near == guest or len(guest.cells) > 1:
        return []
    counts = {fill.join_twins(host): (fill(near, host).count,
                                      fill(guest, host).count)
              for host in hosts}
    return [warning.PlanWarning(
        warning.WarningCode.DEVICES_FAR,
        f'on {host}, {count - local} of {count} instances have devices of '
        'other cells; the affinity required prevents that', (name,))
        for host, (local, count) in counts.items() if local < count]
