# SPDX-License-Identifier: Apache-2.0

"""Read WRF 3 and 4: ``rsl.error.0000`` or ``rsl.out.0000``.

The figure is the mean of "Timing for main" over the outer domain, whose times
include the nested domains, without the first step, which also reads the input
and initializes the model.
"""

import datetime
import itertools
import re
import statistics
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.whole('steps',
                      'time steps of the outer domain, including the first'),
    expectation.whole('domains', 'domains'),
    expectation.whole('ranks', 'MPI ranks', 'np', 'nprocs', 'procs',
                      'processes', 'ntasks'),
    expectation.word('version', 'such as 4.2.2'),
)

_SUCCESS = re.compile(r'(?:^d\d+ +(\S{19})\S* +wrf: +)?SUCCESS COMPLETE WRF',
                      re.MULTILINE)
#: WRF writes the state that it starts from.
_WRITTEN = re.compile(r'^Timing for Writing \S+_d01_(\S{19}) for domain',
                      re.MULTILINE)
_STEP = re.compile(
    r'^ *Timing for main: +time +(\S+) +on domain +(\d+): +(\S+) +elapsed '
    r'seconds?\.?[ \t]*$', re.MULTILINE)
_STEP_ANY = re.compile(r'^ *Timing for main:?.*$', re.MULTILINE)
_FATAL = re.compile(r'^.*FATAL CALLED.*$', re.MULTILINE)
_TASKS = re.compile(r'Ntasks in X +(\d+) *, *ntasks in Y +(\d+)',
                    re.IGNORECASE)
_VERSION = re.compile(r'WRF V(\d[\w.]*) MODEL')
_TIME = '%Y-%m-%d_%H:%M:%S'


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the output of rank 0.

    :raises InvalidOutput: if it is not the whole output of one good run
    """
    fatal = _FATAL.search(text)
    if fatal is not None:
        raise reading.InvalidOutput(texts.quote(fatal[0]))
    steps = _STEP.findall(text)
    if not steps:
        raise reading.Missing('no complete line "Timing for main"')
    if len(steps) != len(_STEP_ANY.findall(text)):
        raise reading.InvalidOutput('a line "Timing for main" is broken')
    successes = len(_SUCCESS.findall(text))
    if successes == 0:
        raise reading.Missing('no "SUCCESS COMPLETE WRF": the output is not '
                              'complete')
    domains = {int(domain[:9]) for _, domain, _ in steps}
    outer = str(min(domains))
    outer_steps = [(time, seconds) for time, domain, seconds in steps
                   if domain == outer]
    if successes > 1:
        raise reading.InvalidOutput('several runs in one file, or rsl.out and '
                                    'rsl.error together')
    _check_complete(text, steps)
    elapsed = [reading.figure(seconds, f'the time of the step to {time}')
               for time, seconds in outer_steps]
    if len(elapsed) < 2:
        raise reading.InvalidOutput(
            'there is only one step, and the first does not count')
    metric = outcome.Metric(statistics.fmean(elapsed[1:]), 's', reading.DOWN)
    parameters = {'steps': str(len(outer_steps)), 'domains': str(len(domains))}
    version = _VERSION.search(text)
    if version is not None:
        parameters['version'] = version[1]
    tasks = _TASKS.search(text)
    if tasks is not None:
        parameters['ranks'] = str(int(tasks[1][:9]) * int(tasks[2][:9]))
    return reading.Reading({'step_time_s': metric}, parameters)


def _check_complete(text: str, steps: Sequence[tuple[str, str, str]]) -> None:
    """Refuse an output of which a part is missing."""
    lines = list(_STEP.finditer(text))
    if not text[:lines[0].start()].strip():
        raise reading.InvalidOutput('the output begins with a time step: its '
                                    'beginning is missing')
    reading.check_columns((line[0].strip() for line in lines),
                          '"Timing for main"')
    for domain in sorted({int(domain[:9]) for _, domain, _ in steps}):
        times = [time for time, of, _ in steps if int(of[:9]) == domain]
        if domain == 1:
            first = _WRITTEN.findall(text[:lines[0].start()])
            last = _SUCCESS.findall(text)
            times = [*first[-1:], *times]
            if last[0] and _moment(last[0]) != _moment(times[-1]):
                raise reading.InvalidOutput(
                    f'the last step ends at {times[-1]}, the run at '
                    f'{last[0]}: lines are missing')
        _check_times(times)


def _check_times(times: Sequence[str]) -> None:
    """Check that model time increases evenly.

    A step may end between two seconds, and its time is cut to whole ones.
    WRF prints adaptive steps in another format.
    """
    moments = [_moment(time) for time in times]
    gaps = [(after - before).total_seconds()
            for before, after in itertools.pairwise(moments)]
    if any(gap <= 0 for gap in gaps):
        raise reading.InvalidOutput(
            'model time does not increase from step to '
            'step: several runs in one file')
    if gaps and max(gaps) > min(gaps) + 1:
        jump = gaps.index(max(gaps))
        raise reading.InvalidOutput(
            f'model time jumps from {times[jump]} to {times[jump + 1]}: lines '
            'are missing')


def _moment(time: str) -> datetime.datetime:
    try:
        return datetime.datetime.strptime(time, _TIME).replace(
            tzinfo=datetime.UTC)
    except ValueError as exc:
        raise reading.InvalidOutput(
            f'{texts.quote(time)!r} is not a model time') from exc
