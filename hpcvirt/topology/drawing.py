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

"""Draw a host as text: packages and cells as boxes, cores with siblings.

In a cell's box stand its cores, each by the CPU numbers of its siblings; a
bracket on their left holds together those that share a last-level cache.
Below are the memory, pool by pool, and the devices of the cell.
"""

import itertools
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.model import cpuset
from hpcvirt.model import host as model
from hpcvirt.topology import boxes

#: The least room inside of a cell's box: two of them, in a package's box, go
#: into 80 columns.
_LEAST_INNER = 32

#: Wider, and the eye cannot follow a line from its left to its right end.
_MOST_TABLE = 44

#: More cores in a row cannot be counted at a glance.
_MOST_IN_ROW = 16

_GAP = 2
_FRAME = 4


def draw(host: model.Host, width: int = 80) -> str:
    """Draw a host.

    :param width: columns to fill; a part that needs more gets more
    :returns: lines, each ended by a newline
    """
    parts = [_summary(host, width),
             _packages(host, width),
             _memory_cells(host, width),
             _homeless_devices(host, width),
             _distances(host, width),
             _legend(host, width)]
    lines = itertools.chain.from_iterable(
        [*part, ''] for part in parts if part)
    return '\n'.join(line.rstrip() for line in lines).rstrip() + '\n'


def size(kib: int) -> str:
    """Say an amount of memory: ``125.6 GiB``, ``512 MiB``, ``64 KiB``."""
    for unit, factor in (('GiB', 1024 ** 2), ('MiB', 1024)):
        if kib >= factor:
            exact = kib % factor == 0
            return (f'{kib // factor} {unit}' if exact
                    else f'{kib / factor:.1f} {unit}')
    return f'{kib} KiB'


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def _summary(host: model.Host, width: int) -> list[str]:
    cores = sum(len(cell.siblings) for cell in host.cells)
    memory_mib = sum(cell.memory_mib for cell in host.cells)
    words = [_count(len(host.packages), 'package'),
             _count(len(host.cells), 'cell'),
             _count(cores, 'core'),
             _count(len(host.cpus), 'CPU'),
             size(memory_mib * 1024)]
    return [host.name, *boxes.wrap([f'{word},' for word in words[:-1]]
                                   + words[-1:], width)]


def _packages(host: model.Host, width: int) -> list[str]:
    members = {package: [cell for cell in host.cells
                         if cell.package == package and cell.cpus]
               for package in host.packages}
    members = {package: cells for package, cells in members.items() if cells}
    alone = all(len(cells) == 1 for cells in members.values())
    most = len(members) if alone else max(map(len, members.values()))
    room = width if alone else width - _FRAME
    outer = _cell_width(host, most, room)
    drawn = []
    for package, cells in members.items():
        if len(cells) == 1:
            drawn.append(boxes.box(
                f'package {package} · cell {cells[0].id}',
                _cell(host, cells[0], outer - _FRAME), boxes.HEAVY, outer))
            continue
        inside = boxes.beside(
            [boxes.box(f'cell {cell.id}', _cell(host, cell, outer - _FRAME),
                       width=outer) for cell in cells], room, _GAP)
        drawn.append(boxes.box(f'package {package}', inside, boxes.HEAVY))
    return boxes.beside(drawn, width, _GAP)


def _cell_width(host: model.Host, count: int, room: int) -> int:
    """Choose how wide a cell's box is, so that rows are equally full.

    :param count: the number of boxes
    :param room: the columns that they may share
    """
    least = _LEAST_INNER + _FRAME
    columns = max(1, min(count, (room + _GAP) // (least + _GAP)))
    rows = -(-count // columns)
    columns = -(-count // rows)
    share = max(least, (room + _GAP) // columns - _GAP)
    label = _label_width(host)
    used = max(len(line) for cell in host.cells if cell.cpus
               for line in _cores(cell, share - _FRAME, label))
    return min(share, max(used, _MOST_TABLE) + _FRAME)


def _cell(host: model.Host, cell: model.Cell, inner: int) -> list[str]:
    table = min(inner, _MOST_TABLE)
    parts = [_cell_summary(cell, table),
             _cores(cell, inner, _label_width(host)),
             _pools(cell, table),
             _devices([device for device in host.devices
                       if device.cell == cell.id], inner)]
    lines = itertools.chain.from_iterable(
        ['', *part] for part in parts if part)
    return list(lines)[1:]


def _cell_summary(cell: model.Cell, inner: int) -> list[str]:
    cores = _count(len(cell.siblings), 'core')
    threads = cell.threads_per_core
    if threads > 1:
        cores += f' x {threads}'
    # A list that is too long for the line is left out: the cores below have
    # all its numbers.
    cpus = f'CPUs {cpuset.render(cell.cpus)}'
    room = inner - len(cores)
    return [f'{cores}{cpus:>{room}}' if len(cpus) + 2 <= room else cores]


def _cache_groups(cell: model.Cell) -> list[list[frozenset[int]]]:
    """List the cores that share a cache; all in one if none share any."""
    if not _shares_caches(cell):
        return [list(cell.siblings)]
    return [[core for core in cell.siblings if core & cache]
            for cache in cell.llc]


def _shares_caches(cell: model.Cell) -> bool:
    return len(cell.llc) < len(cell.siblings) or len(cell.siblings) == 1


def _label_width(host: model.Host) -> int:
    return max(len(cpuset.render(core))
               for cell in host.cells for core in cell.siblings)


def _row_width(cores: int, label: int, gap: int) -> int:
    """Tell the width of a row: a bracket, a blank, and the cores."""
    return 2 + cores * (label + gap) - gap


def _cores(cell: model.Cell, inner: int, label: int) -> list[str]:
    groups = _cache_groups(cell)
    in_row, gap = _arrange(max(map(len, groups)), inner, label)
    blocks = []
    for group in groups:
        rows = [(' ' * gap).join(cpuset.render(core).rjust(label)
                                 for core in row)
                for row in _cut(group, in_row)]
        marks = (_brackets(len(rows)) if _shares_caches(cell)
                 else ' ' * len(rows))
        blocks.append(boxes.block(
            f'{mark} {row}' for mark, row in zip(marks, rows, strict=True)))
    return boxes.beside(blocks, inner, 3)


def _arrange(cores: int, inner: int, label: int) -> tuple[int, int]:
    """Choose how many cores go into a row, and the blanks between them.

    All rows alike if possible, and one blank only where that saves rows.
    """
    best = (cores + 1, 1, 2)
    for gap in (2, 1):
        fit = max(count for count in range(1, _MOST_IN_ROW + 1)
                  if count == 1 or _row_width(count, label, gap) <= inner)
        in_row = _cores_in_row(cores, fit)
        best = min(best, (-(-cores // in_row), in_row, gap),
                   key=lambda choice: choice[0])
    return best[1:]


def _cores_in_row(cores: int, fit: int) -> int:
    if cores <= fit:
        return cores
    for count in range(fit, fit // 2, -1):
        if cores % count == 0:
            return count
    rows = -(-cores // fit)
    return -(-cores // rows)


def _cut(cores: Sequence[frozenset[int]], count: int,
         ) -> list[Sequence[frozenset[int]]]:
    return [cores[start:start + count]
            for start in range(0, len(cores), count)]


def _brackets(rows: int) -> str:
    return '[' if rows == 1 else '┌' + '│' * (rows - 2) + '└'


def _pools(cell: model.Cell, inner: int) -> list[str]:
    if not cell.memory_mib:
        return ['no memory']
    rows = [('memory', '', size(cell.memory_mib * 1024))]
    rows += [(f'{size(pool.size_kib)} pages', str(pool.total or 'none'),
              size(pool.size_kib * pool.total) if pool.total else '')
             for pool in cell.pages]
    left, middle, right = (max(map(len, column))
                           for column in zip(*rows, strict=True))
    middle = max(middle, inner - left - right - 4)
    return [f'{name:{left}}  {count:>{middle}}  {amount:>{right}}'
            for name, count, amount in rows]


def _devices(devices: Iterable[model.Device], inner: int) -> list[str]:
    """List devices; functions that are alike share a line."""
    lines: list[str] = []
    alike: dict[tuple[object, ...], list[model.Device]] = {}
    for device in devices:
        kind = (device.vendor_id, device.product_id, device.driver,
                device.total_vfs)
        alike.setdefault(kind, []).append(device)
    for group in alike.values():
        first = group[0]
        kind_of = f'{first.vendor_id}:{first.product_id}'
        words = _addresses(group) + (
            [kind_of] if len(group) == 1 else [f'{len(group)} x {kind_of}'])
        if first.driver:
            words.append(first.driver)
        if first.total_vfs:
            words.append(_count(first.total_vfs, 'VF'))
            words += [] if len(group) == 1 else ['each']
        lines += boxes.wrap(words, inner, '  ')
    return lines


def _addresses(devices: Sequence[model.Device]) -> list[str]:
    """Write the first address, and the last one without a common bus."""
    first, last = devices[0].address, devices[-1].address
    if len(devices) == 1:
        return [first]
    bus, _, rest = last.rpartition(':')
    return [first, '…', rest if first.startswith(f'{bus}:') else last]


def _memory_cells(host: model.Host, width: int) -> list[str]:
    """Draw the cells without CPUs, each with the cell that is nearest."""
    drawn = []
    for cell in host.cells:
        if cell.cpus:
            continue
        near = _nearest(host, cell)
        title = f'cell {cell.id} · memory only'
        inner = max(len(title) + 2, 28)
        lines = [f'nearest to {near}'] if near else []
        lines += _pools(cell, inner)
        lines += _devices([device for device in host.devices
                           if device.cell == cell.id], inner)
        drawn.append(boxes.box(title, lines))
    return boxes.beside(drawn, width, _GAP)


def _nearest(host: model.Host, cell: model.Cell) -> str:
    if not host.distances:
        return ''
    row = host.distances[host.cells.index(cell)]
    reachable = [(distance, other.id) for distance, other
                 in zip(row, host.cells, strict=True) if other.cpus]
    best = min(distance for distance, _ in reachable)
    near = cpuset.render(other for distance, other in reachable
                         if distance == best)
    return f'cell {near}' if near.isdigit() else f'cells {near}'


def _homeless_devices(host: model.Host, width: int) -> list[str]:
    lines = _devices([device for device in host.devices
                      if device.cell is None], width - 2)
    if not lines:
        return []
    return ['devices on no cell', *(f'  {line}' for line in lines)]


def _distances(host: model.Host, width: int) -> list[str]:
    if len(host.distances) < 2:
        return []
    names = [str(cell.id) for cell in host.cells]
    column = 2 + max(len(text) for text in
                     (*names, *(str(value) for row in host.distances
                                for value in row)))
    left = len('distances')
    if left + column * len(names) > width:
        return _distance_list(host, width)
    lines = ['distances' + ''.join(name.rjust(column) for name in names)]
    lines += [name.rjust(left) + ''.join(str(value).rjust(column)
                                         for value in row)
              for name, row in zip(names, host.distances, strict=True)]
    return lines


def _legend(host: model.Host, width: int) -> list[str]:
    cells = [cell for cell in host.cells if cell.cpus]
    words = []
    if host.threads_per_core > 1:
        core = next(core for cell in cells for core in cell.siblings
                    if len(core) == host.threads_per_core)
        words.append(f'{cpuset.render(core)} is one core with its '
                     f'{len(core)} CPUs.')
    if any(_shares_caches(cell) for cell in cells):
        words.append('A bracket holds together the cores that share a '
                     'last-level cache.')
    return boxes.wrap(' '.join(words).split(), width)


def _distance_list(host: model.Host, width: int) -> list[str]:
    """Write distances as lists, for more cells than a table has room for."""
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
