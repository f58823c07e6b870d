# SPDX-License-Identifier: Apache-2.0

"""Read LAMMPS since 2012: ``log.lammps`` or standard output.

An execution may have several runs (minimization, equilibration, production).
The last run with steps is read, because scripts put the timed run there.

LAMMPS prints "Total wall time" when it ends. The line is missing if a Python
script uses LAMMPS as a library. The output must then end with the statistics
of the last run, and does not show whether the script was finished.
"""

import itertools
import re
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.whole('steps', 'time steps of the last run'),
    expectation.whole('atoms', 'atoms'),
    expectation.RANKS,
    expectation.whole('threads', 'OpenMP threads per rank', 'omp_num_threads'),
    expectation.word('version', 'such as 29Sep2021'),
)

_BANNER = re.compile(r'^LAMMPS \(([^)]*)\)', re.MULTILINE)
_LOOP = re.compile(
    r'^Loop time of (\S+) on (\d+) procs(?: \(.*\))? for (\d+) steps with '
    r'(\d+) atoms[ \t]*$', re.MULTILINE)
_LOOP_ANY = re.compile(r'^Loop time of .*$', re.MULTILINE)
_RATE = re.compile(r'^Performance: .*?(\S+) timesteps/s', re.MULTILINE)
_ERROR = re.compile(r'^ *(?:\[\d+\] *)?ERROR\b.*$', re.MULTILINE)
_END = re.compile(r'^Total wall time: *\d+:\d\d:\d\d', re.MULTILINE)
_STEP = re.compile(r'^ *Step +\S.*$', re.MULTILINE)
_STEP_ROW = re.compile(r'^ *(\d{1,18}) +\S', re.MULTILINE)
#: The command of a run, and what a run prints before its first step.
_BEGIN = re.compile(
    r'^ *(?:Step +\S|Per MPI rank memory|Setting up \w+ run|'
    r'run[ \t]+[$\d]|minimize[ \t]+[$\d.])', re.MULTILINE)
#: The time breakdown of a run; versions before 2015 have another format.
_SHARES = re.compile(r'^Section +\| +min time .*\n(?:-+\n)?((?:.*\|.*\n)*)',
                     re.MULTILINE)
_LAST_STATISTICS = re.compile(
    r'^Dangerous builds(?: = \d+| not checked)[ \t]*$', re.MULTILINE)
_NO_NUMBER = re.compile(r'(?<![\w.])-?(?:nan|inf)(?![\w.])', re.IGNORECASE)
_THREADS = re.compile(r'(\d+) MPI tasks x (\d+) OpenMP threads')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the log or standard output of one execution."""
    reading.refuse(text, _ERROR)
    reading.check_single(text, _BANNER, _END,
                         reason='several executions in one file')
    loops = list(_LOOP.finditer(text))
    reading.require(len(loops) == len(_LOOP_ANY.findall(text)),
                    'a line "Loop time" is broken')
    timed = [loop for loop in loops if reading.whole(loop[3], 'steps') > 0]
    reading.require(timed, 'no "Loop time" of any steps', reading.Missing)
    loop = timed[-1]
    _check_whole(text, loops)
    after = text[loop.end():]
    remarks = []
    if len(timed) > 1:
        remarks.append(f'{len(timed)} runs in the script: the last is read')
    if not _END.search(text):
        reading.find(_LAST_STATISTICS, after, 'no "Total wall time" and no '
                     'statistics of the last run: the output is not complete')
        remarks.append('no "Total wall time": the output does not show '
                       'whether the script went on (--expect steps)')
    _check_thermo(text[:loop.start()])
    loop_s = reading.figure(loop[1], 'Loop time')
    steps = reading.whole(loop[3], 'the number of steps')
    rate = _rate(after, steps / loop_s)
    parameters = {'ranks': loop[2], 'steps': loop[3], 'atoms': loop[4]}
    banner = _BANNER.search(text)
    if banner is not None:
        parameters['version'] = ''.join(
            banner[1].partition(' - ')[0].split())
    threads = _THREADS.search(after)
    if threads is not None:
        parameters['ranks'], parameters['threads'] = threads.groups()
    return reading.Reading(
        {'timesteps_per_s': rate, 'loop_time_s': loop_s}, parameters,
        remarks=tuple(remarks))


def _check_whole(text: str, loops: Sequence[re.Match[str]]) -> None:
    """Refuse an output in which a part of a run is missing.

    A run prints its first and last step, and a breakdown of its loop time.
    """
    before = 0
    for loop in loops:
        heads = list(_STEP.finditer(text, before, loop.start()))
        rows = _STEP_ROW.findall(text[heads[-1].end():loop.start()]
                                 ) if heads else []
        first, *_, last = (*rows, *rows) or ('0', loop[3])
        begin, end, steps = (reading.whole(step, 'the number of a step')
                             for step in (first, last, loop[3]))
        reading.require(
            end - begin >= steps,
            f'the run of {loop[3]} steps goes from step {first} to {last}: '
            'lines are missing')
        before = loop.end()
    for loop, after in itertools.zip_longest(loops, loops[1:]):
        shares = _SHARES.search(text, loop.end(),
                                after.start() if after else len(text))
        if shares is not None:
            _check_shares(shares[1], reading.real(loop[1], 'Loop time'))
    reading.require(not _BEGIN.search(text, before), 'no "Loop time" of the '
                    'last run: the output is not complete', reading.Missing)


def _check_shares(rows: str, loop_s: float) -> None:
    total = sum(reading.real(cells[2].strip(), 'a share of the loop')
                for cells in (row.split('|') for row in rows.splitlines())
                if len(cells) > 2)
    # The times are printed with five digits.
    reading.require(
        abs(total - loop_s) <= 1e-3 * loop_s,
        f'the sections add up to {total:g} s, and the loop took {loop_s:g} s: '
        'lines are missing')


def _rate(after: str, expected: float) -> float:
    """Read the steps per second, or return the expected value.

    Versions before 2014 do not print the rate. Later ones print three
    decimals, which are too few below one step per second.
    """
    match = _RATE.search(after)
    if match is None:
        return expected
    rate = reading.real(match[1], 'timesteps/s')
    reading.require(
        abs(rate - expected) <= 0.001 + 0.01 * expected,
        f'{match[1]} timesteps/s do not agree with the steps and the time '
        f'of the loop ({expected:g})')
    return rate if expected >= 1 else expected


def _check_thermo(before: str) -> None:
    """Refuse a simulation that became unstable: its energies are NaN."""
    heads = list(_STEP.finditer(before))
    if not heads:
        return
    match = _NO_NUMBER.search(before, heads[-1].end())
    if match is not None:
        raise reading.InvalidOutput(
            'the simulation became unstable: '
            f'{texts.line_at(before, match.start())}')
