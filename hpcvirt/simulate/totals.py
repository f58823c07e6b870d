# SPDX-License-Identifier: Apache-2.0

"""Compute the losses of replays, and the differences between strategies.

A request counts with its core-hours: the CPUs of its flavor, times its
instances, times their life. If fleets are compared, the CPUs are those of the
job. All requests count, from the empty fleet on, except those of a warm-up; a
request that would outlive the log counts with its whole life.

All strategies get the same requests, so that their losses are compared in
pairs, and common losses cancel out. The difference of two strategies is that
of their lost core-hours in percent of all core-hours. Its 95 % interval is
that of a ratio of two sums [Cochran-1977], over windows of one replay or over
replays of several seeds, by Student's t distribution.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from scipy import special

from hpcvirt import exception
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import requests as request_model

_SECONDS = 3600.0


@dataclasses.dataclass(frozen=True)
class Replay:
    """The requests of a replay, and its outcome with one strategy."""

    requests: request_model.Requests
    outcome: outcomes.ReplayOutcome

    @property
    def counted(self) -> list[tuple[
            request_model.Arrival, outcomes.Cause | None, float]]:
        """The requests that count, with their fates and core-hours."""
        return [*zip(self.requests.arrivals, self.outcome.fates,
                     work(self.requests), strict=True)][
                         self.requests.warm_up:]


@dataclasses.dataclass(frozen=True)
class CoreHours:
    """The core-hours of a set of requests, and of those that were refused."""

    offered: float
    lost: float

    @property
    def lost_percent(self) -> float:
        return 100 * self.lost / self.offered if self.offered else 0.0


def work(requests: request_model.Requests) -> list[float]:
    """Return the core-hours of each request."""
    cpus = [flavor.cpus for flavor in requests.flavors]
    return [(each.cpus or cpus[each.flavor] * each.count) * each.duration
            / _SECONDS for each in requests.arrivals]


def check(requests: request_model.Requests, where: str) -> None:
    """Check that there are core-hours to lose.

    :raises InvalidInput: if nothing is requested
    """
    if not requests.arrivals:
        raise exception.InvalidInput(where, 'requests nothing')
    if not math.fsum(work(requests)):
        raise exception.InvalidInput(
            where, 'requests no core-hours: no request has a CPU and a '
            'duration')


def count_totals(replays: Sequence[Replay]) -> dict[str, Any]:
    """Return the totals of the replays of a strategy, for JSON.

    The largest requests are those for the flavors with the most CPUs.
    """
    refused = dict.fromkeys(outcomes.Cause, 0)
    lost: dict[outcomes.Cause, list[float]] = {
        cause: [] for cause in outcomes.Cause}
    offered: list[float] = []
    largest = accepted = 0
    for replay in replays:
        cpus = [flavor.cpus for flavor in replay.requests.flavors]
        top = max((cpus[each.flavor] for each in replay.requests.arrivals
                   if each.flavor != request_model.NO_FLAVOR), default=0)
        for arrival, fate, hours in replay.counted:
            offered.append(hours)
            if (arrival.flavor != request_model.NO_FLAVOR
                    and cpus[arrival.flavor] == top):
                largest += 1
                accepted += fate is None
            if fate is not None:
                refused[fate] += 1
                lost[fate].append(hours)
    total = CoreHours(math.fsum(offered), math.fsum(
        itertools.chain.from_iterable(lost.values())))
    return {
        'lost_percent': total.lost_percent,
        'refused': {cause.value: refused[cause] for cause in refused},
        'largest_accepted_percent': (100 * accepted / largest if largest
                                     else 0.0),
        'largest_requests': largest, 'requests': len(offered),
        'accepted': len(offered) - sum(refused.values()),
        'core_hours': {
            'offered': total.offered, 'accepted': total.offered - total.lost,
            'lost': total.lost, **{
                f'lost_to_{cause.value}': math.fsum(hours)
                for cause, hours in lost.items()},
        },
        'moves': sum(replay.outcome.moves for replay in replays),
    }


def shares(replays: Sequence[Replay], windows: int, *,
           in_requests: bool = False) -> list[CoreHours]:
    """Divide replays into parts whose losses are nearly independent.

    Of several replays with different requests, each is a part. A single replay
    is divided into windows, which are consecutive parts with the same number
    of requests, give or take one: few requests are near the border of two
    windows (batch means [Law-2015]).

    :param in_requests: whether each request counts 1, not its core-hours
    """
    found: list[CoreHours] = []
    for replay in replays:
        counted = [(fate, 1.0 if in_requests else hours)
                   for _, fate, hours in replay.counted]
        length = len(counted)
        number = min(windows if len(replays) == 1 else 1, length)
        for part in range(number):
            own = counted[length * part // number:
                          length * (part + 1) // number]
            found.append(CoreHours(
                math.fsum(hours for _, hours in own),
                math.fsum(hours for fate, hours in own if fate is not None)))
    return found


#: With fewer parts an interval is useless: for two parts it extends to 13
#: standard errors on either side.
MIN_PARTS = 3

#: The confidence of an interval.
LEVEL = 0.95

#: Smaller errors, in percent, are due to rounding.
_EQUAL = 1e-9


@dataclasses.dataclass(frozen=True)
class LossDifference:
    """The difference of the losses of a strategy and of a reference.

    :ivar percent: in percent of all core-hours; negative if the strategy
        loses less than the reference
    :ivar reach: half the width of the interval; None if there is none
    :ivar why_none: why there is no interval
    :ivar parts: number of parts that were compared
    """

    percent: float
    reach: float | None
    why_none: str
    parts: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval, None if there is none."""
        return (None if self.reach is None else
                (self.percent - self.reach, self.percent + self.reach))


def difference(shares: Sequence[CoreHours],
               others: Sequence[CoreHours] | None = None) -> LossDifference:
    """Compare a strategy with another one, or with one that loses nothing."""
    offered = [share.offered for share in shares]
    more = [own.lost - other.lost
            for own, other in zip(shares, others or [CoreHours(0.0, 0.0)]
                                  * len(shares), strict=True)]
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
    return LossDifference(100 * ratio, reach, why_none, parts)
