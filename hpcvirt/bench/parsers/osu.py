# SPDX-License-Identifier: Apache-2.0

"""Read OSU Micro-Benchmarks 3 to 7: osu_latency, osu_bw, osu_bibw.

The headers depend on the version, but all have a title line, a line of column
names with the unit, and rows that begin with the message size. Validation
adds a column Pass or Fail; -z adds percentiles.
"""

import re
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('test', 'latency, bandwidth or bi-bandwidth'),
    expectation.whole('max_size',
                      'largest message in bytes; 4194304 if not given', 'max',
                      'max_message_size', 'size'),
    expectation.whole('min_size', 'smallest message in bytes', 'min'),
    expectation.whole('rows', 'number of sizes'),
    expectation.word('version', 'such as 7.5'),
)

#: The largest message of the programs by default.
DEFAULT_MAX_BYTES = 4194304

#: Title -> test, metric, unit, direction, text in the line of columns.
_TESTS = {
    'latency': ('latency', 'latency_us', 'us', reading.DOWN, '(us)'),
    'bandwidth': ('bandwidth', 'bandwidth_mb_s', 'MB/s', reading.UP,
                  '(mb/s)'),
    'bi-directional bandwidth': ('bi-bandwidth', 'bandwidth_mb_s', 'MB/s',
                                 reading.UP, '(mb/s)'),
}

_TITLE = re.compile(
    r'^# *OSU MPI\S*(?: (.*?))? Test *v?([0-9][\w.-]*)?[ \t]*$',
    re.MULTILINE | re.IGNORECASE)
_COLUMNS = re.compile(r'^# *Size .*$', re.MULTILINE)
#: The second word begins like a number, nan or inf, unlike "2 more processes
#: have sent help message".
_ROW = re.compile(
    r'^ *(\d+)[ \t]+((?:[-+.\d*]|nan\b|inf\b)\S*)((?:[ \t]+\S+)*)[ \t]*$',
    re.MULTILINE | re.IGNORECASE)
#: Figures are printed with two decimals: a row with fewer is cut off.
_CUT = re.compile(r'[0-9]+(?:\.[0-9]?)?')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of one of the three programs.

    :raises InvalidOutput: if it is not the whole table of one good run
    """
    titles = list(_TITLE.finditer(text))
    if not titles:
        raise reading.Missing('no title of an OSU test')
    if len(titles) > 1:
        raise reading.InvalidOutput('several runs in one file')
    title = ' '.join((titles[0][1] or '').lower().split())
    if title not in _TESTS:
        raise reading.InvalidOutput(f'{title[:60]!r} is another OSU test')
    test, metric, unit, direction, column = _TESTS[title]
    body = text[titles[0].end():]
    columns = _COLUMNS.search(body)
    if columns is None or column not in columns[0].lower():
        raise reading.Missing('no line of column names: headers only, or '
                              'cut off')
    rows = _ROW.findall(body)
    if not rows:
        raise reading.Missing('no rows under the headers')
    sizes = [reading.whole(row[0], 'the message size') for row in rows]
    reading.check_ascending(sizes)
    reading.check_doubling(sizes)
    metrics = {}
    for size, (_, word, more) in zip(sizes, rows, strict=True):
        name = f'{metric}[{size}]'
        if _CUT.fullmatch(word):
            raise reading.InvalidOutput(f'{name} is cut off: {word}')
        metrics[name] = outcome.Metric(reading.figure(word, name), unit,
                                       direction)
        _check_more(more, name)
    reading.check_columns((body[row.start():row.end(2)]
                           for row in _ROW.finditer(body)), 'the table')
    remarks = _check_ends(sizes, expect)
    parameters = {'test': test, **reading.describe_sizes(sizes)}
    if titles[0][2]:
        parameters['version'] = titles[0][2]
    return reading.Reading(metrics, parameters, remarks=remarks)


def _check_ends(sizes: Sequence[int],
                expect: Mapping[str, str]) -> tuple[str, ...]:
    """Check that the table begins and ends where the program does by default.

    A single size is no default of the program, so somebody asked for it.
    """
    if len(sizes) == 1 and sizes[0] > 1 and 'min_size' not in expect:
        remark = (f'only {sizes[0]} bytes were measured; the output does not '
                  'say whether more were asked for (--expect min_size)')
        return (remark,)
    if 'max_size' not in expect and sizes[-1] < DEFAULT_MAX_BYTES:
        raise reading.InvalidOutput(
            f'the table ends at {sizes[-1]} bytes: it is cut off, unless this '
            f'is the largest size (--expect max_size={sizes[-1]})')
    if len(sizes) > 1:
        reading.check_begin(sizes, expect)
    return ()


def _check_more(more: str, name: str) -> None:
    for word in more.split():
        if word.lower() == 'pass':
            continue
        if word.lower() == 'fail':
            raise reading.InvalidOutput(f'validation failed at {name}')
        reading.real(word, f'another column at {name}')
