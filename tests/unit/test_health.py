# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from hpcvirt.health import signature
from hpcvirt.health.signature import HOST
from hpcvirt.health.signature import HostSample
from hpcvirt.health.signature import Quantity


def sample(uptime_s=1000.0, **values):
    return HostSample(time=1.8e9, uptime_s=uptime_s, values={
        Quantity(name): each for name, each in values.items()})


class RatesTest(unittest.TestCase):
    """What samples say about the time between them."""

    def compute(self, first, second, later=60.0):
        before = sample(**first)
        after = sample(1000.0 + later, **second)
        return signature.compute_rates(before, before, after)

    def test_rates_are_those_of_each_unit_and_their_sum(self):
        found = self.compute(
            {'system': {'cpu0': 10.0, 'cpu1': 5.0},
             'foreign_tasks': {'cpu1': 0.0}},
            {'system': {'cpu0': 40.0, 'cpu1': 11.0},
             'foreign_tasks': {'cpu1': 12.0}})
        self.assertEqual({'cpu0': 0.5, 'cpu1': 0.1, HOST: 0.6},
                         found[Quantity.SYSTEM])
        self.assertEqual({'cpu1': 0.2}, found[Quantity.FOREIGN_TASKS])

    def test_levels_stay_what_they_are(self):
        found = self.compute({}, {'slab': {HOST: 0.1}, 'link_loss': {'a': 0.5},
                                  'uncorrected_errors': {'mc0': 1.0}})
        self.assertEqual([{HOST: 0.1}, {'a': 0.5}, {'mc0': 1.0}],
                         list(found.values()))

    def test_what_is_rare_is_counted_since_the_earlier_sample(self):
        first, second, third = (
            sample(1000.0 + 60 * number, corrected_errors={'mc0': errors})
            for number, errors in enumerate((1, 15, 16)))
        self.assertEqual({'mc0': 15.0}, signature.compute_rates(
            first, second, third)[Quantity.CORRECTED_ERRORS])

    def test_only_a_busy_cpu_is_slowed_down(self):
        found = self.compute(
            {'busy': {'cpu0': 0.0, 'cpu1': 0.0}},
            {'busy': {'cpu0': 60.0, 'cpu1': 30.0},
             'slowdown': {'cpu0': 0.4, 'cpu1': 0.4}})
        self.assertEqual({'cpu0': 0.6, 'cpu1': 0.0},
                         found[Quantity.SLOWDOWN])
        turbo = self.compute({'busy': {'cpu0': 0.0}}, {
            'busy': {'cpu0': 60.0}, 'slowdown': {'cpu0': 1.4}})
        self.assertEqual({'cpu0': 0.0}, turbo[Quantity.SLOWDOWN])

    def test_nothing_is_compared_across_a_gap_or_a_still_clock(self):
        for later in (901.0, 0.0, -60.0):
            self.assertEqual({}, self.compute({'steal': {'cpu0': 0.0}}, {
                'steal': {'cpu0': 1.0}}, later))

    def test_a_clock_that_is_set_does_not_count(self):
        before = sample(steal={'cpu0': 0.0})
        after = dataclasses.replace(
            sample(1060.0, steal={'cpu0': 60.0}), time=0.0)
        self.assertEqual({'cpu0': 1.0}, signature.compute_rates(
            before, before, after)[Quantity.STEAL])

    @hypothesis.given(
        st.dictionaries(st.sampled_from('abcdef'), st.integers(0, 99)),
        st.dictionaries(st.sampled_from('abcdef'), st.integers(0, 99)))
    def test_a_unit_that_comes_goes_or_begins_anew_has_no_rate(
            self, first, second):
        found = self.compute({'steal': first}, {'steal': second})
        self.assertEqual(
            {unit for unit in first.keys() & second.keys()
             if second[unit] >= first[unit]}, found[Quantity.STEAL].keys())
        self.assertTrue(all(
            rate >= 0 for rate in found[Quantity.STEAL].values()))

    def test_what_was_not_known_before_has_no_rate(self):
        found = self.compute({}, {'swapped': {HOST: 7.0}})
        self.assertEqual({}, found[Quantity.SWAPPED])
