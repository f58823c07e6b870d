# SPDX-License-Identifier: Apache-2.0

"""A trial: one boot of a configuration on a host, and what was measured.

A configuration is the tuple of the levels of all choices, in the order of the
experiment: 0 is today's value, 1 the first value that the choice names. The
guests of a trial fill the host, are booted anew, run every program several
times in all guests at once, and are deleted.
"""

import dataclasses
import enum
from collections.abc import Mapping

#: The level of each choice, in the order of the experiment.
Levels = tuple[int, ...]


class Stage(enum.StrEnum):
    """Why a trial was made.

    ``native``: beside the pairs of the confirmation, the same programs on the
    host itself, with today's settings.
    ``screen``: to screen choices. ``confirm``: to confirm the winner.
    """

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
    :ivar guests: how many guests filled the host
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
