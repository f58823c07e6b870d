# SPDX-License-Identifier: Apache-2.0

"""Read OSU Micro-Benchmarks 3 to 7: point-to-point tests and collectives.

The headers depend on the version, but all have a title line, a line of column
names with the unit, and rows that begin with the message size. Validation
adds a column Pass or Fail; -z adds percentiles.
"""

import functools
import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('test', 'such as latency, bi-bandwidth or allreduce'),
    *expectation.SIZES,
    expectation.word('version', 'such as 7.5'),
)

#: The smallest and largest message by default, between two ranks and in
#: collectives, which begin with a number of 4 bytes before version 7.
_DEFAULT_SIZES = (1, 4194304)
_COLLECTIVE_SIZES = (4, 1048576)

_LATENCY = functools.partial(reading.duration, unit='us')
_BANDWIDTH = functools.partial(reading.rate, unit='MB/s')
#: Title to test of the collectives. A row has the mean over the ranks first.
_COLLECTIVES = {
    'allreduce latency': 'allreduce', 'allgather latency': 'allgather',
    'all-to-all personalized exchange latency': 'alltoall',
    'broadcast latency': 'bcast', 'reduce latency': 'reduce'}
#: Title to test, metric, its kind, and a text in the line of column names.
_TESTS = {
    'latency': ('latency', 'latency_us', _LATENCY, '(us)'),
    'bandwidth': ('bandwidth', 'bandwidth_mb_s', _BANDWIDTH, '(mb/s)'),
    'bi-directional bandwidth': ('bi-bandwidth', 'bandwidth_mb_s', _BANDWIDTH,
                                 '(mb/s)'),
    **{title: (test, 'latency_us', _LATENCY, '(us)')
       for title, test in _COLLECTIVES.items()},
}

_TITLE = re.compile(
    r'^# *OSU MPI\S*(?: (.*?))? Test *v?([0-9][\w.-]*)?[ \t]*$',
    re.MULTILINE | re.IGNORECASE)
_COLUMNS = re.compile(r'^# *Size .*$', re.MULTILINE)
#: The second word must begin like a number, nan or inf, unlike that of "2 more
#: processes have sent help message".
_ROW = re.compile(
    r'^ *(\d+)[ \t]+((?:[-+.\d*]|nan\b|inf\b)\S*)((?:[ \t]+\S+)*)[ \t]*$',
    re.MULTILINE | re.IGNORECASE)
#: A figure with fewer than the usual two decimals: the row is truncated.
_CUT = re.compile(r'[0-9]+(?:\.[0-9]?)?')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of one of the programs."""
    found = reading.find(_TITLE, text, 'no title of an OSU test')
    reading.check_single(text, _TITLE)
    title = ' '.join((found[1] or '').lower().split())
    reading.require(title in _TESTS, f'{title[:60]!r} is another OSU test')
    test, metric, figure, column = _TESTS[title]
    body = text[found.end():]
    columns = _COLUMNS.search(body)
    reading.require(columns and column in columns[0].lower(),
                    'no line of column names: the output is not complete',
                    reading.Missing)
    rows = list(_ROW.finditer(body))
    reading.require(rows, 'no rows under the headers', reading.Missing)
    sizes = reading.read_sizes(row[1] for row in rows)
    metrics = {}
    for size, row in zip(sizes, rows, strict=True):
        name = f'{metric}[{size}]'
        reading.require(not _CUT.fullmatch(row[2]),
                        f'{name} is truncated: {row[2]}')
        metrics[name] = figure(reading.figure(row[2], name))
        _check_more(row[3], name)
    reading.check_columns((body[row.start():row.end(2)] for row in rows),
                          'the table')
    remarks = reading.check_ends(sizes, expect, *(
        _COLLECTIVE_SIZES if title in _COLLECTIVES else _DEFAULT_SIZES))
    parameters = {'test': test, **reading.describe_sizes(sizes)}
    if found[2]:
        parameters['version'] = found[2]
    return reading.Reading(metrics, parameters, remarks=remarks)


def _check_more(more: str, name: str) -> None:
    for word in more.split():
        reading.require(word.lower() != 'fail', f'validation failed at {name}')
        if word.lower() != 'pass':
            reading.real(word, f'another column at {name}')
