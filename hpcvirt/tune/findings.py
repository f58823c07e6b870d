# SPDX-License-Identifier: Apache-2.0

"""The findings of an experiment.

All effects are natural logarithms of ratios, above 0 if the value is better
than today's: more throughput, or less time.
"""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt.tune import space
from hpcvirt.tune import trial

SCHEMA_VERSION = 1


class Decision(enum.StrEnum):
    """What is known about a value compared with today's."""

    BETTER = 'better'
    WORSE = 'worse'
    #: The whole interval is within the difference that matters.
    SAME = 'same'
    #: The interval is too wide to tell.
    OPEN = 'open'


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """An effect; each end of its interval has a confidence of 95 %."""

    gain: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class ValueFinding:
    """What was found about a value of a choice, compared with today's.

    :ivar cost: what a host gives to guests with this value
    :ivar effect: on the objective, over all programs by their weights
    :ivar time: the effect on the time of one guest
    :ivar trials: number of trials with this value
    :ivar runs: number of runs with this value, and with the others
    :ivar slow: number of those that were stragglers, likewise
    :ivar guard: why the value must not be recommended; None if it may
    """

    choice: str
    value: str
    cost: space.HostCost
    effect: Effect
    programs: Mapping[str, Effect]
    time: Effect
    decision: Decision
    trials: int
    runs: tuple[int, ...] = (0, 0)
    slow: tuple[int, ...] = (0, 0)
    guard: str | None = None


@dataclasses.dataclass(frozen=True)
class Interaction:
    """How much the effect of one value depends on another, beyond doubt.

    :ivar values: ``CHOICE=VALUE`` of both
    :ivar effect: the gain of both together beyond the sum of their effects
    :ivar confounded: the pairs of choices that the design cannot tell apart
        from this one, ``CHOICE x CHOICE``
    """

    values: tuple[str, ...]
    effect: Effect
    confounded: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Confirmation:
    """The winner of the screening against today's, in fresh boots.

    :ivar pairs: pairs of boots so far
    :ivar effect: None with too few pairs
    :ivar is_gain: whether the effect may be called a gain
    """

    levels: trial.Levels
    pairs: int
    effect: Effect | None
    is_gain: bool = False
    guard: str | None = None


@dataclasses.dataclass(frozen=True)
class Findings:
    """The findings of an experiment, or those so far.

    :ivar native: today's profile against native, None without native trials
    :ivar screened: the winner of the screening; None before its end
    :ivar reason: why this configuration is recommended, one sentence
    """

    values: tuple[ValueFinding, ...]
    interactions: tuple[Interaction, ...]
    native: Effect | None
    screened: trial.Levels | None
    confirmation: Confirmation | None
    recommended: trial.Levels
    reason: str
    schema_version: int = SCHEMA_VERSION
