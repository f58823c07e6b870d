# SPDX-License-Identifier: Apache-2.0

"""The loss of room for a mix of requests."""

import dataclasses
import math
import unittest

from hpcvirt.fit import demand as demands
from hpcvirt.fit import rating
from tests.builders import tiny


class LossesTest(unittest.TestCase):
    def loss(self, total, fewer=1, weight=1.0):
        return rating.losses((weight,), (total,), [(fewer,)])[0]

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

    def test_hosts_that_lose_alike_have_one_loss(self):
        first, second, third = rating.losses((1.0,), (5,), [(1,), (1,), (2,)])
        self.assertEqual(first, second)
        self.assertEqual(self.loss(5, fewer=2), third)

    def test_kinds_count_by_their_weight(self):
        self.assertAlmostEqual(
            0.25 * self.loss(3) + 0.75 * self.loss(7),
            rating.losses((0.25, 0.75), (3, 7), ((1, 1),))[0])

    def test_a_difference_in_the_largest_fleet_is_none_too_small(self):
        first, second = rating.losses((0.01,), (1_000_000,), ((1,), (2,)))
        self.assertLess(first, second)


class MixTest(unittest.TestCase):
    """The mix of requests that a scheduler has seen."""

    def setUp(self):
        super().setUp()
        self.mix = rating.Mix()

    def observe(self, *pcpus, times=1):
        for _ in range(times):
            self.mix.observe(tiny.guest(*pcpus))

    def test_a_kind_weighs_as_many_cpus_as_were_requested(self):
        self.observe(4, times=3)
        self.observe(8, 8)
        self.assertEqual((tiny.guest(4), tiny.guest(8, 8)), self.mix.kinds)
        self.assertEqual((12 / 28, 16 / 28), self.mix.weights())

    def test_shared_vcpus_and_emulator_threads_are_cpus(self):
        self.mix.observe(demands.Demand((tiny.guest_cell(
            4, vcpus=2, policy=tiny.MIXED, emulator_pcpus=1),)))
        self.observe(1)
        self.assertEqual((7 / 8, 1 / 8), self.mix.weights())

    def test_names_of_devices_make_no_kinds(self):
        wanted = tiny.request()
        for request in (wanted, dataclasses.replace(wanted, name='other')):
            self.mix.observe(tiny.guest(4, requests=(request,)))
        self.mix.observe(tiny.guest(4, requests=(tiny.request(count=2),)))
        self.assertEqual((2 / 3, 1 / 3), self.mix.weights())

    def test_old_requests_are_forgotten(self):
        self.observe(4, times=rating.MEMORY)
        self.observe(8, times=8 * rating.MEMORY)
        self.assertLess(self.mix.weights()[0], 0.01)

    def test_all_requests_weigh_half_after_as_many_others(self):
        self.observe(4, times=rating.MEMORY)
        self.observe(8)
        half = 4 * rating.MEMORY / 2
        self.assertEqual((half / (half + 8), 8 / (half + 8)),
                         self.mix.weights())

    def test_a_kind_after_many_others_waits_for_a_review(self):
        for pcpus in range(1, rating.MAX_KINDS + 1):
            self.observe(pcpus)
        large = tiny.guest(1000)
        self.mix.observe(large)
        self.observe(1, times=rating.REVIEW - rating.MAX_KINDS - 2)
        self.assertNotIn(large, self.mix.kinds)
        self.observe(1)
        self.assertIn(large, self.mix.kinds)

    def test_the_kinds_stay_the_same_object_until_they_change(self):
        self.observe(4)
        before = self.mix.kinds
        self.observe(4, times=3 * rating.MEMORY)
        self.assertIs(before, self.mix.kinds)

    def test_the_kinds_with_the_most_cpus_matter(self):
        for pcpus in range(1, 2 * rating.MAX_KINDS + 1):
            self.observe(pcpus)
        self.observe(1, times=rating.REVIEW)
        kinds = [kind.cells[0].pcpus for kind in self.mix.kinds]
        self.assertEqual(rating.MAX_KINDS, len(kinds))
        self.assertEqual([1, *range(rating.MAX_KINDS + 2,
                                    2 * rating.MAX_KINDS + 1)], kinds)
        self.assertAlmostEqual(1.0, sum(self.mix.weights()))

    def test_what_it_remembers_is_bounded(self):
        for pcpus in range(1, 5 * rating.MAX_COUNTED):
            self.observe(pcpus)
        self.assertLessEqual(len(self.mix._counts),
                             rating.MAX_COUNTED + rating.REVIEW)

    def test_equal_histories_give_equal_mixes(self):
        other = rating.Mix()
        for number in range(500):
            demand = tiny.guest(1 + number * 7 % 40)
            self.mix.observe(demand)
            other.observe(demand)
        self.assertEqual(other.kinds, self.mix.kinds)
        self.assertEqual(other.weights(), self.mix.weights())
