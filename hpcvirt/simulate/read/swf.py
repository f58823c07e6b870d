# SPDX-License-Identifier: Apache-2.0

"""Read the Standard Workload Format of batch systems.

Each line is a job with 18 numbers; a negative number is unknown. Lines that
begin with a semicolon are comments. Source: [SWF-Chapin-1999].

The CPUs of a job are the allocated processors, or else the requested ones. Its
memory is the requested memory, or else the used one. Its time is that of its
submission, since its waiting time is due to the scheduler of the log.

Jobs with more fields are read without those fields and without memory, which
such logs do not give in KiB per processor. In logs with fewer fields, the
missing fields are unknown.
"""

import math
import re
from collections.abc import Sequence

from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs

_FIELDS, _FEWEST = 18, 5
#: Indices of fields.
_SUBMIT, _RUN_TIME, _ALLOCATED, _USED_KIB, _REQUESTED, _WANTED_KIB, _STATUS = (
    1, 3, 4, 6, 7, 9, 10)

#: The statuses of lines for parts of an interrupted job, which also has a line
#: for the whole job.
_PARTS = frozenset({2, 3, 4})

#: Upper limits of fields, exclusive.
_LIMITS = (
    (_SUBMIT, logs.MAX_SECONDS), (_RUN_TIME, logs.MAX_SECONDS),
    (_ALLOCATED, logs.MAX_CPUS), (_REQUESTED, logs.MAX_CPUS))
#: More memory per processor, 1 TiB, must be a mistake.
_MAX_KIB = 1 << 30

_MACHINE = re.compile(r';\s*MaxProcs:\s*([0-9]{1,9})\s*$')


def recognizes(first: str) -> bool:
    """Whether this is the first line of such a log."""
    return first.startswith(';') or all(
        re.fullmatch(r'-?[0-9][0-9.]*', field)
        for field in first.split()[:_FIELDS])


def read(log: logs.Log) -> workloads.Workload:
    """Read the jobs that ran.

    :raises InvalidInput: with the line that is wrong
    """
    never = parts = vague = longer = unlikely = 0
    machine = ''
    width = 0
    for line in log:
        fields = line.split()
        if not fields or fields[0].startswith(';'):
            found = _MACHINE.match(line)
            machine = found[1] if found else machine
            continue
        width = width or max(_FEWEST, min(len(fields), _FIELDS))
        if len(fields) < width:
            raise log.fault(f'has {len(fields)} fields instead of {width}')
        try:
            values = [float(field) for field in fields[:width]]
        except ValueError as exc:
            raise log.fault(f'has a field that is not a number ({exc})'
                            ) from exc
        values += [-1] * (_FIELDS - width)
        for field, most in _LIMITS:
            if not values[field] < most:
                raise log.fault(f'field {field + 1} must be less than '
                                f'{most:.0e}, not {fields[field][:40]!r}')
        cpus = int(_known(values, _ALLOCATED, _REQUESTED))
        if values[_STATUS] in _PARTS:
            parts += 1
        elif values[_RUN_TIME] <= 0:
            never += 1
        elif not cpus or values[_SUBMIT] < 0:
            vague += 1
        else:
            kib = _known(values, _WANTED_KIB, _USED_KIB)
            if len(fields) > _FIELDS:
                longer, kib = longer + 1, 0
            elif kib > _MAX_KIB:
                unlikely, kib = unlikely + 1, 0
            log.add(values[_SUBMIT], values[_RUN_TIME], cpus,
                    math.ceil(cpus * kib / 1024), 1, '', 0, 0)
    return log.workload((
        *((f'The machine of the log has {int(machine):,} processors.',)
          if machine else ()),
        *logs.note_count(never, 'job that never ran', 'jobs that never ran',
                         'left out'),
        *logs.note_count(vague, 'job without a number of processors or a time',
                         'jobs without a number of processors or a time',
                         'left out'),
        *logs.note_count(parts,
                         'line for a part of a job that was interrupted',
                         'lines for parts of jobs that were interrupted',
                         'left out'),
        *logs.note_count(longer, 'job with more fields than the format has',
                         'jobs with more fields than the format has',
                         'read without them and without memory'),
        *logs.note_count(unlikely, 'job with more than 1 TiB a processor',
                         'jobs with more than 1 TiB a processor',
                         'taken as of unknown memory')), splits=True)


def _known(values: Sequence[float], *fields: int) -> float:
    """Return the first of these fields that is known and not 0, or 0."""
    return next((values[field] for field in fields if values[field] > 0), 0)
