# SPDX-License-Identifier: Apache-2.0

"""The sentence says what the totals are, in round numbers."""

import unittest

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fleet import state
from hpcvirt.simulate import scenario
from hpcvirt.simulate import summary
from tests.unit.simulate import replayed
from tests.unit.simulate import small


def results(hosts, asked, choice='', **fates):
    """Make the results of strategies on some hosts."""
    fleet = state.Fleet((state.FleetHost('n', placement.HostState(
        small.host(small.cell(0)), guests.Resources(8, 0, 8192))),) * hosts,
        {})
    described = scenario.Scenario('log', (), fleet, 0.75, (asked,))
    return [scenario.ScenarioResult(choice or name, choice, name, described, 4,
                                    (replayed.replay(asked, *each),))
            for name, each in fates.items()]


#: 20 requests of 40 core-hours in 5 days.
ASKED = replayed.requested((10,), *(
    (5 * 86400 * number / 19, 4, 0, 1) for number in range(20)))
NO = replayed.CAPACITY


class DescribeTest(unittest.TestCase):
    def test_the_first_says_what_it_accepts_and_others_how_much_more(self):
        nova = [NO, NO, None, None, None] * 4
        found = summary.describe(results(
            6, ASKED, nova=nova, packing=[NO, None, None, None, None] * 4,
            hpcvirt=nova))
        # 12 of 20 requests: 480 core-hours in 5 days, 80 on each host; 4
        # more requests have 160 core-hours, those of 2 hosts. All windows
        # are alike, so that there is no interval.
        self.assertEqual(
            'In 5 days at a load of 0.75, nova accepts 480 core-hours and '
            '2.4 requests a day on 6 hosts; packing accepts 160 more '
            'core-hours and 0.80 more requests a day, the work of 2.0 hosts '
            'of nova; hpcvirt accepts as much within chance.', found)

    def test_the_uncertainty_is_half_of_the_interval(self):
        nova = [NO] * 5 + [None] * 15
        found = summary.describe(results(
            5, ASKED, nova=nova, packing=[NO] * 4 + [None] * 16))
        # Of 4 windows with 5 requests, one loses 100 % and three nothing.
        reach = 800 * stats.t.ppf(0.975, 3) * stats.sem([1, 0, 0, 0])
        self.assertIn(f'nova accepts 600 ± {round(reach, -2):.0f} core-hours',
                      found)
        self.assertTrue(found.endswith('packing accepts as much within '
                                       'chance.'))

    def test_choices_name_their_hosts(self):
        found = summary.describe([
            *results(5, ASKED, 'now', hpcvirt=[NO, NO, None, None] * 5),
            *results(7, ASKED, 'two more', hpcvirt=[None] * 20)])
        self.assertIn('"now" accepts 400', found)
        self.assertIn('"two more" accepts 400', found)
        self.assertIn('on 7 hosts, the work of 5', found)

    def test_a_difference_within_its_uncertainty_is_none(self):
        found = summary.describe(results(
            5, ASKED, nova=[NO, *[None] * 19], packing=[*[None] * 19, NO]))
        self.assertIn('packing accepts as much within chance.', found)

    def test_a_stretched_time_is_told(self):
        asked = replayed.requests.Requests(
            ASKED.flavors, ASKED.arrivals, stretch=2.5)
        self.assertEqual(
            '5 days (48 hours of the log, whose times are multiplied by 2.5)',
            summary.describe_span(results(1, asked, a=[NO] * 20)[0].scenario))


class AmountTest(unittest.TestCase):
    def test_numbers_have_only_the_digits_that_count(self):
        for value, reach, shown in (
                (243512, 98233, '240,000 ± 100,000'),
                (243512, 12345, '244,000 ± 12,000'), (2.437, 0.31,
                                                      '2.4 ± 0.3'),
                (2.437, 0.13, '2.44 ± 0.13'), (17, 30, '20 ± 30'),
                (1784970, 0, '1,800,000'), (2.437, 0, '2.4'),
                (0, 0, '0.0')):
            self.assertEqual(shown, summary.format_amount(value, reach))

    @given(st.floats(0.001, 1e9), st.floats(0.001, 1e9))
    def test_rounding_is_far_below_the_uncertainty(self, value, reach):
        shown, error = (float(word.replace(',', '')) for word in
                        summary.format_amount(value, reach).split(' ± '))
        self.assertLessEqual(abs(shown - value), reach / 2)
        self.assertLessEqual(abs(error - reach), reach / 2)
