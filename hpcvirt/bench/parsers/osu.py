# SPDX-License-Identifier: Apache-2.0

"""Read OSU Micro-Benchmarks 3 to 7: point-to-point tests and collectives.

The headers depend on the version, but all have a title line, a line of column
names with the unit, and rows that begin with the message size. Validation
adds a column Pass or Fail; -z adds percentiles.

The one-sided tests (``MPI_Put``, ``MPI_Get``) have similar titles and the same
columns, but are other tests. So is a test with buffers in the memory of a GPU:
its name here ends in ``-device``.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.word('test', 'such as latency, bi-bandwidth or allreduce'),
    *expectation.SIZES,
    expectation.word('version', 'such as 7.5'),
    expectation.word('buffers', 'of a test on GPUs, such as D D'),
)

#: The smallest and largest message by default, between two ranks and in
#: collectives, which begin with a number of 4 bytes before version 7.
_DEFAULT_SIZES = (1, 4194304)
_COLLECTIVE_SIZES = (4, 1048576)

#: Title to test of the collectives. A row has the mean over the ranks first.
_COLLECTIVES = {
    'allreduce latency': 'allreduce', 'allgather latency': 'allgather',
    'all-to-all personalized exchange latency': 'alltoall',
    'broadcast latency': 'bcast', 'reduce latency': 'reduce'}
#: Title to test and metric.
_TESTS = {
    'latency': ('latency', 'latency_us'),
    'bandwidth': ('bandwidth', 'bandwidth_mb_s'),
    'bi-directional bandwidth': ('bi-bandwidth', 'bandwidth_mb_s'),
    **{title: (test, 'latency_us') for title, test in _COLLECTIVES.items()},
}

_TITLE = re.compile(
    r'^# *OSU (.*?) *\bTest *v?([0-9][\w.-]*)?[ \t]*$',
    re.MULTILINE | re.IGNORECASE)
#: A title without "OSU" and "Test": the interface, that of a GPU, the test.
_NAME = re.compile(r'MPI(?:-(\w+))? +(.*)', re.IGNORECASE)
#: "Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)".
_BUFFERS = re.compile(r'^#.*\b(?:Buffer|Memory) on .*$',
                      re.MULTILINE | re.IGNORECASE)
_BUFFER = re.compile(r'\bon [\w ]{1,40}\((\w{1,2})\)', re.IGNORECASE)
#: The first unit is that of the figure.
_COLUMNS = re.compile(r'^# *Size [^(\n]*\(([^\s()]+)\)', re.MULTILINE)
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
    words = _NAME.fullmatch(found[1])
    title = ' '.join(words[2].lower().split()) if words else ''
    if words is None or title not in _TESTS:
        raise reading.InvalidOutput(
            f'"OSU {texts.quote(found[1])} Test" is another OSU test')
    test, metric = _TESTS[title]
    body = text[found.end():]
    buffers = _find_buffers(body, words[1])
    reading.require(
        not buffers or expect.get('test') != test,
        f'the buffers are in the memory of a GPU ({buffers}), and the '
        'benchmark is for those in host memory')
    columns = reading.find(_COLUMNS, body, 'no line of column names: the '
                           'output is not complete')
    rows = list(_ROW.finditer(body))
    reading.require(rows, 'no rows under the headers', reading.Missing)
    sizes = reading.read_sizes(row[1] for row in rows)
    metrics = {}
    for size, row in zip(sizes, rows, strict=True):
        name = f'{metric}[{size}]'
        reading.require(not _CUT.fullmatch(row[2]),
                        f'{name} is truncated: {row[2]}')
        metrics[name] = reading.figure(row[2], name)
        _check_more(row[3], name)
    reading.check_columns((body[row.start():row.end(2)] for row in rows),
                          'the table')
    remarks = reading.check_ends(sizes, expect, *(
        _COLLECTIVE_SIZES if title in _COLLECTIVES else _DEFAULT_SIZES))
    parameters = {'test': test, **reading.describe_sizes(sizes)}
    if buffers:
        parameters |= {'test': f'{test}-device', 'buffers': buffers}
    if found[2]:
        parameters['version'] = found[2]
    return reading.Reading(metrics, parameters, remarks=remarks,
                           units={metric: columns[1]})


def _find_buffers(body: str, device: str | None) -> str:
    """Find out where a test on GPUs has its buffers.

    :param device: the interface of the GPU in the title, such as CUDA
    :returns: ``D D``, or the interface if only the title shows it; empty if
        both buffers are in host memory
    """
    line = _BUFFERS.search(body)
    if line is None:
        return device or ''
    places = [place.upper() for place in _BUFFER.findall(line[0])]
    return '' if {*places} == {'H'} else ' '.join(places) or 'unknown'


def _check_more(more: str, name: str) -> None:
    for word in more.split():
        reading.require(word.lower() != 'fail', f'validation failed at {name}')
        if word.lower() != 'pass':
            reading.real(word, f'another column at {name}')
