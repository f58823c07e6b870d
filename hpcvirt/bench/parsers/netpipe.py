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

"""Read NetPIPE 3: the table on standard error, or the file ``np.out``.

A row of the table is ``0:  1 bytes  20 times -->  80.00 Mbps in  0.10 usec``;
a row of the file has bytes, Mbps and seconds. The time is rounded to 10 ns.
Some versions, such as 3.7, count 2^20 bits as a megabit. The bandwidth is an
eighth of the printed number in either case: this is correct for comparing
runs of NetPIPE, and up to 4.9 % off when compared with other programs.
"""

import re
import statistics
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import number
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import table

KEYS = (
    expectation.Key('max_size', expectation.Kind.WHOLE,
                    'size in bytes that the table must reach',
                    ('max', 'size', 'upper')),
    expectation.Key('min_size', expectation.Kind.WHOLE,
                    'smallest message in bytes', ('min',)),
    expectation.Key('rows', expectation.Kind.WHOLE, 'number of sizes'),
)

#: NetPIPE also measures sizes slightly above and below a round one.
PERTURBATION_BYTES = 3
MEGABIT = 1e6

_TABLE_ROW = re.compile(
    r'^ *\d+: +(\d+) +(?:bytes|B) +\d+ times --> +(\S+) +Mbps +in +(\S+) +'
    r'usecs?[ \t]*$', re.MULTILINE)
_TABLE_ANY = re.compile(r'^ *\d+: +\d+ +(?:bytes|B)\b.*$', re.MULTILINE)
_FILE_ROW = re.compile(r'^ *(\d+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*$',
                       re.MULTILINE)
_START = re.compile(r'Now starting the main loop')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the table or ``np.out``.

    :raises Refused: if it is not a table of one run
    """
    if len(_START.findall(text)) > 1:
        raise reading.Refused('several runs in one file')
    rows = _rows(text)
    if not rows:
        raise reading.Missing('no row of bytes, Mbps and time')
    sizes = [size for size, _, _ in rows]
    table.check_ascending(sizes)
    metrics = {}
    megabit = _megabit(rows)
    for size, mbps, time_us in rows:
        expected_us = size * 8 / (mbps * megabit) * 1e6
        if abs(expected_us - time_us) > 0.011 + 0.01 * time_us:
            raise reading.Refused(
                f'{mbps:g} Mbps and {time_us:g} us do not agree for {size} '
                'bytes')
        metrics[f'latency_us[{size}]'] = outcome.Metric(
            time_us, 'us', reading.DOWN)
        metrics[f'bandwidth_mb_s[{size}]'] = outcome.Metric(
            mbps / 8, 'MB/s', reading.UP)
    parameters = table.parameters(sizes)
    remarks: tuple[str, ...] = ()
    max_size = expect.get('max_size')
    if max_size is None:
        remarks = (table.NO_END,)
    elif sizes[-1] < int(max_size) - PERTURBATION_BYTES:
        raise reading.Refused(
            f'the table ends at {sizes[-1]} bytes, max_size={max_size} was '
            'asked for')
    else:
        parameters['max_size'] = max_size
    if megabit != MEGABIT:
        remarks += ('this NetPIPE counts 2^20 bits as a megabit',)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _rows(text: str) -> list[tuple[int, float, float]]:
    found = _TABLE_ROW.findall(text)
    to_us = ''
    if found:
        if len(_TABLE_ANY.findall(text)) != len(found):
            raise reading.Refused('a row of the table is broken')
    else:
        found = _FILE_ROW.findall(text)
        to_us = 'e6'
        broken = [line for line in text.splitlines()
                  if line.strip() and not _FILE_ROW.fullmatch(line)]
        if found and broken:
            raise reading.Refused(
                f'not a row of np.out: {broken[0].strip()[:60]!r}')
    return [(number.whole(size, 'the message size'),
             number.figure(mbps, f'Mbps at {size} bytes'),
             number.figure(time + to_us, f'the time at {size} bytes'))
            for size, mbps, time in found if size != '0']


def _megabit(rows: Sequence[tuple[int, float, float]]) -> float:
    """Find out how many bits the program calls a megabit: 10^6 or 2^20."""
    middle = statistics.median(
        size * 8 / time_us / mbps * 1e6 for size, mbps, time_us in rows)
    if abs(middle - 2 ** 20) < abs(middle - MEGABIT):
        return 2.0 ** 20
    return MEGABIT
