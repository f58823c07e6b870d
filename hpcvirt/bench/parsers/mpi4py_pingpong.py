# SPDX-License-Identifier: Apache-2.0

"""Read ``python -m mpi4py.bench pingpong`` of mpi4py 3 and 4.

A row has size, bandwidth and, unless ``--no-stats`` was given, mean time,
deviation and number of samples. The time is that of one direction.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('max_size', 'largest message in bytes', 'max', 'size'),
    expectation.whole('min_size', 'smallest message in bytes', 'min'),
    expectation.whole('rows', 'number of sizes'),
)

_TITLE = re.compile(r'^# *MPI PingPong Test', re.MULTILINE)
#: The plus-minus sign may be U+FFFD or ?, depending on the locale.
_ROW = re.compile(
    r'^ *(\d+) +(\S+)(?: +\| +(\S+) +\S+ +(\S+) +(\d+))?[ \t]*$',
    re.MULTILINE)
_ROW_LIKE = re.compile(r'^ *\d+ +[-+.\w]+(?: +\|.*)?$', re.MULTILINE)


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the table.

    :raises InvalidOutput: if it is not a table of one run
    """
    titles = list(_TITLE.finditer(text))
    if not titles:
        raise reading.Missing('no title "MPI PingPong Test"')
    if len(titles) > 1:
        raise reading.InvalidOutput('several runs in one file')
    body = text[titles[0].end():]
    rows = _ROW.findall(body)
    if not rows:
        raise reading.Missing('no rows under the headers')
    if len(rows) != len(_ROW_LIKE.findall(body)):
        raise reading.InvalidOutput('a row of the table is broken')
    sizes = [reading.whole(row[0], 'the message size') for row in rows]
    reading.check_ascending(sizes)
    reading.check_doubling(sizes)
    head = body[:_ROW.search(body).start()]  # type: ignore[union-attr]
    if {bool(row[2]) for row in rows} != {'Time' in head}:
        raise reading.InvalidOutput('a row is cut off')
    reading.check_begin(sizes, expect)
    metrics = {}
    for size, row in zip(sizes, rows, strict=True):
        metrics.update(_row(size, row))
    reading.check_columns((row[0] for row in _ROW.finditer(body)), 'the table')
    remarks: tuple[str, ...] = ()
    if 'max_size' not in expect:
        remarks = (reading.NO_END,)
    return reading.Reading(metrics, reading.describe_sizes(sizes),
                           remarks=remarks)


def _row(size: int, row: tuple[str, ...]) -> dict[str, outcome.Metric]:
    _, bandwidth, seconds, deviation, _ = row
    name = f'bandwidth_mb_s[{size}]'
    rate = reading.real(bandwidth, name)
    found = {}
    if seconds:
        mean_s = reading.figure(seconds, f'the time of {size} bytes')
        if reading.real(deviation, f'the deviation at {size} bytes') < 0:
            raise reading.InvalidOutput(
                f'the deviation at {size} bytes is below 0')
        found[f'latency_us[{size}]'] = outcome.Metric(
            mean_s * 1e6, 'us', reading.DOWN)
        # Two decimals are printed: 0.00 MB/s is slow, but correct.
        if size and abs(size / mean_s / 1e6 - rate) > 0.006 + 1e-4 * rate:
            raise reading.InvalidOutput(
                f'{bandwidth} MB/s and {seconds} s do not agree for {size} '
                'bytes')
    if rate > 0:
        found[name] = outcome.Metric(rate, 'MB/s', reading.UP)
    elif rate < 0 or not found:
        raise reading.InvalidOutput(f'{name} is {bandwidth}')
    return found
