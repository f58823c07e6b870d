# SPDX-License-Identifier: Apache-2.0

"""What the pages on slow nodes say about the published signature."""

import pathlib
import sys
import unittest
from unittest import mock

from hpcvirt.health import host_watch
from hpcvirt.health import signature

ROOT = pathlib.Path(__file__).parents[3]

with mock.patch.object(sys, 'path', [str(ROOT / 'benchmarks'), *sys.path]):
    import host_rates
    import slow_nodes


class PublishedTest(unittest.TestCase):
    def minutes(self, cause, seed):
        """How long a host is slow before a sign with a source is at 1."""
        host = host_rates.Host([seed], 32)
        arrays = host.make_minutes(0, 40)
        slow_nodes.CAUSES[cause](arrays, host, 0)
        watch = host_watch.HostWatch(print)
        for minute, found in enumerate(host_rates.make_rates(arrays), 1):
            scores = slow_nodes.read(watch, found, minute)
            if any(scores[sign.name].score >= 1 for sign in signature.SIGNS
                   if sign.source is not None and sign.name in scores):
                return minute
        return None

    def test_it_is_found_in_12_minutes_and_so_is_its_lower_end(self):
        for cause in ('published shoot-downs, same totals',
                      'their lower end, same totals',
                      'published swapping, same totals'):
            for seed in range(40):
                self.assertLessEqual(self.minutes(cause, seed), 12, cause)

    def test_what_comes_and_goes_is_found(self):
        for seed in range(10):
            self.assertLessEqual(self.minutes(
                'shoot-downs in 5 of every 10 minutes', seed), 25)

    def test_a_healthy_host_is_not_slow(self):
        with mock.patch.dict(slow_nodes.CAUSES, none=lambda *_: None):
            self.assertEqual({None}, {
                self.minutes('none', seed) for seed in range(40)})
