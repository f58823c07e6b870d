# SPDX-License-Identifier: Apache-2.0

"""Read ``python -m mpi4py.bench pingpong`` of mpi4py 3 and 4.

A row has the size, the bandwidth and, unless ``--no-stats`` was given, the
mean time, its deviation and the number of samples. The time is one-way.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = expectation.SIZES

_TITLE = re.compile(r'^# *MPI PingPong Test', re.MULTILINE)
#: The plus-minus sign may be U+FFFD or ?, depending on the locale.
_COLUMNS = re.compile(r'^# *Size \[B\] +Bandwidth \[(\S+)\]', re.MULTILINE)
_ROW = re.compile(
    r'^ *(\d+) +(\S+)(?: +\| +(\S+) +\S+ +(\S+) +(\d+))?[ \t]*$',
    re.MULTILINE)
_ROW_LIKE = re.compile(r'^ *\d+ +[-+.\w]+(?: +\|.*)?$', re.MULTILINE)


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the table."""
    title = reading.find(_TITLE, text, 'no title "MPI PingPong Test"')
    reading.check_single(text, _TITLE)
    body = text[title.end():]
    rows = list(_ROW.finditer(body))
    reading.require(rows, 'no rows under the headers', reading.Missing)
    reading.require(len(rows) == len(_ROW_LIKE.findall(body)),
                    'a row of the table is broken')
    sizes = reading.read_sizes(row[1] for row in rows)
    has_times = 'Time' in body[:rows[0].start()]
    reading.require({row[3] is not None for row in rows} == {has_times},
                    'a row is truncated')
    reading.check_begin(sizes, expect)
    metrics = {}
    for size, row in zip(sizes, rows, strict=True):
        metrics.update(_row(size, *row.group(2, 3, 4)))
    reading.check_columns((row[0] for row in rows), 'the table')
    return reading.Reading(
        metrics, reading.describe_sizes(sizes),
        units=reading.find_parameters(text, bandwidth_mb_s=_COLUMNS),
        remarks=() if 'max_size' in expect else (reading.NO_END,))


def _row(size: int, bandwidth: str, seconds: str | None,
         deviation: str) -> dict[str, float]:
    name = f'bandwidth_mb_s[{size}]'
    rate = reading.real(bandwidth, name)
    found = {}
    if seconds:
        mean_s = reading.figure(seconds, f'the time of {size} bytes')
        what = f'the deviation at {size} bytes'
        reading.require(reading.real(deviation, what) >= 0,
                        f'{what} is below 0')
        found[f'latency_us[{size}]'] = mean_s * 1e6
        # The rate has two decimals: a slow network can have 0.00 MB/s.
        reading.require(
            not size or abs(size / mean_s / 1e6 - rate) <= 0.006 + 1e-4 * rate,
            f'{bandwidth} MB/s and {seconds} s do not agree for {size} bytes')
    reading.require(rate > 0 or (found and not rate),
                    f'{name} is {bandwidth}')
    if rate:
        found[name] = rate
    return found
