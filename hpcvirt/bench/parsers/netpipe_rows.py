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

"""Read the rows that NetPIPE prints, and the order of its message sizes.

Version 3 prints bytes, Mbps and microseconds, version 5 the unit that suits
each number, with three decimals: ``61: 98.301 KB 9512 times --> 25.117 Gbps in
31.310 usecs``. A row of the file ``np.out`` has bytes, Mbps and seconds in
version 3; bytes, the average, least and largest Gbps, and microseconds in
version 5.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.parsers import number
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import table

#: Numbers of bits and bytes are printed in powers of 1000.
_SCALES = {'': 1.0, 'K': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12}
#: Smaller sizes are printed to the byte.
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
#: With fewer Gbps, the three decimals of np.out say less than the time.
_COARSE_GBPS = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A message size and what was measured for it.

    :ivar size: in bytes; version 5 rounds it to three decimals of a megabyte
        and beyond
    :ivar mbps: as printed, a million bits or 2^20
    :ivar rounding: what the printed rate and time can be off, as a fraction
    """

    size: float
    mbps: float
    time_us: float
    rounding: float


def on_screen(text: str) -> list[Row]:
    """Read the rows of the table.

    :raises Refused: if a row is broken or missing
    """
    found = _SCREEN.findall(text)
    if len(found) != len(_SCREEN_ANY.findall(text)):
        raise reading.Refused('a row of the table is broken')
    rows = []
    for line, (place, size, unit, rate, scale, time, part) in enumerate(
            found, int(found[0][0][:9]) if found else 0):
        if number.whole(place, 'the number of a row') != line:
            raise reading.Refused(f'row {place} stands where row {line} is '
                                  'expected: rows are missing')
        time_us = number.figure(time, f'the time at {size} {unit}')
        rate_mbps = mbps(rate, scale, f'the rate at {size} {unit}')
        rows.append(Row(
            number.real(size, 'the message size')
            * _SCALES[unit.removesuffix('bytes').removesuffix('B')],
            rate_mbps, time_us * _MICROSECONDS[part],
            _last_digit(time) / time_us + _last_digit(rate) / float(rate)))
    if rows and found[0][0] not in '01':
        raise reading.Refused(f'the table begins at row {found[0][0]}: rows '
                              'are missing')
    table.check_columns((row[0].partition(':')[2]
                         for row in _SCREEN.finditer(text)), 'the table')
    return rows


def mbps(word: str, scale: str, what: str) -> float:
    """Read a rate in units of K, M, G or T bits per second.

    :raises Refused: if it is not a rate
    """
    return number.figure(word, what) * _SCALES[scale] / 1e6


def of_file(text: str) -> list[Row]:
    """Read the rows of ``np.out``; none if it is something else.

    :raises Refused: if a line is no row
    """
    lines = [line for line in text.splitlines() if line.strip()]
    for pattern, scale, to_us in ((_FILE_3, 1.0, 1e6), (_FILE_5, 1e3, 1.0)):
        found = [pattern.match(line) for line in lines]
        if not any(found):
            continue
        for line, match in zip(lines, found, strict=True):
            if match is None:
                raise reading.Refused(
                    f'not a row of np.out: {line.strip()[:60]!r}')
        return [_of_file(match, scale, to_us) for match in found if match]
    if lines and all(map(_FILE_LIKE.match, lines)):
        raise reading.Refused(
            f'not a row of np.out: {lines[0].strip()[:60]!r}')
    return []


def _of_file(match: re.Match[str], scale: float, to_us: float) -> Row:
    size = number.whole(match[1], 'the message size')
    time = number.figure(match[3], f'the time at {size} bytes')
    time_us = time * to_us
    rounding = _last_digit(match[3]) / time
    if scale > 1 and float(match[2]) < _COARSE_GBPS:
        if abs(size * 8 / time_us / 1e3 - float(match[2])) > 0.001:
            raise reading.Refused(f'{match[2]} Gbps and {match[3]} us do not '
                                  f'agree for {size} bytes')
        return Row(size, size * 8 / time_us, time_us, rounding)
    return Row(size, scale * number.figure(
        match[2], f'the rate at {size} bytes'), time_us, rounding)


def _last_digit(word: str) -> float:
    return 10.0 ** -len(word.partition('.')[2])


def sizes(rows: Sequence[Row]) -> tuple[int, ...]:
    """Find the exact sizes of the rows, and check that none is missing.

    :raises Refused: if they are not the sizes that NetPIPE measures
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
    raise reading.Refused(
        f'rows are missing after {best[-1]} bytes' if best else
        f'the table begins at {printed[0]:g} bytes, rows are missing')


def _matching(printed: Sequence[float],
              groups: Iterator[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the exact sizes of the groups that were printed whole."""
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
