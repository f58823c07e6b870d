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

"""Read NetPIPE 3 and 5: the table on the screen, or the file ``np.out``.

The formats are those of :mod:`hpcvirt.bench.parsers.netpipe_rows`. Some
versions, such as 3.7, count 2^20 bits as a megabit. The bandwidth is an eighth
of the printed number in either case: this is correct for comparing runs of
NetPIPE, and up to 4.9 % off when compared with other programs.
"""

import re
import statistics
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import netpipe_rows
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

#: NetPIPE adds at most this to the size that was asked for.
PERTURBATION_BYTES = 3
MEGABIT = 1e6

_START = re.compile(r'Now starting the main loop|Start testing with')
_BEGIN_5 = re.compile(r'^Start testing with|^ *\d+: +\S+ +[KMGT]?B ',
                      re.MULTILINE)
_END_5 = re.compile(r'^Completed with +max bandwidth +(\S+) +([KMGT]?)bps +'
                    r'\S+ +\w+ +latency', re.MULTILINE)
#: Version 5 ends with the mean of so many of the highest rates: with
#: perturbations, and without.
_HIGHEST = (10, 5)


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the table or ``np.out``.

    :raises Refused: if it is not a table of one run
    """
    if len(_START.findall(text)) > 1 or len(_END_5.findall(text)) > 1:
        raise reading.Refused('several runs in one file')
    rows = netpipe_rows.on_screen(text) or netpipe_rows.of_file(text)
    rows = [row for row in rows if row.size]
    if not rows:
        raise reading.Missing('no row of bytes, Mbps or Gbps, and time')
    # The perturbations of larger sizes are not printed on the screen.
    table.check_ascending([round(row.size) for row in rows
                           if row.size < netpipe_rows.EXACT])
    sizes = netpipe_rows.sizes(rows)
    table.check_begin(sizes, expect)
    metrics = {}
    megabit = _megabit(rows)
    for size, row in zip(sizes, rows, strict=True):
        _check_agreement(size, row, megabit)
        metrics[f'latency_us[{size}]'] = outcome.Metric(
            row.time_us, 'us', reading.DOWN)
        metrics[f'bandwidth_mb_s[{size}]'] = outcome.Metric(
            row.mbps / 8, 'MB/s', reading.UP)
    parameters = table.parameters(sizes)
    remarks: tuple[str, ...] = ()
    ended = _END_5.search(text)
    if ended is not None:
        _check_end(ended, rows)
    elif _BEGIN_5.search(text):
        raise reading.Missing('no complete line "Completed with max '
                              'bandwidth": the output is not complete')
    max_size = expect.get('max_size')
    if max_size is not None:
        if sizes[-1] < int(max_size) - PERTURBATION_BYTES:
            raise reading.Refused(
                f'the table ends at {sizes[-1]} bytes, max_size={max_size} '
                'was asked for')
        parameters['max_size'] = max_size
    elif ended is None:
        remarks = (table.NO_END,)
    if megabit != MEGABIT:
        remarks += ('this NetPIPE counts 2^20 bits as a megabit',)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _check_end(end: re.Match[str], rows: Sequence[netpipe_rows.Row]) -> None:
    printed = netpipe_rows.mbps(end[1], end[2], 'max bandwidth')
    highest = sorted((row.mbps for row in rows), reverse=True)
    if not any(number.near(printed, sum(highest[:count]) / count, 1e-3)
               for count in _HIGHEST):
        raise reading.Refused('the rows do not have the max bandwidth that '
                              f'the output ends with ({end[1]} {end[2]}bps): '
                              'rows are missing')


def _check_agreement(size: int, row: netpipe_rows.Row,
                     megabit: float) -> None:
    expected_us = size * 8 / (row.mbps * megabit) * 1e6
    if abs(expected_us - row.time_us) > (0.01 + row.rounding) * row.time_us:
        raise reading.Refused(
            f'{row.mbps:g} Mbps and {row.time_us:g} us do not agree for '
            f'{size} bytes')


def _megabit(rows: Sequence[netpipe_rows.Row]) -> float:
    """Find out how many bits the program calls a megabit: 10^6 or 2^20."""
    middle = statistics.median(
        row.size * 8 / row.time_us / row.mbps * 1e6 for row in rows)
    if abs(middle - 2 ** 20) < abs(middle - MEGABIT):
        return 2.0 ** 20
    return MEGABIT
