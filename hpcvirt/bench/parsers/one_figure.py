# SPDX-License-Identifier: Apache-2.0

"""Read programs that print one figure: mt-dgemm, HPCG and multichase.

HPCG writes it into ``HPCG-Benchmark_3.1_TIME.txt``, version 3.0 as YAML.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('program', 'mt-dgemm, HPCG or multichase'),
    expectation.RANKS,
    expectation.whole('threads', 'threads per rank', 'omp_num_threads'),
    expectation.whole('size', 'order of the matrices of mt-dgemm', 'n'),
    expectation.whole('nx', 'edge of the grid of each rank of HPCG'),
    expectation.whole('memory', 'bytes of the chase of multichase', 'm'),
)


def _hpcg(name: str, value: str = r'(\d+)') -> re.Pattern[str]:
    return reading.line(rf'(?:.*::| *){name}[=:] *{value}[ \t]*\n')


#: Program to its result, the metric, and the parameters that it prints.
_PROGRAMS = {
    'mt-dgemm': (
        reading.line(r'GFLOP/s rate: +(\S+) GF/s'),
        'gflops', {'size': reading.line(
            r'Matrix size (?:input by command line:|defaulted to) +(\d+)')}),
    'HPCG': (
        _hpcg('HPCG result is VALID with a GFLOP/s rating of', r'(\S+)'),
        'gflops', {'ranks': _hpcg('Distributed Processes'),
                   'threads': _hpcg('Threads per processes'),
                   'nx': _hpcg('nx')}),
    # Three decimals below 100 ns, one above: a shorter number is truncated.
    'multichase': (
        reading.line(r' *(\d{1,2}\.\d{3}|\d{3,9}\.\d|-?nan|inf)[ \t]*\n'),
        'latency_ns', {'memory': reading.line(r'total_memory = (\d+)'),
                       'threads': reading.line(r'nr_threads = (\d+)')}),
}
#: Old versions of mt-dgemm do not check it: the order of the matrices, and at
#: most 1 more.
_SUM = reading.line(r'Final Sum is: +(\S+)$')
_FAILED = reading.line(r'.*(?:Solution check FAILED|HPCG result is\W+INVALID|'
                       r'Result\W+FAILED).*$')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output, or the report of HPCG."""
    reading.refuse(text, _FAILED)
    names = [name for name, (result, *_) in _PROGRAMS.items()
             if result.search(text)]
    reading.require(len(names) == 1, 'no complete result of one program',
                    reading.Missing)
    result, metric, parameters = _PROGRAMS[names[0]]
    value = reading.find_figure(result, text, metric)
    printed = {'program': names[0],
               **reading.find_parameters(text, **parameters)}
    if names[0] == 'mt-dgemm':
        total = reading.find_figure(_SUM, text, 'Final Sum')
        order = reading.whole(printed.get('size', '0'), 'the matrix size')
        reading.require(0 <= total - order <= 1,
                        f'the sum of the result is {total:g}')
    return reading.Reading({metric: value}, printed)
