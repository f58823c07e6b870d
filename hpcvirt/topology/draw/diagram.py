# SPDX-License-Identifier: Apache-2.0

"""Draw a host as text: sockets and cells as boxes, and cores with siblings.

:mod:`hpcvirt.topology.draw.cell_diagram` draws the contents of a cell's box.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import cell_diagram
from hpcvirt.topology.draw import wiring_diagram

#: The minimum width inside a cell's box: two boxes in a socket's box fit into
#: 80 columns.
_MIN_INNER_WIDTH = 32

_GAP = 2
_FRAME = 4

#: The names of unknown values in a drawing.
_NOT_SAID = {
    host_model.Unknown.SOCKETS: 'the sockets of the cells',
    host_model.Unknown.CACHES: 'last-level caches',
    host_model.Unknown.PAGES: 'pages',
    host_model.Unknown.VFS: 'numbers of VFs',
    host_model.Unknown.DEVICES: 'devices other than network adapters (the '
    'collector pci-devices of ironic-python-agent lists them)',
}


def draw(host: host_model.Host, width: int = 80) -> str:
    """Draw a host.

    :param width: columns to fill; a part that needs more is wider
    :returns: lines, each ended by a newline
    """
    host = _without_unknown(host)
    parts = [_summary(host, width),
             _sockets(host, width),
             _memory_cells(host, width),
             _devices_without_cell(host, width),
             wiring_diagram.draw(host, width),
             _distances(host, width),
             _legend(host, width),
             _not_said(host, width)]
    lines = itertools.chain.from_iterable(
        [*part, ''] for part in parts if part)
    return '\n'.join(line.rstrip() for line in lines).rstrip() + '\n'


def _without_unknown(host: host_model.Host) -> host_model.Host:
    """Remove the assumed values that stand for unknown ones."""
    cells = host.cells
    if host_model.Unknown.CACHES in host.unknown:
        cells = tuple(dataclasses.replace(cell, llc=()) for cell in cells)
    if host_model.Unknown.PAGES in host.unknown:
        cells = tuple(dataclasses.replace(cell, pages=()) for cell in cells)
    return dataclasses.replace(host, cells=cells)


def _summary(host: host_model.Host, width: int) -> list[str]:
    cores = sum(len(cell.siblings) for cell in host.cells)
    memory_mib = sum(cell.memory_mib for cell in host.cells)
    sockets = ([] if host_model.Unknown.SOCKETS in host.unknown else
               [words.count_noun(len(host.sockets), 'socket')])
    facts = [*sockets,
             words.count_noun(len(host.cells), 'cell'),
             words.count_noun(cores, 'core'),
             words.count_noun(len(host.cpus), 'CPU'),
             words.format_size(memory_mib * 1024)]
    return [host.name, *boxes.wrap([f'{fact},' for fact in facts[:-1]]
                                   + facts[-1:], width)]


def _sockets(host: host_model.Host, width: int) -> list[str]:
    if host_model.Unknown.SOCKETS in host.unknown:
        cells = [cell for cell in host.cells if cell.cpus]
        return _cells(host, cells, _cell_width(host, len(cells), width), width)
    members = {socket: [cell for cell in host.cells
                        if cell.socket == socket and cell.cpus]
               for socket in host.sockets}
    members = {socket: cells for socket, cells in members.items() if cells}
    alone = all(len(cells) == 1 for cells in members.values())
    most = len(members) if alone else max(map(len, members.values()))
    room = width if alone else width - _FRAME
    outer = _cell_width(host, most, room)
    return boxes.side_by_side(
        [boxes.box(f'socket {socket} · cell {cells[0].id}',
                   cell_diagram.contents(host, cells[0], outer - _FRAME),
                   boxes.HEAVY, outer) if len(cells) == 1 else
         boxes.box(f'socket {socket}', _cells(host, cells, outer, room),
                   boxes.HEAVY) for socket, cells in members.items()],
        width, _GAP)


def _cells(host: host_model.Host, cells: Sequence[host_model.Cell],
           outer: int, room: int) -> list[str]:
    """Draw the boxes of some cells side by side.

    :param outer: the width of each box
    :param room: the columns available to them
    """
    return boxes.side_by_side(
        [boxes.box(f'cell {cell.id}', cell_diagram.contents(
            host, cell, outer - _FRAME), width=outer) for cell in cells],
        room, _GAP)


def _cell_width(host: host_model.Host, count: int, room: int) -> int:
    """Choose the width of a cell's box so that rows are equally full.

    :param count: the number of boxes
    :param room: the columns available to them
    """
    least = _MIN_INNER_WIDTH + _FRAME
    columns = max(1, min(count, (room + _GAP) // (least + _GAP)))
    rows = -(-count // columns)
    columns = -(-count // rows)
    share = max(least, (room + _GAP) // columns - _GAP)
    label = cell_diagram.label_width(host)
    lines = itertools.chain.from_iterable(
        cell_diagram.cores(cell, share - _FRAME, label)
        for cell in host.cells if cell.cpus)
    used = max(map(len, lines))
    return min(share, max(used, cell_diagram.MAX_TABLE_WIDTH) + _FRAME)


def _memory_cells(host: host_model.Host, width: int) -> list[str]:
    """Draw the cells without CPUs, each with the nearest cell with CPUs."""
    drawn = []
    for cell in host.cells:
        if cell.cpus:
            continue
        near = _nearest(host, cell)
        title = f'cell {cell.id} · memory only'
        inner = max(len(title) + 2, 28)
        lines = [f'nearest to {near}'] if near else []
        lines += cell_diagram.pools(cell, inner)
        lines += cell_diagram.devices(
            [device for device in host.devices if device.cell == cell.id],
            inner)
        drawn.append(boxes.box(title, lines))
    return boxes.side_by_side(drawn, width, _GAP)


def _nearest(host: host_model.Host, cell: host_model.Cell) -> str:
    if not host.distances:
        return ''
    row = host.distances[host.cells.index(cell)]
    reachable = [(distance, other.id) for distance, other
                 in zip(row, host.cells, strict=True) if other.cpus]
    best = min(distance for distance, _ in reachable)
    near = cpuset.render(other for distance, other in reachable
                         if distance == best)
    return f'cell {near}' if near.isdigit() else f'cells {near}'


def _devices_without_cell(host: host_model.Host, width: int) -> list[str]:
    lines = cell_diagram.devices(
        [device for device in host.devices if device.cell is None], width - 2)
    if not lines:
        return []
    return ['devices without a cell', *(f'  {line}' for line in lines)]


def _distances(host: host_model.Host, width: int) -> list[str]:
    if len(host.distances) < 2:
        return []
    names = [str(cell.id) for cell in host.cells]
    values = map(str, itertools.chain.from_iterable(host.distances))
    column = 2 + max(map(len, (*names, *values)))
    left = len('distances')
    if left + column * len(names) > width:
        return _distance_list(host, width)
    lines = ['distances' + ''.join(name.rjust(column) for name in names)]
    lines += [name.rjust(left) + ''.join(str(value).rjust(column)
                                         for value in row)
              for name, row in zip(names, host.distances, strict=True)]
    return lines


def _legend(host: host_model.Host, width: int) -> list[str]:
    cells = [cell for cell in host.cells if cell.cpus]
    words = []
    if host.threads_per_core > 1:
        cores = itertools.chain.from_iterable(
            cell.siblings for cell in cells)
        core = next(core for core in cores
                    if len(core) == host.threads_per_core)
        words.append(f'{cpuset.render(core)} is one core with its '
                     f'{len(core)} CPUs.')
    if any(cell_diagram.shares_caches(cell) for cell in cells):
        words.append('A bracket groups the cores that share a last-level '
                     'cache.')
    return boxes.wrap(' '.join(words).split(), width)


def _not_said(host: host_model.Host, width: int) -> list[str]:
    missing = [words for unknown, words in _NOT_SAID.items()
               if unknown in host.unknown]
    if missing and len(host.cells) > 1 and not host.distances:
        missing.append('distances')
    missing += wiring_diagram.list_unknown(host)
    return [] if not missing else boxes.wrap(
        f'Unknown, because the source does not say: {", ".join(missing)}.'
        .split(), width)


def _distance_list(host: host_model.Host, width: int) -> list[str]:
    """Write distances as lists, for machines whose table is too wide."""
    lines = ['distances']
    for cell, row in zip(host.cells, host.distances, strict=True):
        words = []
        for distance in sorted(set(row)):
            there = cpuset.render(
                other.id for other, value in
                zip(host.cells, row, strict=True) if value == distance)
            words.append(f'{distance} to {there};')
        words[-1] = words[-1].rstrip(';')
        lines += boxes.wrap([f'  cell {cell.id}:', *words], width, ' ' * 6)
    return lines
