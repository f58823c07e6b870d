# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Read the standard output of NAMD 2 and 3."""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import number
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.Key('processors', expectation.Kind.WHOLE,
                    'processors (threads of all processes)',
                    ('cpus', 'p', 'np', 'ranks', 'processes', 'threads')),
    expectation.Key('atoms', expectation.Kind.WHOLE, 'atoms'),
    expectation.Key('steps', expectation.Kind.WHOLE, 'time steps',
                    ('numsteps',)),
    expectation.Key('version', expectation.Kind.WORD, 'such as 2.14'),
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
_STEP_TIME_ANY = re.compile(r'^Info: Benchmark', re.MULTILINE)
#: NAMD 3 prints the average since the run began, on request.
_AVERAGE = re.compile(
    r'^PERFORMANCE: +\d+ +averaging +(\S+) +ns/day, +(\S+) +sec/step +with '
    r'standard deviation +\S+', re.MULTILINE)
_RUNNING = re.compile(r'^Info: Running on (\d+) processors', re.MULTILINE)
_ATOMS = re.compile(r'^Info: +(\d+) ATOMS\b', re.MULTILINE)
_ENERGY = re.compile(r'^(?:ENERGY|TIMING): +(\d+)', re.MULTILINE)
_NO_NUMBER = re.compile(r'^ENERGY:.*(?<![\w.])-?(?:nan|inf)(?![\w.]).*$',
                        re.MULTILINE | re.IGNORECASE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read NAMD's standard output.

    :raises Refused: if it is not the whole output of one good run
    """
    for pattern in (_ERROR, _NO_NUMBER):
        trouble = pattern.search(text)
        if trouble is not None:
            raise reading.Refused(texts.quote(trouble[0]))
    walls = _WALL.findall(text)
    if len(_WALL_ANY.findall(text)) > 1 or len(_BANNER.findall(text)) > 1:
        raise reading.Refused('several runs in one file')
    if not walls:
        raise reading.Missing('no complete line "WallClock: ... CPUTime: ... '
                              'Memory: ...": the output is not complete')
    if not _END.search(text):
        raise reading.Missing('no "End of program": the output is not '
                              'complete')
    metrics = {'wall_s': outcome.Metric(
        number.figure(walls[0], 'WallClock'), 's', reading.DOWN)}
    step_s = _step_time(text)
    if step_s is not None:
        metrics['step_time_s'] = outcome.Metric(step_s, 's', reading.DOWN)
    return reading.Reading(metrics, _parameters(text))


def _step_time(text: str) -> float | None:
    """Return the time of a step: the last average, or the last benchmark."""
    averages = _AVERAGE.findall(text)
    if averages:
        return number.figure(averages[-1][1], 'sec/step')
    steps = _STEP_TIME.findall(text)
    if len(steps) != len(_STEP_TIME_ANY.findall(text)):
        raise reading.Refused('a line "Benchmark time" is broken')
    # The length of a step in ns is the same in every line.
    lengths = [number.real(seconds, 's/step') * (
        number.real(rate, unit) if unit == 'ns/day'
        else 1 / number.figure(rate, unit)) for seconds, rate, unit in steps]
    if lengths and max(lengths) > 1.001 * min(lengths):
        raise reading.Refused('the lines "Benchmark time" do not agree')
    return number.figure(steps[-1][0], 's/step') if steps else None


def _parameters(text: str) -> dict[str, str]:
    found = {}
    for name, pattern in (('version', _BANNER), ('processors', _RUNNING),
                          ('atoms', _ATOMS)):
        match = pattern.search(text)
        if match is not None:
            found[name] = match[1]
    reached = [int(step[:18]) for step in _ENERGY.findall(text)]
    if reached:
        found['steps'] = str(max(reached))
    return found
