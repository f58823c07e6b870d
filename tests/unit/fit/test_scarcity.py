# SPDX-License-Identifier: Apache-2.0

"""The loss of room for a mix of requests, and the weights of hosts."""

import math
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import host_room
from hpcvirt.fit import scarcity
from hpcvirt.fit import supply as supplies
from tests.builders import tiny


class LossesTest(unittest.TestCase):
    def loss(self, total, fewer=1, weight=1.0):
        return scarcity.losses((weight,), (total,), ((fewer,),))[0]

    def test_the_last_one_costs_more_than_the_tenth(self):
        costs = [self.loss(total) for total in range(1, 100)]
        self.assertEqual(sorted(set(costs), reverse=True), costs)
        self.assertAlmostEqual(math.log(2), costs[0])
        self.assertGreater(costs[0], 7 * costs[9])

    def test_two_cost_what_one_after_the_other_costs(self):
        self.assertAlmostEqual(self.loss(5) + self.loss(4),
                               self.loss(5, fewer=2))

    def test_nothing_costs_nothing(self):
        self.assertEqual(0.0, self.loss(3, fewer=0))
        self.assertEqual(0.0, self.loss(0, fewer=0))

    def test_kinds_count_by_their_weight(self):
        self.assertAlmostEqual(
            0.25 * self.loss(3) + 0.75 * self.loss(7),
            scarcity.losses((0.25, 0.75), (3, 7), ((1, 1),))[0])

    def test_a_difference_in_the_largest_fleet_is_none_too_small(self):
        first, second = scarcity.losses((0.01,), (1_000_000,), ((1,), (2,)))
        self.assertLess(first, second)


class LaterTest(unittest.TestCase):
    def test_a_host_that_large_guests_wait_for_is_spared(self):
        large, small = tiny.guest(8, 8), tiny.guest(4)
        rooms = host_room.HostRoom((large, small))
        hosts = (tiny.host(4, 4), supplies.Supply((tiny.host_cell(pcpus=16),)))
        self.assertEqual([(0, 2), (0, 4)], list(map(rooms.count, hosts)))
        found = [rooms.displaced(small, host, claim.predict(small, host))
                 for host in hosts]
        losses = scarcity.losses(
            (0.5, 0.5), [sum(counts) for counts in zip(
                *(taken.before for taken in found), strict=True)],
            [taken.fewer for taken in found])
        self.assertEqual([1 / 2, 1.0], scarcity.weights([
            (loss, taken.left)
            for loss, taken in zip(losses, found, strict=True)]))


class WeightsTest(unittest.TestCase):
    def test_the_best_is_half_of_the_range_ahead(self):
        self.assertEqual([1 / 3, 1.0, 1 / 2], scarcity.weights(
            [(0.9, (4, 0)), (0.1, (4, 0)), (0.1 + 1e-8, (4, 0))]))

    def test_fewer_free_cpus_decide_between_equal_losses(self):
        self.assertEqual([1 / 2, 1.0, 1 / 3], scarcity.weights(
            [(0.1, (9, 0)), (0.1, (4, 0)), (0.2, (1, 0))]))

    def test_less_free_memory_decides_between_equal_cpus(self):
        self.assertEqual([1 / 2, 1.0, 1 / 3], scarcity.weights(
            [(0.1, (4, 9)), (0.1, (4, 3)), (0.1, (5, 1))]))

    def test_equal_hosts_have_equal_weights(self):
        self.assertEqual([1.0, 1 / 2, 1.0], scarcity.weights(
            [(0.1, (4, 0)), (0.1, (9, 0)), (0.1, (4, 0))]))
