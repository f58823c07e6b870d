# SPDX-License-Identifier: Apache-2.0

"""Requests and what came of them, for tests of what is made of both."""

import dataclasses

from hpcvirt.fit import guest as guests
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests
from hpcvirt.simulate import totals

CAPACITY = outcome.Cause.CAPACITY
FRAGMENTATION = outcome.Cause.FRAGMENTATION
DEVICES = outcome.Cause.DEVICES
PAGES = outcome.Cause.PAGES
SIZE = outcome.Cause.SIZE


def flavors(*vcpus):
    """Make a flavor with each number of vCPUs."""
    return tuple(dataclasses.replace(
        guests.compile_shape(shape.Shape(()), number, 1024),
        flavor=flavor_model.Flavor(f'f{number}', number, 1024, 0, {}))
        for number in vcpus)


def requested(vcpus, *arrivals):
    """Make requests of (time, duration in hours, flavor, count)."""
    return requests.Requests(flavors(*vcpus), tuple(
        requests.Arrival(time, 3600 * hours, flavor, count)
        for time, hours, flavor, count in arrivals))


def replay(what, *fates, **more):
    """Make a replay."""
    return totals.Replay(what, outcome.ReplayOutcome(fates, **more))
