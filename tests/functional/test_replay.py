# SPDX-License-Identifier: Apache-2.0

"""The simulator decides as Nova itself does, request by request."""

import heapq
import logging
import random
import unittest

import nova.conf
from nova.pci import request as pci_request

from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import compiled_flavor
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import host_table
from hpcvirt.simulate import scheduler as schedulers
from tests.functional import replays
from tests.functional.replay_cloud import cloud

STRATEGIES = 'nova', 'packing', 'hpcvirt'


def of_nova(servers):
    """Say on which host and which of its cells each instance is."""
    return [(server.host, server.claimed.cells) for server in servers]


def of_simulator(guests):
    """Say on which host and which of its cells each guest is."""
    return [(guest.host, guest.holding.placement.cells) for guest in guests]


class ReplayTestCase(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)


class SameDecisionsTest(ReplayTestCase):
    """Nova and the simulator choose the same hosts and cells."""

    def assert_same(self, seed, name, fullest, filters=replays.OURS,
                    wanted=lambda _: True, count=50):
        """Replay random requests with both.

        :param wanted: chooses flavors
        :returns: the number of requests that were placed
        """
        dice = random.Random(seed)
        strategy = replays.configure(self, name, filters, fullest)
        fleet = replays.a_fleet(dice)
        asked = replays.some_requests(dice, fleet, count, wanted)
        real = cloud.ReplayCloud(fleet, asked.flavors)
        simulator = schedulers.Scheduler(
            host_table.HostTable(list(map(placement.add_up, fleet)),
                                 asked.flavors), asked.flavors,
            strategy)
        empty = self.states(real)
        leaving = []
        placed = 0
        for order, arrival in enumerate(asked.arrivals):
            while leaving and leaving[0][0] <= arrival.time:
                _, _, one, other = heapq.heappop(leaving)
                real.delete(one)
                simulator.remove(other)
            one = real.create(arrival.flavor, arrival.count)
            other = simulator.place(arrival.flavor, arrival.count)
            self.assertEqual(
                of_nova(one), of_simulator(other),
                f'{name}, seed {seed}, request {order} for {arrival.count}: '
                f'{asked.flavors[arrival.flavor].flavor}')
            placed += bool(one)
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     one, other))
        for _, _, one, _ in leaving:
            real.delete(one)
        self.assertEqual(empty, self.states(real))
        return placed

    def states(self, real):
        """Say what nova-scheduler sees of each host."""
        return [
            (state.free_ram_mb, state.vcpus_used, state.num_instances,
             [(cell.pinned_cpus, cell.cpu_usage, cell.memory_usage,
               [pages.used for pages in cell.mempages])
              for cell in state.numa_topology.cells],
             [dict(pool) for pool in state.pci_stats.pools])
            for state in real.states]

    def test_of_small_fleets(self):
        placed = sum(self.assert_same(seed, STRATEGIES[seed % 3], seed > 2,
                                      count=24) for seed in range(6))
        self.assertGreater(placed, 70)

    def test_the_claim_knows_no_vgpus(self):
        # The second request is for vGPUs; other devices are on some cells.
        self.assert_same(2044, 'packing', True, count=4)

    def test_guests_of_a_request_get_vgpus_of_one_card(self):
        # The ninth request is for three guests with vGPUs.
        self.assert_same(3076, 'packing', True, count=9)

    def test_guests_without_cells_leave_the_shared_cpus_of_cells_free(self):
        # The sixth request is for shared CPUs of a cell.
        self.assert_same(5002, 'hpcvirt', False, count=6)

    def test_periodic_of_many_fleets(self):
        placed = sum(
            self.assert_same(100 * seed + number, name, fullest)
            for number, name in enumerate(STRATEGIES)
            for fullest in (False, True) for seed in range(1, 11))
        self.assertGreater(placed, 1500)

    def test_periodic_with_the_filters_of_nova(self):
        """Guests that Nova's defects cannot affect need no other filter."""
        def wanted(flavor):
            demand = flavor.demand
            return not demand.cells or demand.immune

        placed = sum(
            self.assert_same(100 * seed + number, name, fullest,
                             replays.UPSTREAM, wanted)
            for number, name in enumerate(STRATEGIES)
            for fullest in (False, True) for seed in range(21, 26))
        self.assertGreater(placed, 750)


class ClaimTest(ReplayTestCase):
    """Claims that are refused, with filters that look at no cells."""

    def host(self, *cells):
        """Make a host by the number of PCPUs of its cells."""
        return supplies.Supply(tuple(
            supplies.CellSupply(
                number, number, cpus, cpus, frozenset(),
                tuple(frozenset({cpu}) for cpu in sorted(cpus)), 0, 4096, 0,
                (supplies.PageSupply(4, 1 << 20, 0, 1 << 20),))
            for number, cpus in enumerate(
                frozenset(range(100 * number, 100 * number + count))
                for number, count in enumerate(cells))))

    def cloud(self, *fleet):
        replays.configure(self, 'nova', replays.USUAL)
        flavor = flavor_model.Flavor('six', 6, 1024, 0, {
            'hw:cpu_policy': 'dedicated'})
        return cloud.ReplayCloud(fleet, [compiled_flavor.make(flavor)])

    def attempts(self, most):
        nova.conf.CONF.set_override('max_attempts', most, 'scheduler')
        self.addCleanup(nova.conf.CONF.clear_override, 'max_attempts',
                        'scheduler')

    def test_an_alternate_is_tried(self):
        self.attempts(2)
        found = self.cloud(self.host(4, 4), self.host(8))
        self.assertEqual([1], [one.host for one in found.create(0, 1)])

    def test_there_may_be_no_attempt_left(self):
        self.attempts(1)
        found = self.cloud(self.host(4, 4), self.host(8))
        self.assertEqual([], found.create(0, 1))
        # Nothing is left on the host, which now has a failed build.
        self.assertEqual([1], [one.host for one in found.create(0, 1)])

    def test_all_or_none_are_created(self):
        found = self.cloud(self.host(8), self.host(8))
        self.assertEqual([], found.create(0, 3))
        self.assertEqual({0, 1}, {one.host for one in found.create(0, 2)})
