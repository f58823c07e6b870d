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

"""Decide whether a host is accepted, and which traits it gets.

A host that passes gets the traits that flavors may require:

``CUSTOM_HPCVIRT_OVERHEAD_LE_3``, ``_5`` and ``_10``
    if programs in guests take at most 3, 5 or 10 % longer than natively: by
    the upper end of the interval of the worst figure that was judged. A host
    has every one of them that holds, so that a flavor requires one only. A
    host that was compared with its class has none.

``CUSTOM_HPCVIRT_AUDITED``
    if its audit was given and found no fault.
"""

import dataclasses
import math
from collections.abc import Iterable

from hpcvirt.acceptance import acceptance
from hpcvirt.audit import finding
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome

Word = judgement.Word

#: Overhead in percent to the trait that says that it is not larger.
OVERHEAD = {percent: f'CUSTOM_HPCVIRT_OVERHEAD_LE_{percent}'
            for percent in (3, 5, 10)}
AUDITED = 'CUSTOM_HPCVIRT_AUDITED'
#: All traits that an acceptance sets or removes.
TRAITS = (*OVERHEAD.values(), AUDITED)


def decide(begun: acceptance.Acceptance, verdict: judgement.Verdict | None,
           missing: str, ended_at: str) -> acceptance.Acceptance:
    """Decide on a host that was measured.

    :param verdict: None if nothing was measured
    :param missing: why not everything was measured, empty if it was; the host
        cannot pass then
    """
    word = Word.INCONCLUSIVE
    if verdict is not None and (verdict.word is Word.FAIL or (
            verdict.word is Word.PASS and not missing)):
        word = verdict.word
    reason = verdict.reason if verdict else None
    if missing and word is not Word.FAIL:
        reason = missing
    found = dataclasses.replace(
        begun, word=word, reason=reason, verdict=verdict,
        overhead=overhead(verdict) if verdict and begun.native else None,
        ended_at=ended_at)
    return dataclasses.replace(found, traits=traits(found))


def overhead(verdict: judgement.Verdict) -> float | None:
    """Return how much longer programs take in guests, at most.

    :returns: the worse end of the worst interval; None if a figure that is
        judged has no interval
    """
    ends = []
    for figure in verdict.judgements:
        if figure.interval is None:
            return None
        is_rate = figure.direction is outcome.Direction.UP
        ends.append(stats.loss_of_ratio(
            figure.interval.low if is_rate else figure.interval.high,
            figure.direction))
    return max(0.0, math.expm1(min(max(ends), stats.EXTREME))) if ends else (
        None)


def traits(found: acceptance.Acceptance) -> tuple[str, ...]:
    """List the traits of a host; none unless it passes."""
    if found.word is not Word.PASS:
        return ()
    earned = [] if found.overhead is None else [
        name for percent, name in OVERHEAD.items()
        if found.overhead <= percent / 100 + stats.EQUAL]
    if found.audit is not None and is_sound(found.audit):
        earned.append(AUDITED)
    return tuple(earned)


def is_sound(findings: Iterable[finding.Finding]) -> bool:
    """Whether an audit has found no fault."""
    return not any(each.severity in finding.FAULTS for each in findings)
