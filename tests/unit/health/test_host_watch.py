# SPDX-License-Identifier: Apache-2.0

"""The service on a host."""

import threading
import unittest

from hpcvirt import exception
from hpcvirt.health import host_watch
from hpcvirt.health.signature import HOST
from hpcvirt.health.signature import HostSample
from hpcvirt.health.signature import Quantity


def sample(minute, **values):
    return HostSample(time=0.0, uptime_s=60.0 * minute, values={
        Quantity(name): each for name, each in values.items()})


class Source:
    """Fails now and then."""

    def __init__(self, *samples):
        self.samples = list(samples)
        self.stop = threading.Event()

    def take(self):
        found = self.samples.pop(0)
        if not self.samples:
            self.stop.set()
        if found is None:
            raise exception.Unreachable('no sample')
        return found


class HostWatchTest(unittest.TestCase):
    def setUp(self):
        self.lines = []
        self.watch = host_watch.HostWatch(self.lines.append)

    def test_what_cannot_be_known_is_said_once_at_the_start(self):
        for minute in range(15):
            self.watch.take(sample(minute, swapped={HOST: 0},
                                   foreign_tasks={'cpu1': 0.0}))
        self.assertIn('memory-errors cannot be known here: no EDAC driver is '
                      'loaded', self.lines)
        self.assertEqual(len(self.lines), len(set(self.lines)))
        self.assertFalse([line for line in self.lines if 'foreign' in line])
        # What is known is 0, what is not known is missing.
        self.assertEqual({'foreign-tasks': (0.0, HOST)}, self.watch.scores)

    def test_a_sample_that_fails_is_left_out(self):
        source = Source(sample(1), None, sample(3))
        exports = []
        self.watch.run(source, 0.0, source.stop,
                       lambda: exports.append(self.watch.latest.uptime_s))
        self.assertEqual([60.0, 180.0], exports)
        self.assertIn('no sample', self.lines)

    def test_errors_are_counted_for_half_an_hour(self):
        for minute in range(100):
            self.watch.take(sample(
                minute, corrected_errors={'mc0': minute * 2 // 3}))
        score, unit = self.watch.scores['memory-errors']
        self.assertEqual('mc0', unit)
        self.assertAlmostEqual(2.0, score)
        for minute in range(100, 160):
            self.watch.take(sample(minute, corrected_errors={'mc0': 66}))
        self.assertEqual(0.0, self.watch.scores['memory-errors'].score)

    def test_a_gap_counts_for_nothing(self):
        for minute in (*range(9), *range(100, 109)):
            self.watch.take(sample(minute, steal={'cpu0': minute * 60.0}))
        self.assertEqual({'steal': (0.0, HOST)}, self.watch.scores)
