# SPDX-License-Identifier: Apache-2.0

"""The classes of a fleet, who is slow in it, and tests of pairs."""

import itertools
import random
import unittest

from hypothesis import given
from hypothesis import strategies

from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import fleet
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from tests.builders import class_runs
from tests.builders import runs

run, IDENTITY = class_runs.run, class_runs.IDENTITY
Word = judgement.VerdictResult
UUID = '7d8b1b5e-1111-2222-3333-44445555666{}'


def find_peers(own, stored):
    """Return the last run on each peer of a host."""
    return tuple(found for host, found in fleet.find_classes(stored).get(
        fleet.find_class(own), {}).items() if host != own.host)


class ClassesTest(unittest.TestCase):
    def test_only_what_is_alike_is_a_peer(self):
        other = {
            'identity': {**IDENTITY, 'guest cpu.model': 'EPYC 9654'},
            'shape': '4x8', 'launch': record.Launch.COLD,
            'parameters': {'cpus': '4'}, 'benchmark': 'stream',
            'host': 'new', 'purpose': record.Purpose.AA, 'count': 4}
        for key, value in other.items():
            found = run(**{'host': 'n0', key: value})
            self.assertEqual((), find_peers(run('new'), [found]), key)
        for name in ('guest cpu.microcode', 'guest mitigation.mds@a',
                     'native kernel'):
            found = run('n0', identity={**IDENTITY, name: 'x'})
            self.assertEqual((found,), find_peers(run('new'), [found]))

    def test_hosts_without_guests_may_differ_in_what_may_be_the_reason(self):
        identity = {**IDENTITY, 'guest program.hpcc': 'a', 'setting N': '80'}
        own = run('new', launch=None, identity=identity)
        for name, is_peer in (
                ('guest kernel', True), ('guest kernel.cmdline', True),
                ('guest cpu.governor', True), ('guest pages.2048kB', True),
                ('guest cpu.model', False), ('guest program.hpcc', False),
                ('setting N', False), ('command', False)):
            found = run('n0', launch=None, identity={**identity, name: 'x'})
            self.assertEqual((found,) if is_peer else (),
                             find_peers(own, [found]), name)
        self.assertEqual((), find_peers(own, [
            run('n0', identity=identity)]))

    def test_the_last_run_of_a_peer_counts(self):
        old = run('n0', 50.0, id='old')
        new = run('n0', 100.0, started_at='2026-11-02T00:00:00+00:00')
        for stored in ([old, new], [new, old]):
            self.assertEqual((new,), find_peers(run('new'), stored))

    def test_each_class_has_its_hosts(self):
        first, second = run('n0'), run('n1')
        other = run('n1', variant='other')
        self.assertEqual(
            [{'n0': first, 'n1': second}, {'n1': other}],
            [*fleet.find_classes([first, other, second, run('')]).values()])


def host(number, score, kernel='6.1.0-21', **more):
    return run(f'n{number}', score, launch=None, identity={
        **IDENTITY, 'guest kernel': kernel,
        'guest kernel.cmdline': f'root=UUID={UUID.format(number)} quiet '
                                + ' '.join(f'x{n}=y' for n in range(20)),
        **more})


def make(stored, machines=None):
    classes = fleet.find_classes(stored)
    return fleet.report_hosts(
        class_verdict.judge_fleet(classes), classes, machines or {})


class FleetReportTest(unittest.TestCase):
    def test_the_slowest_host_is_first_with_its_loss_and_what_differs(self):
        found = make([
            *(host(n, 100 + n / 10) for n in range(8)),
            host(8, 80.0, '6.1.0-18'), host(9, 60.0, '6.1.0-18')], {
                f'n{n}': {'memory modules in MiB':
                          f'{8 if n == 9 else 16} x 32768',
                          'serial number': str(n)}
                for n in range(10)})
        self.assertEqual(['n9', 'n8'], [each.host for each in found[:2]])
        self.assertEqual(
            [Word.FAIL] * 2 + [Word.PASS] * 8,
            [each.result for each in found])
        slowest, other = found[:2]
        # The middle of the others is n4 or n5.
        self.assertAlmostEqual(100 * (100.4 / 60 - 1), slowest.slower, 0)
        self.assertTrue(slowest.low < slowest.slower < slowest.high)
        self.assertIn('hs06', slowest.figure)
        self.assertEqual((
            'kernel is 6.1.0-18, of 8 of 8 others 6.1.0-21',
            ('memory modules in MiB is 8 x 32768, of 8 of 8 others '
             '16 x 32768')), slowest.differs)
        self.assertEqual(1, len(other.differs))
        self.assertEqual({()}, {each.differs for each in found[2:]})

    def test_few_hosts_are_listed_without_a_verdict(self):
        found = make([host(n, 100.0) for n in range(3)])
        self.assertEqual([(Word.INCONCLUSIVE, None)] * 3,
                         [(each.result, each.slower) for each in found])
        self.assertEqual([], make([]))

    def test_of_long_facts_only_the_words_that_differ_are_named(self):
        usual = ' '.join(f'flag{n}' for n in range(40))
        found = list(fleet.find_differences(
            {'flags': usual.replace('flag7 ', '') + ' more'},
            [{'flags': usual}] * 3))
        self.assertEqual(['flags is more, of 3 of 3 others flag7'], found)

    def test_what_has_no_usual_value_says_nothing(self):
        self.assertEqual([], list(fleet.find_differences(
            {'a': '1'}, [{'a': '2'}, {'a': '3'}])))
        self.assertEqual([], list(fleet.find_differences(
            {'a': '1'}, [])))
        self.assertEqual(['a is none, of 2 of 3 others 2'], list(
            fleet.find_differences({}, [{'a': '2'}, {'a': '2'}, {}])))


def run_pair(pair, latency=1.5, bandwidth=12000.0):
    """Return a run of NetPIPE on a pair of hosts."""
    latencies = runs.figures(
        {'latency_us[1]': latency, 'latency_us[65536]': 20.0}, 'us',
        runs.DOWN)
    bandwidths = runs.figures(
        {'bandwidth_mb_s[1]': 1.0, 'bandwidth_mb_s[65536]': bandwidth},
        'MB/s')
    found = outcome.Outcome(
        True, None, {**latencies.metrics, **bandwidths.metrics})
    return record.Run('r', 'netpipe', 'mpi', tuple(
        record.Sample(record.Side.GUEST, number, number, found)
        for number in range(3)), host=', '.join(pair), shape='2x8',
        purpose=record.Purpose.UNPAIRED)


def leaf(size, latency=lambda _: 1.5, bandwidth=lambda _: 12000.0, name='n'):
    dice = random.Random(size)
    return [run_pair(pair, latency(pair) * dice.uniform(0.98, 1.02),
                     bandwidth(pair) * dice.uniform(0.98, 1.02))
            for pair in itertools.combinations(
                [f'{name}{number}' for number in range(size)], 2)]


def faults(runs):
    return {(each.host, each.figure.split()[-1]): each.slower
            for each in fleet.report_pairs(runs) if each.result is Word.FAIL}


class RoundsTest(unittest.TestCase):
    @given(strategies.integers(2, 41))
    def test_each_meets_each_once_in_the_fewest_rounds(self, count):
        hosts = [f'n{number}' for number in range(count)]
        rounds = fleet.make_rounds(hosts)
        self.assertEqual(count - 1 + count % 2, len(rounds))
        for pairs in rounds:
            names = [host for pair in pairs for host in pair]
            self.assertEqual(len(set(names)), len(names))
        met = [frozenset(pair) for pairs in rounds for pair in pairs]
        self.assertEqual(len(set(met)), len(met))
        self.assertEqual(
            set(map(frozenset, itertools.combinations(hosts, 2))), set(met))

    def test_a_host_alone_meets_nobody(self):
        self.assertEqual([[]], fleet.make_rounds(['n0']))


class FaultsTest(unittest.TestCase):
    def test_a_sound_leaf_has_no_fault(self):
        for size in (4, 5, 16):
            found = list(fleet.report_pairs(leaf(size)))
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
        found = list(fleet.report_pairs(leaf(3, latency=lambda pair:
                                             9.0 if 'n0' in pair else 1.5)))
        self.assertEqual({Word.INCONCLUSIVE}, {each.result for each in found})

    def test_other_runs_are_left_out(self):
        self.assertEqual([], list(fleet.report_pairs([
            run_pair(['n1']), run_pair(['n1', 'n2', 'n3'])])))
