# SPDX-License-Identifier: Apache-2.0

"""Read STREAM 5.6 to 5.10 in C and 5.x in Fortran, with OpenMP or MPI."""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('size', 'elements per array', 'n', 'array_size',
                      'stream_array_size', 'elements'),
    expectation.whole('threads', 'OpenMP threads', 'omp_num_threads'),
    expectation.word('version', 'such as 5.10'),
)

#: Kernel to metric, and the number of arrays that it reads and writes.
_KERNELS = {
    'Copy': ('copy_mb_s', 2),
    'Scale': ('scale_mb_s', 2),
    'Add': ('add_mb_s', 3),
    'Triad': ('triad_mb_s', 3),
}

_HEADER = re.compile(
    r'^ *Function +(?:Best )?Rate \(?(MB/s)\)? +(?:Avg|RMS) time +'
    r'Min time +Max time', re.MULTILINE)
_ROW = re.compile(
    r'^ *(Copy|Scale|Add|Triad): +(\S+) +(\S+) +(\S+) +(\S+)[ \t]*$',
    re.MULTILINE)
_VALID = re.compile(r'^ *Solution Validates', re.MULTILINE)
_FAILED = re.compile(r'^.*Failed Validation.*$', re.MULTILINE)
_SIZE = re.compile(r'^ *(?:Total )?Array size *= *(\d+)', re.MULTILINE)
_ELEMENT = re.compile(
    r'This system uses +(\d+) bytes per (?:array element|DOUBLE PRECISION)')
_REQUESTED = re.compile(r'^ *Number of Threads requested *= *(\d+)',
                        re.MULTILINE)
_COUNTED = re.compile(r'^ *Number of Threads(?: counted)? *= *(\d+)',
                      re.MULTILINE)
_PRESENT = re.compile(r'^Printing one line per active thread', re.MULTILINE)
_VERSION = re.compile(
    r'^ *STREAM version \$?\s*Revision: *([0-9.]+)', re.MULTILINE)
_BANNER = re.compile(r'^ *STREAM version', re.MULTILINE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read STREAM's standard output."""
    header = reading.find(_HEADER, text, 'no table of results: the output is '
                          'not complete, or not of STREAM')
    reading.check_single(text, _HEADER, _BANNER)
    reading.refuse(text, _FAILED)
    rows = list(_ROW.finditer(text))
    metrics = {}
    for name, (metric, _) in _KERNELS.items():
        words = [row[2] for row in rows if row[1] == name]
        reading.require(len(words) == 1,
                        f'{len(words)} rows of {name}, not one')
        metrics[metric] = reading.figure(words[0], f'the rate of {name}')
    reading.find(_VALID, text, 'no "Solution Validates": the output is not '
                 'complete')
    reading.check_columns((row[0] for row in rows), 'the rates')
    parameters = _parameters(text)
    element = _ELEMENT.search(text)
    if 'size' in parameters and element is not None:
        size = reading.whole(parameters['size'], 'the array size')
        element_bytes = reading.whole(element[1], 'the bytes of an element')
        for row in rows:
            _check_time(row, size, element_bytes)
    return reading.Reading(metrics, parameters,
                           units=dict.fromkeys(metrics, header[1]))


def _parameters(text: str) -> dict[str, str]:
    parameters = reading.find_parameters(
        text, size=_SIZE, threads=_COUNTED, version=_VERSION)
    requested = _REQUESTED.search(text)
    if requested is not None:
        # Version 5.9 does not count the threads, but each prints a line.
        counted = parameters.setdefault('threads', str(
            len(_PRESENT.findall(text)) or requested[1]))
        reading.require(
            counted == requested[1],
            f'{requested[1]} threads were requested, {counted} ran')
    # A program without OpenMP prints no number of threads.
    parameters.setdefault('threads', '1')
    return parameters


def _check_time(row: re.Match[str], size: int, element_bytes: int) -> None:
    """Check that rate x best time equals the bytes that the kernel moves."""
    name, rate, average, least, most = row.groups()
    what = f'the time of {name}'
    best_s, mean_s, worst_s = (reading.real(word, what)
                               for word in (least, average, most))
    reading.require(
        best_s <= mean_s * 1.001 and mean_s <= worst_s * 1.001,
        f'{what} is {least}, {average}, {most} (least, average, most)')
    bytes_s = reading.real(rate, name) * 1e6
    slack = bytes_s * 10.0 ** -len(least.partition('.')[2])
    expected = _KERNELS[name][1] * size * element_bytes
    reading.require(
        abs(bytes_s * best_s - expected) <= slack + 0.01 * expected,
        f'the rate of {name} ({rate}) and its best time ({least} s) '
        f'do not agree for arrays of {size} elements')
