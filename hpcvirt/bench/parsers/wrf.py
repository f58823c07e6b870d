# SPDX-License-Identifier: Apache-2.0

"""Read WRF 3 and 4: ``rsl.error.0000`` or ``rsl.out.0000``.

The figure is the mean of "Timing for main" over the steps of the outer domain,
which include the nested domains. The first step is left out, because it also
reads the input and initializes the model.
"""

import datetime
import itertools
import re
import statistics
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.whole('steps',
                      'time steps of the outer domain, including the first'),
    expectation.whole('domains', 'domains'),
    expectation.RANKS,
    expectation.word('version', 'such as 4.2.2'),
)

_SUCCESS = re.compile(r'(?:^d\d+ +(\S{19})\S* +wrf: +)?SUCCESS COMPLETE WRF',
                      re.MULTILINE)
#: The model time of the start: before its first step, WRF writes the initial
#: state, and reports that its boundaries are acceptable.
_BEGUN = re.compile(r'^(?:Timing for Writing \S+_d01_|d01 +)'
                    r'(\d{4}-\d\d-\d\d_\S{8})', re.MULTILINE)
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
    """Read the output of rank 0."""
    reading.refuse(text, _FATAL)
    lines = list(_STEP.finditer(text))
    reading.require(lines, 'no complete line "Timing for main"',
                    reading.Missing)
    reading.require(len(lines) == len(_STEP_ANY.findall(text)),
                    'a line "Timing for main" is broken')
    reading.find(_SUCCESS, text, 'no "SUCCESS COMPLETE WRF": the output is '
                 'not complete')
    # Domain to the model time and seconds of each step.
    steps: dict[int, list[tuple[str, str]]] = {}
    for line in lines:
        domain = reading.whole(line[2], 'the number of a domain')
        steps.setdefault(domain, []).append((line[1], line[3]))
    reading.check_single(text, _SUCCESS, reason='several runs in one file, or '
                         'rsl.out and rsl.error together')
    remarks = tuple(_check_complete(text, lines, steps))
    elapsed = [reading.figure(seconds, f'the time of the step to {time}')
               for time, seconds in steps[min(steps)]]
    reading.require(len(elapsed) > 1, 'there is only the first step, which '
                    'does not count')
    parameters = {'steps': str(len(elapsed)), 'domains': str(len(steps)),
                  **reading.find_parameters(text, version=_VERSION)}
    tasks = _TASKS.search(text)
    if tasks is not None:
        parameters['ranks'] = str(reading.whole(tasks[1], 'Ntasks in X')
                                  * reading.whole(tasks[2], 'ntasks in Y'))
    return reading.Reading({'step_time_s': statistics.fmean(elapsed[1:])},
                           parameters, remarks=remarks)


def _check_complete(text: str, lines: Sequence[re.Match[str]],
                    steps: Mapping[int, Sequence[tuple[str, str]]],
                    ) -> Iterator[str]:
    """Refuse an incomplete output, and yield remarks on a doubtful one."""
    before = text[:lines[0].start()]
    reading.require(before.strip(), 'the output begins with a time step: its '
                    'beginning is missing')
    reading.check_columns((line[0].strip() for line in lines),
                          '"Timing for main"')
    for domain in sorted(steps):
        times = [time for time, _ in steps[domain]]
        begun: list[str] = []
        if domain == 1:
            begun = _BEGUN.findall(before)[-1:]
            times = [*begun, *times]
            last = _SUCCESS.findall(text)[0]
            for what, known in (('began', begun), ('ended', last)):
                if not known:
                    yield (f'the output does not show when the run {what}: '
                           'steps may be missing (--expect steps)')
            reading.require(
                not last or _moment(last) == _moment(times[-1]),
                f'the last step ends at {times[-1]}, but the run ends at '
                f'{last}: lines are missing')
        gaps = _check_times(times, is_begun=bool(begun))
        if gaps.count(max(gaps, default=0.0)) == 1 and len(set(gaps)) > 1:
            yield (f'one step of domain {domain} is longer than the others: '
                   'a line may be missing (--expect steps)')


def _check_times(times: Sequence[str], *, is_begun: bool) -> list[float]:
    """Check that model time increases evenly.

    The times are truncated to whole seconds, so that with steps of 1.5 s every
    second gap is longer by 1 s. A single longer gap may mean that a line is
    missing. In the first half of a run it does mean that, since fractional
    steps would have a longer gap again. WRF prints adaptive steps in another
    format.

    :param is_begun: the first time is that of the start, in whole seconds
    :returns: the seconds between the times
    """
    gaps = [(after - before).total_seconds()
            for before, after in itertools.pairwise(map(_moment, times))]
    reading.require(all(gap > 0 for gap in gaps),
                    'model time does not increase from step to step: several '
                    'runs in one file')
    sums = list(enumerate(itertools.accumulate(gaps), 1))
    if gaps and (max(gaps) > min(gaps) + 1 or (
            is_begun and max(end / step for step, end in sums)
            >= min((end + 1) / step for step, end in sums))):
        jump = gaps.index(max(gaps))
        raise reading.InvalidOutput(
            f'model time jumps from {times[jump]} to {times[jump + 1]}: lines '
            'are missing')
    return gaps


def _moment(time: str) -> datetime.datetime:
    try:
        return datetime.datetime.strptime(time, _TIME).replace(
            tzinfo=datetime.UTC)
    except ValueError as exc:
        raise reading.InvalidOutput(
            f'{texts.quote(time)!r} is not a model time') from exc
