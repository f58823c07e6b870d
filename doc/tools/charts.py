# SPDX-License-Identifier: Apache-2.0

"""Draw charts of the tables in benchmarks/results."""

import csv
import re
import textwrap
from collections.abc import Callable
from collections.abc import Sequence

from doc.tools import picture
from hpcvirt.page import svg

TABLES = picture.ROOT / 'benchmarks' / 'results'

#: A heading of one or two lines, and what fills the width of a column.
Column = tuple[str, float]


def draw_cells(title: str, columns: Sequence[Column],
               rows: Sequence[Sequence[str]]) -> str:
    """Draw a bar behind each figure of a table.

    Each row begins with its name. A figure with ± is drawn as an interval
    around zero, in the middle of its column.
    """
    parts = [picture.bold(8, 20, title)]
    width = (picture.WIDTH - 12) / len(columns)
    left = [8 + width * number for number in range(len(columns))]
    for x, (heading, _) in zip(left, columns, strict=True):
        parts += [svg.text(x, 42 + 16 * line, words)
                  for line, words in enumerate(heading.split('\n'))]
    y = 64.0
    for name, *cells in rows:
        for line in textwrap.wrap(name, 66):
            parts.append(svg.text(8, y + 14, line))
            y += 19
        for x, (_, full), cell in zip(left, columns, cells, strict=True):
            if not cell:
                continue
            parts.append(svg.rectangle('free', x, y, width - 4, 17))
            figures = [float(part) for part in re.findall(
                r'[-+]?\d+(?:\.\d+)?', cell)]
            scale = (width - 4) / full
            if '±' in cell:
                mean, reach = (part * scale / 2 for part in figures)
                middle = x + width / 2 - 2
                parts += [svg.line('cell', middle, y, middle, y + 17),
                          svg.rectangle('b', middle + mean - reach, y + 5,
                                        2 * reach, 7)]
                continue
            if figures and figures[0]:
                parts.append(svg.rectangle('a', x, y, figures[0] * scale, 17))
            parts.append(svg.text(x + 3, y + 13, cell))
        y += 22
    return picture.finish(y + 6, parts, title)


def draw_error_rates() -> str:
    """Draw the worst rate of false verdicts for each kind of noise."""
    worst: dict[str, float] = {}
    for noise, _, passed, failed, *_ in _rows('verdict_rates'):
        worst[noise] = max(worst.get(noise, 0.0), float(passed or 0),
                           float(failed or 0))
    names, scale = 312, (picture.WIDTH - 330) / 66
    parts = [picture.bold(18, 20,
                          'The worst rate of false verdicts, in percent')]
    y = 34.0
    for noise, rate in worst.items():
        parts.append(svg.text(names - 6, y + 11, noise, 'end'))
        parts.append(svg.rectangle('a', names, y + 2, rate * scale, 10))
        y += 17
    parts.append(svg.line('arrow', names + 5 * scale, 30,
                          names + 5 * scale, y))
    parts += [svg.text(names + rate * scale, y + 14, str(rate), 'middle')
              for rate in (5, 30, 60)]
    return picture.finish(y + 22, parts,
                          'False verdicts for each kind of noise')


def draw_verdict_power() -> str:
    """Draw how many guests that equal native pass, by the number of pairs."""
    numbers = ('10', '20', '40')
    rows: dict[str, dict[str, str]] = {}
    for noise, pairs, *_, equal, _ in _rows('verdict_rates'):
        rows.setdefault(noise, {})[pairs] = equal
    return draw_cells(
        'PASS of guests that equal native, in percent',
        [(f'\n{pairs} pairs', 100) for pairs in numbers],
        [(noise, *(passed.get(pairs, '') for pairs in numbers))
         for noise, passed in rows.items()
         if len(passed.keys() & {*numbers}) > 2])


def draw_acceptance_rates() -> str:
    """Draw how acceptance errs in each class, by the number of its hosts."""
    rows: dict[str, list[list[str]]] = {}
    for kind, _, *rates in _rows('acceptance_rates'):
        rows.setdefault(kind, []).append(rates)
    columns = []
    for rate in ('worst false', 'PASS of typical', 'FAIL of slow'):
        columns += [(f'{rate}\n5', 100), ('\n8', 100), ('\n20', 100)]
    return draw_cells(
        'Percent of hosts, in a class of 5, 8 and 20 peer hosts',
        columns,
        [(kind, *(str(max(map(float, rate[:2]))) for rate in rates),
          *(rate[3] for rate in rates), *(rate[4] for rate in rates))
         for kind, rates in rows.items()])


def draw_history_rates() -> str:
    """Draw what the history of one host finds."""
    return draw_cells(
        'Percent of histories that are marked (after how many runs)',
        [('false\nalarms', 100), ('creep\n0.5 %', 100), ('\n1 %', 100),
         ('\n3 %', 100), ('step\n10 %', 100), ('\n30 %', 100),
         ('\nrepaired', 100)], _rows('history_rates'))


def draw_watch_detection() -> str:
    """Draw how soon a slow host is found."""
    def minutes(cell: str) -> str:
        found, _, after = cell.partition(', ')
        if found == '40':
            return after
        return f'in {found} of 40: {after}' if after else 'never'
    return draw_cells(
        'Minutes until a slow host is found',
        [('32 CPUs', 80), ('128 CPUs', 80), ('512 CPUs', 80)],
        [(cause, *map(minutes, cells))
         for cause, *cells in _rows('watch_detection')])


def draw_weigher_benefit() -> str:
    """Draw which core-hours find no host."""
    return draw_cells(
        'Core-hours lost, in percent of those requested',
        [('\nNova', 60), ('\npacking', 60), ('no PCI-\nWeigher', 60),
         ('\nhpcvirt', 60), ('near\nfirst', 60)],
        [('all of these' if hosts == 'all' else hosts, nova, packing, without,
          ours, near)
         for _, hosts, nova, packing, without, _, ours, near, *_
         in _rows('weigher_benefit')])


def draw_refusal_times() -> str:
    """Draw what refusals cost."""
    return draw_cells(
        'Microseconds for a host, and ratios to a pass',
        [('\npass', 250), ('\nrefuse', 250), ('refuse,\nat INFO', 250),
         ('\nratio', 4), ('ratio,\nat INFO', 12)],
        [(f'{case} ({cells})', *figures)
         for case, cells, _, *figures in _printed('refusal')])


def draw_filter_times() -> str:
    """Draw the times of the filters on one logarithmic scale."""
    low, high, start, end = 1.0, 1e7, 178, 384
    title = 'The time of the filters for a host'
    parts, y = [picture.bold(8, 20, title)], 30.0
    for case, cells, nova, ours, new, ratio in _printed('filter'):
        xs = [svg.logarithmic(float(time), low, high, start, end)
              for time in (nova, ours, new)]
        parts += [svg.text(8, y + 14, f'{case} ({cells})'),
                  svg.line('arrow', xs[1], y + 9, xs[0], y + 9),
                  svg.dot('b', xs[0], y + 9, 5), svg.dot('d', xs[2], y + 9, 5),
                  svg.dot('a', xs[1], y + 9, 5),
                  svg.text(picture.WIDTH - 8, y + 14, ratio, 'end')]
        y += 21
    for time, words in ((1, '1 us'), (1e3, '1 ms'), (1e6, '1 s')):
        x = svg.logarithmic(time, low, high, start, end)
        parts += [svg.line('cell', x, y, x, y + 5),
                  svg.text(x, y + 18, words, 'middle')]
    y = _legend(parts, y + 26, (
        ('a', 'HPCTopologyFilter'), ('d', 'the same, for a new record'),
        ('b', "Nova's filters, and how many times as long they take")))
    return picture.finish(y, parts, title)


def draw_select_path() -> str:
    """Draw the steps of a request with Nova alone and with hpcvirt."""
    title = 'The time of a request, with the number of hosts'
    parts, y = [picture.bold(8, 20, title)], 30.0
    nova: list[str] = []
    for case, cells, hosts, by, *row in _printed('select_path'):
        if by == 'Nova':
            nova = row
            continue
        if len(row) < 6:
            continue
        parts += [svg.text(8, y + 14, f'{case}, {cells} cells, {hosts} hosts'),
                  svg.text(picture.WIDTH - 18, y + 14,
                           f'{row[5][:-1]} times as fast', 'end')]
        for side, (whole, *steps) in (('Nova', nova), ('hpcvirt', row)):
            y += 19
            parts.append(svg.text(132, y + 11,
                                  f'{side} {int(whole) / 1000:.1f} s', 'end'))
            parts += picture.draw_bar(
                y, float(nova[0]), [*zip('abd', map(float, steps[:3]),
                                         strict=True)], 140)
        y += 20
    y = _legend(parts, y + 4, (
        ('a', 'reads the hosts'), ('b', 'filters them'),
        ('d', 'weighs them'), ('free', 'other steps, or the time gained')))
    return picture.finish(y, parts, title)


def _rows(name: str) -> list[list[str]]:
    with (TABLES / f'{name}.csv').open(newline='') as lines:
        return list(csv.reader(lines))[1:]


def _printed(name: str) -> list[list[str]]:
    """Split the printed lines of a benchmark at the cells, such as 8/2.

    The case before them may have blanks.
    """
    text = (TABLES / f'{name}.txt').read_text()
    return [[match[1], *match[2].split()] for match in re.finditer(
        r'^(.+?) +(\d+/\d+ .*)$', text, re.MULTILINE)]


def _legend(parts: list[str], y: float,
            kinds: Sequence[tuple[str, str]]) -> float:
    """Add what the colors mean; return where that ends."""
    for kind, words in kinds:
        parts.append(svg.rectangle(kind, 18, y, 14, 10))
        parts.append(svg.text(40, y + 10, words))
        y += 22
    return y


CHARTS: dict[str, Callable[[], str]] = {
    'error-rates': draw_error_rates, 'verdict-power': draw_verdict_power,
    'acceptance-rates': draw_acceptance_rates,
    'history-rates': draw_history_rates,
    'watch-detection': draw_watch_detection,
    'weigher-benefit': draw_weigher_benefit,
    'refusal-times': draw_refusal_times, 'filter-times': draw_filter_times,
    'select-path': draw_select_path}
