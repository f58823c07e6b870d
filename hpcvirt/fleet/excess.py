# SPDX-License-Identifier: Apache-2.0

"""Find instances that have more than their host gives.

Nova and Placement keep what instances have if their host gives less later:
after a change of ``cpu_shared_set`` or of an allocation ratio, for example.
Then nothing of it is free, which a warning says. An instance with dedicated
CPUs, pages or devices that its host does not have is no such case: the record
of the host is broken (:mod:`hpcvirt.fleet.occupancy`).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import words
from hpcvirt.fit import devices
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import warning
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model

_NOUNS = ('PCPUs', 'vCPUs', 'MiB of memory', 'GiB of disk')

_EXCEED = ('the instances have more than is given to them, and nothing of it '
           'counts as free')
_DIFFER = ('the instances have what is not reported as used, so that moves '
           'free too much')
_UNCOUNTED = 'the instances have devices that are not counted'


def warn(exceeding: Mapping[str, str], differing: Mapping[str, str],
         uncounted: Mapping[str, str]) -> Iterator[warning.PlanWarning]:
    """Warn once of each kind, with the details of the first host.

    :param exceeding: host -> the answer of :func:`describe_excess`
    :param differing: host -> that of :func:`describe_difference`
    :param uncounted: host -> that of :func:`describe_uncounted`
    """
    for code, what, found in (
            (warning.WarningCode.INSTANCES_EXCEED, _EXCEED, exceeding),
            (warning.WarningCode.INSTANCES_EXCEED, _DIFFER, differing),
            (warning.WarningCode.DEVICES_NOT_COUNTED, _UNCOUNTED, uncounted)):
        for host, details in found.items():
            yield warning.PlanWarning(code, f'{what}; on {host}, {details}',
                                      tuple(found))
            break


def describe_excess(empty: placement.HostState,
                    host: state.FleetHost) -> str | None:
    """Say what the instances of a host have beyond what it gives.

    :param empty: the host without them
    :returns: what is more than what; None if nothing is
    """
    for number, noun in enumerate(_NOUNS):
        held = [(each, each.guest.sums[number]) for each in host.instances]
        largest = max((amount for _, amount in held), default=0)
        if largest > empty.max_unit[number]:
            return (f'{_name_largest(held)} {noun}, and the host has '
                    f'{empty.max_unit[number]} in all')
        if host.state.free[number] < 0:
            total = sum(amount for _, amount in held)
            return (f'they have {total} {noun}, and the host gives '
                    f'{empty.free[number]} ({_name_largest(held)})')
    for cell in host.state.supply.cells:
        found = _describe_cell(cell, host)
        if found is not None:
            return found
    return None


def _describe_cell(cell: supplies.CellSupply,
                   host: state.FleetHost) -> str | None:
    demands = []
    for instance in host.instances:
        if cell.id in instance.cells:
            place = instance.cells.index(cell.id)
            demands.append((instance, instance.guest.demand.cells[place]))
    supply = host.state.supply
    for noun, used, given, held in (
            ('vCPUs', cell.cpu_usage, len(cell.shared) * supply.cpu_ratio,
             [(each, demand.vcpus) for each, demand in demands]),
            ('MiB of memory', cell.memory_used_mib,
             cell.memory_mib * supply.ram_ratio,
             [(each, demand.memory_mib) for each, demand in demands])):
        if used > given:
            return (f'they have {used} {noun} on cell {cell.id}, which gives '
                    f'{int(given)} ({_name_largest(held)})')
    return None


def _name_largest(held: Collection[tuple[state.Instance, int]]) -> str:
    """Name the instance that has most, and say what it has."""
    instance, amount = max(held, key=lambda item: item[1])
    return f'{_name(instance)} has {amount}'


def _name(instance: state.Instance) -> str:
    where = f' of {instance.where}' if instance.where else ''
    return f'{instance.id}{where}'


def describe_difference(host: state.FleetHost) -> str | None:
    """Say what instances have that Nova does not report as used.

    :param host: a host with what Nova reports that it has left
    :returns: what is more than what; None if nothing is
    """
    owners: dict[int, state.Instance] = {}
    for instance in host.instances:
        for cpu in sorted(instance.holding.cpus):
            if cpu in owners:
                return (f'{_name(instance)} has CPU {cpu}, and so has '
                        f'{owners[cpu].id}')
            owners[cpu] = instance
    emptied = moving.leave_all(host.instances, host).state.supply
    for before, after in zip(host.state.supply.cells, emptied.cells,
                             strict=True):
        own = [each for each in host.instances if before.id in each.cells]
        if not own:
            continue
        unused = before.free & owners.keys()
        if unused:
            return (f'{_name(owners[min(unused)])} has CPU '
                    f'{cpuset.render(unused)}, which Nova reports as free')
        for noun, used, left in _list_used(before, after):
            if left < 0:
                return (f'they have {used - left} {noun} on cell {before.id}, '
                        f'where Nova reports {used} as used (one of them is '
                        f'{_name(own[0])})')
    return None


def _list_used(before: supplies.CellSupply, after: supplies.CellSupply,
               ) -> Iterator[tuple[str, int, int]]:
    """Yield what is used of a cell, and what without its instances."""
    for old, new in zip(before.pages, after.pages, strict=True):
        yield (f'pages of {words.format_size(old.size_kib)}', old.used,
               new.used)
    yield 'MiB of memory', before.memory_used_mib, after.memory_used_mib
    yield 'vCPUs', before.cpu_usage, after.cpu_usage


def describe_uncounted(host: state.FleetHost,
                       machine: host_model.Host) -> str | None:
    """Say which devices of instances are in no pool of their host.

    Devices that the topology has, but the settings do not give, are no error.

    :returns: None if there are none, or the topology does not have devices
    """
    if host_model.Unknown.DEVICES in machine.unknown:
        return None
    addresses = [device.address for device in machine.devices]
    known = {*addresses, *map(_read_bus, addresses)}
    for instance in host.instances:
        for address in instance.devices:
            lower = address.lower()
            if lower not in known and _read_bus(lower) not in known:
                return (f'{_name(instance)} has {address[:40]}, which the '
                        'topology does not have')
        missing = [] if instance.devices else list(_list_missing(
            instance.guest.demand.requests, host.state.supply.pools or ()))
        if missing:
            return (f'{_name(instance)} has a flavor with '
                    + ' and '.join(missing)
                    + ', and the host gives none to guests')
    return None


def _read_bus(address: str) -> str:
    """Read the bus of a device, which its virtual functions have, too."""
    return address.rpartition(':')[0]


def _list_missing(requests: Iterable[devices.DeviceRequest],
                  pools: Collection[devices.Pool]) -> Iterator[str]:
    for request in requests:
        if not devices.free_devices(request, pools):
            yield f'{request.count} {request.name}'
