# SPDX-License-Identifier: Apache-2.0

"""Read the standard output of NAMD 2 and 3."""

import itertools
import re
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('processors', 'processors (threads of all processes)',
                      'cpus', 'p', 'np', 'ranks', 'processes', 'threads'),
    expectation.whole('atoms', 'atoms'),
    expectation.whole('steps', 'time steps', 'numsteps'),
    expectation.word('version', 'such as 2.14'),
)

_BANNER = re.compile(r'^Info: NAMD (\S+) for ', re.MULTILINE)
_WALL = re.compile(
    r'^WallClock: +(\S+\.\d{6}|\S*[^\d.]\S*) +CPUTime: +\S+ +Memory: +\S+',
    re.MULTILINE)
_WALL_ANY = re.compile(r'^WallClock:', re.MULTILINE)
_END = re.compile(r'End of program')
_ERROR = re.compile(r'^.*(?:FATAL ERROR|^ERROR:|Charm\+\+ fatal error).*$',
                    re.MULTILINE)
_STEP_TIME = re.compile(
    r'^Info: Benchmark time: .*? (\S+) s/step +(\S+) (days/ns|ns/day) ',
    re.MULTILINE)
_STEP_TIME_ANY = re.compile(r'^Info: Benchmark|Benchmark time:', re.MULTILINE)
#: On request, NAMD 3 prints the average since the run began.
_AVERAGE = re.compile(
    r'^PERFORMANCE: +\d+ +averaging +(\S+) +ns/day, +(\S+) +sec/step +with '
    r'standard deviation +\S+', re.MULTILINE)
_RUNNING = re.compile(r'^Info: Running on (\d+) processors', re.MULTILINE)
_ATOMS = re.compile(r'^Info: +(\d+) ATOMS\b', re.MULTILINE)
_ENERGY = re.compile(r'^(?:ENERGY|TIMING): +(\d+)', re.MULTILINE)
#: The number of steps between energies, unless a script changes it.
_INTERVAL = re.compile(r'^Info: ENERGY OUTPUT STEPS +(\d{1,18})$',
                       re.MULTILINE)
_CHANGED = re.compile(r'^TCL: Setting parameter outputEnergies', re.MULTILINE)
_FINAL = re.compile(
    r'^WRITING COORDINATES TO OUTPUT FILE AT STEP (\d{1,18})$', re.MULTILINE)
_NO_NUMBER = re.compile(r'^ENERGY:.*(?<![\w.])-?(?:nan|inf)(?![\w.]).*$',
                        re.MULTILINE | re.IGNORECASE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read NAMD's standard output."""
    reading.refuse(text, _ERROR, _NO_NUMBER)
    reading.check_single(text, _WALL_ANY, _BANNER)
    wall = reading.find(_WALL, text, 'no complete line "WallClock: ... '
                        'CPUTime: ... Memory: ...": the output is not '
                        'complete')
    reading.find(_END, text, 'no "End of program": the output is not complete')
    metrics = {'wall_s': reading.figure(wall[1], 'WallClock')}
    step_s = _step_time(text)
    if step_s is not None:
        metrics['step_time_s'] = step_s
    parameters = reading.find_parameters(
        text, version=_BANNER, processors=_RUNNING, atoms=_ATOMS)
    reached = [reading.whole(step, 'the number of a step') for step in (
        *_ENERGY.findall(text), *_FINAL.findall(text))]
    _check_steps(text, sorted(reached))
    if reached:
        parameters['steps'] = str(max(reached))
    return reading.Reading(metrics, parameters)


def _check_steps(text: str, reached: Sequence[int]) -> None:
    """Refuse an output in which energies are missing."""
    interval = _INTERVAL.search(text)
    if interval is None or _CHANGED.search(text):
        return
    most = reading.whole(interval[1], 'the steps between energies')
    for step, following in itertools.pairwise(reached):
        reading.require(
            following - step <= most,
            f'step {following} follows step {step}, and energies are printed '
            f'every {interval[1]} steps: lines are missing')


def _step_time(text: str) -> float | None:
    """Return the seconds per step: the last average, or the last benchmark."""
    averages = _AVERAGE.findall(text)
    if averages:
        return reading.figure(averages[-1][1], 'sec/step')
    steps = _STEP_TIME.findall(text)
    reading.require(len(steps) == len(_STEP_TIME_ANY.findall(text)),
                    'a line "Benchmark time" is broken')
    # The length of a step in ns is the same in every line.
    lengths = [reading.real(seconds, 's/step') * (
        reading.real(rate, unit) if unit == 'ns/day'
        else 1 / reading.figure(rate, unit)) for seconds, rate, unit in steps]
    reading.require(not lengths or max(lengths) <= 1.001 * min(lengths),
                    'the lines "Benchmark time" do not agree')
    return reading.figure(steps[-1][0], 's/step') if steps else None
