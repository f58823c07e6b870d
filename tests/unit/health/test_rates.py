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

"""What frames say about the time between them."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from benchmarks import host_frames
from hpcvirt.health import rates
from hpcvirt.health.rates import Quantity


def pair(**change):
    """A frame, and the next one after a minute with changes."""
    first, second = host_frames.frames_of([{
        'system': 0.25, 'iowait': 0.1, 'interrupts': 1000.0,
        'shootdowns': 10.0, 'swapped': 5.0, 'strangers': 0.5, 'errors': 2.0,
        'throttles': 3.0}])
    return first, dataclasses.replace(second, **change)


class RatesTest(unittest.TestCase):

    def test_rates_are_those_of_the_host(self):
        found = rates.between(*pair())
        self.assertEqual(
            {'system': 0.25, 'iowait': 0.1, 'steal': 0.0, 'interrupts': 1000.0,
             'shootdowns': 10.0, 'swapped': 5.0, 'strangers': 0.5,
             'errors': 2.0, 'throttles': 3.0},
            {name.value: round(value, 9) for name, value in found.items()})

    def test_slab_grows_from_where_it_was(self):
        first, second = pair(slab_kib=3 << 20)
        self.assertEqual(1 / 32, rates.between(
            first, second, 1 << 20)[Quantity.SLAB])
        self.assertEqual(0.0, rates.between(
            first, second, 4 << 20)[Quantity.SLAB])

    def test_nothing_is_compared_across_a_boot_a_gap_or_a_still_clock(self):
        first, second = pair()
        for change in ({'boot_id': 'two'},
                       {'uptime_s': first.uptime_s + 901},
                       {'uptime_s': first.uptime_s},
                       {'uptime_s': first.uptime_s - 60}):
            self.assertEqual({}, rates.between(
                first, dataclasses.replace(second, **change)))

    def test_a_clock_that_is_set_does_not_count(self):
        for jump in (-1e9, 1e6):
            first, second = pair(time=1.8e9 + jump)
            self.assertAlmostEqual(1000.0, rates.between(
                first, second)[Quantity.INTERRUPTS])

    def test_a_counter_that_begins_anew_is_unknown(self):
        for field, quantity in (
                ('interrupts', 'interrupts'), ('swapped_pages', 'swapped'),
                ('corrected_errors', 'errors'), ('throttles', 'throttles'),
                ('strangers_s', 'strangers')):
            first, second = pair()
            first = dataclasses.replace(first, **{field: 10 ** 12})
            self.assertNotIn(quantity, rates.between(first, second))
            first = dataclasses.replace(first, **{field: None})
            self.assertNotIn(quantity, rates.between(first, second))

    @hypothesis.given(
        st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=8),
        st.lists(st.integers(0, 100_000), min_size=8, max_size=8))
    def test_counters_of_32_bits_may_wrap(self, cpus, more):
        now = [(cpu + grown) % (1 << 32)
               for cpu, grown in zip(cpus, more, strict=False)]
        first, second = pair(shootdowns=sum(now))
        first = dataclasses.replace(first, shootdowns=sum(cpus))
        self.assertAlmostEqual(
            sum(more[:len(cpus)]) / 60 / 32,
            rates.between(first, second)[Quantity.SHOOTDOWNS])

    def test_a_cpu_that_goes_takes_its_counters_with_it(self):
        found = rates.between(*pair(online='0-30', cpus=31, shootdowns=5))
        self.assertNotIn('shootdowns', found)
        self.assertNotIn('throttles', found)
        self.assertIn('system', found)
