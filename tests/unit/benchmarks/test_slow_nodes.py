# SPDX-License-Identifier: Apache-2.0

"""What the pages on slow nodes say about the published signature."""

import pathlib
import sys
import unittest
from unittest import mock

from hpcvirt.health import host_watch
from hpcvirt.health import signature
from hpcvirt.health import supervision

ROOT = pathlib.Path(__file__).parents[3]

with mock.patch.object(sys, 'path', [str(ROOT / 'benchmarks'), *sys.path]):
    import host_rates
    import host_scores
    import slow_nodes


class ScoresTest(unittest.TestCase):
    """Compare what scores many minutes at once with the program."""

    def test_each_minute_is_scored_as_by_the_program(self):
        changes = [*slow_nodes.CAUSES.values(), *(
            change for _, _, change in slow_nodes.NOISES.values() if change)]
        for number, change in enumerate(changes):
            host = host_rates.Host([number, 48], 48, 0.7)
            watch = host_watch.HostWatch(print)
            scores = host_scores.HostScores(48)
            minute = 0
            for minutes in (7, 60, 20):
                arrays = host.make_minutes(0, minutes)
                change(arrays, host, 0)
                for fast, found in zip(scores.score(arrays),
                                       host_rates.make_rates(arrays),
                                       strict=True):
                    minute += 1
                    watch.score(60.0 * minute, 60.0, found)
                    self.assertEqual(
                        {name: (each.unit, round(each.score, 6))
                         for name, each in watch.scores.items()},
                        {name: (each.unit, round(each.score, 6))
                         for name, each in fast.items()})

    def test_minutes_in_which_nothing_is_found_can_be_passed_over(self):
        fleet = slow_nodes.Fleet('alike', 32)
        record, others = supervision.FleetRecord(), 0
        for minute, (scores, found) in enumerate(fleet.run_day()):
            record = supervision.follow(
                record, {f'n{number}': each for number, each in enumerate(
                    scores)}, fleet.classes,
                1.8e9 // 86400 * 86400 + 60.0 * minute)
            self.assertEqual(record, found)
            others += any(each is not host_scores.NOTHING for each in scores)
        self.assertTrue(0 < others < 1400, others)


class PublishedTest(unittest.TestCase):
    def minutes(self, cause, seed):
        """How long a host is slow before a sign with a source is at 1."""
        host = host_rates.Host([seed], 32)
        arrays = host.make_minutes(0, 40)
        slow_nodes.CAUSES[cause](arrays, host, 0)
        watch = host_watch.HostWatch(print)
        for minute, found in enumerate(host_rates.make_rates(arrays), 1):
            watch.score(60.0 * minute, 60.0, found)
            scores = watch.scores
            if any(scores[sign.name].score >= 1 for sign in signature.SIGNS
                   if sign.source is not None and sign.name in scores):
                return minute
        return None

    def test_it_is_found_in_12_minutes_and_so_is_its_lower_end(self):
        for cause in ('published shoot-downs, same totals',
                      'their lower end, same totals',
                      'published swapping, same totals'):
            for seed in range(15):
                self.assertLessEqual(self.minutes(cause, seed), 12, cause)

    def test_what_comes_and_goes_is_found(self):
        for seed in range(10):
            self.assertLessEqual(self.minutes(
                'shoot-downs in 5 of every 10 minutes', seed), 25)

    def test_a_healthy_host_is_not_slow(self):
        with mock.patch.dict(slow_nodes.CAUSES, none=lambda *_: None):
            self.assertEqual({None}, {
                self.minutes('none', seed) for seed in range(15)})
