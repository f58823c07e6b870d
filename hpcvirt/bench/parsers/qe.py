# SPDX-License-Identifier: Apache-2.0

"""Read Quantum ESPRESSO's pw.x, versions 5 to 7.

pw.x prints "JOB DONE." whether it converged or not. A line before it and the
exit status tell the difference: 0 if it converged, 2 if it ran out of steps,
as AUSURF112 does by design.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.whole('ranks', 'MPI ranks', 'np', 'nprocs', 'procs',
                      'processes'),
    expectation.whole('threads', 'threads per rank', 'omp_num_threads'),
    expectation.whole('atoms', 'atoms per cell', 'nat'),
    expectation.ParameterKey('energy', expectation.Kind.ENERGY,
                             'last total energy in Ry'),
    expectation.ParameterKey('first_energy', expectation.Kind.ENERGY,
                             'total energy of the first iteration in Ry'),
    expectation.word('converged', 'yes or no', 'convergence'),
    expectation.whole('iterations', 'iterations of the last cycle', 'steps'),
    expectation.word('version', 'such as 6.7MaX'),
)

_BANNER = re.compile(r'^ *Program PWSCF v\.? ?(\S+) .*starts', re.MULTILINE)
_DONE = re.compile(r'^ *JOB DONE\.[ \t]*$', re.MULTILINE)
_ERROR = re.compile(r'^ *Error in routine .*$', re.MULTILINE)
_STOPPED = re.compile(
    r'^.*(?:Maximum CPU time exceeded|Program stopped by user request|'
    r'Calculation stopped in ).*$', re.MULTILINE)
_ACHIEVED = re.compile(r'convergence has been achieved in +(\d+) iterations')
_NOT_ACHIEVED = re.compile(
    r'convergence NOT achieved(?: after +(\d+) iterations)?')
_ENERGY = re.compile(r'^[! ] *total energy +=\s*(\S+) *Ry', re.MULTILINE)
_ATOMS = re.compile(r'number of atoms/cell += *(\d+)')
_RANKS = re.compile(r'running on +(\d+) +processors')
_CORES = re.compile(r'running on +(\d+) +processor cores')
_PROCESSES = re.compile(r'Number of MPI processes: +(\d+)')
_THREADS = re.compile(r'Threads/MPI process: +(\d+)')
_CLOCK = r'^ *{name} *: +(\S.{{0,40}}?) *CPU +(\S.{{0,40}}?) *WALL'
_TOTAL = re.compile(_CLOCK.format(name='PWSCF'), re.MULTILINE)
_ELECTRONS = re.compile(_CLOCK.format(name='electrons'), re.MULTILINE)
_DURATION = re.compile(
    r'(?:(?P<d>\d+)d)? *(?:(?P<h>\d+)h)? *(?:(?P<m>\d+)m)? *'
    r'(?:(?P<s>\d+(?:\.\d*)?)s)?')
_UNIT_S = {'d': 86400, 'h': 3600, 'm': 60, 's': 1}


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of pw.x.

    :raises InvalidOutput: if it is not the whole output of one run
    """
    banners = _BANNER.findall(text)
    if not banners:
        raise reading.Missing('no line "Program PWSCF ... starts on"')
    if len(banners) > 1 or len(_DONE.findall(text)) > 1:
        raise reading.InvalidOutput('several runs in one file')
    for pattern in (_ERROR, _STOPPED):
        trouble = pattern.search(text)
        if trouble is not None:
            raise reading.InvalidOutput(_with_next_line(text, trouble))
    if not _DONE.search(text):
        raise reading.Missing('no "JOB DONE.": the output is not complete')
    total = _TOTAL.search(text)
    if total is None:
        raise reading.Missing('no "PWSCF ... WALL"')
    wall_s = _seconds(total[2], 'PWSCF WALL')
    _seconds(total[1], 'PWSCF CPU')
    metrics = {'wall_s': outcome.Metric(wall_s, 's', reading.DOWN)}
    electrons = _ELECTRONS.search(text)
    if electrons is None:
        raise reading.Missing('no "electrons ... WALL": the output is not '
                              'complete')
    cycle_s = _seconds(electrons[2], 'electrons WALL')
    # From an hour on, PWSCF is rounded to minutes.
    if cycle_s > wall_s + (0.011 if 's' in total[2] else 60.01):
        raise reading.InvalidOutput(
            f'electrons took {electrons[2]}, all of PWSCF {total[2]}')
    metrics['electrons_s'] = outcome.Metric(cycle_s, 's', reading.DOWN)
    remarks: tuple[str, ...] = ()
    if 's' not in total[2]:
        remarks = (
            f'WALL is rounded to minutes ({total[2]}): compare electrons_s',)
    parameters = _parameters(text, banners[0])
    converged = parameters.get('converged', 'yes') == 'yes'
    if converged:
        return reading.Reading(metrics, parameters, remarks=remarks)
    return reading.Reading(
        metrics, parameters, exit_status=2, remarks=remarks,
        ending='convergence NOT achieved after '
        f'{parameters.get("iterations", "the allowed")} iterations')


def _parameters(text: str, version: str) -> dict[str, str]:
    found = {'version': version, **_parallel(text)}
    atoms = _ATOMS.search(text)
    if atoms is not None:
        found['atoms'] = atoms[1]
    energies = _ENERGY.findall(text)
    if energies:
        for name, words in (('energy', energies[-1]),
                            ('first_energy', energies[0])):
            found[name] = str(reading.real(words, 'total energy'))
    stops = list(_NOT_ACHIEVED.finditer(text))
    cycles = list(_ACHIEVED.finditer(text))
    if stops:
        found['converged'] = 'no'
        if stops[-1][1]:
            found['iterations'] = stops[-1][1]
    elif cycles:
        found['converged'] = 'yes'
        found['iterations'] = cycles[-1][1]
    elif energies:
        raise reading.InvalidOutput(
            'whether it converged is missing: the output is '
            'not complete')
    if not energies and (stops or cycles):
        raise reading.Missing('no total energy')
    return found


def _parallel(text: str) -> dict[str, str]:
    processes = _PROCESSES.search(text)
    threads = _THREADS.search(text)
    ranks = _RANKS.search(text)
    cores = _CORES.search(text)
    if processes is not None:
        return {'ranks': processes[1],
                'threads': threads[1] if threads is not None else '1'}
    if ranks is not None:
        return {'ranks': ranks[1], 'threads': '1'}
    return {'ranks': '1', 'threads': cores[1] if cores is not None else '1'}


def _seconds(words: str, what: str) -> float:
    """Read ``0.56s``, ``12m34.56s``, `` 1m 5.20s`` or ``1d 2h 3m``."""
    match = _DURATION.fullmatch(words.strip())
    if match is None or not any(match.groups()):
        if '*' in words:
            raise reading.InvalidOutput(
                f'{what} is {texts.quote(words)}: the number did not fit its '
                'field')
        raise reading.InvalidOutput(
            f'{what} is {texts.quote(words)!r}, which is not a time')
    seconds = sum(float(value) * _UNIT_S[unit]
                  for unit, value in match.groupdict().items() if value)
    return reading.figure(repr(seconds), what)


def _with_next_line(text: str, match: re.Match[str]) -> str:
    rest = text[match.end():].lstrip('\n').partition('\n')[0]
    return texts.quote(f'{match[0].strip()} {rest.strip()}')
