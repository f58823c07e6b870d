# SPDX-License-Identifier: Apache-2.0

"""A trial: one boot of the guests that fill a host, and what was measured."""

import dataclasses
import enum
from collections.abc import Mapping

#: A configuration: the level of each choice, in the order of the experiment. 0
#: is today's value, 1 the first value that the choice names.
Levels = tuple[int, ...]


class Stage(enum.StrEnum):
    """Why a trial was made; ``native`` ones have no guests."""

    NATIVE = 'native'
    SCREEN = 'screen'
    CONFIRM = 'confirm'


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A trial to make.

    :ivar block: number of the replicate of the design, or of the pair of boots
        in the confirmation, from 0; its trials have one host
    :ivar host: index of the host
    """

    stage: Stage
    block: int
    host: int
    levels: Levels


@dataclasses.dataclass(frozen=True, slots=True)
class TrialRun:
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
    :ivar result: id of its result in the store
    :ivar shootdowns: TLB shoot-downs of the host in a second for each of its
        CPUs, None if unknown
    """

    step: Step
    runs: Mapping[str, tuple[TrialRun, ...]]
    guests: int = 1
    result: str = ''
    shootdowns: float | None = None
    began_at: str = ''
    ended_at: str = ''
