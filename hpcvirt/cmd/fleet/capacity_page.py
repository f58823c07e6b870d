# SPDX-License-Identifier: Apache-2.0

"""Write the capacity of a fleet as one self-contained HTML page."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import words
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count as counts
from hpcvirt.fleet import drawing
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import state
from hpcvirt.page import templates

TITLE = 'What the fleet still takes'

#: A larger fleet is summarized; of its hosts, only the STAND_OUT with the most
#: free and stranded PCPUs are drawn, or of each of several classes its share.
MAX_CARDS = 24
STAND_OUT = 8
MIN_STAND_OUT = 2
MIN_CLASSES = 2
_CLASS = ('name', 'hosts', 'instances', 'pcpus', 'free', 'stranded', 'whole',
          'devices')
#: How many closed hosts and broken records are listed; more are counted.
MAX_LISTED = 50


def page(fleet: state.Fleet, found: Sequence[counts.InstanceCount],
         minute: str) -> str:
    """Return the page.

    :param minute: time at which the fleet was read
    """
    rooms = free_resources.describe_hosts(fleet, found)
    total = free_resources.total(rooms.values())
    most = max((item.by_sums for item in found), default=0)
    environment = templates.environment('hpcvirt.cmd.fleet')
    html: str = environment.get_template('capacity.html.j2').render(
        title=TITLE, marks={}, minute=minute,
        hosts=words.count_noun(len(fleet.hosts), 'host'),
        instances=words.count_noun(sum(
            len(host.instances) for host in fleet.hosts), 'instance'),
        flavors=[{**_flavor(item),
                  'by_class': capacity_report.list_by_class(fleet, item),
                  'drawing': drawing.promise(
            item.total, item.by_sums, most, item.flavor.name)}
            for item in found],
        classes=[dict(zip(_CLASS, capacity_report.row_of_class(*each),
                          strict=True))
                 for each in capacity_report.list_classes(fleet, rooms)],
        room=[{'name': name, 'total': amount, 'free': free,
               'stranded': '' if stranded is None else stranded,
               'drawing': drawing.shares(amount, free, stranded or 0, name)}
              for name, amount, free, stranded
              in capacity_report.list_amounts(total)],
        cards=[*_cards(fleet, rooms)],
        groups=[*_groups(rooms)] if len(rooms) > MAX_CARDS else [],
        sections=[
            _section('closed', 'Counted as full, because no new instance is '
                     'sent there', capacity_report.list_closed(fleet)),
            _section('broken', 'Left out, because the record is broken',
                     capacity_report.list_broken(fleet))])
    return html + '\n'


def _section(anchor: str, title: str,
             hosts: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {'id': anchor, 'title': title, 'hosts': hosts[:MAX_LISTED],
            'more': max(0, len(hosts) - MAX_LISTED)}


def _flavor(item: counts.InstanceCount) -> dict[str, Any]:
    return dict(zip(
        ('name', 'vcpus', 'gib', 'fit', 'by_sums', 'lost', 'where'),
        capacity_report.row(item), strict=True))


def _cards(fleet: state.Fleet,
           rooms: Mapping[str, free_resources.FreeResources],
           ) -> Iterator[dict[str, Any]]:
    """Yield the groups of hosts that are drawn host cell by host cell."""
    if len(fleet.hosts) <= MAX_CARDS:
        yield {'title': '', 'cards': [
            _card(host, rooms[host.name]) for host in fleet.hosts]}
        return
    classes = capacity_report.list_classes(fleet, rooms)
    if len(classes) < MIN_CLASSES:
        classes = [('', list(fleet.hosts), free_resources.total(()))]
    most = max(MIN_STAND_OUT, STAND_OUT // len(classes))
    for name, hosts, _ in classes:
        own = f'{name}: most' if name else 'Most'
        for what, amounts in (
                ('free', {host.name: rooms[host.name].pcpus.free
                          for host in hosts}),
                ('stranded', {host.name: rooms[host.name].pcpus.stranded
                              for host in hosts})):
            chosen = sorted(
                (host for host in hosts if amounts[host.name]),
                key=lambda host: -amounts[host.name])[:most]
            if chosen:
                yield {'title': f'{own} {what} PCPUs', 'cards': [
                    _card(host, rooms[host.name]) for host in chosen]}


def _card(host: state.FleetHost,
          room: free_resources.FreeResources) -> dict[str, Any]:
    return {'name': host.name, 'pcpus': room.pcpus,
            'instances': words.count_noun(len(host.instances), 'instance'),
            'drawing': drawing.host(host, room.pages)}


def _groups(rooms: Mapping[str, free_resources.FreeResources]) -> Iterator[
        dict[str, Any]]:
    """Count hosts by their share of free PCPUs, in tenths."""
    tenths = [0] * 12
    for room in rooms.values():
        total, free = room.pcpus.total, room.pcpus.free
        # Hosts with no and with all PCPUs free are counted separately.
        if not free:
            tenths[0] += 1
        elif free >= total:
            tenths[11] += 1
        else:
            tenths[1 + 10 * free // total] += 1
    for place, number in enumerate(tenths):
        name = f'{10 * (place - 1)} to {10 * place} %'
        if place == 0:
            name = 'none'
        elif place == 11:
            name = 'all'
        yield {'name': name, 'number': number, 'drawing': drawing.part(
            number, max(tenths), f'hosts with {name} of their PCPUs free')}
