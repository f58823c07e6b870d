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

"""Draw a plan as a table for people."""

import itertools
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt.flavors import alternative
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import published_losses
from hpcvirt.flavors import subjects
from hpcvirt.model import host as host_model

#: Columns where there is no terminal.
WIDTH = 100

_HEADINGS = ('Flavor', 'Share', 'vCPUs', 'Cells', 'GiB', 'Fit', 'Unused',
             'Loss')
_NUMBERS = {'vCPUs', 'GiB', 'Fit'}
_LEGEND = ('Share: the part of the host that the flavor was sized for. Cells: '
           'guest cells x vCPUs of each. GiB: RAM. Fit: how many instances of '
           'this flavor alone the host takes. Unused: the dedicated CPUs and '
           'the memory that they leave.')


def table(plan: plans.Plan, other: alternative.Alternative | None = None,
          width: int | None = None) -> str:
    """Draw a plan: a table for each kind of host, a legend and warnings.

    :param other: what another profile would give
    :param width: columns of the terminal, None if there is none
    """
    room = width or WIDTH
    blocks = [_kind(plan, hosts, room) for hosts in _kinds(plan)]
    if other is not None:
        blocks.append(_paragraph(other.message, room))
    studies = {loss.study.document.key: loss.study for planned in plan.hosts
               for row in plan.flavors for loss in row.losses(planned)}
    notes = [_LEGEND]
    notes += [f'Loss: {study.measured} {study.document.citation}.'
              for _, study in sorted(studies.items())]
    blocks.append('\n'.join(_paragraph(note, room) for note in notes))
    if plan.warnings:
        blocks.append('\n'.join(
            ['Warnings', *(_paragraph(f'{item.code}: {item.message}.', room,
                                      '  ') for item in plan.warnings)]))
    return '\n\n'.join(blocks) + '\n'


def _kinds(plan: plans.Plan) -> list[list[plans.PlannedHost]]:
    """Group the hosts for which all figures of the table are the same."""
    kinds: dict[object, list[plans.PlannedHost]] = {}
    for planned in plan.hosts:
        name = planned.host.name
        figures = (_facts(planned, plan.profile.devices), tuple(
            (row.per_host[name], row.stranded[name], row.shares.get(name))
            for row in plan.flavors))
        kinds.setdefault(figures, []).append(planned)
    return list(kinds.values())


def _kind(plan: plans.Plan, hosts: Sequence[plans.PlannedHost],
          width: int) -> str:
    names = [planned.name for planned in hosts]
    title = subjects.in_words(names, 'hosts')
    if len(names) > 1 and title.startswith(names[0]):
        title = f'{len(names)} hosts: {title}'
    rows = list(_rows(plan, hosts[0]))
    lines = textwrap.wrap(title, width, subsequent_indent='  ')
    lines += textwrap.wrap(_facts(hosts[0], plan.profile.devices), width,
                           initial_indent='  ', subsequent_indent='  ')
    lines.append('')
    lines += [f'  {line}' for line in text_table.draw(
        _HEADINGS, rows, _NUMBERS, width - 2).splitlines()] if rows else [
        '  none of the flavors fits on this host']
    return '\n'.join(lines)


def _facts(planned: plans.PlannedHost,
           wanted: profiles.Devices | None) -> str:
    host = planned.host
    cells = [cell for cell in host.cells if cell.cpus]
    total = sum(cell.memory_mib for cell in host.cells)
    packages = (counted(len(host.packages), 'package')
                if host_model.Unknown.PACKAGES not in host.unknown
                else 'unknown packages')
    return (f'{packages}, '
            f'{counted(len(cells), "cell")} with CPUs, '
            f'{len(planned.settings.dedicated)} of {len(host.cpus)} CPUs '
            f'dedicated, {_gib(planned.guest_memory_mib)} of '
            f'{_gib(total)} GiB in pages of '
            f'{_page_size(planned.page_kib)} for guests'
            + (f', {_devices(planned.devices, wanted)}' if wanted else ''))


def _rows(plan: plans.Plan,
          planned: plans.PlannedHost) -> Iterator[tuple[str, ...]]:
    name = planned.host.name
    for row in plan.flavors:
        if not row.per_host[name]:
            continue
        share = row.shares.get(name)
        yield (row.flavor.name, '-' if share is None else share.words,
               str(row.flavor.vcpus), _cells(row), _gib(row.flavor.ram_mib),
               str(row.per_host[name]),
               _unused(row.stranded[name], plan.profile.devices),
               _expected(row.losses(planned)))


def _unused(left: plans.Stranded, wanted: profiles.Devices | None) -> str:
    amounts = [counted(left.pcpus, 'CPU')] if left.pcpus else []
    if left.memory_mib:
        amounts.append(f'{_gib(left.memory_mib)} GiB')
    if left.devices and wanted and wanted.kind is not profiles.Kind.VF:
        amounts.append(_devices(left.devices, wanted))
    return ', '.join(amounts) or 'none'


def _devices(number: int, wanted: profiles.Devices) -> str:
    """Write a number of devices: ``8 x gpu``, ``4 vGPUs``, ``16 VFs``."""
    if wanted.kind is profiles.Kind.WHOLE:
        return f'{number} x {wanted.alias}'
    return counted(number, 'vGPU' if wanted.kind is profiles.Kind.VGPU
                   else 'VF')


def _expected(losses: Sequence[published_losses.Loss]) -> str:
    if not losses:
        return '-'
    low = min(loss.low for loss in losses)
    high = max(loss.high for loss in losses)
    span = f'{low:g}%' if low == high else f'{low:g}-{high:g}%'
    return f'{span}, {losses[0].configuration}'


def _cells(row: plans.PlannedFlavor) -> str:
    """Write the guest cells: ``4x12``, or ``1x24+1x14`` if they differ."""
    groups = [(cpus, len(list(same))) for cpus, same in itertools.groupby(
        cell.cpus for cell in row.guest.cells)]
    return '+'.join(f'{count}x{cpus}' for cpus, count in groups)


def _paragraph(text: str, width: int, indent: str = '') -> str:
    return textwrap.fill(text, width, initial_indent=indent,
                         subsequent_indent=f'{indent}  ',
                         break_on_hyphens=False)


def _page_size(page_kib: int) -> str:
    for unit, factor in (('GiB', 1024 ** 2), ('MiB', 1024)):
        if page_kib % factor == 0:
            return f'{page_kib // factor} {unit}'
    return f'{page_kib} KiB'


def _gib(memory_mib: int) -> str:
    gib = memory_mib / 1024
    return f'{gib:.1f}'.removesuffix('.0') if gib < 100 else f'{gib:.0f}'


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 flavor``, ``2 flavors``."""
    return f'{number} {noun}' + ('' if number == 1 else 's')
