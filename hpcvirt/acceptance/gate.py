# SPDX-License-Identifier: Apache-2.0

"""The quick gate of an acceptance, and its decision.

The gate measures the host itself for some minutes: benchmarks on all of its
cores, compared with other hosts of its class, and its hardware meanwhile.
"""

import dataclasses
import math
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import serialization
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement

Word = judgement.VerdictResult

#: The benchmarks of a gate, and the figures of them that it judges.
BENCHMARKS = ('hpcc', 'fio')
_FIGURES = frozenset({
    'StarSTREAM_Triad', 'StarDGEMM_Gflops', 'StarRandomAccess_GUPs',
    'RandomlyOrderedRingLatency_usec', 'write_mb_s', 'read_latency_us'})
#: How much slower than its class a host may be, as for --bound.
_ALLOWED = '10%'
#: The shape of the runs of a gate.
SHAPE = 'host'
SAMPLES = sample_pairs.MIN_PAIRS
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
    :ivar differences: what the machine has unlike all others of its class
    """

    target: str
    result: judgement.VerdictResult = dataclasses.field(
        metadata=serialization.keep_key('word'))
    reason: str | None
    checks: tuple[GateCheck, ...]
    verdict: judgement.Verdict | None
    results: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def decide(target: str, checks: Sequence[GateCheck],
           verdict: judgement.Verdict | None, results: Sequence[str],
           unable: Sequence[str], differences: Sequence[str] = ()) -> Gate:
    """Decide on what the gate of a host found.

    The gate fails if a check or a figure does. It passes if everything does
    that the host reports, and all benchmarks were measured.
    """
    failed = [check for check in checks if check.passed is False]
    word = Word.FAIL if failed else Word.INCONCLUSIVE
    reason = (f'{failed[0].name}: {failed[0].found}; expected '
              f'{failed[0].expected}' if failed else None)
    if not failed and verdict is not None:
        reason = verdict.reason
        if verdict.result is not Word.INVALID:
            word = verdict.result
    if unable and word is not Word.FAIL:
        word, reason = Word.INCONCLUSIVE, unable[0]
    return Gate(target, word, reason, tuple(checks), verdict, tuple(results),
                tuple(unable), tuple(differences))


def make_bounds(definition: definitions.Definition,
                own: Mapping[str, judgement.Bound],
                ) -> dict[str, judgement.Bound]:
    """Return the bounds of the figures of a benchmark that a gate judges.

    :param own: bounds of the user, which take precedence
    """
    figures = {figure.name: figure for figure in definition.metrics}
    chosen = {name: figure for name, figure in figures.items()
              if figure.primary and not _FIGURES & figures.keys()
              or name in _FIGURES}
    return {name: bounds.parse_overhead(_ALLOWED, figure.direction)
            for name, figure in chosen.items()} | {
                name: bound for name, bound in own.items()
                if bounds.split(name)[0] in figures}


def find_order(memory_mib: int) -> int:
    """Return the order of HPCC's matrix for a gate."""
    most = math.isqrt(int(memory_mib * 2 ** 20 * _MEMORY_FRACTION / 8))
    return _BLOCK << max(1, (most // _BLOCK).bit_length()) - 1
