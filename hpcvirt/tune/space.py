# SPDX-License-Identifier: Apache-2.0

"""The space of an experiment: the choices, and what they cost."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.tune import experiment


@dataclasses.dataclass(frozen=True, slots=True)
class HostCost:
    """What all guests of a host have together."""

    guests: int
    cores: int
    memory_mib: int


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
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
    """What an analysis must know of an experiment.

    :ivar weights: program -> its part of the whole; they add up to 1
    :ivar matters: the smallest difference that matters, as a logarithm
    :ivar slower_than: see :class:`hpcvirt.tune.experiment.Never`
    """

    choices: tuple[Choice, ...]
    weights: Mapping[str, float]
    matters: float
    slower_than: float = 3.0
    objective: experiment.Objective = experiment.Objective.THROUGHPUT

    @property
    def today(self) -> tuple[int, ...]:
        """The levels of today's profile."""
        return (0,) * len(self.choices)


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """How much is measured.

    :ivar replicates: how often the whole design is carried out
    :ivar pairs: boots of either profile in the confirmation
    :ivar hosts: number of hosts, which take the blocks in turn
    :ivar lot: the seed of the order
    :ivar has_native: whether the pairs of the confirmation have a native trial
    """

    replicates: int
    pairs: int
    hosts: int = 1
    lot: str = ''
    has_native: bool = False
