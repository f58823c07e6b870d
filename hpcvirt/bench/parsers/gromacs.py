# SPDX-License-Identifier: Apache-2.0

"""Read GROMACS 4 to 2025: ``md.log`` or the standard error of mdrun."""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

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
    """Read the log or standard error."""
    reading.refuse(text, _FATAL, prefix='Fatal error: ')
    reading.refuse(text, _STOPPED)
    reading.check_single(text, _STARTED, _FINISHED, reason='several runs in '
                         'one file, or a continued run')
    lines = _PERFORMANCE.findall(text)
    reading.require(lines and len(_PERFORMANCE_ANY.findall(text)) == len(
        lines), 'no performance table: the output is not complete',
        reading.Missing)
    if _LOG.search(text):
        reading.find(_FINISHED, text, 'no "Finished mdrun": the log is not '
                     'complete')
    # A file with the log and standard error has the line twice.
    reading.require(len({' '.join(line[1].split()) for line in lines}) == 1
                    and len(lines) <= 1 + bool(_LOG.search(text)),
                    'several runs in one file')
    metrics = {'ns_per_day': _rate(*lines[0])}
    times = _TIME.findall(text)
    reading.require(times, 'no complete line "Time:" above the performance',
                    reading.Missing)
    metrics['wall_s'] = reading.figure(times[-1][1], 'wall time')
    return reading.Reading(metrics, {
        **reading.find_parameters(text, version=_VERSION, steps=_STEPS,
                                  ranks=_RANKS, threads=_THREADS),
        **reading.find_parameters(text, steps=_OVERRIDDEN)})


def _rate(header: str, row: str) -> float:
    """Read ns/day, and check it against the hours per ns."""
    columns = [name.strip() for name in _COLUMN.findall(header)]
    words = row.split()
    reading.require(len(words) == len(columns),
                    'the performance row is truncated')
    cells = dict(zip(columns, words, strict=True))
    rate = reading.figure(cells['ns/day'], 'ns/day')
    hours = cells.get('hour/ns', cells.get('hours/ns'))
    if hours is not None:
        value = reading.real(hours, 'hour/ns')
        slack = 0.0006 + value * 1e-3 + 24 * 0.0006 / rate / max(rate, 0.001)
        reading.require(abs(24 / rate - value) <= slack, f'{cells["ns/day"]} '
                        f'ns/day and {hours} hours per ns do not agree')
    return rate
