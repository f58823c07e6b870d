# SPDX-License-Identifier: Apache-2.0

"""The types of a verdict: what was decided, and from which figures.

A ratio is always guest / native. It is read together with the direction of
the metric: a ratio of 0.848 is a loss for a rate and a gain for a time.
"""

import dataclasses
import enum
from typing import Annotated

from hpcvirt import serialization
from hpcvirt.bench.model import outcome

#: The ratios that a bound may require: it has to have a logarithm.
SMALLEST = 1e-6
LARGEST = 1e6


class VerdictResult(enum.StrEnum):
    """The verdict in one word."""

    PASS = 'PASS'  # noqa: S105 - no password
    FAIL = 'FAIL'
    INCONCLUSIVE = 'INCONCLUSIVE'
    INVALID = 'INVALID'


class Remedy(enum.StrEnum):
    """What leads from INCONCLUSIVE or INVALID to a decision.

    ``baseline``: find what slowed native down. ``longer runs``: the clock is
    too coarse for runs this short.
    """

    PAIRS = 'more pairs'
    LAUNCHES = 'more launches'
    LONGER_RUNS = 'longer runs'
    QUIETER_MACHINE = 'a quieter machine'
    BASELINE = 'a sound baseline'
    MEASURE_AGAIN = 'measure again'


class BoundKind(enum.StrEnum):
    """How a default bound is founded.

    ``measured``: a study measured this figure. ``transferred``: a study
    measured another program, set-up or device. ``expected``: nobody measured
    it.
    """

    MEASURED = 'measured'
    TRANSFERRED = 'transferred'
    EXPECTED = 'expected'


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """How much a guest may lose: the worst ratio that still passes.

    :ivar ratio: the required ratio, below 1 for a rate, above 1 for a time
    :ivar margin: how far below (rate) or above (time) ``ratio`` the guest may
        still be, as a fraction: a required ratio of 1.00 can only be shown
        within a margin, since the interval of an equal guest covers both
        sides of 1.00
    :ivar source: where the figure comes from: the document and the line in it
    :ivar kind: None if no definition of a benchmark gives the bound
    :ivar conditions: what was measured, or why it is no measurement
    """

    ratio: Annotated[float, serialization.number(SMALLEST, LARGEST)]
    margin: Annotated[float, serialization.number(0, 0.99)] = 0.0
    source: str = ''
    kind: BoundKind | None = None
    conditions: str = ''

    @property
    def is_measured(self) -> bool:
        """Whether a study measured just this ratio, here or elsewhere."""
        return not self.margin and self.kind in (BoundKind.MEASURED,
                                                 BoundKind.TRANSFERRED)

    def limit(self, direction: outcome.Direction) -> float:
        """The ratio that the worse end of the interval must not cross."""
        if direction is outcome.Direction.UP:
            return self.ratio * (1 - self.margin)
        return self.ratio * (1 + self.margin)


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A ratio with both ends of its confidence interval.

    :ivar level: confidence of each end alone; the two-sided confidence is
        2 x level - 1
    """

    ratio: float
    low: float
    high: float
    level: float = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Tail:
    """The judgement on stragglers: runs much slower than others of their side.

    :ivar native: number of native stragglers
    :ivar guest: number of stragglers of the guest
    :ivar ratio: guest / native of the means, in which stragglers count in
        full; None if it has no bound, since more runs of the guest failed or
        hung
    :ivar most: the largest part of all runs of the guest that may be
        stragglers, with a confidence of 95 %
    """

    result: VerdictResult = dataclasses.field(
        metadata=serialization.keep_key('word'))
    native: int
    guest: int
    ratio: float | None
    most: float = 1.0


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of one benchmark.

    :ivar label: benchmark, variant and shape, as the report names them
    :ivar result: None if the metric has no bound: it is described, not judged
    :ivar reason: why it is not PASS, or a reservation about a PASS; one
        sentence
    :ivar remedy: what would lead to a decision; None for PASS and FAIL, and
        for a metric without a bound
    :ivar limit: the ratio that decided, None if the metric has no bound
    :ivar interval: of a typical run; None if there are too few pairs or a run
        failed
    :ivar mean: ratio of the mean times where it differs visibly from that of
        a typical run, None elsewhere; a ratio of rates as well
    :ivar pairs: number of pairs that were used
    :ivar dropped: numbers of the pairs that earlier versions of hpcvirt
        excluded; now all pairs count
    :ivar paired: False if the sides were not measured in pairs
    :ivar suspect: the whole interval says that the guest beats native
    :ivar machine: ratio of native to native, if it was measured
    :ivar p_pass: Holm-adjusted p-value of "the loss is beyond the bound"
    :ivar p_fail: Holm-adjusted p-value of "the loss is within the bound"
    :ivar launches: number of launches of the guest whose means decided, 0 if
        the samples did, which speak of the launches that were measured
    :ivar boots: number of boots of the guest that the samples are of, 0 if
        unknown
    :ivar interim_analyses: how many there were so far, 0 if the number of
        pairs was fixed in advance
    :ivar tail: judgement on the stragglers, None if there is no bound
    :ivar earlier: the results of the earlier attempts on the same subject,
        whose pairs count as well
    """

    label: str
    metric: str
    unit: str
    direction: outcome.Direction
    result: VerdictResult | None = dataclasses.field(
        metadata=serialization.keep_key('word'))
    reason: str | None
    limit: float | None
    interval: Interval | None
    pairs: int
    native: float | None = None
    guest: float | None = None
    native_cv: float | None = None
    guest_cv: float | None = None
    dropped: tuple[int, ...] = ()
    paired: bool = True
    suspect: bool = False
    machine: Interval | None = None
    p_pass: float | None = None
    p_fail: float | None = None
    launches: int = 0
    boots: int = 0
    interim_analyses: int = dataclasses.field(
        default=0, metadata=serialization.keep_key('looks'))
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
    :ivar method: how it was decided, one sentence
    :ivar scope: which launches of the guest it speaks of, one sentence; empty
        if there is no guest or no interval
    :ivar differences: what differed between the sides besides the guest, and
        may be the cause of a loss, a clause each
    """

    result: VerdictResult = dataclasses.field(
        metadata=serialization.keep_key('word'))
    reason: str | None
    judgements: tuple[Judgement, ...]
    method: str
    scope: str = ''
    differences: tuple[str, ...] = ()
