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

"""Turn a verdict into the outcome of a test."""

import enum
import unittest
from collections.abc import Iterable

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record


class Outcome(enum.IntEnum):
    """The outcome of a test; that of several results is the largest."""

    PASS = 0
    SKIP = 1
    FAIL = 2


def of(result: record.Result, inconclusive: str) -> Outcome:
    """Turn the verdict on a result into the outcome of a test.

    A figure without a bound is reported and decides nothing; a result in
    which no figure has a bound is INCONCLUSIVE.

    :param inconclusive: what INCONCLUSIVE becomes: ``fail`` or ``skip``
    """
    word = result.verdict.word if result.verdict else None
    if word is judgement.Word.PASS:
        return Outcome.PASS
    if word is judgement.Word.INCONCLUSIVE and inconclusive == 'skip':
        return Outcome.SKIP
    return Outcome.FAIL


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a test that has several results."""
    return max(outcomes, default=Outcome.FAIL)


def conclude(test: unittest.TestCase, outcome: Outcome, text: str) -> None:
    """Fail or skip a test, or let it pass.

    :param text: what was measured, for the message
    """
    if outcome is Outcome.FAIL:
        test.fail(f'\n{text}')
    if outcome is Outcome.SKIP:
        test.skipTest(text)


def faults(result: record.Result) -> list[str]:
    """List the samples that do not count, each with the reason."""
    return [f'{run.label}, {sample.arm} '
            f'{"warm-up" if sample.warm_up else "pair"} {sample.pair + 1}: '
            f'{sample.outcome.reason}'
            for run in result.runs for sample in run.samples
            if not sample.outcome.valid]
