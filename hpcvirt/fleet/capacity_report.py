# SPDX-License-Identifier: Apache-2.0

"""Write the instances that a fleet still takes, as a document and a table."""

import dataclasses
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.flavors import memory
from hpcvirt.fleet import count as counts
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import state

SCHEMA_VERSION = 1

_CLASS_HEADINGS = ('Class', 'Hosts', 'Instances', 'PCPUs', 'Free', 'Stranded',
                   'Free hosts', 'Free devices')
_CLASS_NUMBERS = {'Hosts', 'Instances', 'PCPUs', 'Free', 'Stranded',
                  'Free hosts'}
_HEADINGS = ('Flavor', 'vCPUs', 'GiB', 'Fit', 'By sums', 'Lost', 'Where')
_NUMBERS = {'vCPUs', 'GiB', 'Fit', 'By sums', 'Lost'}
_LEGEND = ('Fit: how many more instances of this flavor alone the fleet takes '
           'until Nova refuses one. By sums: how many would fit by the free '
           'CPUs, memory and devices of each host, regardless of cells. '
           'Lost: the share of these that cannot start, because what is free '
           'is in the wrong cells, or on a host without the pages or the SMT '
           'siblings that the flavor needs. Where: the hosts with the most '
           'room.')
_ROOM_HEADINGS = ('For guests', 'Total', 'Free', 'Stranded',
                  'Used # free - stranded !')
_ROOM_NUMBERS = {'Total', 'Free', 'Stranded'}
_ROOM_LEGEND = ('Stranded: free, but left over whichever one of these flavors '
                'fills the hosts. A cell, socket or host is free if no '
                'instance uses a part of it.')
_SETS_LEGEND = ('A set of PCI devices is free if some of its devices are, and '
                'stranded if only some are.')
_MAX_HOSTS = 3
_BAR = 24


def document(fleet: state.Fleet,
             found: Sequence[counts.InstanceCount]) -> dict[str, Any]:
    """Write the counts as dicts, lists, numbers and strings."""
    rooms = free_resources.describe_hosts(fleet, found)
    free_pcpus = sum(room.pcpus.free for room in rooms.values())
    return {
        'schema_version': SCHEMA_VERSION,
        'flavors': [{'name': item.flavor.name, 'total': item.total,
                     'per_host': dict(item.per_host),
                     'per_class': count_by_class(fleet, item),
                     'by_sums': item.by_sums,
                     'lost': item.by_sums - item.total,
                     'pcpus_left': free_pcpus - item.pcpus}
                    for item in found],
        'free': _room(free_resources.total(rooms.values())),
        'hosts': [{'name': name, **_room(room)}
                  for name, room in rooms.items()],
        'classes': [{'name': name, 'instances': sum(
            len(host.instances) for host in members), **_room(room)}
            for name, members, room in list_classes(fleet, rooms)],
        'closed': list_closed(fleet),
        'broken': list_broken(fleet),
    }


def list_classes(fleet: state.Fleet,
                 rooms: Mapping[str, free_resources.FreeResources],
                 ) -> list[tuple[str, list[state.FleetHost],
                                 free_resources.FreeResources]]:
    """List the classes of a fleet document with what they have free.

    :returns: nothing for hosts without classes
    """
    members: dict[str, list[state.FleetHost]] = {}
    for host in fleet.hosts:
        if host.fleet_class:
            members.setdefault(host.fleet_class, []).append(host)
    return [(name, own, free_resources.total(
        rooms[host.name] for host in own)) for name, own in members.items()]


def count_by_class(fleet: state.Fleet,
                   item: counts.InstanceCount) -> dict[str, int]:
    """Count the instances of a flavor that each class takes."""
    found: dict[str, int] = {}
    for host in fleet.hosts:
        if host.fleet_class:
            found[host.fleet_class] = (found.get(host.fleet_class, 0)
                                       + item.per_host[host.name])
    return found


def row_of_class(name: str, members: Sequence[state.FleetHost],
                 room: free_resources.FreeResources) -> tuple[str, ...]:
    """Write the line of a class."""
    devices = ', '.join(f'{kind}: {amount.free} of {amount.total}'
                        for kind, amount in room.devices.items())
    return (name, str(len(members)),
            str(sum(len(host.instances) for host in members)),
            str(room.pcpus.total), str(room.pcpus.free),
            str(room.pcpus.stranded), str(room.hosts.free), devices or '-')


def _room(room: free_resources.FreeResources) -> dict[str, Any]:
    plain = dataclasses.asdict(room)
    return {**plain, 'pages': [{'size_kib': size, **amount}
                               for size, amount in plain['pages'].items()],
            'device_sets': [{'kind': kind, **amount} for kind, amount
                            in plain['device_sets'].items()]}


def list_closed(fleet: state.Fleet) -> list[dict[str, str]]:
    """List the hosts that take no new instances, each with the reason."""
    return [{'name': host.name, 'reason': (
                'it is in quarantine: ' if host.state.quarantined else '')
             + host.state.closed}
            for host in fleet.hosts if host.state.closed is not None]


def list_broken(fleet: state.Fleet) -> list[dict[str, str]]:
    """List the hosts whose records cannot be used, each with the reason."""
    return [{'name': name, 'reason': reason}
            for name, reason in fleet.broken.items()]


def text(fleet: state.Fleet, found: Sequence[counts.InstanceCount],
         width: int | None = None) -> str:
    """Write the counts as tables.

    :param width: the columns of the terminal; None without a terminal
    """
    room = width or text_table.WIDTH
    instances = sum(len(host.instances) for host in fleet.hosts)
    rooms = free_resources.describe_hosts(fleet, found)
    free = free_resources.total(rooms.values())
    by_class = list_classes(fleet, rooms)
    headings: tuple[str, ...] = _HEADINGS
    rows = [row(item) for item in found]
    if len(by_class) > 1:
        headings = (*_HEADINGS[:-1], 'By class', _HEADINGS[-1])
        rows = [(*line[:-1], list_by_class(fleet, item), line[-1])
                for line, item in zip(rows, found, strict=True)]
    legend = f'{_ROOM_LEGEND} {_SETS_LEGEND}' if free.device_sets else (
        _ROOM_LEGEND)
    blocks = [
        (f'{words.count_noun(len(fleet.hosts), "host")} with '
         f'{words.count_noun(instances, "instance")}\n'),
        text_table.draw(headings, rows, _NUMBERS, room),
        _filled(_LEGEND, room),
        *([text_table.draw(_CLASS_HEADINGS, [
            row_of_class(*each) for each in by_class], _CLASS_NUMBERS, room)]
          if len(by_class) > 1 else ()),
        text_table.draw(_ROOM_HEADINGS, [
            (name, str(total), str(free),
             '' if stranded is None else str(stranded),
             _bar(total, free, stranded or 0))
            for name, total, free, stranded in list_amounts(free)],
            _ROOM_NUMBERS, room),
        _filled(legend, room),
    ]
    closed = list_closed(fleet)
    if closed:
        blocks.append(list_hosts(
            f'{words.count_noun(len(closed), "host")} counted as full, '
            'because no new instance is sent there:',
            {item['name']: item['reason'] for item in closed}, room))
    if fleet.broken:
        blocks.append(format_broken(fleet, room))
    return '\n'.join(blocks)


def list_by_class(fleet: state.Fleet, item: counts.InstanceCount) -> str:
    """Write how many instances of a flavor the hosts of each class take."""
    return ', '.join(f'{name}: {number}' for name, number
                     in count_by_class(fleet, item).items() if number) or '-'


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent='  ',
                         break_on_hyphens=False) + '\n'


def list_amounts(room: free_resources.FreeResources) -> Iterator[
        tuple[str, int, int, int | None]]:
    """List each resource: its total, and what is free and stranded."""
    for name, amount in (('PCPUs', room.pcpus), *(
            (f'pages of {memory.page_name(size)}', pages)
            for size, pages in room.pages.items()), *(
            (f'sets {kind}', sets)
            for kind, sets in room.device_sets.items())):
        yield name, amount.total, amount.free, amount.stranded
    for name, whole in (*((f'devices {kind}', amount)
                          for kind, amount in room.devices.items()),
                        ('whole cells', room.cells),
                        ('whole sockets', room.sockets),
                        ('whole hosts', room.hosts)):
        yield name, whole.total, whole.free, None


def _bar(total: int, free: int, stranded: int) -> str:
    """Draw the shares of a total; a share above zero has a mark at least."""
    if not total:
        return ''
    lost = _length(stranded, total)
    rest = min(_BAR - lost, _length(free - stranded, total))
    return '#' * (_BAR - rest - lost) + '-' * rest + '!' * lost


def _length(part: int, total: int) -> int:
    return 0 if part <= 0 else max(1, round(_BAR * part / total))


def format_broken(fleet: state.Fleet, width: int) -> str:
    """List the hosts that are left out, and why."""
    number = words.count_noun(len(fleet.broken), 'host')
    return list_hosts(f'{number} left out, because the record is broken:',
                      fleet.broken, width)


def list_hosts(heading: str, hosts: Mapping[str, str], width: int) -> str:
    """List hosts, each with a reason, below a heading."""
    lines = [heading]
    for name, reason in hosts.items():
        lines += textwrap.wrap(
            reason if reason.startswith(f'{name}: ') else
            f'{name}: {reason}', width, initial_indent='  ',
            subsequent_indent='    ', break_on_hyphens=False)
    return '\n'.join(lines) + '\n'


def row(item: counts.InstanceCount) -> tuple[str, ...]:
    """Write the line of a flavor."""
    lost = item.by_sums - item.total
    return (item.flavor.name, str(item.flavor.vcpus),
            f'{item.flavor.ram_mib / 1024:.1f}'.removesuffix('.0'),
            str(item.total), str(item.by_sums),
            f'{lost / item.by_sums:.0%}' if item.by_sums else '-',
            _where(item.per_host))


def _where(per_host: Mapping[str, int]) -> str:
    roomy = sorted(((number, name) for name, number in per_host.items()
                    if number), key=lambda pair: (
                       -pair[0], words.natural_order(pair[1])))
    equal = sum(number == roomy[0][0] for number, _ in roomy)
    if equal > _MAX_HOSTS:
        most, name = roomy[0]
        parts = [f'{name} and {equal - 1} more: {most}']
        if len(roomy) > equal:
            parts.append(f'{len(roomy) - equal} with fewer')
        return ', '.join(parts)
    parts = [f'{name}: {number}' for number, name in roomy[:_MAX_HOSTS]]
    if len(roomy) > _MAX_HOSTS:
        parts.append(f'{len(roomy) - _MAX_HOSTS} more')
    return ', '.join(parts) or '-'
