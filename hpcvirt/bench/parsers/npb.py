# SPDX-License-Identifier: Apache-2.0

"""Read NAS Parallel Benchmarks 2.x and 3.x: MPI, OpenMP and serial.

Every kernel ends with a block of ``name = value`` lines. The version decides
on the lines with counts: ``Total processes`` and ``Compiled procs`` (MPI 3.3),
``Active processes`` (MPI 3.4), ``Total threads`` (OpenMP), none (serial).
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('benchmark', 'EP, CG, MG, FT, IS, LU, BT or SP', 'kernel',
                     'name'),
    expectation.word('class', 'problem class S to F'),
    expectation.word('size', 'problem size, such as 1400 or 64x64x64'),
    expectation.whole('processes', 'MPI processes, 1 if the program has none',
                      'ranks', 'np', 'nprocs', 'procs', 'process'),
    expectation.whole('threads', 'OpenMP threads, 1 if the program has none',
                      'omp_num_threads'),
    expectation.whole('cpus', 'processes x threads'),
    expectation.whole('iterations', 'iterations'),
    expectation.word('version', 'such as 3.4.2'),
)

_BANNER = re.compile(r'^.*NAS Parallel Benchmarks.* -- +(\S+) ',
                     re.MULTILINE)
_BLOCK = re.compile(r'^ *(\w+)(?:-MZ)? +Benchmark +Completed\.?[ \t]*$',
                    re.MULTILINE | re.IGNORECASE)
_NAY = re.compile(
    r'^.*(?:verification +(?:failed|unsuccessful)|unsuccessful|'
    r'verification +not +performed).*$', re.IGNORECASE | re.MULTILINE)
_WRONG_PROCESSES = re.compile(
    r'num of procs allocated +\( *(\d+) *\)\s+is not equal to\s+'
    r'compiled number of procs +\( *(\d+) *\)')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of one kernel."""
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        raise _why_no_block(text)
    reading.check_single(text, _BLOCK, _BANNER)
    lines = _lines(text[blocks[0].end():])
    verification = lines.get('verification')
    reading.require(verification is not None, 'no verification: the output is '
                    'not complete', reading.Missing)
    reading.require(str(verification).upper() == 'SUCCESSFUL',
                    f'Verification = {str(verification)[:60]}')
    nay = _NAY.search(text)
    if nay is not None:
        raise reading.InvalidOutput(
            f'the output also says: {nay[0].strip()[:80]}')
    parameters = _parameters(blocks[0][1].upper(), lines)
    total = reading.figure(lines.get('mop/s total', ''), 'Mop/s total')
    cpus = reading.whole(parameters['cpus'], 'the number of processes')
    _check_share(lines, total, cpus)
    metrics = {'mops_total': total}
    remarks = []
    seconds = lines.get('time in seconds', '')
    if reading.real(seconds, 'Time in seconds') == 0:
        remarks.append('the time rounds to 0.00 s: use a larger class')
    else:
        metrics['time_s'] = reading.figure(seconds, 'Time in seconds')
    if 'active' in lines:
        remarks.append(f'{lines["active"]} of '
                       f'{lines.get("total processes", "all")} processes took '
                       'part')
    return reading.Reading(metrics, parameters, remarks=tuple(remarks))


def _why_no_block(text: str) -> reading.InvalidOutput:
    match = _WRONG_PROCESSES.search(text)
    if match is not None:
        return reading.InvalidOutput(
            f'{match[1]} processes were started, but the program is compiled '
            f'for {match[2]}')
    return reading.Missing('no "Benchmark Completed": ' + (
        'the output is not complete' if _BANNER.search(text)
        else 'this is not an output of NPB'))


def _lines(block: str) -> dict[str, str]:
    """Read the lines of the block up to the compile options.

    :returns: names in lower case
    """
    found: dict[str, str] = {}
    for line in block.partition('Compile options')[0].splitlines():
        words, equals, value = line.partition('=')
        name = ' '.join(words.lower().split())
        reading.require(
            not equals or found.setdefault(name, value.strip())
            == value.strip(), f'{words.strip()[:40]} occurs twice')
    active = found.get('active processes', found.get('active procs'))
    if active is not None and active != found.get('total processes'):
        found['active'] = active
    return found


def _parameters(kernel: str, lines: Mapping[str, str]) -> dict[str, str]:
    processes = reading.whole(
        lines.get('active', lines.get('total processes', '1')),
        'Total processes')
    compiled = lines.get('compiled procs', lines.get('compiled processes'))
    if compiled is not None and 'active' not in lines:
        reading.require(
            reading.whole(compiled, 'Compiled procs') == processes,
            f'{processes} processes ran a program compiled for {compiled}')
    threads = reading.whole(lines.get('total threads', '1'), 'Total threads')
    reading.require(processes and threads, 'no process or no thread took part',
                    reading.Missing)
    parameters = {
        'benchmark': kernel,
        'class': lines.get('class', ''),
        'size': ''.join(lines.get('size', '').split()),
        'processes': str(processes),
        'threads': str(threads),
        'cpus': str(processes * threads),
        'iterations': lines.get('iterations', ''),
        'version': lines.get('version', ''),
    }
    letter = parameters['class']
    reading.require(len(letter) == 1 and letter.isupper(),
                    f'Class = {letter[:20]!r}')
    reading.whole(parameters['iterations'], 'Iterations')
    return {name: value for name, value in parameters.items() if value}


def _check_share(lines: Mapping[str, str], total: float, cpus: int) -> None:
    """Check that the rates of all processes or threads add up to the total."""
    for name, count in (
            ('mop/s/process', lines.get('total processes')),
            ('mop/s/thread', lines.get('total threads'))):
        if name not in lines or count is None:
            continue
        expected = reading.real(lines[name], name) * reading.whole(
            count, 'the number of processes')
        # Two decimals are printed.
        reading.require(
            abs(expected - total) <= 0.01 + 0.006 * cpus + 1e-4 * total,
            f'{name} = {lines[name]} does not agree with Mop/s total = '
            f'{lines["mop/s total"]}')
