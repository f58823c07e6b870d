# SPDX-License-Identifier: Apache-2.0

"""Read GROMACS 4 to 2025: ``md.log`` or the standard error of mdrun."""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.whole('steps', 'time steps', 'nsteps'),
    expectation.whole('ranks', 'MPI ranks or thread-MPI threads', 'np',
                      'nprocs', 'ntmpi', 'processes'),
    expectation.whole('threads', 'OpenMP threads per rank', 'ntomp',
                      'omp_num_threads'),
    expectation.word('version', 'such as 2022.5'),
)

_PERFORMANCE = re.compile(r'^ *(\(.*ns/day\).*)\n *Performance:(.*)$',
                          re.MULTILINE)
_PERFORMANCE_ANY = re.compile(r'^ *Performance:.*$', re.MULTILINE)
_COLUMN = re.compile(r'\(([^()]+)\)')
_TIME = re.compile(r'^ *Time: +(\S+) +(\S+) +(\S+)[ \t]*$', re.MULTILINE)
_FINISHED = re.compile(r'^Finished mdrun', re.MULTILINE)
_STARTED = re.compile(r'^Started mdrun', re.MULTILINE)
#: Only the log has these lines, so only there "Finished mdrun" must follow.
_LOG = re.compile(r'^(?:Log file opened on|Started mdrun|Input Parameters:)',
                  re.MULTILINE)
_FATAL = re.compile(r'^Fatal error:\n?(.*)$', re.MULTILINE)
_STOPPED = re.compile(
    r'^.*(?:Received the .* signal, stopping|'
    r'Run time exceeded .* hours, will terminate).*$', re.MULTILINE)
_VERSION = re.compile(
    r'GROMACS version: +(?:VERSION )?(\S+)|'
    r'^Reading file .*, VERSION (\S+)', re.MULTILINE)
_STEPS = re.compile(r'^ *nsteps += *(\d+)|^(\d+) steps,', re.MULTILINE)
_OVERRIDDEN = re.compile(r'^Overriding nsteps .*: (\d+) steps', re.MULTILINE)
_RANKS = re.compile(r'^Using (\d+) MPI (?:thread|process)', re.MULTILINE)
_THREADS = re.compile(r'^Using (\d+) OpenMP thread', re.MULTILINE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the log, or standard error.

    :raises InvalidOutput: if it is not the whole output of one good run
    """
    fatal = _FATAL.search(text)
    if fatal is not None:
        raise reading.InvalidOutput(f'Fatal error: {texts.quote(fatal[1])}')
    stopped = _STOPPED.search(text)
    if stopped is not None:
        raise reading.InvalidOutput(texts.quote(stopped[0]))
    if len(_STARTED.findall(text)) > 1:
        raise reading.InvalidOutput(
            'several runs in one file, or a continued run')
    lines = _PERFORMANCE.findall(text)
    if not lines or len(_PERFORMANCE_ANY.findall(text)) != len(lines):
        raise reading.Missing('no table of performance: the output is not '
                              'complete')
    if _LOG.search(text) and not _FINISHED.search(text):
        raise reading.Missing('no "Finished mdrun": the log is not complete')
    # If the log and standard error are in one file, both lines are equal.
    if len({' '.join(line[1].split()) for line in lines}) > 1:
        raise reading.InvalidOutput('several runs in one file')
    rate = _rate(*lines[0])
    metrics = {'ns_per_day': outcome.Metric(rate, 'ns/day', reading.UP)}
    time = _TIME.findall(text)
    if not time:
        raise reading.Missing('no complete line "Time:" above the '
                              'performance')
    metrics['wall_s'] = outcome.Metric(
        reading.figure(time[-1][1], 'wall time'), 's', reading.DOWN)
    return reading.Reading(metrics, _parameters(text))


def _rate(header: str, row: str) -> float:
    """Read ns/day, and check it against the hours per ns."""
    columns = [name.strip() for name in _COLUMN.findall(header)]
    words = row.split()
    if len(words) != len(columns):
        raise reading.InvalidOutput('the line of performance is cut short')
    cells = dict(zip(columns, words, strict=True))
    rate = reading.figure(cells['ns/day'], 'ns/day')
    hours = next((cells[name] for name in ('hour/ns', 'hours/ns')
                  if name in cells), None)
    if hours is not None:
        value = reading.real(hours, 'hour/ns')
        slack = 0.0006 + value * 1e-3 + 24 * 0.0006 / rate / max(rate, 0.001)
        if abs(24 / rate - value) > slack:
            raise reading.InvalidOutput(
                f'{cells["ns/day"]} ns/day and {hours} hours per ns do not '
                'agree')
    return rate


def _parameters(text: str) -> dict[str, str]:
    found = {}
    for name, pattern in (('version', _VERSION), ('steps', _STEPS),
                          ('ranks', _RANKS), ('threads', _THREADS)):
        match = pattern.search(text)
        if match is not None:
            found[name] = next(word for word in match.groups() if word)
    overridden = _OVERRIDDEN.search(text)
    if overridden is not None:
        found['steps'] = overridden[1]
    return found
