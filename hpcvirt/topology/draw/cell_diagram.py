# SPDX-License-Identifier: Apache-2.0

"""Draw the contents of a NUMA cell's box: cores, memory and devices.

Each core is shown by the numbers of its CPUs; a bracket on the left groups
the cores that share a last-level cache.
"""

import itertools
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology.draw import boxes

#: In a wider table, a line is hard to follow.
MAX_TABLE_WIDTH = 44

#: More cores in a row are hard to count.
_MAX_CORES_IN_ROW = 16


def contents(host: host_model.Host, cell: host_model.Cell,
             inner: int) -> list[str]:
    """Draw the contents of the box of a cell with CPUs.

    :param inner: columns inside the box
    """
    table = min(inner, MAX_TABLE_WIDTH)
    parts = [_cell_summary(cell, table),
             cores(cell, inner, label_width(host)),
             pools(cell, table),
             devices([device for device in host.devices
                      if device.cell == cell.id], inner)]
    lines = itertools.chain.from_iterable(
        ['', *part] for part in parts if part)
    return list(lines)[1:]


def _cell_summary(cell: host_model.Cell, inner: int) -> list[str]:
    cores = words.count_noun(len(cell.siblings), 'core')
    threads = cell.threads_per_core
    if threads > 1:
        cores += f' x {threads}'
    # A list that is too long is left out: the cores below show its numbers.
    cpus = f'CPUs {cpuset.render(cell.cpus)}'
    room = inner - len(cores)
    return [f'{cores}{cpus:>{room}}' if len(cpus) + 2 <= room else cores]


def _cache_groups(cell: host_model.Cell) -> list[list[frozenset[int]]]:
    """Group the cores by cache; one group if no cores share a cache."""
    if not shares_caches(cell):
        return [list(cell.siblings)]
    return [[core for core in cell.siblings if core & cache]
            for cache in cell.llc]


def shares_caches(cell: host_model.Cell) -> bool:
    """Whether any cores share a last-level cache that is known."""
    return bool(cell.llc) and (
        len(cell.llc) < len(cell.siblings) or len(cell.siblings) == 1)


def label_width(host: host_model.Host) -> int:
    """Return the width of the widest core of all cells."""
    all_cores = itertools.chain.from_iterable(
        cell.siblings for cell in host.cells)
    return max(len(cpuset.render(core)) for core in all_cores)


def cores(cell: host_model.Cell, inner: int, label: int) -> list[str]:
    """Draw the cores in rows.

    :param label: columns for each core
    """
    groups = _cache_groups(cell)
    in_row, gap = _arrange(max(map(len, groups)), inner, label)
    blocks = []
    for group in groups:
        rows = [(' ' * gap).join(cpuset.render(core).rjust(label)
                                 for core in row)
                for row in _cut(group, in_row)]
        if not shares_caches(cell):
            marks = ' ' * len(rows)
        elif len(rows) == 1:
            marks = '['
        else:
            marks = f'┌{"│" * (len(rows) - 2)}└'
        blocks.append(boxes.block(
            f'{mark} {row}' for mark, row in zip(marks, rows, strict=True)))
    return boxes.side_by_side(blocks, inner, 3)


def _arrange(cores: int, inner: int, label: int) -> tuple[int, int]:
    """Choose the number of cores in a row, and of blanks between them.

    Rows have equal lengths if possible. A single blank is used only if that
    saves rows.
    """
    best = (cores + 1, 1, 2)
    for gap in (2, 1):
        # A row has a bracket, a blank and the cores.
        fit = min(_MAX_CORES_IN_ROW,
                  max(1, (inner - 2 + gap) // (label + gap)))
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


def pools(cell: host_model.Cell, inner: int) -> list[str]:
    """Draw the memory and its pages as a table."""
    if not cell.memory_mib:
        return ['no memory']
    rows = [('memory', '', words.format_size(cell.memory_mib * 1024))]
    rows += [(f'{words.format_size(pool.size_kib)} pages',
              str(pool.total or 'none'),
              words.format_size(pool.size_kib * pool.total)
              if pool.total else '') for pool in cell.pages]
    left, middle, right = (max(map(len, column))
                           for column in zip(*rows, strict=True))
    middle = max(middle, inner - left - right - 4)
    return [f'{name:{left}}  {count:>{middle}}  {amount:>{right}}'
            for name, count, amount in rows]


def devices(devices: Iterable[host_model.Device], inner: int) -> list[str]:
    """List devices; equal functions share a line."""
    lines: list[str] = []
    groups: dict[tuple[object, ...], list[host_model.Device]] = {}
    for device in devices:
        kind = (device.vendor_id, device.product_id, device.driver,
                device.total_vfs)
        groups.setdefault(kind, []).append(device)
    for group in groups.values():
        first = group[0]
        kind_of = f'{first.vendor_id}:{first.product_id}'
        parts = _addresses(group) + (
            [kind_of] if len(group) == 1 else [f'{len(group)} x {kind_of}'])
        if first.driver:
            parts.append(first.driver)
        if first.total_vfs:
            parts.append(words.count_noun(first.total_vfs, 'VF'))
            parts += [] if len(group) == 1 else ['each']
        lines += boxes.wrap(parts, inner, '  ')
    return lines


def _addresses(devices: Sequence[host_model.Device]) -> list[str]:
    """Write the first and last address; a common bus only once."""
    first, last = devices[0].address, devices[-1].address
    if len(devices) == 1:
        return [first]
    bus, _, rest = last.rpartition(':')
    return [first, '…', rest if first.startswith(f'{bus}:') else last]
