# SPDX-License-Identifier: Apache-2.0

"""Make the page of a random replay, with names of the largest length."""

import dataclasses
import itertools
import random

from hpcvirt.cmd.simulate import page as pages
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from hpcvirt.simulate import outcome
from hpcvirt.simulate import report
from hpcvirt.simulate import requests
from hpcvirt.simulate import scenario
from hpcvirt.simulate import totals
from tests.builders import shown_results

_REQUESTS = 500
_CPUS = 32


def page() -> str:
    """Write the page of a replay with eight strategies."""
    dice = random.Random(5)
    flavors = tuple(dataclasses.replace(
        guests.compile_shape(shape.Shape(()), vcpus, 1024 * vcpus),
        flavor=flavor_model.Flavor(name, vcpus, 1024 * vcpus, 0, {}))
        for name, vcpus in ((shown_results.LONG_FLAVOR, 8), ('<b>', 16)))
    asked = requests.Requests(flavors, tuple(
        requests.Arrival(3600 * number, dice.expovariate(1 / 40000),
                         dice.randrange(2))
        for number in range(_REQUESTS)), ('A job gets the smallest flavor.',))
    cell = supplies.CellSupply(
        0, 0, frozenset(), frozenset(), frozenset(range(_CPUS)),
        (), 0, 1024, 0, ())
    empty = placement.HostState(supplies.Supply((cell,)),
                                guests.Resources(0, _CPUS, 1024))
    described = scenario.Scenario(
        'log<1>.swf', ('3 jobs that never ran are left out.',),
        state.Fleet(tuple(state.FleetHost(
            f'{shown_results.LONG_HOST}-{number}', empty)
            for number in range(1, 25)), {}),
        0.9, (asked,))
    names = [base + ending for base, ending in itertools.product(
        ('nova', 'packing', 'best-fit', 'hpcvirt'), ('', '+fullest+moves'))]
    return pages.page(report.document([
        scenario.ScenarioResult(name, '', name, described, 10,
                                (_replay(asked, dice),))
        for name in names]))


def _replay(asked: requests.Requests, dice: random.Random) -> totals.Replay:
    refused = dice.uniform(0.1, 0.4)
    fates = tuple(
        dice.choice([*outcome.Cause]) if dice.random() < refused else None
        for _ in asked.arrivals)
    samples = []
    for number in range(_REQUESTS):
        busy = dice.randrange(24 * _CPUS // 2)
        running = 1 + dice.randrange(60)
        samples.append(outcome.FleetSample(
            3600 * number, busy, dice.randrange(24 * _CPUS - busy),
            dice.randrange(1 << 20), running, dice.randrange(running)))
    return totals.Replay(asked,
                         outcome.ReplayOutcome(fates, tuple(samples)))
