# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Write what a fleet still takes, as a document and as a table."""

import textwrap
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt.flavors import table
from hpcvirt.fleet import count as counts
from hpcvirt.fleet import state

SCHEMA_VERSION = 1

_HEADINGS = ('Flavor', 'vCPUs', 'GiB', 'Fit', 'By sums', 'Lost', 'Where')
_NUMBERS = {'vCPUs', 'GiB', 'Fit', 'By sums', 'Lost'}
_LEGEND = ('Fit: how many more instances of this flavor alone the fleet takes '
           'until Nova refuses one. By sums: how many the free CPUs and '
           'memory of each host would be enough for, which is what Placement '
           'compares. Lost: the share of these that cannot start, because '
           'what is free is in the wrong cells. Where: the hosts with the '
           'most room.')
_MOST_HOSTS = 3


def document(fleet: state.Fleet,
             found: Sequence[counts.Count]) -> dict[str, Any]:
    """Turn the counts into dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'flavors': [{'name': item.flavor.name, 'total': item.total,
                     'per_host': dict(item.per_host),
                     'by_sums': item.by_sums} for item in found],
        'broken': broken(fleet),
    }


def broken(fleet: state.Fleet) -> list[dict[str, str]]:
    """List the hosts whose records cannot be used."""
    return [{'name': name, 'reason': reason}
            for name, reason in fleet.broken.items()]


def text(fleet: state.Fleet, found: Sequence[counts.Count],
         width: int | None = None) -> str:
    """Draw the counts.

    :param width: columns of the terminal, None if there is none
    """
    room = width or table.WIDTH
    instances = sum(len(host.instances) for host in fleet.hosts)
    blocks = [
        (f'{table.counted(len(fleet.hosts), "host")} with '
         f'{table.counted(instances, "instance")}\n'),
        text_table.draw(_HEADINGS, [_row(item) for item in found], _NUMBERS,
                        room),
        textwrap.fill(_LEGEND, room, subsequent_indent='  ',
                      break_on_hyphens=False) + '\n',
    ]
    if fleet.broken:
        blocks.append(broken_in_words(fleet, room))
    return '\n'.join(blocks)


def broken_in_words(fleet: state.Fleet, width: int) -> str:
    """Say which hosts are left out, and why."""
    number = table.counted(len(fleet.broken), 'host')
    lines = [f'{number} left out, because the record is broken:']
    for name, reason in fleet.broken.items():
        lines += textwrap.wrap(
            reason if reason.startswith(f'{name}: ') else
            f'{name}: {reason}', width, initial_indent='  ',
            subsequent_indent='    ', break_on_hyphens=False)
    return '\n'.join(lines) + '\n'


def _row(item: counts.Count) -> tuple[str, ...]:
    lost = item.by_sums - item.total
    return (item.flavor.name, str(item.flavor.vcpus),
            f'{item.flavor.ram_mib / 1024:.1f}'.removesuffix('.0'),
            str(item.total), str(item.by_sums),
            f'{lost / item.by_sums:.0%}' if item.by_sums else '-',
            _where(item.per_host))


def _where(per_host: Mapping[str, int]) -> str:
    roomy = sorted(((number, name) for name, number in per_host.items()
                    if number), key=lambda pair: (-pair[0], pair[1]))
    words = [f'{name}: {number}' for number, name in roomy[:_MOST_HOSTS]]
    if len(roomy) > _MOST_HOSTS:
        words.append(f'{len(roomy) - _MOST_HOSTS} more')
    return ', '.join(words) or '-'
