# SPDX-License-Identifier: Apache-2.0

"""Count what came of the requests of replays.

A request counts with its core-hours: the CPUs of its flavor, times its
instances, times their life. Every request of a replay is counted, from the
empty fleet on; a request that would have outlived the log counts whole.

All strategies of a run get the same requests, so their losses are compared
pair by pair: what both lose alike cancels. The difference of two strategies is
that of their lost core-hours in percent of all core-hours. Its 95 % interval
is that of a ratio of two sums [Cochran-1977] over windows of one replay or
over replays of several seeds, by Student's t distribution.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from scipy import special

from hpcvirt import exception
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import requests as request_model

_SECONDS = 3600.0


@dataclasses.dataclass(frozen=True)
class Replay:
    """What was requested, and what came of it with one strategy."""

    requests: request_model.Requests
    outcome: outcomes.ReplayOutcome


@dataclasses.dataclass(frozen=True)
class CoreHours:
    """The core-hours of a part of the requests, and of the refused ones."""

    offered: float
    lost: float

    @property
    def lost_percent(self) -> float:
        return 100 * self.lost / self.offered if self.offered else 0.0


@dataclasses.dataclass(frozen=True)
class Totals:
    """The counts of one strategy, over all replays with it.

    :ivar requests: how many were decided
    :ivar refused: how many were refused, by cause
    :ivar total: the core-hours of all requests
    :ivar lost: core-hours of the refused requests, by cause
    :ivar largest: (requests, accepted) of the flavors with the most CPUs
    :ivar moves: moves of other guests
    """

    requests: int
    refused: Mapping[outcomes.Cause, int]
    total: CoreHours
    lost: Mapping[outcomes.Cause, float]
    largest: tuple[int, int]
    moves: int

    @property
    def accepted(self) -> int:
        return self.requests - sum(self.refused.values())

    @property
    def largest_percent(self) -> float:
        requests, accepted = self.largest
        return 100 * accepted / requests


def work(requests: request_model.Requests) -> list[float]:
    """Return the core-hours of each request."""
    cpus = [flavor.cpus for flavor in requests.flavors]
    return [cpus[each.flavor] * each.count * each.duration / _SECONDS
            for each in requests.arrivals]


def check(requests: request_model.Requests, where: str) -> None:
    """Refuse requests of which no share can be lost.

    :raises InvalidInput: if nothing is requested
    """
    if not requests.arrivals:
        raise exception.InvalidInput(where, 'requests nothing')
    if not math.fsum(work(requests)):
        raise exception.InvalidInput(
            where, 'requests no core-hours: no request has a CPU and a '
            'duration')


def count_totals(replays: Sequence[Replay]) -> Totals:
    """Count the replays of one strategy."""
    refused = dict.fromkeys(outcomes.Cause, 0)
    lost: dict[outcomes.Cause, list[float]] = {
        cause: [] for cause in outcomes.Cause}
    offered: list[float] = []
    largest = [0, 0]
    for replay in replays:
        requests = replay.requests
        top = _largest(requests)
        for arrival, fate, hours in zip(
                requests.arrivals, replay.outcome.fates, work(requests),
                strict=True):
            offered.append(hours)
            if requests.flavors[arrival.flavor].cpus == top:
                largest[0] += 1
                largest[1] += fate is None
            if fate is not None:
                refused[fate] += 1
                lost[fate].append(hours)
    sums = {cause: math.fsum(hours) for cause, hours in lost.items()}
    return Totals(
        len(offered), refused, CoreHours(
            math.fsum(offered),
            math.fsum(hour for hours in lost.values() for hour in hours)),
        sums, (largest[0], largest[1]),
        sum(replay.outcome.moves for replay in replays))


def _largest(requests: request_model.Requests) -> int:
    """Return the most CPUs of a flavor that is requested."""
    return max((requests.flavors[number].cpus for number
                in {arrival.flavor for arrival in requests.arrivals}),
               default=0)


def shares(replays: Sequence[Replay], windows: int) -> list[CoreHours]:
    """Divide replays into parts whose losses are nearly independent.

    Several replays, each with requests of its own, are a part each. One is
    divided into windows: consecutive parts with the same number of requests,
    but for one, so that requests near the border of two windows are few
    (batch means [Law-2015]).
    """
    found: list[CoreHours] = []
    for replay in replays:
        hours = work(replay.requests)
        found += [
            CoreHours(math.fsum(hours[part.start:part.stop]),
                      math.fsum(hours[place] for place in part
                                if replay.outcome.fates[place] is not None))
            for part in _parts(len(hours),
                               windows if len(replays) == 1 else 1)]
    return found


def _parts(length: int, number: int) -> Iterator[range]:
    number = min(number, length)
    for part in range(number):
        yield range(length * part // number, length * (part + 1) // number)


#: With fewer parts an interval says nothing: that of two is 13 times as wide
#: as their standard error.
MIN_PARTS = 3

#: The confidence of an interval.
LEVEL = 0.95

#: Sums of parts differ from each other by less, in percent, if only rounding
#: tells them apart.
_EQUAL = 1e-9


@dataclasses.dataclass(frozen=True)
class LossDifference:
    """What a strategy loses more than another one.

    :ivar percent: core-hours, in percent of all core-hours; negative if the
        strategy loses less than the reference
    :ivar reach: half of the interval; None if there is none
    :ivar why_none: the reason then
    :ivar parts: how many parts were compared
    """

    strategy: str
    reference: str
    percent: float
    reach: float | None
    why_none: str
    parts: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the ends of the interval, if there is one."""
        return (None if self.reach is None else
                (self.percent - self.reach, self.percent + self.reach))


def differences(shares: Mapping[str, Sequence[CoreHours]],
                ) -> Iterator[LossDifference]:
    """Compare each strategy with each one before it.

    :param shares: the parts of each strategy, the same parts for all
    """
    for reference, strategy in itertools.combinations(shares, 2):
        yield difference(strategy, shares[strategy],
                         reference, shares[reference])


def difference(strategy: str, shares: Sequence[CoreHours],
               reference: str,
               others: Sequence[CoreHours]) -> LossDifference:
    """Compare a strategy with another one."""
    offered = [share.offered for share in shares]
    more = [own.lost - other.lost
            for own, other in zip(shares, others, strict=True)]
    total = math.fsum(offered)
    ratio = math.fsum(more) / total if total else 0.0
    parts = len(shares)
    reach, why_none = None, ''
    if parts < MIN_PARTS:
        why_none = f'an interval needs at least {MIN_PARTS} parts'
    elif not any(more):
        why_none = 'both lose the same in each part'
    else:
        squares = math.fsum((each - ratio * hours) ** 2 for each, hours
                            in zip(more, offered, strict=True))
        error = 100 * math.sqrt(squares * parts / (parts - 1)) / total
        if error > _EQUAL:
            reach = error * float(special.stdtrit(parts - 1, (1 + LEVEL) / 2))
        else:
            why_none = 'the difference is the same in each part'
    return LossDifference(strategy, reference, 100 * ratio, reach, why_none,
                          parts)
