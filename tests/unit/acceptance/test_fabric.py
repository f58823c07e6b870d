# SPDX-License-Identifier: Apache-2.0

"""Slow hosts and bad links, from tests of pairs."""

import itertools
import random
import unittest

from hypothesis import given
from hypothesis import strategies

from hpcvirt.acceptance import fabric
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

Word = judgement.VerdictResult


def run(pair, latency=1.5, bandwidth=12000.0):
    """Return a run of NetPIPE on a pair of hosts."""
    up, down = outcome.Direction.UP, outcome.Direction.DOWN
    return record.Run('r', 'netpipe', 'mpi', tuple(
        record.Sample(record.Side.GUEST, number, number, outcome.Outcome(
            True, None, {
                'latency_us[1]': outcome.Metric(latency, 'us', down),
                'latency_us[65536]': outcome.Metric(20.0, 'us', down),
                'bandwidth_mb_s[1]': outcome.Metric(1.0, 'MB/s', up),
                'bandwidth_mb_s[65536]': outcome.Metric(bandwidth, 'MB/s',
                                                        up)}))
        for number in range(3)), host=', '.join(pair), shape='2x8',
        purpose=record.Purpose.UNPAIRED)


def leaf(size, latency=lambda _: 1.5, bandwidth=lambda _: 12000.0, name='n'):
    dice = random.Random(size)
    return [run(pair, latency(pair) * dice.uniform(0.98, 1.02),
                bandwidth(pair) * dice.uniform(0.98, 1.02))
            for pair in itertools.combinations(
                [f'{name}{number}' for number in range(size)], 2)]


def faults(runs):
    return {(each.host, each.figure.split()[-1]): each.slower
            for each in fabric.judge(runs) if each.result is Word.FAIL}


class RoundsTest(unittest.TestCase):
    @given(strategies.integers(2, 41))
    def test_each_meets_each_once_in_the_fewest_rounds(self, count):
        hosts = [f'n{number}' for number in range(count)]
        rounds = fabric.make_rounds(hosts)
        self.assertEqual(count - 1 + count % 2, len(rounds))
        for pairs in rounds:
            names = [host for pair in pairs for host in pair]
            self.assertEqual(len(set(names)), len(names))
        met = [frozenset(pair) for pairs in rounds for pair in pairs]
        self.assertEqual(len(set(met)), len(met))
        self.assertEqual(
            set(map(frozenset, itertools.combinations(hosts, 2))), set(met))

    def test_a_host_alone_meets_nobody(self):
        self.assertEqual([[]], fabric.make_rounds(['n0']))


class FaultsTest(unittest.TestCase):
    def test_a_sound_leaf_has_no_fault(self):
        for size in (4, 5, 16):
            found = list(fabric.judge(leaf(size)))
            self.assertEqual({Word.PASS}, {each.result for each in found})
            self.assertEqual(2 * size, len(found))

    def test_a_host_that_is_slow_in_all_pairs_is_named_and_no_other(self):
        for size in (4, 5, 16):
            self.assertEqual({('n2', 'bandwidth_mb_s[65536]')}, set(faults(
                leaf(size, bandwidth=lambda pair:
                     6000.0 if 'n2' in pair else 12000.0))))
        ((_, slower),) = faults(leaf(8, latency=lambda pair:
                                     3.0 if 'n0' in pair else 1.5)).items()
        self.assertAlmostEqual(100, slower, delta=5)

    def test_a_bad_link_is_named_and_its_hosts_are_not(self):
        for size in (4, 5, 16):
            self.assertEqual({('n1 - n2', 'latency_us[1]')}, set(faults(
                leaf(size, latency=lambda pair:
                     2.5 if pair == ('n1', 'n2') else 1.5))))

    def test_a_slow_host_does_not_hide_a_bad_link(self):
        def latency(pair):
            return 5.0 if pair == ('n3', 'n5') else (
                2.5 if 'n0' in pair else 1.5)
        self.assertEqual({'n0', 'n3 - n5'},
                         {host for host, _ in faults(leaf(8, latency))})

    def test_leaves_are_judged_by_themselves(self):
        slow = leaf(6, latency=lambda _: 4.0, name='m')
        self.assertEqual({}, faults([*leaf(6), *slow]))

    def test_the_last_run_on_a_pair_counts(self):
        repaired = leaf(5)
        broken = leaf(5, bandwidth=lambda pair:
                      100.0 if 'n4' in pair else 12000.0)
        self.assertEqual({}, faults([*broken, *repaired]))
        self.assertEqual({'n4'}, {
            host for host, _ in faults([*repaired, *broken])})

    def test_few_pairs_decide_nothing(self):
        found = list(fabric.judge(leaf(3, latency=lambda pair:
                                       9.0 if 'n0' in pair else 1.5)))
        self.assertEqual({Word.INCONCLUSIVE}, {each.result for each in found})

    def test_other_runs_are_left_out(self):
        self.assertEqual([], list(fabric.judge([
            run(['n1']), run(['n1', 'n2', 'n3'])])))
