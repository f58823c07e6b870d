# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Count what came of the requests of replays.

A request counts with its core-hours: the CPUs of its flavor, times its
instances, times their life. Every request of a replay is counted, from the
empty fleet on; a request that would have outlived the log counts whole.
"""

import dataclasses
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import requests as request_model

_SECONDS = 3600.0


@dataclasses.dataclass(frozen=True)
class Replay:
    """What was requested, and what came of it with one strategy."""

    requests: request_model.Requests
    outcome: outcomes.Outcome


@dataclasses.dataclass(frozen=True)
class Share:
    """The core-hours of a part of the requests, and of the refused ones."""

    offered: float
    lost: float

    @property
    def lost_percent(self) -> float:
        return 100 * self.lost / self.offered if self.offered else 0.0


@dataclasses.dataclass(frozen=True)
class Tally:
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
    total: Share
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


def tally(replays: Sequence[Replay]) -> Tally:
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
    return Tally(
        len(offered), refused, Share(
            math.fsum(offered),
            math.fsum(hour for hours in lost.values() for hour in hours)),
        sums, (largest[0], largest[1]),
        sum(replay.outcome.moves for replay in replays))


def _largest(requests: request_model.Requests) -> int:
    """Return the most CPUs of a flavor that is requested."""
    return max((requests.flavors[number].cpus for number
                in {arrival.flavor for arrival in requests.arrivals}),
               default=0)


def shares(replays: Sequence[Replay], windows: int) -> list[Share]:
    """Divide replays into parts whose losses are nearly independent.

    Several replays, each with requests of its own, are a part each. One is
    divided into windows: consecutive parts with the same number of requests,
    but for one, so that requests near the border of two windows are few
    (batch means [Law-2015]).
    """
    found: list[Share] = []
    for replay in replays:
        hours = work(replay.requests)
        found += [
            Share(math.fsum(hours[part.start:part.stop]),
                  math.fsum(hours[place] for place in part
                            if replay.outcome.fates[place] is not None))
            for part in _parts(len(hours),
                               windows if len(replays) == 1 else 1)]
    return found


def _parts(length: int, number: int) -> Iterator[range]:
    number = min(number, length)
    for part in range(number):
        yield range(length * part // number, length * (part + 1) // number)
