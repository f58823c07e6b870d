# SPDX-License-Identifier: Apache-2.0

import itertools
import unittest

from hpcvirt.simulate import outcome


def sample(time, busy, guests=0, across=0):
    return outcome.FleetSample(time, busy, 2 * busy, 3 * busy, guests, across)


class MeansTest(unittest.TestCase):
    """Means are over time, whenever samples are taken."""

    def test_a_value_holds_until_the_next_sample(self):
        samples = [sample(0, 10, 4, 1), sample(9, 20, 4, 4), sample(10, 0)]
        for name, mean in (('busy_cpus', 11), ('stranded_cpus', 22),
                           ('stranded_pages_mib', 33), ('guests', 4),
                           ('across_sockets', (9 * 1 + 4) / 10)):
            self.assertEqual(mean, outcome.mean([samples], name))

    def test_replays_are_averaged(self):
        self.assertEqual(15, outcome.mean(
            [[sample(0, 10), sample(5, 10)], [sample(0, 20), sample(5, 0)]],
            'busy_cpus'))

    def test_no_time_has_no_mean(self):
        for samples in ([], [sample(0, 10, 1)]):
            self.assertEqual(0, outcome.mean([samples], 'busy_cpus'))


class LocalTest(unittest.TestCase):
    def test_guests_with_devices_count_as_long_as_they_run(self):
        samples = [outcome.FleetSample(time, 0, 0, 0, 9, 0, devices, local)
                   for time, devices, local in ((0, 4, 1), (9, 2, 2),
                                                (10, 0, 0))]
        self.assertAlmostEqual(100 * (9 * 1 + 2) / (9 * 4 + 2),
                               outcome.find_local_percent([samples]))

    def test_without_devices_there_is_no_share(self):
        self.assertIsNone(outcome.find_local_percent([[sample(0, 1, 1)] * 2]))


class ThinnedTest(unittest.TestCase):
    def test_samples_remain_evenly_in_time(self):
        samples = [sample(number, number) for number in range(500)]
        found = outcome.thin_out(samples, 250)
        self.assertLessEqual(len(found), 250)
        self.assertEqual(samples[0], found[0])
        gaps = {after.time - before.time
                for before, after in itertools.pairwise(found)}
        self.assertLessEqual(gaps, {2, 3})
        self.assertGreaterEqual(found[-1].time, 496)

    def test_few_samples_stay(self):
        samples = [sample(number, number) for number in range(5)]
        self.assertEqual(samples, outcome.thin_out(samples, 5))
