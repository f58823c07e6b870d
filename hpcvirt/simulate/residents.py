# SPDX-License-Identifier: Apache-2.0

"""Begin a replay with the instances that a fleet has.

Nobody knows how long they will stay. Each gets the rest of the life of a
request that runs at a random moment: long lives are likelier, and the moment
is equally likely anywhere in a life.
"""

import bisect
import dataclasses
import itertools

from hpcvirt.fleet import state
from hpcvirt.simulate import mapping
from hpcvirt.simulate import requests as request_model


def add(requests: request_model.Requests, fleet: state.Fleet,
        seed: int) -> request_model.Requests:
    """Add the instances of a fleet to requests, with their flavors.

    The rests of lives depend on the seed, the durations of the requests and
    the order of the instances.
    """
    lives = [each.duration for each in requests.arrivals]
    until = [*itertools.accumulate(lives)]
    places = {repr(each.flavor): number
              for number, each in enumerate(requests.flavors)}
    residents = [(host, its.state.supply, instance)
                 for host, its in enumerate(fleet.hosts)
                 for instance in its.instances]
    more = {repr(each.flavor): request_model.RequestedFlavor(
        each.flavor, each.guest) for _, _, each in residents
        if repr(each.flavor) not in places}
    places |= {name: number for number, name
               in enumerate(more, len(requests.flavors))}
    return dataclasses.replace(
        requests, flavors=(*requests.flavors, *more.values()),
        residents=tuple(
            request_model.Resident(
                host, places[repr(instance.flavor)], instance.holding, supply,
                lives[bisect.bisect(until, until[-1] * mapping.draw(
                    2 * number, seed))] * mapping.draw(2 * number + 1, seed))
            for number, (host, supply, instance) in enumerate(residents)))
