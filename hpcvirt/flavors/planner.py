# SPDX-License-Identifier: Apache-2.0

"""Plan the flavors of a fleet, their number on each host, and its settings."""

import collections
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import placement_limits
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import planned_settings
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import propose
from hpcvirt.flavors import sizes as guest_sizes
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model


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
        return words.join_names([name for host in hosts
                                 for name in self._names[host.name]], 'hosts')


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
    sizes: tuple[guest_sizes.GuestSize, ...]
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
        *found.warnings, *placement_limits.warn_many(found)))


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
    why = '; '.join(item.message for item in plan.warnings)
    raise exception.InvalidInput(
        words.join_names([host.name for host in plan.hosts], 'hosts'),
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
        [name for same in names.values() for name in same], 'hosts')
    _check_smallest(divided_hosts, profile, everyone)
    pieces = {piece for divided in divided_hosts for size in divided.sizes
              for piece in propose.memory_parts(size, profile)}
    warnings: list[warning.PlanWarning] = []
    offers: list[catalogue.Offer] = []
    host_pools = []
    for divided in divided_hosts:
        partition = divided.partition
        pools = memory.pools(partition, profile, pieces, divided.page_kib)
        host_pools.append(pools)
        warnings += divided.warnings
        warnings += memory.warn_uneven(partition.host, pools)
        proposals = propose.proposals(
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
        guests = [offer.guest for offer in merged]
        planned = tuple(
            _host(divided, pools, guests, profile, types)
            for divided, pools in zip(divided_hosts, host_pools, strict=True))
        fill = HostFiller(names, profile.pack_cells)
        placed, left_out = _placed(merged, planned, profile, fill)
        warnings += left_out.values()
        if not left_out or not placed:
            break
        # Hosts need no pages for what is left out.
        merged = tuple(offer for offer in merged
                       if offer.guest not in left_out)
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


def _check_smallest(hosts: Sequence[_DividedHost],
                    profile: profiles.Profile, names: str) -> None:
    widths = [len(share.cores) for divided in hosts
              for share in divided.partition.cells]
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
    sizes = guest_sizes.sizes(
        partition, profile.host_steps, profile.smallest_cores,
        profile.all_host_steps,
        {item.cores: item.guests for item in offered_devices.cell_portions(
            partition, devices, planned_sets.narrow(profile, sets).device)})
    return _DividedHost(partition, devices, sets, sizes, page_kib,
                        (*warnings, *page_warnings))


def _host(divided: _DividedHost, pools: Sequence[memory.CellPool],
          guests: Sequence[shape_model.Shape],
          profile: profiles.Profile,
          types: Mapping[device_choice.Devices, str]) -> plans.PlannedHost:
    host = divided.partition.host
    sets = divided.sets
    offered = sets.offered if profile.has_sets else divided.devices
    settings, rest_mib = planned_settings.make_settings(
        divided.partition, pools, guests, profile, offered, types, sets)
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
            'is left out, because '
            + (too_long or f'no host takes it: {reason}'),
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
