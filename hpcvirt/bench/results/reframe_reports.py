# SPDX-License-Identifier: Apache-2.0

"""Read run reports of ReFrame; each test is a benchmark of its own.

Each report counts as one launch of the guest, and each execution of a test as
a sample; the performance variables are its metrics. ReFrame does not say which
direction is better. That follows from the reference, if it has one limit, and
otherwise from the unit.
"""

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import reading

#: Part of the name of a test with --repeat.
_REPEAT = re.compile(r' %[.$]repeat_no=\d+')

_TIME = r'(?:[munµ]?s|m?secs?|m?seconds?|min(?:ute)?s?|h(?:ours?)?|days?)'
_UNIT_OF_RATE = re.compile(
    rf'.+/ ?{_TIME}|.*(?:flops?|gups|iops|bps|fps)', re.IGNORECASE)
#: A time per something is a time.
_UNIT_OF_TIME = re.compile(rf'{_TIME}(?: ?/.+)?', re.IGNORECASE)


def is_report(document: object) -> bool:
    """Return whether a JSON document is a run report."""
    return isinstance(document, dict) and {'session_info', 'runs'} <= set(
        document)


def read(reports: Iterable[tuple[Any, str]]) -> Mapping[
        tuple[str, str], list[tuple[outcome.Outcome, str]]]:
    """Read run reports.

    A test that was skipped, or that passed without performance variables, has
    no outcome.

    :param reports: documents, and the files that they are from
    :returns: ``reframe:NAME`` of a test, without the number of a repetition,
        and its environment -> each outcome, and the report that it is from
    :raises InvalidInput: if a document is no report of a known version, or is
        damaged, or if a test ran on several partitions
    """
    unique: dict[str, tuple[Any, str]] = {}
    for document, where in reports:
        version = reading.inner(document, 'session_info', 'data_version')
        if not is_report(document) or not str(version).startswith('4.'):
            raise exception.InvalidInput(
                where, f'data_version is {version!r:.40}: not a run report of '
                'ReFrame 4.7 or later')
        # ReFrame links the latest report, which is then there twice.
        launch = str(document['session_info'].get('uuid'))
        unique.pop(launch, None)
        unique[launch] = document, where
    found: dict[tuple[str, str], list[tuple[outcome.Outcome, str]]] = {}
    places: dict[tuple[str, str], str] = {}
    for launch, (document, where) in unique.items():
        try:
            for case in _list_cases(document):
                key = ('reframe:' + _REPEAT.sub('', case['display_name']),
                       str(case['environ']))
                place = f'{case["system"]}:{case["partition"]}'
                result = _outcome(case)
                if result is None:
                    continue
                if places.setdefault(key, place) != place:
                    raise exception.InvalidInput(
                        where, f'{key[0]} ran on {place}, and on '
                        f'{places[key]} before')
                found.setdefault(key, []).append((result, launch))
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise exception.InvalidInput(
                where, f'not a run report of ReFrame ({exc!r})') from exc
    return found


def _list_cases(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the executions of tests in a run report."""
    for run in document['runs']:
        yield from run['testcases']


def _outcome(case: Mapping[str, Any]) -> outcome.Outcome | None:
    """Return the outcome of a test, None if it measured nothing."""
    result, phase = case['result'], case['fail_phase']
    if result == 'skip':
        return None
    # A reference of the site does not decide; the other side does.
    if result not in ('pass', 'xpass') and phase != 'performance':
        return outcome.Outcome(False, printable.one_line(
            f'{result} in {phase}: {case["fail_reason"]}'))
    metrics, remarks = {}, []
    for key, (value, _, lower, upper, unit, *_) in (
            case['perfvalues'] or {}).items():
        name = key.rpartition(':')[2]
        direction = _direction(lower, upper, str(unit or ''))
        if direction is None:
            remarks.append(f'{name} ({unit}) is left out: neither the unit '
                           'nor a reference with one limit says whether more '
                           'is better')
            continue
        try:
            score = reading.score(value, name)
        except reading.InvalidOutput as exc:
            return outcome.Outcome(False, exc.reason)
        metrics[name] = outcome.Metric(score, str(unit or ''), direction)
    if not metrics:
        return outcome.Outcome(False, remarks[0]) if remarks else None
    return outcome.Outcome(True, None, metrics, {
        'num_tasks': str(case['num_tasks'])}, tuple(remarks))


def _direction(lower: object, upper: object,
               unit: str) -> outcome.Direction | None:
    up, down = outcome.Direction.UP, outcome.Direction.DOWN
    if (lower is None) != (upper is None):
        return up if upper is None else down
    if _UNIT_OF_RATE.fullmatch(unit):
        return up
    if _UNIT_OF_TIME.fullmatch(unit):
        return down
    return None
