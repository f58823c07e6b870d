# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.simulate import requests as requests_model
from tests.unit.simulate import replayed


def requests(*arrivals):
    """Requests of (time, duration, CPUs, count)."""
    sizes = sorted({arrival[2] for arrival in arrivals})
    return dataclasses.replace(replayed.requested(sizes, *(
        (time, duration / 3600, sizes.index(cpus), count)
        for time, duration, cpus, count in arrivals)), rule=('first',))


class ScalingTest(unittest.TestCase):
    """Loads."""

    def test_the_load_is_the_work_over_what_the_fleet_has_in_the_time(self):
        log = requests((0, 10, 4, 1), (50, 10, 8, 2), (100, 20, 4, 1))
        self.assertAlmostEqual(280 / (100 * 20), requests_model.load(log, 20))

    def test_times_are_scaled_and_durations_are_not(self):
        log = requests((0, 10, 4, 1), (50, 10, 8, 2), (100, 20, 4, 1))
        scaled = requests_model.scale_to_load(log, 20, 0.07)
        self.assertEqual([0, 100, 200],
                         [round(each.time, 9) for each in scaled.arrivals])
        self.assertEqual([each.duration for each in log.arrivals],
                         [each.duration for each in scaled.arrivals])
        self.assertEqual(
            'The times between requests are multiplied by 2, so that the '
            'load is 0.07 instead of 0.14.', scaled.rule[1])
        self.assertEqual(log.rule, scaled.rule[:1])

    def test_work_after_the_last_request_is_told(self):
        log = requests((0, 150, 4, 1), (100, 10, 1, 1))
        self.assertEqual(
            '33 % of the CPU-hours are after the last request, because '
            'lives are long: until then, the load is less.',
            requests_model.scale_to_load(log, 20, 0.3).rule[-1])
        self.assertIn('are multiplied by',
                      requests_model.scale_to_load(log, 20, 0.05).rule[-1])

    def test_requests_at_one_time_have_no_load(self):
        for log in (requests((0, 10, 4, 1)),
                    requests((7, 10, 4, 1), (7, 20, 4, 1))):
            with self.assertRaisesRegex(exception.InvalidInput, 'same time'):
                requests_model.scale_to_load(log, 20, 0.9)

    @given(st.lists(st.tuples(
        st.floats(0, 1e8), st.floats(1, 1e7), st.integers(1, 64),
        st.integers(1, 9)), min_size=2), st.integers(1, 10 ** 6),
        st.floats(0.01, 3))
    def test_the_load_is_as_requested(self, arrivals, capacity, wanted):
        arrivals = sorted([(0.0, 1.0, 1, 1), (1e8, 1.0, 1, 1), *arrivals])
        scaled = requests_model.scale_to_load(
            requests(*arrivals), capacity, wanted)
        self.assertAlmostEqual(wanted, requests_model.load(scaled, capacity),
                               delta=wanted * 1e-9)
        times = [each.time for each in scaled.arrivals]
        self.assertEqual(sorted(times), times)
