# SPDX-License-Identifier: Apache-2.0

"""Read NetPIPE 3 and 5: the table on the screen, or the file ``np.out``.

Version 3 prints bytes, Mbps and microseconds. Version 5 prints each number
with three decimals in a suitable unit: ``61: 98.301 KB 9512 times --> 25.117
Gbps in 31.310 usecs``. A row of the file ``np.out`` has bytes, Mbps and
seconds in version 3; bytes, the average, least and largest Gbps, and
microseconds in version 5.

Some versions, such as 3.7, count 2^20 bits as a megabit. The bandwidth is
always an eighth of the printed number: this is correct when runs of NetPIPE
are compared, but up to 4.9 % off when compared with other programs.
"""

import dataclasses
import itertools
import math
import re
import statistics
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = expectation.SIZES

#: NetPIPE adds at most this to the requested size.
PERTURBATION_BYTES = 3
MEGABIT = 1e6

_START = re.compile(r'Now starting the main loop|Start testing with')
_BEGIN_5 = re.compile(r'^Start testing with|^ *\d+: +\S+ +[KMGT]?B ',
                      re.MULTILINE)
_END_5 = re.compile(r'^Completed with +max bandwidth +(\S+) +([KMGT]?)bps +'
                    r'\S+ +\w+ +latency', re.MULTILINE)
#: Version 5 ends with the mean of this many highest rates: with perturbations
#: and without.
_HIGHEST = (10, 5)

#: The units of bits and bytes are powers of 1000.
_SCALES = {'': 1.0, 'K': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12}
#: Smaller sizes are printed exactly.
EXACT = 1e6
_MICROSECONDS = {'n': 1e-3, 'u': 1.0, 'm': 1e3, '': 1e6}

_SCREEN = re.compile(
    r'^ *(\d+): +(\S+) +(bytes|[KMGT]?B) +\d+ times --> +(\S+) +'
    r'([KMGT]?)bps +in +(\S+) +([num]?)secs?[ \t]*$', re.MULTILINE)
_SCREEN_ANY = re.compile(r'^ *\d+: +\S+ +(?:bytes|[KMGT]?B)\b.*$',
                         re.MULTILINE)
_FILE_3 = re.compile(r'^ *(\d+) +(\d+\.\d{6}) +(\d+\.\d{8})[ \t]*$')
_FILE_5 = re.compile(
    r'^ *(\d+) +(\d+\.\d{3}) +\d+\.\d{3} +\d+\.\d{3} +(\d+\.\d\d)[ \t]*$')
_FILE_LIKE = re.compile(r'^ *\d+[ \t]+\S+[ \t]+\S+(?:[ \t]+\S+){0,2}[ \t]*$')
#: Below this rate, the three decimals of np.out are less exact than the time.
_COARSE_GBPS = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class NetPIPERow:
    """A message size and its measurement.

    :ivar size: in bytes; from :data:`EXACT` on, version 5 rounds it to three
        decimals of the unit
    :ivar mbps: as printed, in 10^6 or 2^20 bits per second
    :ivar rounding: relative rounding error of the printed rate and time
    """

    size: float
    mbps: float
    time_us: float
    rounding: float


def parse_screen(text: str) -> list[NetPIPERow]:
    """Read the rows of the table.

    :raises InvalidOutput: if a row is broken or missing
    """
    found = list(_SCREEN.finditer(text))
    reading.require(len(found) == len(_SCREEN_ANY.findall(text)),
                    'a row of the table is broken')
    rows = []
    first = found[0][1] if found else '0'
    for line, match in enumerate(found, reading.whole(
            first, 'the number of a row')):
        place, size, unit, rate, scale, time, part = match.groups()
        reading.require(
            reading.whole(place, 'the number of a row') == line,
            f'row {place} follows instead of row {line}: rows are missing')
        time_us = reading.figure(time, f'the time at {size} {unit}')
        rate_mbps = mbps(rate, scale, f'the rate at {size} {unit}')
        rows.append(NetPIPERow(
            reading.real(size, 'the message size')
            * _SCALES[unit.removesuffix('bytes').removesuffix('B')],
            rate_mbps, time_us * _MICROSECONDS[part],
            _last_digit(time) / time_us + _last_digit(rate) / reading.real(
                rate, f'the rate at {size} {unit}')))
    reading.require(first in '01', f'the table begins at row {first[:40]}: '
                    'rows are missing')
    reading.check_columns((row[0].partition(':')[2] for row in found),
                          'the table')
    return rows


def mbps(word: str, scale: str, what: str) -> float:
    """Read a rate in units of K, M, G or T bits per second.

    :raises InvalidOutput: if it is not a rate
    """
    return reading.figure(word, what) * _SCALES[scale] / 1e6


def parse_file(text: str) -> list[NetPIPERow]:
    """Read the rows of ``np.out``; none if the text is something else.

    :raises InvalidOutput: if a line is not a row
    """
    lines = [line for line in text.splitlines() if line.strip()]
    wrong = 'not a row of np.out: {!r}'.format
    for pattern, scale, to_us in ((_FILE_3, 1.0, 1e6), (_FILE_5, 1e3, 1.0)):
        found = [pattern.match(line) for line in lines]
        if any(found):
            for line, match in zip(lines, found, strict=True):
                reading.require(match, wrong(line.strip()[:60]))
            return [_file_row(match, scale, to_us) for match in found if match]
    reading.require(not lines or not all(map(_FILE_LIKE.match, lines)),
                    wrong(lines[0].strip()[:60] if lines else ''))
    return []


def _file_row(match: re.Match[str], scale: float, to_us: float) -> NetPIPERow:
    size = reading.whole(match[1], 'the message size')
    time = reading.figure(match[3], f'the time at {size} bytes')
    time_us = time * to_us
    rounding = _last_digit(match[3]) / time
    gbps = reading.real(match[2], f'the rate at {size} bytes')
    if scale > 1 and gbps < _COARSE_GBPS:
        reading.require(
            abs(size * 8 / time_us / 1e3 - gbps) <= 0.001,
            f'{match[2]} Gbps and {match[3]} us do not agree for {size} bytes')
        return NetPIPERow(size, size * 8 / time_us, time_us, rounding)
    return NetPIPERow(size, scale * reading.figure(
        match[2], f'the rate at {size} bytes'), time_us, rounding)


def _last_digit(word: str) -> float:
    return 10.0 ** -len(word.partition('.')[2])


def find_sizes(rows: Sequence[NetPIPERow]) -> tuple[int, ...]:
    """Return the exact sizes of the rows, and check that none is missing.

    :raises InvalidOutput: if NetPIPE does not measure these sizes
    """
    printed = [row.size for row in rows]
    exact = [round(size) for size in printed if size < EXACT]
    spreads = {3, *(after - before for before, after
                    in itertools.pairwise(exact))}
    best: tuple[int, ...] = ()
    for spread in sorted({0, *spreads}):
        for start in {round(printed[0]), round(printed[0]) + spread}:
            for doubling in (False, True):
                found = _matching(printed, _groups(start, spread, doubling))
                if len(found) == len(rows):
                    return found
                best = max(best, found, key=len)
    raise reading.InvalidOutput(
        f'rows are missing after {best[-1]} bytes' if best else
        f'the table begins at {printed[0]:g} bytes, rows are missing')


def _matching(printed: Sequence[float],
              groups: Iterator[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the exact sizes of the leading groups that were printed."""
    found: list[int] = []
    for group in groups:
        shown = printed[len(found):len(found) + len(group)]
        if len(shown) < len(group) or any(
                abs(size - exact) > (0.5 if size < EXACT else size / 1e3)
                for size, exact in zip(shown, group, strict=True)):
            break
        found += group
    return tuple(found)


def _groups(start: int, spread: int,
            doubling: bool) -> Iterator[tuple[int, ...]]:
    """Yield the sizes as the main loop of NetPIPE 3 and 5 does.

    :param spread: the option ``-p`` or ``--pert``
    :param doubling: the option ``--fac2``
    """
    step = start // 2 if start > 1 else 1
    count = 1 if start > 1 else 0
    size = start
    while True:
        if doubling:
            step = size
        elif count > 2 and count % 2:
            step *= 2
        if 0 < spread < step - 1:
            yield size - spread, size, size + spread
        else:
            yield (size,)
        count += 1
        size += step


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the table or ``np.out``."""
    reading.check_single(text, _START, _END_5)
    rows = [row for row in parse_screen(text) or parse_file(text) if row.size]
    reading.require(rows, 'no row of bytes, Mbps or Gbps, and time',
                    reading.Missing)
    # The perturbations of larger sizes are not printed on the screen.
    reading.check_ascending([round(row.size) for row in rows
                             if row.size < EXACT])
    sizes = find_sizes(rows)
    reading.check_begin(sizes, expect)
    metrics = {}
    megabit = _megabit(rows)
    for size, row in zip(sizes, rows, strict=True):
        expected_us = size * 8 / (row.mbps * megabit) * 1e6
        reading.require(
            abs(expected_us - row.time_us) <= (0.01 + row.rounding)
            * row.time_us, f'{row.mbps:g} Mbps and {row.time_us:g} us do not '
            f'agree for {size} bytes')
        metrics[f'latency_us[{size}]'] = row.time_us
        metrics[f'bandwidth_mb_s[{size}]'] = row.mbps / 8
    parameters = reading.describe_sizes(sizes)
    ended = _END_5.search(text)
    if ended is not None:
        _check_end(ended, rows)
    reading.require(ended or not _BEGIN_5.search(text), 'no complete line '
                    '"Completed with max bandwidth": the output is not '
                    'complete', reading.Missing)
    remarks: tuple[str, ...] = ()
    max_size = expect.get('max_size')
    if max_size is not None:
        reading.require(
            sizes[-1] >= reading.whole(max_size, 'max_size')
            - PERTURBATION_BYTES,
            f'the table ends at {sizes[-1]} bytes, but max_size={max_size} '
            'was requested')
        parameters['max_size'] = max_size
    elif ended is None:
        remarks = (reading.NO_END,)
    if megabit != MEGABIT:
        remarks += ('this NetPIPE counts 2^20 bits as a megabit',)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _check_end(end: re.Match[str], rows: Sequence[NetPIPERow]) -> None:
    printed = mbps(end[1], end[2], 'max bandwidth')
    highest = sorted((row.mbps for row in rows), reverse=True)
    reading.require(
        any(math.isclose(printed, sum(highest[:count]) / count, rel_tol=1e-3)
            for count in _HIGHEST),
        'the rows do not agree with the max bandwidth at the end '
        f'({end[1]} {end[2]}bps): rows are missing')


def _megabit(rows: Sequence[NetPIPERow]) -> float:
    """Return how many bits the program counts as a megabit: 10^6 or 2^20."""
    middle = statistics.median(
        row.size * 8 / row.time_us / row.mbps * 1e6 for row in rows)
    return min(MEGABIT, 2.0 ** 20, key=lambda bits: abs(middle - bits))
