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

"""Requests and what came of them, for tests of what is made of both."""

from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
from hpcvirt.model import shape
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests
from hpcvirt.simulate import tally

CAPACITY = outcome.Cause.CAPACITY
FRAGMENTATION = outcome.Cause.FRAGMENTATION
DEVICES = outcome.Cause.DEVICES
PAGES = outcome.Cause.PAGES


def flavors(*vcpus):
    """Make a flavor with each number of vCPUs."""
    return tuple(requests.Flavor(
        catalogue.Flavor(f'f{number}', number, 1024, 0, {}),
        guests.of_shape(shape.Shape(()), number, 1024)) for number in vcpus)


def requested(vcpus, *arrivals):
    """Make requests of (time, duration in hours, flavor, count)."""
    return requests.Requests(flavors(*vcpus), tuple(
        requests.Arrival(time, 3600 * hours, flavor, count)
        for time, hours, flavor, count in arrivals))


def replay(what, *fates, **more):
    """Make a replay."""
    return tally.Replay(what, outcome.Outcome('any', fates, **more))
