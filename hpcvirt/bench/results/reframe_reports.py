# SPDX-License-Identifier: Apache-2.0

"""Read run reports of ReFrame 3 and 4; each test is a benchmark of its own.

Each report counts as one launch of the guest, and each execution of a test as
a sample; the performance variables are its metrics. ReFrame does not say which
direction is better. That follows from the reference, if it has one limit, and
otherwise from the unit.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import reading

#: The major versions of the data, of ReFrame 3.1 to 4.10.
_VERSIONS = ('1', '2', '3', '4')
_PASSED = ('success', 'pass', 'xpass')
_SKIPPED = ('skipped', 'skip')
#: Part of the name of a test with --repeat.
_REPEAT = re.compile(r' %[.$]repeat_no=\d+')

_TIME = r'(?:[munµ]?s|m?secs?|m?seconds?|min(?:ute)?s?|h(?:ours?)?|days?)'
#: The units of a direction. A time per something is a time.
_UNITS = (
    (reading.UP, re.compile(rf'.+/ ?{_TIME}|.*(?:flops?|gups|iops|bps|fps)',
                            re.IGNORECASE)),
    (reading.DOWN, re.compile(rf'{_TIME}(?: ?/.+)?', re.IGNORECASE)))


class TestSample(NamedTuple):
    """One execution of a test.

    :ivar test: ``reframe:NAME``, without the number of a repetition
    :ivar partition: where it ran, ``SYSTEM:PARTITION``
    """

    test: str
    environ: str
    partition: str
    outcome: outcome.Outcome


def is_report(document: object) -> bool:
    """Return whether a JSON document is a run report."""
    return isinstance(document, dict) and {'session_info', 'runs'} <= set(
        document)


def identify(document: object, where: str) -> str:
    """Return what identifies a run report.

    :raises InvalidInput: if it is not a report of a known version
    """
    version = reading.inner(document, 'session_info', 'data_version')
    if not is_report(document) or (
            str(version).partition('.')[0] not in _VERSIONS):
        raise exception.InvalidInput(
            where, f'data_version is {version!r:.40}: not a run report of '
            'ReFrame 3 or 4')
    return str(reading.inner(document, 'session_info', 'uuid')
               or reading.inner(document, 'session_info', 'time_start'))


def read(document: Any, where: str) -> Iterator[TestSample]:
    """Read the samples of a run report that :func:`identify` accepts.

    A test that was skipped, or that passed without performance variables, has
    no sample.

    :raises InvalidInput: if the report is damaged
    """
    try:
        for case in (case for run in document['runs']
                     for case in run['testcases']):
            found = _outcome(case)
            name = case.get('display_name') or case['name']
            if found is not None:
                yield TestSample(
                    'reframe:' + _REPEAT.sub('', name),
                    str(case.get('environ') or case.get('environment')),
                    ':'.join(str(case[key]) for key in (
                        'system', 'partition') if key in case), found)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise exception.InvalidInput(
            where, f'not a run report of ReFrame ({exc!r})') from exc


def _outcome(case: Mapping[str, Any]) -> outcome.Outcome | None:
    """Return the outcome of a test, None if it measured nothing."""
    result, phase = case['result'], case.get('fail_phase')
    if result in _SKIPPED:
        return None
    # A reference of the site does not decide; the other side does.
    if result not in _PASSED and phase != 'performance':
        return outcome.Outcome(False, printable.one_line(
            f'{result} in {phase}: {case.get("fail_reason")}'))
    metrics, remarks = {}, []
    try:
        for name, value, lower, upper, unit in _variables(case):
            direction = _direction(lower, upper, str(unit or ''))
            if direction is None:
                remarks.append(f'{name} ({unit}) is left out: neither the '
                               'unit nor a reference with one limit says '
                               'whether more is better')
            else:
                metrics[name] = outcome.Metric(
                    reading.score(value, name), str(unit or ''), direction)
    except reading.InvalidOutput as exc:
        return outcome.Outcome(False, exc.reason)
    if not metrics:
        return outcome.Outcome(False, remarks[0]) if remarks else None
    tasks = case.get('num_tasks')
    return outcome.Outcome(True, None, metrics, {} if tasks is None else {
        'num_tasks': str(tasks)}, tuple(remarks))


def _variables(case: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield name, value, both limits and unit of each variable."""
    for key, values in (case.get('perfvalues') or {}).items():
        value, _, lower, upper, unit, *_ = values
        yield key.rpartition(':')[2], value, lower, upper, unit
    for each in case.get('perfvars') or ():
        yield [each[key] for key in ('name', 'value', 'thres_lower',
                                     'thres_upper', 'unit')]


def _direction(lower: object, upper: object,
               unit: str) -> outcome.Direction | None:
    if (lower is None) != (upper is None):
        return reading.UP if upper is None else reading.DOWN
    return next((direction for direction, pattern in _UNITS
                 if pattern.fullmatch(unit)), None)
