# SPDX-License-Identifier: Apache-2.0

"""Read Quantum ESPRESSO's pw.x, versions 5 to 7.

pw.x prints "JOB DONE." whether it converged or not. An earlier line and the
exit status tell: 0 if it converged, 2 if it ran out of steps, as AUSURF112
does by design.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.RANKS,
    expectation.whole('threads', 'threads per rank', 'omp_num_threads'),
    expectation.whole('atoms', 'atoms per cell', 'nat'),
    expectation.ParameterKey('energy', outcome.ParameterType.ENERGY,
                             'last total energy in Ry'),
    expectation.ParameterKey('first_energy', outcome.ParameterType.ENERGY,
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
    """Read the standard output of pw.x."""
    reading.find(_BANNER, text, 'no line "Program PWSCF ... starts on"')
    reading.check_single(text, _BANNER, _DONE)
    for pattern in (_ERROR, _STOPPED):
        trouble = pattern.search(text)
        if trouble is not None:
            rest = text[trouble.end():].lstrip('\n').partition('\n')[0]
            raise reading.InvalidOutput(
                texts.quote(f'{trouble[0].strip()} {rest.strip()}'))
    reading.find(_DONE, text, 'no "JOB DONE.": the output is not complete')
    total = reading.find(_TOTAL, text, 'no "PWSCF ... WALL"')
    wall_s = _seconds(total[2], 'PWSCF WALL')
    _seconds(total[1], 'PWSCF CPU')
    electrons = reading.find(_ELECTRONS, text, 'no "electrons ... WALL": the '
                             'output is not complete')
    cycle_s = _seconds(electrons[2], 'electrons WALL')
    # Times of an hour or more are rounded to minutes.
    is_rounded = 's' not in total[2]
    reading.require(
        cycle_s <= wall_s + (60.01 if is_rounded else 0.011),
        f'electrons took {electrons[2]}, but all of PWSCF {total[2]}')
    parameters = {
        **reading.find_parameters(text, version=_BANNER), **_parallel(text),
        **reading.find_parameters(text, atoms=_ATOMS), **_cycles(text)}
    is_converged = parameters.get('converged') != 'no'
    return reading.Reading(
        {'wall_s': wall_s, 'electrons_s': cycle_s}, parameters,
        exit_status=0 if is_converged else 2,
        ending='' if is_converged else 'convergence NOT achieved after '
        f'{parameters.get("iterations", "the allowed")} iterations',
        remarks=((f'WALL is rounded to minutes ({total[2]}): compare '
                  'electrons_s'),) if is_rounded else ())


def _cycles(text: str) -> dict[str, str]:
    """Read the energies, and whether the last cycle converged."""
    found = {}
    energies = _ENERGY.findall(text)
    if energies:
        for name, words in (('energy', energies[-1]),
                            ('first_energy', energies[0])):
            found[name] = str(reading.real(words, 'total energy'))
    stops = _NOT_ACHIEVED.findall(text)
    cycles = _ACHIEVED.findall(text)
    ends = stops or cycles
    if ends:
        found['converged'] = 'no' if stops else 'yes'
        if ends[-1]:
            found['iterations'] = ends[-1]
    reading.require(ends or not energies, 'no line says whether it converged: '
                    'the output is not complete')
    reading.require(energies or not ends, 'no total energy', reading.Missing)
    return found


def _parallel(text: str) -> dict[str, str]:
    patterns = {'threads': _CORES}
    if _PROCESSES.search(text):
        patterns = {'ranks': _PROCESSES, 'threads': _THREADS}
    elif _RANKS.search(text):
        patterns = {'ranks': _RANKS}
    return {'ranks': '1', 'threads': '1',
            **reading.find_parameters(text, **patterns)}


def _seconds(words: str, what: str) -> float:
    """Read ``0.56s``, ``12m34.56s``, `` 1m 5.20s`` or ``1d 2h 3m``."""
    match = _DURATION.fullmatch(words.strip())
    if match is None or not any(match.groups()):
        raise reading.InvalidOutput(
            f'{what} is {texts.quote(words)}: the number did not fit its '
            'field' if '*' in words else
            f'{what} is {texts.quote(words)!r}, which is not a time')
    seconds = sum(reading.real(value, what) * _UNIT_S[unit]
                  for unit, value in match.groupdict().items() if value)
    return reading.figure(repr(seconds), what)
