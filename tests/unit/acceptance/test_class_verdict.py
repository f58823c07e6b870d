# SPDX-License-Identifier: Apache-2.0

"""A host against its class."""

import csv
import dataclasses
import importlib.util
import math
import statistics

import testtools

from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import fleet
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from tests import pages
from tests.builders import class_runs
from tests.builders import runs

ROOT = pages.ROOT
Word = judgement.VerdictResult
run, IDENTITY = class_runs.run, class_runs.IDENTITY

_spec = importlib.util.spec_from_file_location(
    'acceptance', ROOT / 'benchmarks' / 'acceptance.py')
simulation = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(simulation)


def of_launches(found, *losses):
    """Give the samples of a run, each of a launch of its own, these losses."""
    return dataclasses.replace(found, samples=tuple(
        dataclasses.replace(sample, outcome=runs.figures(
            {'score': 100 * math.exp(-loss)}, 'HS06'))
        for sample, loss in zip(found.samples, losses, strict=True)))


def peers(*levels):
    return [run(f'n{number}', 100.0 * level)
            for number, level in enumerate(levels)]


CLASS = peers(0.99, 0.995, 1.0, 1.005, 1.01)


class ClassVerdictTest(testtools.TestCase):
    def judged(self, own, stored=CLASS, **more):
        found = class_verdict.judge([own], stored, **more)
        (figure,) = found.judgements
        self.assertEqual(found.result, figure.result)
        return figure

    def test_a_host_like_its_class_passes(self):
        figure = self.judged(run('new', 99.5))
        self.assertEqual((Word.PASS, None), (figure.result, figure.reason))
        self.assertAlmostEqual(0.995, figure.interval.ratio, 3)
        self.assertAlmostEqual(100.2, figure.native, 3)
        self.assertEqual(('against n0, n1, n2, n3, n4',), figure.remarks)

    def test_a_slow_host_fails_and_one_between_is_not_decided(self):
        self.assertEqual(Word.FAIL, self.judged(run('new', 88.0)).result)
        figure = self.judged(run('new', 95.5))
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertIn('includes the bound', figure.reason)

    def test_a_host_measured_in_few_launches_is_not_decided(self):
        found = run('new', 99.5)
        found = dataclasses.replace(found, samples=tuple(
            dataclasses.replace(sample, launch_id='boot 0')
            for sample in found.samples))
        figure = self.judged(found)
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertIn('1 launches of the host are known', figure.reason)
        # A host has no launches if it has no guests.
        alone = [dataclasses.replace(each, launch=None)
                 for each in (found, *CLASS)]
        figure = self.judged(alone[0], alone[1:])
        self.assertEqual(Word.PASS, figure.result)
        # It may be 10 % slower.
        self.assertAlmostEqual(1 / 1.1, figure.limit)

    def test_launches_that_vary_more_than_those_of_peers_count(self):
        steady = of_launches(run('new'), *[0.02] * 5)
        self.assertEqual(Word.PASS, self.judged(steady).result)
        varying = of_launches(run('new'), -0.01, -0.01, 0.02, 0.05, 0.05)
        figure = self.judged(varying)
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertAlmostEqual(self.judged(steady).interval.ratio,
                               figure.interval.ratio, 2)

    def test_a_host_must_keep_up_with_a_class_that_gets_faster(self):
        def peer(number, day):
            return run(f'n{number}', 96.0 + number,
                       started_at=f'2026-10-{day:02d}T00:00:00+00:00')
        own = run('new', 94.5)
        in_order = [peer(number, 1 + number) for number in range(6)]
        figure = self.judged(own, in_order)
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertIn('levels change with time', figure.remarks[0])
        mixed = [peer(number, day)
                 for number, day in enumerate((4, 1, 6, 3, 2, 5))]
        self.assertNotIn('change', self.judged(own, mixed).remarks[0])
        # Measured at one time, or not known when.
        self.assertNotIn('change', self.judged(
            own, [peer(number, 1) for number in range(6)]).remarks[0])

    def test_a_faster_host_passes(self):
        self.assertEqual(Word.PASS, self.judged(run('new', 120.0)).result)

    def test_a_time_is_better_when_it_is_shorter(self):
        def as_time(found):
            return dataclasses.replace(found, samples=tuple(
                dataclasses.replace(sample, outcome=outcome.Outcome(
                    True, None, {'score': dataclasses.replace(
                        sample.outcome.metrics['score'],
                        direction=outcome.Direction.DOWN)}))
                for sample in found.samples))
        for score, word in ((88.0, Word.PASS), (112.0, Word.FAIL)):
            figure = self.judged(as_time(run('new', score)),
                                 list(map(as_time, CLASS)))
            self.assertEqual(word, figure.result)

    def test_the_bound_of_the_user_counts(self):
        bounds = {'score': judgement.Bound(0.8)}
        self.assertEqual(Word.PASS, self.judged(
            run('new', 88.0, bounds=bounds)).result)

    def test_few_peers_do_not_decide(self):
        figure = self.judged(run('new', 50.0), CLASS[1:])
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertIn('4 peer hosts are known, at least 5', figure.reason)

    def test_a_failed_sample_or_a_missing_one_decides_nothing(self):
        bad = run('new')
        bad = dataclasses.replace(bad, samples=(*bad.samples, record.Sample(
            record.Side.GUEST, 0, 9, outcome.Outcome(False, 'damaged'),
            warm_up=True)))
        self.assertEqual(Word.INVALID, class_verdict.judge(
            [bad], CLASS).result)
        figure = self.judged(run('new', 50.0, count=4))
        self.assertIn('only 4 of the 5', figure.reason)
        figure = self.judged(run('new', 50.0, count=4, planned_pairs=4))
        self.assertIn('too few samples: 4, at least 5', figure.reason)
        self.assertEqual(Word.INCONCLUSIVE, figure.result)

    def test_a_far_peer_is_left_out(self):
        figure = self.judged(run('new'), [*CLASS, run('slow', 60.0)])
        self.assertEqual(Word.PASS, figure.result)
        self.assertIn('without slow, far from the others', figure.remarks[0])

    def left_out(self, *losses):
        """Which losses of peers are left out of a class."""
        found = class_verdict.compare(class_verdict.Level('new', 0.0, 0.0), [
            class_verdict.Level(str(loss), loss, 0.0) for loss in losses])
        return tuple(map(float, found.left_out))

    def test_a_peer_is_far_by_a_loss_and_by_the_spread_of_the_others(self):
        like = (0.0, 0.001, -0.001, 0.002, -0.002)
        # 5 % is 0.0488; 5 deviations are 0.0074.
        self.assertEqual((), self.left_out(*like, 0.045))
        self.assertEqual((0.055,), self.left_out(*like, 0.055))
        # 5 deviations are 0.22.
        spread = (0.0, 0.03, -0.03, 0.06, -0.06)
        self.assertEqual((), self.left_out(*spread, 0.2))
        self.assertEqual((0.3,), self.left_out(*spread, 0.3))

    def test_at_most_a_quarter_of_the_peers_is_left_out(self):
        like = [number / 10000 for number in range(6)]
        self.assertEqual((0.3, 0.2), self.left_out(*like, 0.3, 0.2))
        self.assertEqual((0.3, 0.4), self.left_out(*like, 0.3, 0.2, 0.4))
        # At least five stay.
        self.assertEqual((), self.left_out(*like[:4], 0.3))

    def test_two_halves_are_no_class(self):
        stored = peers(1.0, 1.001, 1.002, 0.7, 0.701, 0.702)
        for score in (60.0, 70.0, 100.0):
            self.assertEqual(Word.INCONCLUSIVE,
                             self.judged(run('new', score), stored).result)

    def test_all_figures_are_corrected_together(self):
        own = [run('new', 95.5 + number / 10, id=f'{number}')
               for number in range(20)]
        alone = [class_verdict.judge([each], CLASS).judgements[0]
                 for each in own]
        together = class_verdict.judge(own, CLASS).judgements
        for one, many in zip(alone, together, strict=True):
            self.assertGreaterEqual(many.p_pass, one.p_pass)
            self.assertGreaterEqual(many.p_fail, one.p_fail)
        self.assertGreater(sum(one.result is Word.PASS for one in alone),
                           sum(each.result is Word.PASS for each in together))

    def test_equal_peers_are_no_reason_for_certainty(self):
        """The error of the levels counts if hosts are alike by chance."""
        peer = class_verdict.Level('n', 0.0, 0.0)
        noisy = class_verdict.Level('new', math.log(1.05), 0.02)
        found = class_verdict.compare(noisy, [peer] * 5).estimate
        self.assertLess(0.1, found.p_beyond(math.log(1.08)))


class TrendTest(testtools.TestCase):
    """A class whose hosts were measured one after the other."""

    STEPS = 0.004, -0.003, 0.001, 0.002, -0.004

    def compare(self, slope):
        """Compare a host with peers whose levels are on a line, and noise."""
        losses = [slope * number + step
                  for number, step in enumerate(self.STEPS)]
        found = class_verdict.compare(
            class_verdict.Level('n', 0.5, 0.001),
            [class_verdict.Level(f'n{number}', loss, 0.001, 1, f'{number}')
             for number, loss in enumerate(losses)])
        return losses, found.estimate

    def test_the_level_of_the_next_host_is_predicted(self):
        losses, found = self.compare(-0.02)
        _, predicted = found.estimates
        # The usual equations for the sums of the numbers 0 to 4.
        count, of_x, of_xx = 5, 10, 30
        of_y = sum(losses)
        of_xy = sum(number * loss for number, loss in enumerate(losses))
        slope = (count * of_xy - of_x * of_y) / (count * of_xx - of_x ** 2)
        start = (of_y - slope * of_x) / count
        rest = sum((loss - start - slope * number) ** 2
                   for number, loss in enumerate(losses)) / 3
        self.assertAlmostEqual(0.5 - (start + 5 * slope), predicted.loss)
        self.assertAlmostEqual(
            rest * (1 + 1 / 5 + (5 - 2) ** 2 / 10), predicted.error ** 2)
        self.assertAlmostEqual(3, predicted.freedom)

    def test_a_line_that_may_be_chance_is_none(self):
        _, found = self.compare(0.0)
        self.assertNotIsInstance(found, stats.AllMustReject)


class LaunchesTest(testtools.TestCase):
    def test_the_spread_of_few_launches_has_few_degrees_of_freedom(self):
        losses = 0.004, -0.003, 0.001, 0.002, -0.004
        others = [class_verdict.Level(f'n{number}', loss, 0.001)
                  for number, loss in enumerate(losses)]
        variance = statistics.variance(losses) * (1 + math.pi / 2 / 5)
        excess = 0.03 ** 2 - 0.001 ** 2
        for launches, freedom in ((1, 1), (2, 1), (4, 3)):
            found = class_verdict.compare(
                class_verdict.Level('n', 0.0, 0.03, launches), others).estimate
            self.assertAlmostEqual(variance + excess, found.error ** 2)
            # The equation of Welch and Satterthwaite.
            self.assertAlmostEqual(
                (variance + excess) ** 2 / (
                    variance ** 2 / 4 + excess ** 2 / freedom), found.freedom)


class FleetTest(testtools.TestCase):
    """All hosts of a class, each against the others."""

    def judged(self, stored, **more):
        return class_verdict.judge_fleet(fleet.find_classes(stored), **more)

    def test_each_host_is_judged_as_if_it_came_last(self):
        stored = [*CLASS, run('n5', 80.0), run('n6', 100.3)]
        found = self.judged(stored)
        self.assertEqual({each.host for each in stored}, set(found))
        for each in stored:
            self.assertEqual(class_verdict.judge([each], stored),
                             found[each.host])
        self.assertEqual({'n5'}, {host for host, verdict in found.items()
                                  if verdict.result is Word.FAIL})

    def test_the_first_hosts_of_a_class_are_compared_with_each_other(self):
        self.assertEqual({Word.INCONCLUSIVE}, {
            each.result for each in self.judged(CLASS).values()})
        found = self.judged([*CLASS, run('n5')])
        self.assertEqual({Word.PASS}, {found[f'n{n}'].result
                                       for n in range(1, 6)})

    def test_refused_hosts_are_no_reference(self):
        found = self.judged([*CLASS, run('n5', 80.0)], refused={'n5'})
        self.assertIs(Word.FAIL, found['n5'].result)
        self.assertIn('4 peer hosts', found['n0'].reason)
        self.assertIn('4 peer hosts', class_verdict.judge(
            [run('new')], CLASS, {'n0'}).reason)

    def test_the_figures_of_several_classes_are_judged_together(self):
        other = [dataclasses.replace(each, variant='other')
                 for each in (*CLASS, run('n5'))]
        found = self.judged([*CLASS, run('n5'), *other])
        self.assertEqual({2}, {len(each.judgements)
                               for each in found.values()})


class ErrorRatesTest(testtools.TestCase):
    def test_the_published_rates_are_at_most_5_percent(self):
        text = (ROOT / 'benchmarks/results/acceptance_rates.csv').read_text()
        _, *rows = csv.reader(text.splitlines())
        self.assertEqual({*simulation.CLASSES}, {row[0] for row in rows})
        self.assertEqual(len(rows), 3 * len(simulation.CLASSES))
        for name, _, *rates in rows:
            for rate in rates[:3]:
                self.assertLessEqual(
                    float(rate), 100 * simulation.limit(150), name)

    def test_a_slow_host_is_found_and_a_typical_one_passes(self):
        *errors, typical, slow = simulation.rates('hosts 1 %, runs 1 %', 8, 40)
        self.assertLess(max(errors), 0.15)
        self.assertGreater(typical, 0.8)
        self.assertGreater(slow, 0.9)

    def test_periodic_no_rate_of_error_is_above_5_percent(self):
        for name in simulation.CLASSES:
            for count in (5, 6, 12):
                rates = simulation.rates(name, count, 300)
                self.assertLessEqual(max(rates[:3]), simulation.limit(300),
                                     (name, count, rates))
