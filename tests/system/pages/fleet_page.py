# SPDX-License-Identifier: Apache-2.0

"""Make the page of a random fleet, with names of the largest length."""

import dataclasses
import random

from hpcvirt.cmd.fleet import capacity_page
from hpcvirt.fleet import count
from hpcvirt.fleet import state
from tests.builders import fleets
from tests.builders import shown_results


def page() -> str:
    """Write the page of a fleet of which only some hosts are drawn."""
    fleet, flavors = fleets.a_fleet(
        random.Random(4), 3, load=1)
    names = (shown_results.LONG_HOST, 'node<2>')
    hosts = tuple(dataclasses.replace(
        fleet.hosts[number % 3],
        name=names[number] if number < len(names) else f'node{number}')
        for number in range(2 * capacity_page.MAX_CARDS))
    many = state.Fleet(hosts, {
        shown_results.LONG_HOST: 'instances[0]: a has CPU 7, and so has b'})
    flavors = [dataclasses.replace(flavors[0],
                                   name=shown_results.LONG_FLAVOR),
               *flavors[1:]]
    return capacity_page.page(many, count.count(many, flavors),
                              '2026-11-22 18:00 UTC')
