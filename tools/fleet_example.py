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

"""A random fleet for a look at its page, with names as long as they get."""

import dataclasses
import random

from hpcvirt.cmd.fleet import capacity_page
from hpcvirt.fleet import count
from hpcvirt.fleet import state
from tests import fleets
from tools import report_example


def page() -> str:
    """Write the page of a fleet of which only some hosts are drawn."""
    fleet, flavors = fleets.a_fleet(
        random.Random(4), 3, load=1)  # noqa: S311 - an example
    names = (report_example.LONG_HOST, 'node<2>')
    hosts = tuple(dataclasses.replace(
        fleet.hosts[number % 3],
        name=names[number] if number < len(names) else f'node{number}')
        for number in range(2 * capacity_page.MOST_CARDS))
    many = state.Fleet(hosts, {
        report_example.LONG_HOST: 'instances[0]: a has CPU 7, and so has b'})
    flavors = [dataclasses.replace(flavors[0],
                                   name=report_example.LONG_FLAVOR),
               *flavors[1:]]
    return capacity_page.page(many, count.count(many, flavors),
                              '2026-11-22 18:00 UTC')
