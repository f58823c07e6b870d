# SPDX-License-Identifier: Apache-2.0

"""Read STREAM 5.6 to 5.10 in C and 5.x in Fortran, with OpenMP or MPI."""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('size', 'elements per array', 'n', 'array_size',
                      'stream_array_size', 'elements'),
    expectation.whole('threads', 'OpenMP threads', 'omp_num_threads'),
    expectation.word('version', 'such as 5.10'),
)

#: Kernel -> metric, and how many arrays it reads and writes.
_KERNELS = {
    'Copy': ('copy_mb_s', 2),
    'Scale': ('scale_mb_s', 2),
    'Add': ('add_mb_s', 3),
    'Triad': ('triad_mb_s', 3),
}

_HEADER = re.compile(
    r'^ *Function +(?:Best )?Rate \(?MB/s\)? +(?:Avg|RMS) time +Min time +'
    r'Max time', re.MULTILINE)
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
    """Read STREAM's standard output.

    :raises InvalidOutput: if it is not the whole output of one good run
    """
    tables = len(_HEADER.findall(text))
    if tables == 0:
        raise reading.Missing('no table of results: the output is not '
                              'complete, or not of STREAM')
    if tables > 1 or len(_BANNER.findall(text)) > 1:
        raise reading.InvalidOutput('several runs in one file')
    failed = _FAILED.search(text)
    if failed is not None:
        raise reading.InvalidOutput(failed[0].strip()[:100])
    rows = _ROW.findall(text)
    metrics = {}
    for name, (metric, _) in _KERNELS.items():
        words = [row[1] for row in rows if row[0] == name]
        if len(words) != 1:
            raise reading.InvalidOutput(
                f'{len(words)} rows of {name}, not one')
        metrics[metric] = outcome.Metric(
            reading.figure(words[0], f'the rate of {name}'), 'MB/s',
            reading.UP)
    if not _VALID.search(text):
        raise reading.Missing('no "Solution Validates": the output is not '
                              'complete')
    reading.check_columns((row[0] for row in _ROW.finditer(text)), 'the rates')
    parameters = _parameters(text)
    _check_times(rows, text, parameters)
    return reading.Reading(metrics, parameters)


def _parameters(text: str) -> dict[str, str]:
    parameters = reading.find_parameters(
        text, size=_SIZE, threads=_COUNTED, version=_VERSION)
    requested = _REQUESTED.search(text)
    if requested is not None:
        # Version 5.9 does not count the threads, but each prints a line.
        counted = parameters.setdefault('threads', str(
            len(_PRESENT.findall(text)) or requested[1]))
        if counted != requested[1]:
            raise reading.InvalidOutput(
                f'{requested[1]} threads were requested, {counted} ran')
    # Without OpenMP it prints no number of threads.
    parameters.setdefault('threads', '1')
    return parameters


def _check_times(rows: list[tuple[str, str, str, str, str]], text: str,
                 parameters: Mapping[str, str]) -> None:
    """Check that rate x best time is the size of the arrays it moves."""
    element = _ELEMENT.search(text)
    if 'size' not in parameters or element is None:
        return
    bytes_per_array = int(parameters['size']) * int(element[1])
    for name, rate, average, least, most in rows:
        what = f'the time of {name}'
        best_s = reading.real(least, what)
        if not (best_s <= reading.real(average, what) * 1.001
                and reading.real(average, what) <= reading.real(most, what)
                * 1.001):
            raise reading.InvalidOutput(
                f'{what} is {least}, {average}, {most} '
                '(least, average, most)')
        decimals = len(least.partition('.')[2])
        moved = reading.real(rate, name) * 1e6 * best_s
        slack = reading.real(rate, name) * 1e6 * 10.0 ** -decimals
        expected = _KERNELS[name][1] * bytes_per_array
        if abs(moved - expected) > slack + 0.01 * expected:
            raise reading.InvalidOutput(
                f'the rate of {name} ({rate}) and its best time ({least} s) '
                f'do not agree for arrays of {parameters["size"]} elements')
