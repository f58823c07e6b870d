# SPDX-License-Identifier: Apache-2.0

"""The outcome of a replay, with samples of the fleet over time."""

import dataclasses
import enum
import itertools
from collections.abc import Callable
from collections.abc import Sequence


class Cause(enum.StrEnum):
    """Why a request was refused.

    A request is refused for devices or pages if it would have been placed
    without needing them, and for its size if no flavor is large enough.
    """

    CAPACITY = 'capacity'
    FRAGMENTATION = 'fragmentation'
    DEVICES = 'devices'
    PAGES = 'pages'
    SIZE = 'size'


@dataclasses.dataclass(frozen=True, slots=True)
class FleetSample:
    """The fleet at one time.

    :ivar time: in seconds from the start of the log
    :ivar busy_cpus: CPUs of the guests
    :ivar stranded_cpus: free CPUs that no guest of the smallest flavor
        without devices can use
    :ivar stranded_pages_mib: memory of free pages that no such guest can use
    :ivar guests: number of running guests
    :ivar across_sockets: number of guests on more than one socket
    """

    time: float
    busy_cpus: int
    stranded_cpus: int
    stranded_pages_mib: int
    guests: int
    across_sockets: int


@dataclasses.dataclass(frozen=True)
class ReplayOutcome:
    """The replay of all requests with one strategy.

    :ivar fates: for each arrival the cause of its refusal, or None
    :ivar moves: number of moves of other guests
    :ivar seconds: computing time of the replay
    """

    strategy: str
    fates: tuple[Cause | None, ...]
    samples: tuple[FleetSample, ...] = ()
    moves: int = 0
    seconds: float = 0.0


_Samples = Sequence[FleetSample]


@dataclasses.dataclass(frozen=True)
class Means:
    """Means over the time from the first sample to the last one.

    :ivar across_sockets: fraction of guests on more than one socket; 0 if
        there was never a guest
    """

    busy_cpus: float
    stranded_cpus: float
    stranded_pages_mib: float
    across_sockets: float


def means(replays: Sequence[_Samples]) -> Means:
    """Average the samples of replays over time."""
    guests = _mean(replays, lambda sample: sample.guests)
    across = _mean(replays, lambda sample: sample.across_sockets)
    return Means(_mean(replays, lambda sample: sample.busy_cpus),
                 _mean(replays, lambda sample: sample.stranded_cpus),
                 _mean(replays, lambda sample: sample.stranded_pages_mib),
                 across / guests if guests else 0.0)


def _mean(replays: Sequence[_Samples],
          value: Callable[[FleetSample], float]) -> float:
    area = span = 0.0
    for samples in replays:
        for sample, following in itertools.pairwise(samples):
            area += value(sample) * (following.time - sample.time)
            span += following.time - sample.time
    return area / span if span else 0.0


def thin_out(samples: _Samples, most: int) -> list[FleetSample]:
    """Select at most this many samples, evenly in time."""
    if len(samples) <= most:
        return list(samples)
    first, last = samples[0].time, samples[-1].time
    found: list[FleetSample] = []
    for sample in samples:
        due = first + (last - first) * len(found) / (most - 1)
        if sample.time >= due and len(found) < most:
            found.append(sample)
    return found
