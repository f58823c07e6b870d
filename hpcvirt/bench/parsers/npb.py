# SPDX-License-Identifier: Apache-2.0

"""Read NAS Parallel Benchmarks 2.x and 3.x: MPI, OpenMP and serial.

Every kernel ends with one block of ``name = value`` lines. The lines depend
on the version: ``Total processes`` and ``Compiled procs`` (MPI 3.3),
``Active processes`` (MPI 3.4), ``Total threads`` (OpenMP), none (serial).
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
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
    """Read the standard output of one kernel.

    :raises InvalidOutput: if it is not the whole output of one good run
    """
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        raise reading.Missing(_why_no_block(text))
    if len(blocks) > 1 or len(_BANNER.findall(text)) > 1:
        raise reading.InvalidOutput('several runs in one file')
    lines = _lines(text[blocks[0].end():])
    verification = lines.get('verification')
    if verification is None:
        raise reading.Missing('no verification: the output is not complete')
    if verification.upper() != 'SUCCESSFUL':
        raise reading.InvalidOutput(f'Verification = {verification[:60]}')
    nay = _NAY.search(text)
    if nay is not None:
        raise reading.InvalidOutput(
            f'the output also says: {nay[0].strip()[:80]}')
    parameters = _parameters(blocks[0][1].upper(), lines)
    total = reading.figure(lines.get('mop/s total', ''), 'Mop/s total')
    _check_share(lines, total, parameters)
    metrics = {'mops_total': outcome.Metric(total, 'Mop/s', reading.UP)}
    remarks: tuple[str, ...] = ()
    seconds = lines.get('time in seconds', '')
    if reading.real(seconds, 'Time in seconds') == 0:
        remarks = ('the time rounds to 0.00 s: use a larger class',)
    else:
        metrics['time_s'] = outcome.Metric(
            reading.figure(seconds, 'Time in seconds'), 's', reading.DOWN)
    if 'active' in lines:
        total_processes = lines.get('total processes', 'all')
        remarks += (
            f'{lines["active"]} of {total_processes} processes took part',)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _why_no_block(text: str) -> str:
    match = _WRONG_PROCESSES.search(text)
    if match is not None:
        raise reading.InvalidOutput(
            f'{match[1]} processes were started, the program is compiled '
            f'for {match[2]}')
    if _BANNER.search(text):
        return 'no "Benchmark Completed": the output is not complete'
    return 'no "Benchmark Completed": this is not an output of NPB'


def _lines(block: str) -> dict[str, str]:
    """Read the lines of the block up to the compile options.

    :returns: names in lower case
    """
    found: dict[str, str] = {}
    for line in block.partition('Compile options')[0].splitlines():
        words, equals, value = line.partition('=')
        name = ' '.join(words.lower().split())
        if equals and found.setdefault(name, value.strip()) != value.strip():
            raise reading.InvalidOutput(f'{words.strip()[:40]} occurs twice')
    active = found.get('active processes', found.get('active procs'))
    if active is not None and active != found.get('total processes'):
        found['active'] = active
    return found


def _parameters(kernel: str, lines: Mapping[str, str]) -> dict[str, str]:
    processes = reading.whole(
        lines.get('active', lines.get('total processes', '1')),
        'Total processes')
    compiled = lines.get('compiled procs', lines.get('compiled processes'))
    if compiled is not None and 'active' not in lines and (
            reading.whole(compiled, 'Compiled procs') != processes):
        raise reading.InvalidOutput(
            f'{processes} processes ran a program compiled for {compiled}')
    threads = reading.whole(lines.get('total threads', '1'), 'Total threads')
    if 0 in (processes, threads):
        raise reading.Missing('no process or no thread took part')
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
    if len(parameters['class']) != 1 or not parameters['class'].isupper():
        raise reading.InvalidOutput(f'Class = {parameters["class"][:20]!r}')
    reading.whole(parameters['iterations'], 'Iterations')
    return {name: value for name, value in parameters.items() if value}


def _check_share(lines: Mapping[str, str], total: float,
                 parameters: Mapping[str, str]) -> None:
    """Check that the rates of all processes or threads add up."""
    for name, count in (
            ('mop/s/process', lines.get('total processes')),
            ('mop/s/thread', lines.get('total threads'))):
        if name not in lines or count is None:
            continue
        share = reading.real(lines[name], name)
        expected = share * reading.whole(count, 'the number of processes')
        # Two decimals are printed.
        slack = 0.01 + 0.006 * int(parameters['cpus'])
        if abs(expected - total) > slack + 1e-4 * total:
            raise reading.InvalidOutput(
                f'{name} = {lines[name]} does not make Mop/s total = '
                f'{lines["mop/s total"]}')
