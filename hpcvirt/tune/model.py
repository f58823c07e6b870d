# SPDX-License-Identifier: Apache-2.0

"""The types of tune: the space of an experiment, its trials and its findings.

All effects are natural logarithms of ratios, above 0 if the value is better
than today's: more throughput, or less time.
"""

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from hpcvirt.flavors import host_settings
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.tune import experiment as experiments

#: A configuration: the level of each choice, in the order of the experiment. 0
#: is today's value, 1 the first value that the choice names.
Levels = tuple[int, ...]


class Configuration(NamedTuple):
    """A configuration of a host and its guests.

    :ivar content: the profile, as ``flavor plan`` takes it from a file
    :ivar host_values: the names and values of ``host``, for ``apply``
    :ivar flavor: without the extra spec that marks flavors of a plan, so that
        "hpcvirt flavor apply" ignores it
    :ivar guests: how many instances of the flavor fill a host
    """

    content: Mapping[str, Any]
    settings: host_settings.HostSettings
    host_values: Mapping[str, str]
    flavor: flavor_model.Flavor
    guest: shape_model.Shape
    guests: int

    @property
    def host_state(self) -> list[Any]:
        """What a host must have before its guests start."""
        profile = profiles.build(self.content, 'profile')
        return [self.settings, profile.moderate_interrupts,
                profile.ring_entries, self.host_values]


class HostCost(NamedTuple):
    """What all guests of a host have together."""

    guests: int
    cores: int
    memory_mib: int


class Choice(NamedTuple):
    """A choice.

    :ivar values: ``today`` first
    :ivar costs: for each value, with today's values of the other choices
    :ivar has_reboot: whether its value changes settings of the host, so that
        it is a factor of whole plots
    """

    name: str
    values: tuple[str, ...]
    costs: tuple[HostCost, ...]
    has_reboot: bool = False


@dataclasses.dataclass(frozen=True)
class Space:
    """An experiment whose configurations are planned.

    :ivar hosts: differ only in their names
    :ivar replicates: how often the whole design is carried out; with 0, the
        last values of all choices are confirmed without a screening
    """

    experiment: experiments.Experiment
    choices: tuple[Choice, ...]
    configurations: Mapping[Levels, Configuration]
    hosts: tuple[host_model.Host, ...]
    replicates: int = 0

    @property
    def today(self) -> Levels:
        """The levels of today's profile."""
        return (0,) * len(self.choices)

    @property
    def matters(self) -> float:
        """The smallest difference that matters, as a logarithm."""
        return math.log1p(self.experiment.matters_percent / 100)


class Stage(enum.StrEnum):
    """Why a trial was made; ``native`` ones have no guests."""

    NATIVE = 'native'
    SCREEN = 'screen'
    CONFIRM = 'confirm'


class Step(NamedTuple):
    """A trial to make: one boot of the guests that fill a host.

    :ivar block: number of the replicate or pair of boots; hosts take turns
    """

    stage: Stage
    block: int
    levels: Levels


class TrialRun(NamedTuple):
    """One run of a program in all guests of a full host at once.

    :ivar speed: logarithm of the throughput of the host, in work per time;
        None if the run failed or hung
    :ivar time_s: how long the slowest guest took; None if unknown
    """

    speed: float | None
    time_s: float | None = None


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial that ended.

    :ivar runs: program -> its runs, in their order
    :ivar shootdowns: TLB shoot-downs of the host in a second for each of its
        CPUs, None if unknown
    :ivar seconds: how long it took, with the settings of the host
    """

    step: Step
    runs: Mapping[str, tuple[TrialRun, ...]]
    shootdowns: float | None = None
    ended_at: str = ''
    seconds: float = 0.0


class Decision(enum.StrEnum):
    """What is known about a value compared with today's.

    ``same``: the whole interval is within the difference that matters.
    ``open``: the interval is too wide to tell.
    """

    BETTER = 'better'
    WORSE = 'worse'
    SAME = 'same'
    OPEN = 'open'


class Effect(NamedTuple):
    """An effect; each end of its interval has a confidence of 95 %."""

    gain: float
    low: float
    high: float


class ValueFinding(NamedTuple):
    """What was found about a value of a choice, compared with today's.

    :ivar effect: on the objective, over all programs by their weights
    :ivar time: the effect on the time of one guest
    :ivar trials: number of trials with this value
    :ivar slow: number of stragglers among their ``runs``
    :ivar guard: why the value must not be recommended; None if it may
    """

    choice: str
    value: str
    cost: HostCost
    effect: Effect
    programs: Mapping[str, Effect]
    time: Effect
    decision: Decision
    trials: int
    runs: int
    slow: int
    guard: str | None


class Interaction(NamedTuple):
    """How much the effect of one value depends on another, beyond doubt.

    :ivar values: ``CHOICE=VALUE`` of both
    :ivar effect: the gain of both together beyond the sum of their effects
    :ivar confounded: the pairs of choices that the design cannot tell apart
        from this one, ``CHOICE x CHOICE``
    """

    values: tuple[str, ...]
    effect: Effect
    confounded: tuple[str, ...]


class Confirmation(NamedTuple):
    """The winner of the screening against today's, in fresh boots.

    :ivar effect: None with too few pairs
    :ivar is_gain: whether the effect may be called a gain
    """

    levels: Levels
    pairs: int
    effect: Effect | None
    is_gain: bool = False
    guard: str | None = None


class Findings(NamedTuple):
    """The findings of an experiment, or those so far.

    :ivar native: today's profile against native, None without native trials
    :ivar confirmation: None before the end of the screening, or if its winner
        is today's profile
    :ivar reason: why this configuration is recommended, one sentence
    """

    values: tuple[ValueFinding, ...]
    interactions: tuple[Interaction, ...]
    native: Effect | None
    confirmation: Confirmation | None
    recommended: Levels
    reason: str
    schema_version: int = 1
