# SPDX-License-Identifier: Apache-2.0

"""The quick gate of an acceptance, and its decision.

The gate measures the host itself for some minutes: benchmarks on all of its
cores, compared with other hosts of its class, and its hardware meanwhile.
"""

import dataclasses
import math
from collections.abc import Sequence

from hpcvirt import serialization
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement

Word = judgement.VerdictResult

BENCHMARKS = ('hpcc', 'fio')
SAMPLES = sample_pairs.MIN_PAIRS
#: The shape of the runs of a gate.
SHAPE = 'host'
#: The figures that a gate judges in addition to the primary ones.
_MORE = ('StarDGEMM_Gflops', 'RandomlyOrderedRingLatency_usec')
#: How much slower than its class a host may be.
ALLOWED = '10%'
#: HPCC's matrix fills between a quarter of this part of the memory and all of
#: it. Its order is the same although hosts of a class report a little less or
#: more memory: sizes such as 96, 128 and 160 GiB are not near a step.
_MEMORY_FRACTION = 0.06
_BLOCK = 80


@dataclasses.dataclass(frozen=True, slots=True)
class GateCheck:
    """What was checked of the hardware.

    :ivar passed: None if the host does not report it
    :ivar found: what was found, and where
    """

    name: str
    passed: bool | None
    found: str
    expected: str


@dataclasses.dataclass(frozen=True)
class Gate:
    """What the quick gate of a host found.

    :ivar target: where it was measured
    :ivar results: ids of the results in the store
    :ivar unable: what could not be measured, and why
    """

    target: str
    result: judgement.VerdictResult = dataclasses.field(
        metadata=serialization.keep_key('word'))
    reason: str | None
    checks: tuple[GateCheck, ...]
    verdict: judgement.Verdict | None
    results: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()


def decide(target: str, checks: Sequence[GateCheck],
           verdict: judgement.Verdict | None, results: Sequence[str],
           unable: Sequence[str]) -> Gate:
    """Decide on what the gate of a host found.

    It fails if a check or a figure does. It passes if all figures do, and all
    checks of what the host reports.
    """
    word, reason = Word.INCONCLUSIVE, next(iter(unable), None)
    if verdict is not None and (not unable or verdict.result is Word.FAIL):
        reason = verdict.reason
        if verdict.result is not Word.INVALID:
            word = verdict.result
    for check in checks:
        if check.passed is False:
            word, reason = Word.FAIL, (f'{check.name}: {check.found}; '
                                       f'expected {check.expected}')
            break
    return Gate(target, word, reason, tuple(checks), verdict, tuple(results),
                tuple(unable))


def list_figures(benchmark: str) -> list[str]:
    """List the figures of a benchmark that a gate judges."""
    return [figure.name for figure in catalogue.get(benchmark).metrics
            if figure.primary or figure.name in _MORE]


def find_order(memory_mib: int) -> int:
    """Return the order of HPCC's matrix for a gate."""
    most = math.isqrt(int(memory_mib * 2 ** 20 * _MEMORY_FRACTION / 8))
    return _BLOCK << max(1, (most // _BLOCK).bit_length()) - 1
