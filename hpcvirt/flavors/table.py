# SPDX-License-Identifier: Apache-2.0

"""Write a plan as tables, or as commands to paste into a shell."""

import itertools
import shlex
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planned as plans
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model

_HEADINGS = ('Flavor', 'Share', 'vCPUs', 'Cells', 'GiB', 'Fit', 'Unused')
_NUMBERS = {'vCPUs', 'GiB', 'Fit'}
#: Equal machines differ by less, in the memory that the kernel keeps.
_SAME_PERCENT = 1
_LEGEND = ('Share: the part of the host that the flavor was sized for. Cells: '
           'guest cells x vCPUs of each. GiB: RAM. Fit: how many instances of '
           'this flavor alone the host takes. Unused: the dedicated CPUs and '
           'the memory that they leave.')


def table(plan: plans.Plan,
          others: Sequence[plan_document.Alternative] = (),
          width: int | None = None) -> str:
    """Draw a plan: a table for each kind of host, a legend and warnings.

    :param others: the plans of other profiles in short
    :param width: the columns of the terminal; None without a terminal
    """
    room = width or text_table.WIDTH
    blocks = [_kind(plan, hosts, room) for hosts in _kinds(plan)]
    blocks += [_paragraph(other.message, room) for other in others]
    blocks.append(_paragraph(_LEGEND, room))
    if plan.warnings:
        blocks.append('\n'.join(
            ['Warnings', *(_paragraph(f'{item.code}: {item.message}.', room,
                                      '  ') for item in plan.warnings)]))
    return '\n\n'.join(blocks) + '\n'


def _kinds(plan: plans.Plan) -> list[list[plans.PlannedHost]]:
    """Group hosts with the same figures, and about the same memory."""
    kinds: dict[object, list[list[plans.PlannedHost]]] = {}
    for planned in plan.hosts:
        name = planned.host.name
        figures = (planned.fleet_class, _facts([planned], with_memory=False),
                   tuple((row.per_host.get(name), row.unused.get(name),
                          row.shares.get(name)) for row in plan.flavors))
        for same in kinds.setdefault(figures, []):
            if _has_same_memory(planned, same[0]):
                same.append(planned)
                break
        else:
            kinds[figures].append([planned])
    found = []
    for groups in kinds.values():
        found += groups
    return found


def _has_same_memory(one: plans.PlannedHost, other: plans.PlannedHost) -> bool:
    """Whether hosts differ only by the memory that the kernel keeps."""
    sums = sorted(_total_mib(host) for host in (one, other))
    return (sums[1] - sums[0]) * 100 <= sums[1] * _SAME_PERCENT


def _total_mib(planned: plans.PlannedHost) -> int:
    return sum(cell.memory_mib for cell in planned.host.cells)


def _kind(plan: plans.Plan, hosts: Sequence[plans.PlannedHost],
          width: int) -> str:
    names = [planned.name for planned in hosts]
    title = words.join_names(names, 'hosts')
    if len(names) > 1 and title.startswith(names[0]):
        title = f'{len(names)} hosts: {title}'
    if hosts[0].fleet_class:
        isolated = ' (isolated)' if hosts[0].state.kept_for else ''
        title = f'Class {hosts[0].fleet_class}{isolated}: {title}'
    rows = list(_rows(plan, hosts[0]))
    lines = textwrap.wrap(title, width, subsequent_indent='  ')
    lines += textwrap.wrap(_facts(hosts), width,
                           initial_indent='  ', subsequent_indent='  ')
    lines.append('')
    lines += [f'  {line}' for line in text_table.draw(
        _HEADINGS, rows, _NUMBERS, width - 2).splitlines()] if rows else [
        '  none of the flavors fits on this host']
    return '\n'.join(lines)


def _facts(hosts: Sequence[plans.PlannedHost], *,
           with_memory: bool = True) -> str:
    """Describe hosts that differ at most in their memory."""
    planned = hosts[0]
    host = planned.host
    cells = [cell for cell in host.cells if cell.cpus]
    guests, total = '', ''
    if with_memory:
        guests = _range([each.guest_memory_mib for each in hosts])
        total = _range([_total_mib(each) for each in hosts])
    sockets = (words.count_noun(len(host.sockets), 'socket')
               if host_model.Unknown.SOCKETS not in host.unknown
               else 'unknown sockets')
    return (f'{sockets}, '
            f'{words.count_noun(len(cells), "cell")} with CPUs, '
            f'{len(planned.settings.dedicated)} of {len(host.cpus)} CPUs '
            f'dedicated, {guests} of {total} GiB in pages of '
            f'{words.format_size(planned.page_kib)} for guests'
            + ''.join(f', {_devices(number, wanted)}' for number, wanted
                      in zip(planned.devices, planned.profile.devices,
                             strict=True)))


def _rows(plan: plans.Plan,
          planned: plans.PlannedHost) -> Iterator[tuple[str, ...]]:
    name = planned.host.name
    for row in plan.flavors:
        if not row.per_host.get(name):
            continue
        share = row.shares.get(name)
        yield (row.flavor.name, '-' if share is None else share.words,
               str(row.flavor.vcpus), _cells(row), _gib(row.flavor.ram_mib),
               str(row.per_host[name]),
               _unused(row.unused[name], planned.profile.devices))


def _unused(left: plans.Unused,
            entries: Sequence[device_choice.Devices]) -> str:
    amounts = [words.count_noun(left.pcpus, 'CPU')] if left.pcpus else []
    if left.memory_mib:
        amounts.append(f'{_gib(left.memory_mib)} GiB')
    amounts += [_devices(number, wanted) for number, wanted in zip(
        left.devices, entries, strict=True)
        if number and wanted.kind is not device_choice.DeviceKind.VF]
    return ', '.join(amounts) or 'none'


def _devices(number: int, wanted: device_choice.Devices) -> str:
    """Write a number of devices: ``8 x gpu``, ``4 vGPUs``, ``16 VFs``."""
    if wanted.kind is device_choice.DeviceKind.WHOLE:
        return f'{number} x {wanted.alias}'
    if wanted.kind is device_choice.DeviceKind.VGPU:
        return words.count_noun(number, 'vGPU')
    return words.count_noun(number, 'VF')


def _cells(row: plans.PlannedFlavor) -> str:
    """Write the guest cells: ``4x12``, or ``1x24+1x14`` if they differ."""
    groups = [(cpus, len(list(same))) for cpus, same in itertools.groupby(
        cell.cpus for cell in row.guest.cells)]
    return '+'.join(f'{count}x{cpus}' for cpus, count in groups)


def _paragraph(text: str, width: int, indent: str = '') -> str:
    return textwrap.fill(text, width, initial_indent=indent,
                         subsequent_indent=f'{indent}  ',
                         break_on_hyphens=False)


def _range(amounts: Sequence[int]) -> str:
    """Write amounts in GiB: ``251.6``, or ``251 to 252``."""
    least, most = _gib(min(amounts)), _gib(max(amounts))
    return least if least == most else f'{least} to {most}'


def _gib(memory_mib: int) -> str:
    gib = memory_mib / 1024
    return f'{gib:.1f}'.removesuffix('.0') if gib < 100 else f'{gib:.0f}'


def commands(plan: plans.Plan) -> Iterator[str]:
    """Write a command for each flavor, after the warnings as comments."""
    for item in plan.warnings:
        yield f'# {item.code}: {item.message}'
    for planned in plan.flavors:
        yield command(planned.flavor)
        for project in planned.flavor.projects or ():
            yield shlex.join(['openstack', 'flavor', 'set', '--project',
                              project, planned.flavor.name])


def command(flavor: flavor_model.Flavor) -> str:
    """Write the command that creates a flavor; Nova assigns its id."""
    words = ['openstack', 'flavor', 'create',
             '--vcpus', str(flavor.vcpus), '--ram', str(flavor.ram_mib),
             '--disk', str(flavor.disk_gib)]
    if flavor.projects is not None:
        words.append('--private')
    for key, value in flavor.extra_specs.items():
        words += ['--property', f'{key}={value}']
    return shlex.join([*words, flavor.name])
