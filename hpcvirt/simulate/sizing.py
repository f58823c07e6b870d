# SPDX-License-Identifier: Apache-2.0

"""Search how many hosts it takes until little enough is lost.

The requests stay the same. Another host changes all placements, so that the
loss is not strictly monotonic: the number that is found is enough, and one
less is not.
"""

import functools
from collections.abc import Callable
from typing import Any

from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import simulation
from hpcvirt.simulate import totals

#: The most hosts that are tried, in multiples of those of the fleet.
_MAX_GROWTH = 32


def search(scenario: scenarios.Scenario, engine: simulation.Engine, name: str,
           kind: str, percent: float, windows: int,
           on_progress: simulation.Report) -> dict[str, Any]:
    """Search how many hosts of a kind lose less than a part of the work.

    :param name: the choice and the strategy
    :returns: ``hosts``, and ``least`` and ``most`` for the ends of the
        interval of the loss, or None; the loss with these hosts; ``summary``
    """
    _, own = scenarios.find_kind(scenario.fleet, kind)
    known: dict[int, tuple[float, ...]] = {}

    def lose(hosts: int) -> tuple[float, ...]:
        """Return the loss, and the ends of its interval."""
        if hosts not in known:
            fleet = scenarios.grow(scenario.fleet, kind, hosts - len(own))
            supplies = [host.state.supply for host in fleet.hosts]
            loss = totals.difference('', totals.shares([
                totals.Replay(each, engine(supplies, each, on_progress))
                for each in scenario.requests], windows))
            known[hosts] = loss.percent, *(loss.ends or (loss.percent,) * 2)
        return known[hosts]

    def suffices(end: int, hosts: int) -> bool:
        return lose(hosts)[end] < percent

    fewest = (len(own) if scenario.requests[0].residents
              else 0 if len(scenario.fleet.hosts) > len(own) else 1)
    limit = _MAX_GROWTH * len(scenario.fleet.hosts)
    least, hosts, most = (find(
        functools.partial(suffices, end), fewest, len(own), limit)
        for end in (1, 0, 2))
    lost = lose(limit if hosts is None else hosts)[0]
    text = (f'{hosts} ({least} to {most or "more"}) hosts of the kind {kind} '
            f'lose less than {percent:g} %' if hosts is not None
            else f'even {limit} hosts of the kind {kind} lose {lost:.1f} %')
    return {'name': name, 'kind': kind, 'hosts': hosts, 'least': least,
            'most': most, 'lost_percent': lost,
            'summary': f'{name}: {text} of the core-hours.'}


def find(suffices: Callable[[int], bool], fewest: int, now: int,
         most: int) -> int | None:
    """Find a number that suffices, where one less does not.

    :param now: the number with which the search begins
    :returns: None if the largest number does not suffice
    """
    low, high = fewest - 1, now
    while not suffices(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
