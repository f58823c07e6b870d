# SPDX-License-Identifier: Apache-2.0

"""The types of a verdict: what was decided, and from which figures.

A ratio is always guest / native. The direction of the metric says what it
means: a ratio of 0.848 is a loss for a rate and a gain for a time.
"""

import dataclasses
import enum
from typing import Annotated

from hpcvirt import serialization
from hpcvirt.bench.model import outcome

#: The limits of the ratio that a bound may require; it must have a logarithm.
SMALLEST = 1e-6
LARGEST = 1e6

#: The ratio that a bound requires.
Ratio = Annotated[float, serialization.number(SMALLEST, LARGEST)]


class VerdictResult(enum.StrEnum):
    """The verdict in one word.

    ``COMPARED``: the sides were not measured in turn, so that nothing is
    promised about the guest.
    """

    PASS = 'PASS'  # noqa: S105 - no password
    FAIL = 'FAIL'
    COMPARED = 'COMPARED'
    INCONCLUSIVE = 'INCONCLUSIVE'
    INVALID = 'INVALID'

    @property
    def exit_status(self) -> int:
        """The exit status of a command that ends in this verdict."""
        return 0 if self is VerdictResult.PASS else 1


class Remedy(enum.StrEnum):
    """What to change after INCONCLUSIVE or INVALID to reach a decision.

    ``BASELINE``: find what slowed native down. ``LONGER_RUNS``: the clock is
    too coarse for runs this short.
    """

    PAIRS = 'more pairs'
    LAUNCHES = 'more launches'
    LONGER_RUNS = 'longer runs'
    QUIETER_MACHINE = 'a quieter machine'
    BASELINE = 'a sound baseline'
    MEASURE_AGAIN = 'measure again'
    WARM_UPS = 'more warm-ups'
    IN_TURN = 'measure in turn'


class BoundKind(enum.StrEnum):
    """The evidence for a default bound.

    ``measured``: a study measured this figure. ``transferred``: a study
    measured it for another program, setup or device. ``expected``: nobody
    measured it.
    """

    MEASURED = 'measured'
    TRANSFERRED = 'transferred'
    EXPECTED = 'expected'


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """How much a guest may lose: the worst ratio that still passes.

    :ivar ratio: the required ratio, below 1 for a rate, above 1 for a time
    :ivar margin: fraction by which the guest may be below (rate) or above
        (time) ``ratio``. A ratio that a study measured needs a margin, because
        the interval of a guest as in the study covers both of its sides.
    :ivar source: document that the figure comes from, and the line in it
    :ivar kind: None if the bound is not from a benchmark definition
    :ivar conditions: what was measured, or why the figure was not measured
    """

    ratio: Ratio
    margin: Annotated[float, serialization.number(0, 0.99)] = 0.0
    source: str = ''
    kind: BoundKind | None = None
    conditions: str = ''

    @property
    def is_of_study(self) -> bool:
        """Whether a study measured this ratio."""
        return self.kind in (BoundKind.MEASURED, BoundKind.TRANSFERRED)

    def limit(self, direction: outcome.Direction) -> float:
        """Return the ratio that the worse end of the interval may reach."""
        if direction is outcome.Direction.UP:
            return self.ratio * (1 - self.margin)
        return self.ratio * (1 + self.margin)


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A ratio and its confidence interval.

    :ivar level: one-sided confidence of each end; the two-sided confidence is
        2 x level - 1
    """

    ratio: float
    low: float
    high: float
    level: float = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Tail:
    """The judgement on stragglers: samples far slower than others of the side.

    :ivar native: number of native stragglers
    :ivar guest: number of guest stragglers
    :ivar ratio: guest / native of the means, stragglers included; None if
        more guest samples failed or hung, since the ratio is then unbounded
    :ivar most: upper 95 % confidence limit of the fraction of guest samples
        that are stragglers
    """

    result: VerdictResult
    native: int
    guest: int
    ratio: float | None
    most: float = 1.0


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of one benchmark.

    :ivar label: benchmark, variant and shape, as the report names them
    :ivar result: None for a metric without a bound, which is not judged
    :ivar reason: why the result is not PASS, or a reservation about a PASS;
        one sentence
    :ivar remedy: what would lead to a decision; None for PASS and FAIL, and
        for a metric without a bound
    :ivar limit: the ratio that decided; None if the metric has no bound
    :ivar interval: ratio of the typical samples; None if there are too few
        pairs or a sample failed
    :ivar mean: ratio of the means if it differs visibly from ``interval``,
        else None; for a time and for a rate
    :ivar pairs: number of pairs that were used
    :ivar paired: False if the sides were not measured in pairs
    :ivar suspect: the whole interval says that the guest is better than native
    :ivar machine: ratio of native to native; None if it was not measured
    :ivar p_pass: Holm-adjusted p-value of "the loss exceeds the bound"
    :ivar p_fail: Holm-adjusted p-value of "the loss is within the bound"
    :ivar launches: number of guest launches if their means decided; 0 if the
        samples decided, so that the judgement covers only their launches
    :ivar boots: number of guest boots in the samples, 0 if unknown
    :ivar tail: judgement on the stragglers, None if there is no bound
    :ivar transient: number of first pairs that differ from all later ones, 0
        if they do not
    :ivar earlier: results of the earlier attempts on the same subject, whose
        pairs count too
    """

    label: str
    metric: str
    unit: str
    direction: outcome.Direction
    result: VerdictResult | None
    reason: str | None
    limit: float | None
    interval: Interval | None
    pairs: int
    native: float | None = None
    guest: float | None = None
    native_cv: float | None = None
    guest_cv: float | None = None
    paired: bool = True
    suspect: bool = False
    machine: Interval | None = None
    p_pass: float | None = None
    p_fail: float | None = None
    launches: int = 0
    boots: int = 0
    transient: int = 0
    tail: Tail | None = None
    mean: Interval | None = None
    earlier: tuple[VerdictResult, ...] = ()
    remarks: tuple[str, ...] = ()
    remedy: Remedy | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict on all figures that were judged together.

    :ivar result: INVALID if any judgement is, else FAIL if any is, else PASS
        if all are, else INCONCLUSIVE
    :ivar reason: None for a PASS without reservations
    :ivar method: the statistical method, one sentence
    :ivar scope: the guest launches that the verdict covers, one sentence;
        empty if there is no guest or no interval
    :ivar differences: differences between the sides, other than
        virtualization, that may cause a loss; one clause each
    """

    result: VerdictResult
    reason: str | None
    judgements: tuple[Judgement, ...]
    method: str
    scope: str = ''
    differences: tuple[str, ...] = ()
