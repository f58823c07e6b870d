# SPDX-License-Identifier: Apache-2.0

"""The requests of a replay, which can be scaled to a load."""

import dataclasses

from hpcvirt import exception
from hpcvirt.fit import allocation
from hpcvirt.fit import guest as guests
from hpcvirt.fit import supply as supplies

#: The number in place of a flavor's if no flavor is large enough.
NO_FLAVOR = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """A request for one or more guests, which are placed or refused together.

    :ivar time: in seconds from the start of the log
    :ivar duration: life of the guests in seconds
    :ivar flavor: the number of its flavor in :class:`Requests`, or
        :data:`NO_FLAVOR`
    :ivar count: number of guests
    :ivar cpus: the CPUs of all guests that count as work; 0 for those of the
        flavor
    """

    time: float
    duration: float
    flavor: int
    count: int = 1
    cpus: int = 0


@dataclasses.dataclass(frozen=True)
class Resident:
    """A guest that is on its host before the first request.

    :ivar host: the number of its host
    :ivar supply: what all residents leave of the host
    :ivar end: in seconds from the start of the log
    """

    host: int
    flavor: int
    holding: allocation.Holding
    supply: supplies.Supply
    end: float


@dataclasses.dataclass(frozen=True)
class Requests:
    """All requests of a replay, in the order of their time.

    :ivar rule: how jobs were mapped to flavors, one sentence each
    :ivar warnings: what is doubtful about that, one sentence each
    :ivar stretch: the factor by which the times of the log were multiplied
    :ivar warm_up: the number of requests at the start that do not count
    :ivar residents: the guests before the first request
    """

    flavors: tuple[guests.Guest, ...]
    arrivals: tuple[Arrival, ...]
    rule: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    stretch: float = 1.0
    warm_up: int = 0
    residents: tuple[Resident, ...] = ()

    def cpus(self, arrival: Arrival) -> int:
        """Return the CPUs of a request, of its flavor if it has one."""
        return (arrival.cpus if arrival.flavor == NO_FLAVOR else
                self.flavors[arrival.flavor].cpus * arrival.count)

    @property
    def span(self) -> float:
        """The time from the first request that counts to the last one."""
        return self.arrivals[-1].time - self.arrivals[self.warm_up].time


#: From this share on, work after the last request is reported.
_MUCH_PERCENT = 5


def load(requests: Requests, capacity_cpus: int) -> float:
    """Return the mean of requested CPUs / capacity between the requests.

    The work after the last request is included, as if as much work were left
    over from the time before the first one.

    :raises InvalidInput: if all requests have the same time
    """
    times = [arrival.time for arrival in requests.arrivals]
    span = max(times) - min(times)
    if not span:
        raise exception.InvalidInput(
            'load', 'all requests have the same time, so that there is no '
            'load')
    return _work(requests) / span / capacity_cpus


def scale_to_load(requests: Requests, capacity_cpus: int,
                  wanted: float) -> Requests:
    """Scale the times between requests, but not the durations.

    :param capacity_cpus: the CPUs of the fleet for guests
    :param wanted: the load after scaling
    :raises InvalidInput: if all requests have the same time
    """
    now = load(requests, capacity_cpus)
    factor = now / wanted
    scaled = stretch(requests, factor)
    after = 100 * _work_after(scaled) / _work(scaled)
    rule = [*requests.rule, (
        f'The times between requests are multiplied by {factor:.4g}, so '
        f'that the load is {wanted:.4g} instead of {now:.4g}.')]
    if after >= _MUCH_PERCENT:
        rule.append(
            f'{after:.0f} % of the CPU-hours are after the last request, '
            'because lives are long: until then, the load is less.')
    return dataclasses.replace(scaled, rule=tuple(rule))


def stretch(requests: Requests, factor: float) -> Requests:
    """Multiply the times of requests, but not the durations."""
    return dataclasses.replace(
        requests, stretch=factor, arrivals=tuple(
            dataclasses.replace(arrival, time=arrival.time * factor)
            for arrival in requests.arrivals))


def _work(requests: Requests) -> float:
    return sum(requests.cpus(arrival) * arrival.duration
               for arrival in requests.arrivals)


def _work_after(requests: Requests) -> float:
    """Return the work after the last request."""
    last = max(arrival.time for arrival in requests.arrivals)
    return sum(requests.cpus(arrival)
               * min(arrival.duration,
                     max(0.0, arrival.time + arrival.duration - last))
               for arrival in requests.arrivals)
