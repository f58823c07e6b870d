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

"""Write a refused request of a log, as ``hpcvirt explain`` writes a fleet.

The table and the document are those of :mod:`hpcvirt.fleet.explain_report`;
the hosts are those that reached the filter.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.fit import reasons
from hpcvirt.flavors import subjects
from hpcvirt.flavors import table
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import refusal
from hpcvirt.fleet import verdict

#: Other refusals that the table names.
_MOST_OTHERS = 20

_HEADINGS = ('Time', 'Request', 'Flavor', 'Hosts', 'Why')


def document(item: refusal.Refusal) -> dict[str, Any]:
    """Turn a refusal into the document of explain.

    ``hosts`` has the hosts that the log names; ``refused`` says how many there
    were of each group, and what else the log has of the request.
    """
    plain: dict[str, Any] = serialization.to_plain(item)
    del plain['schema_version']
    for group, record in zip(item.groups, plain['groups'], strict=True):
        record['step'] = verdict.step_of(group.code).value
    named = [verdict.Verdict(name, verdict.step_of(group.code), group.code,
                             group.root, group.reason)
             for group in item.groups for name in group.names]
    return {**explain_report.document(named, ()), 'refused': plain}


def brief(item: refusal.Refusal) -> dict[str, Any]:
    """Name a refusal in a list."""
    return {'time': item.time, 'request_id': item.request_id,
            'instance': item.instance, 'flavor': item.flavor,
            'hosts': item.hosts,
            'reasons': {code.value: hosts for code, hosts
                        in refusal.total(item.groups).items()}}


def text(item: refusal.Refusal, width: int | None = None) -> str:
    """Draw a refusal.

    :param width: columns of the terminal, None if there is none
    """
    room = width or table.WIDTH
    what = (f'At {_time(item)} nova-scheduler refused the request '
            f'{item.request_id or "(without id)"} for the instance '
            f'{item.instance or "(without id)"}. It asked for '
            f'{_in_words(item.asked)}.')
    blocks = [
        textwrap.fill(what, room, break_on_hyphens=False) + '\n',
        (f'{item.flavor} fits on 0 of {table.counted(item.hosts, "host")} '
         'that reached the filter.\n'),
        text_table.draw(explain_report.HEADINGS, [
            _row(group) for group in item.groups], {'Hosts'}, room)]
    if item.other_hosts:
        blocks.append(f'{table.counted(item.other_hosts, "host")} more '
                      'failed for other reasons, which the log leaves out.\n')
    return '\n'.join(blocks)


def others(items: Sequence[refusal.Refusal], total: int,
           width: int | None = None) -> str:
    """Draw the list of other refusals, the last first."""
    shown = list(reversed(items))[:_MOST_OTHERS]
    words = f'{table.counted(total, "other refusal")} in this log'
    if total > len(shown):
        words += f', of which the last {len(shown)} are'
    return f'{words}:\n\n' + text_table.draw(
        _HEADINGS, [(_time(item), item.request_id or item.instance or '-',
                     item.flavor, str(item.hosts),
                     reasons.tally(refusal.total(item.groups)))
                    for item in shown], {'Hosts'}, width or table.WIDTH)


def _row(group: refusal.Group) -> tuple[str, ...]:
    why = group.reason
    if group.hosts > 1 and group.names:
        why = f'for example {group.names[0]}: {why}'
    return (str(group.hosts),
            subjects.in_words(group.names, 'hosts', group.hosts),
            verdict.step_of(group.code), why)


def _time(item: refusal.Refusal) -> str:
    return item.time.replace('T', ' ').replace('+00:00', ' UTC')


def _in_words(asked: refusal.Asked) -> str:
    words = [f'{table.counted(asked.vcpus, "vCPU")} and {asked.ram_mib} MiB']
    words += [
        f'{table.counted(cell.count, "guest cell")} of '
        + ' and '.join(table.counted(number, noun) for number, noun in (
            (cell.pcpus, 'dedicated CPU'), (cell.vcpus, 'shared vCPU'))
            if number)
        + f' and {cell.memory_mib} MiB'
        + _pages(cell.pages_kib) for cell in asked.cells]
    if asked.thread_policy:
        words.append(f'the thread policy {asked.thread_policy}')
    words += [f'{table.counted(item.count, "device")} for {item.name} '
              f'({item.affinity})' for item in asked.devices]
    if asked.networks:
        words.append(f'the networks {", ".join(asked.networks)}')
    if asked.numa_scope:
        words.append(f'cells of one {asked.numa_scope}')
    if asked.exclusive_cells:
        words.append('cells of its own')
    if asked.instances > 1:
        words.append(f'one of {asked.instances} instances')
    return ', '.join(words)


def _pages(pages_kib: str | None) -> str:
    if pages_kib is None:
        return ''
    if pages_kib.isdigit():
        return f' in pages of {pages_kib} KiB'
    return f' in {pages_kib} pages'
