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

"""What a verdict makes of a test."""

import enum
import unittest
from collections.abc import Iterable

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record


class Fate(enum.IntEnum):
    """What becomes of a test; of several the largest."""

    PASS = 0
    SKIP = 1
    FAIL = 2


def of(result: record.Result, inconclusive: str) -> Fate:
    """Turn a verdict into the fate of a test.

    A figure without a bound is reported and decides nothing; a result in
    which nothing has a bound is INCONCLUSIVE.

    :param inconclusive: ``fail`` or ``skip``
    """
    word = result.verdict.word if result.verdict else None
    if word is judgement.Word.PASS:
        return Fate.PASS
    if word is judgement.Word.INCONCLUSIVE and inconclusive == 'skip':
        return Fate.SKIP
    return Fate.FAIL


def worst(fates: Iterable[Fate]) -> Fate:
    """Of several results that belong to one test."""
    return max(fates, default=Fate.FAIL)


def conclude(test: unittest.TestCase, found: Fate, text: str) -> None:
    """End a test as its fate is.

    :param text: what was measured, for the message
    """
    if found is Fate.FAIL:
        test.fail(f'\n{text}')
    if found is Fate.SKIP:
        test.skipTest(text)


def faults(result: record.Result) -> list[str]:
    """Say of every sample that does not count why, one sentence each."""
    return [f'{run.label}, {sample.arm} '
            f'{"warm-up" if sample.warm_up else "pair"} {sample.pair + 1}: '
            f'{sample.outcome.reason}'
            for run in result.runs for sample in run.samples
            if not sample.outcome.valid]
