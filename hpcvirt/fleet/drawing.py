# SPDX-License-Identifier: Apache-2.0

"""Draw free resources: shares of a total, and hosts cell by cell."""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator

import markupsafe

from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import memory
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import state
from hpcvirt.page import svg

_BAR, _BAR_HEIGHT = 220, 14
#: Squares of cores: their side, their distance, and their number in a line.
_SIDE, _STEP, _LINE = 9, 11, 16
_LEFT, _PAGES, _WIDTH = 48, 236, 330


def shares(total: int, free: int, stranded: int,
           what: str) -> markupsafe.Markup:
    """Draw used, free and stranded resources as one bar."""
    return _bar(total, (('taken', total - free), ('free', free - stranded),
                        ('stranded', stranded)),
                f'{what}: {free} of {total} free, {stranded} of these '
                'stranded')


def promise(fit: int, by_sums: int, most: int,
            what: str) -> markupsafe.Markup:
    """Draw the instances that fit, and those that fit by sums only.

    :param most: the most that fit of any flavor, which has the whole width
    """
    return _bar(most, (('free', fit), ('stranded', by_sums - fit)),
                f'{what}: {fit} of {by_sums} fit')


def part(number: int, of: int, what: str) -> markupsafe.Markup:
    """Draw a number as a part of another."""
    return _bar(of, (('free', number),), f'{what}: {number}')


def _bar(total: int, amounts: Iterable[tuple[str, int]],
         label: str) -> markupsafe.Markup:
    parts = [svg.rectangle('outline', 0.5, 0.5, _BAR - 1, _BAR_HEIGHT - 1)]
    at = 0.0
    for kind, amount in amounts:
        width = _BAR * max(0, amount) / total if total else 0
        if width:
            parts.append(svg.rectangle(kind, round(at, 1), 0,
                                       round(width, 1), _BAR_HEIGHT))
        at += width
    return svg.drawing(_BAR, _BAR_HEIGHT, parts, label)


def host(shown: state.FleetHost,
         sizes: Container[int]) -> markupsafe.Markup:
    """Draw the cores and the pages of each cell of a host.

    :param sizes: the page sizes to draw, in KiB
    """
    parts: list[str] = []
    words = []
    top = 0
    for cell in shown.state.supply.cells:
        parts.append(svg.text(0, top + 10, f'cell {cell.id}'))
        cores = [*_cores(cell)]
        for number, kind in enumerate(cores):
            line, column = divmod(number, _LINE)
            parts.append(svg.rectangle(
                kind, _LEFT + column * _STEP + 0.5, top + line * _STEP + 0.5,
                _SIDE, _SIDE))
        pools = [pool for pool in cell.pages
                 if pool.size_kib in sizes and pool.used + pool.free > 0]
        for number, pool in enumerate(pools):
            parts += _pages(pool, top + number * 13)
        words.append(_words(cell, pools))
        top += max(-(-len(cores) // _LINE) * _STEP, 13 * len(pools), 12) + 6
    for name, lines in _list_devices(shown).items():
        parts.append(svg.text(0, top + 10, name))
        top += 14
        for kinds, label in lines:
            for column, kind in enumerate(kinds[:_LINE]):
                parts.append(svg.rectangle(
                    kind, _LEFT + column * _STEP + 0.5, top + 0.5, _SIDE,
                    _SIDE))
            parts.append(svg.text(_PAGES, top + 10, label))
            top += 13
        words.append(f'{name}: ' + ', '.join(label for _, label in lines))
        top += 4
    return svg.drawing(_WIDTH, max(top, 12), parts,
                       f'{shown.name}: {"; ".join(words)}')


def _list_devices(shown: state.FleetHost,
                  ) -> dict[str, list[tuple[list[str], str]]]:
    """List the devices of a host, and its sets, as lines of squares.

    A square is a device, or a sixteenth of many virtual functions.
    """
    found: dict[str, list[tuple[list[str], str]]] = {}
    for name, amount in free_resources.count_devices(shown).items():
        squares = min(amount.total, _LINE)
        free = round(squares * amount.free / amount.total) if squares else 0
        if amount.free:
            free = max(1, free)
        found[f'devices {name}'] = [
            (['free'] * free + ['taken'] * (squares - free),
             f'{amount.free} of {amount.total} free')]
    for kind, sets in free_resources.count_sets(
            shown.state.supply.pools or ()).items():
        rest = sets.total - sets.whole - sets.broken
        found[f'sets {kind}'] = [
            (['free'] * sets.whole + ['partly'] * sets.broken
             + ['taken'] * rest, f'{sets.whole} of {sets.total} whole')]
    return found


def _cores(cell: supplies.CellSupply) -> Iterator[str]:
    """Yield for each core with PCPUs: free, partly or taken."""
    for core in cell.siblings:
        threads = core & cell.dedicated
        free = len(threads & cell.free)
        if not threads:
            continue
        if free == len(threads):
            yield 'free'
        elif free:
            yield 'partly'
        else:
            yield 'taken'


def _pages(pool: supplies.PageSupply, top: float) -> Iterator[str]:
    width = 46
    yield svg.rectangle('outline', _PAGES + 0.5, top + 0.5, width, _SIDE)
    free = max(0, pool.free) / (pool.used + pool.free)
    if free:
        yield svg.rectangle('free', _PAGES, top, round(width * free, 1),
                            _SIDE + 1)
    yield svg.text(_PAGES + width + 5, top + 10,
                   memory.page_name(pool.size_kib))


def _words(cell: supplies.CellSupply,
           pools: list[supplies.PageSupply]) -> str:
    pages = ''.join(
        f', {max(0, pool.free)} of {pool.used + pool.free} pages of '
        f'{memory.page_name(pool.size_kib)}' for pool in pools)
    return (f'cell {cell.id} has {len(cell.free)} of {len(cell.dedicated)} '
            f'PCPUs{pages} free')
