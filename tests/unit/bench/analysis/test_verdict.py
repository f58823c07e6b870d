# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

Word = judgement.VerdictResult
#: Ten values that vary by about 1 %.
NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)


def scaled(ratio, values=NATIVE, wobble=(1, 1.004, 0.996, 1.002, 0.998)):
    return [value * ratio * wobble[number % 5]
            for number, value in enumerate(values)]


class VerdictTestCase(testtools.TestCase):
    def judge(self, *some):
        result = verdict.judge(some)
        if result.judgements:
            return result, result.judgements[0]
        return result, None


class TestWords(VerdictTestCase):
    def test_a_small_loss_passes(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(0.98)))
        self.assertEqual((Word.PASS, None), (result.result, result.reason))
        self.assertTrue(0.95 < figure.interval.low < figure.interval.ratio
                        < figure.interval.high < 1)
        self.assertEqual((10, 0.95, True),
                         (figure.pairs, figure.limit, figure.paired))

    def test_a_large_loss_fails(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(0.90)))
        self.assertEqual(Word.FAIL, result.result)
        self.assertLess(figure.interval.high, figure.limit)
        self.assertIn('npb-cg mpi mops_total', result.reason)

    def test_a_loss_at_the_bound_is_inconclusive(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(0.95)))
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('the interval includes the bound', figure.reason)

    def test_for_times_the_ratio_counts_the_other_way(self):
        for ratio, word in ((1.005, Word.PASS), (1.10, Word.FAIL),
                            (0.9, Word.PASS)):
            result, figure = self.judge(runs.run(
                NATIVE, scaled(ratio), 1.05, 'wall_s', runs.DOWN))
            self.assertEqual(word, result.result)
            self.assertAlmostEqual(ratio, figure.interval.ratio, places=2)

    def test_a_rate_of_a_certain_ratio_is_not_a_time_of_it(self):
        # 15.2 % less of a rate are 17.9 % more of a time.
        up, _ = self.judge(runs.run(NATIVE, scaled(0.848), 0.847))
        down, _ = self.judge(runs.run(
            NATIVE, scaled(1 / 0.848), 1.145, 'wall_s', runs.DOWN))
        self.assertEqual((Word.INCONCLUSIVE, Word.FAIL),
                         (up.result, down.result))

    def test_a_guest_above_native_is_suspect(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(1.05)))
        self.assertEqual(Word.PASS, result.result)
        self.assertTrue(figure.suspect)
        self.assertIn('suspect', result.reason)

    def test_a_guest_at_native_is_not_suspect(self):
        _, figure = self.judge(runs.run(NATIVE, scaled(1.0)))
        self.assertFalse(figure.suspect)

    def test_an_emulated_guest_fails_by_far(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(1 / 360)))
        self.assertEqual(Word.FAIL, result.result)
        self.assertEqual(2.0 ** -10, figure.p_fail)

    def test_a_margin_lets_a_demand_of_equality_pass(self):
        bounds = {'mops_total': judgement.Bound(1.0, margin=0.03)}
        result, figure = self.judge(
            runs.run(NATIVE, scaled(1.0), bounds=bounds))
        self.assertEqual((Word.PASS, 0.97), (result.result, figure.limit))

    def test_nothing_with_a_bound_is_inconclusive(self):
        result, _ = self.judge(runs.run(NATIVE, NATIVE, bounds={}))
        self.assertEqual((Word.INCONCLUSIVE, 'no figure has a bound'),
                         (result.result, result.reason))

    def test_describe_shows_what_has_no_bound_as_well(self):
        figure, = verdict.describe(runs.run(NATIVE, scaled(0.9), bounds={}))
        self.assertEqual((None, None), (figure.result, figure.reason))
        self.assertAlmostEqual(0.9, figure.interval.ratio, places=3)


class TestTooLittle(VerdictTestCase):
    def test_fewer_than_five_pairs_are_inconclusive(self):
        for count in range(5):
            result, figure = self.judge(
                runs.run(NATIVE[:count], NATIVE[:count]))
            self.assertEqual(Word.INCONCLUSIVE, result.result)
            self.assertIn('at least 5' if count else '', figure.reason)

    def test_fewer_than_ten_pairs_do_not_pass(self):
        for count in (5, 9):
            result, figure = self.judge(
                runs.run(NATIVE[:count], scaled(1.0)[:count]))
            self.assertEqual(Word.INCONCLUSIVE, result.result)
            self.assertIn('at least 10 do', figure.reason)
            self.assertEqual(judgement.Remedy.PAIRS, figure.remedy)
        result, _ = self.judge(runs.run(NATIVE[:5], scaled(0.8)[:5]))
        self.assertEqual(Word.FAIL, result.result)

    def test_fewer_pairs_than_planned_are_inconclusive(self):
        result, figure = self.judge(runs.run(NATIVE[:8], scaled(0.99)[:8],
                                             planned_pairs=10))
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('8 of the 10 planned', figure.reason)

    def test_what_was_added_to_the_plan_does_not_count(self):
        _, figure = self.judge(runs.run(NATIVE, NATIVE, planned_pairs=6))
        self.assertEqual(6, figure.pairs)

    def test_half_a_pair_does_not_count(self):
        _, figure = self.judge(runs.run(NATIVE[:7], NATIVE[:6],
                                        planned_pairs=6))
        self.assertEqual(6, figure.pairs)

    def test_warm_ups_do_not_count(self):
        run = runs.run(NATIVE, scaled(1.0))
        slow = runs.sample(record.Side.GUEST, 0, runs.good(1.0), warm_up=True)
        result, figure = self.judge(dataclasses.replace(
            run, samples=(slow, *run.samples)))
        self.assertEqual((Word.PASS, 10), (result.result, figure.pairs))

    def test_a_metric_that_is_missing_somewhere_is_inconclusive(self):
        other = runs.good(5.0, 'time_s', runs.DOWN)
        result, figure = self.judge(runs.run((*NATIVE[:5], other), NATIVE[:6]))
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('not measured in every sample', figure.reason)

    def test_a_sample_that_is_there_twice_is_an_error(self):
        run = runs.run(NATIVE, NATIVE)
        twice = dataclasses.replace(
            run, samples=(*run.samples, run.samples[0]))
        exc = self.assertRaises(exception.InvalidInput, verdict.judge,
                                (twice,))
        self.assertIn('two native samples', str(exc))


class TestInvalid(VerdictTestCase):
    def test_one_failed_sample_makes_it_invalid(self):
        guest = [*NATIVE[:9], runs.bad('no end marker')]
        result, figure = self.judge(runs.run(NATIVE, guest))
        self.assertEqual(Word.INVALID, result.result)
        self.assertIn('1 of 20 samples', figure.reason)
        self.assertIn('guest pair 9: no end marker', figure.reason)

    def test_a_failed_warm_up_does_as_well(self):
        run = runs.run(NATIVE, NATIVE)
        spoiled = runs.sample(record.Side.NATIVE, 0, runs.bad(), warm_up=True)
        result, _ = self.judge(dataclasses.replace(
            run, samples=(spoiled, *run.samples)))
        self.assertEqual(Word.INVALID, result.result)

    def test_arms_that_ran_other_things_are_invalid(self):
        guest = [runs.good(value, **{'class': 'B'}) for value in NATIVE]
        result, figure = self.judge(runs.run(NATIVE, guest))
        self.assertEqual(Word.INVALID, result.result)
        self.assertIn('class is C in native pair 0 and B in guest pair 0',
                      figure.reason)

    def test_invalid_outweighs_everything(self):
        result = verdict.judge((
            runs.run(NATIVE, scaled(0.5)),
            runs.run(NATIVE, [runs.bad()] * 10, benchmark='npb-mg')))
        self.assertEqual([Word.FAIL, Word.INVALID],
                         [figure.result for figure in result.judgements])
        self.assertEqual(Word.INVALID, result.result)


class TestVariation(VerdictTestCase):
    def test_the_same_figures_in_both_arms_are_invalid(self):
        result, figure = self.judge(runs.run(NATIVE, NATIVE))
        self.assertEqual(Word.INVALID, result.result)
        self.assertIn('both sides have the same figures', figure.reason)

    def test_copies_of_one_output_are_invalid(self):
        for native, guest in (([2429.99] * 6, scaled(0.99)[:6]),
                              (NATIVE, [97.31, 97.44] * 5)):
            result, figure = self.judge(runs.run(native, guest))
            self.assertEqual(Word.INVALID, result.result)
            self.assertIn('copies of outputs', figure.reason)

    def test_equal_figures_of_a_coarse_clock_are_inconclusive(self):
        for guest in (0.15, 0.16):
            result, figure = self.judge(runs.run(
                [0.15] * 6, [guest] * 6, 1.05, 'wall_s', runs.DOWN))
            self.assertEqual(Word.INCONCLUSIVE, result.result)
            self.assertIn('cannot be told apart', figure.reason)
        result, figure = self.judge(runs.run(
            [0.15] * 6, [0.25] * 6, 1.05, 'wall_s', runs.DOWN))
        self.assertEqual(Word.FAIL, result.result)

    def test_a_disturbed_run_counts_in_either_arm(self):
        for native, guest in (
                ([*NATIVE[:9], NATIVE[9] / 27], scaled(0.98)),
                (NATIVE, [*scaled(0.98)[:9], 100 / 27])):
            _, figure = self.judge(runs.run(native, guest))
            self.assertEqual(10, figure.pairs)
            self.assertAlmostEqual(0.98, figure.interval.ratio, places=2)

    def test_exchanged_arms_exchange_the_words(self):
        # A loss within the bound in one direction is a gain beyond minus the
        # bound in the other: all that a rule does to one side it does to both.
        slow = [*NATIVE[:9], 30]
        _, figure = self.judge(runs.run(slow, scaled(0.93)))
        _, mirror = self.judge(runs.run(scaled(0.93), slow, 1 / 0.95))
        self.assertAlmostEqual(figure.interval.low, 1 / mirror.interval.high)
        self.assertAlmostEqual(figure.p_pass, mirror.p_fail)
        self.assertAlmostEqual(figure.p_fail, mirror.p_pass)

    def test_a_guest_much_faster_than_native_is_invalid(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(26)))
        self.assertEqual(Word.INVALID, result.result)
        self.assertIn('faster than native by more than a fifth', figure.reason)
        result, _ = self.judge(runs.run(NATIVE, scaled(1.15)))
        self.assertEqual(Word.PASS, result.result)

    def test_variation_of_each_arm_is_shown(self):
        _, figure = self.judge(runs.run(NATIVE, scaled(1.0)))
        self.assertAlmostEqual(0.008, figure.native_cv, places=3)
        self.assertAlmostEqual(0.008, figure.guest_cv, delta=0.001)


class TestTail(VerdictTestCase):
    def stragglers(self, native, guest, count=30, ratio=1.0):
        values = [NATIVE * 3, scaled(ratio) * 3]
        sides = []
        for number, (base, slow) in enumerate(zip(values, (native, guest),
                                                  strict=True)):
            # Three times the same figures would be copies.
            side = [value * (1 + 1e-4 * index + 1e-5 * number)
                    for index, value in enumerate(base)][:count]
            for index in range(slow):
                side[5 * index + 3] /= 10
            sides.append(side)
        return self.judge(runs.run(*sides))

    def test_a_guest_with_some_slow_runs_does_not_pass(self):
        for slow in (1, 2, 3):
            result, figure = self.stragglers(0, slow)
            self.assertEqual(Word.INCONCLUSIVE, result.result)
            self.assertIn('much slower or failed the mean is not',
                          figure.reason)
            self.assertEqual((Word.INCONCLUSIVE, 0, slow), (
                figure.tail.result, figure.tail.native, figure.tail.guest))
            self.assertIn(f'{slow} of 30 guest runs and 0 of 30 native',
                          ' '.join(figure.remarks))

    def test_what_native_has_as_well_does_not_hold_up_a_guest(self):
        for native, guest in ((1, 0), (1, 1), (2, 3)):
            result, figure = self.stragglers(native, guest)
            self.assertEqual((Word.PASS, Word.PASS),
                             (result.result, figure.tail.result))

    def test_far_more_slow_runs_than_native_fail(self):
        values = [100 + 0.37 * number for number in range(60)]
        guest = [(100.1 + 0.37 * number) / (10 if number % 5 == 0 else 1)
                 for number in range(60)]
        result, figure = self.judge(runs.run(values, guest, 0.2))
        self.assertEqual((Word.PASS, Word.PASS),
                         (result.result, figure.tail.result))
        result, figure = self.judge(runs.run(values, guest))
        self.assertEqual((Word.FAIL, Word.FAIL),
                         (result.result, figure.tail.result))


class TestLaunches(VerdictTestCase):
    def launched(self, launches, ratio=0.99, **more):
        run = runs.run(NATIVE, scaled(ratio), **more)
        return self.judge(dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, launch_id=launches[sample.pair])
            if sample.side is record.Side.GUEST else sample
            for sample in run.samples)))

    def test_one_launch_says_nothing_about_the_flavor(self):
        result, figure = self.launched('aaaaaaaaaa')
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('of one launch of the guest', figure.reason)
        self.assertAlmostEqual(0.99, figure.interval.ratio, places=2)

    def test_one_launch_is_judged_by_itself_on_request(self):
        result, _ = self.launched('aaaaaaaaaa', of_launch=True)
        self.assertEqual(Word.PASS, result.result)

    def test_fewer_than_five_launches_are_inconclusive(self):
        result, figure = self.launched('aabbccdddd')
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('4 launches of the guest, at least 5', figure.reason)

    def test_several_launches_decide_by_their_means(self):
        result, _ = self.launched('aabbccddee')
        self.assertEqual(Word.PASS, result.result)
        # Samples that agree within a launch do not count as several.
        guest = [value * level for value, level in zip(
            NATIVE, (0.93, 0.93, 1.05, 1.05, 0.94, 0.94, 1.06, 1.06, 0.98,
                     0.98), strict=True)]
        run = runs.run(NATIVE, scaled(1, guest), 0.95)
        by_launch = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, launch_id='aabbccddee'[sample.pair])
            for sample in run.samples))
        _, figure = self.judge(by_launch)
        _, every = self.judge(run)
        self.assertGreater(figure.interval.high - figure.interval.low,
                           1.2 * (every.interval.high - every.interval.low))

    def test_a_verdict_says_which_launches_it_speaks_of(self):
        for launches, of_launch in (('aabbccddee', True), (None, False)):
            result, figure = (
                self.launched(launches, of_launch=of_launch) if launches
                else self.judge(runs.run(NATIVE, scaled(0.98))))
            self.assertEqual(0, figure.launches)
            self.assertIn('of the launches of the guest that were measured',
                          result.scope)
        result, figure = self.launched('aabbccddee')
        self.assertEqual(5, figure.launches)
        self.assertIn('; 5 were measured', result.scope)

    def test_a_verdict_on_one_boot_says_so(self):
        run = runs.run(NATIVE, scaled(0.98))
        of_one_boot = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment={'boot_id': sample.side})
            for sample in run.samples))
        asked = dataclasses.replace(of_one_boot, of_launch=True)
        for result in (self.judge(asked)[0],
                       self.launched('aaaaaaaaaa', of_launch=True)[0]):
            self.assertEqual(Word.PASS, result.result)
            self.assertIn('this boot of the guest alone', result.scope)
        result, figure = self.judge(of_one_boot)
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('of 1 boot of the guest, at least 5', figure.reason)
        self.assertEqual(judgement.Remedy.LAUNCHES, figure.remedy)

    def test_no_verdict_on_a_machine_itself_speaks_of_a_guest(self):
        machine = dataclasses.replace(
            runs.run(NATIVE, scaled(0.999), purpose=record.Purpose.AA),
            benchmark='npb-cg')
        found = verdict.judge_result(record.Result((machine,)))
        self.assertEqual('', found.verdict.scope)

    def test_boots_of_a_guest_are_launches_if_there_are_enough(self):
        for boots, launches, word in (
                ('aabbccddee', 5, Word.PASS),
                ('aaaaabbbbb', 0, Word.INCONCLUSIVE),
                ('aaaaaaaaaa', 0, Word.INCONCLUSIVE)):
            run = runs.run(NATIVE, scaled(0.99))
            result, figure = self.judge(dataclasses.replace(
                run, samples=tuple(dataclasses.replace(
                    sample, environment={
                        'boot_id@a': sample.side + boots[sample.pair],
                        'boot_id@b': 'x'})
                    for sample in run.samples)))
            self.assertEqual((word, launches),
                             (result.result, figure.launches))

    def test_unpaired_samples_of_a_guest_are_grouped_too(self):
        result, figure = self.launched(
            'aaaaaaaaaa', purpose=record.Purpose.UNPAIRED)
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('of one launch', figure.reason)


class TestControls(VerdictTestCase):
    def controlled(self, second, ratio=0.98, pairs=5, **more):
        """A run whose native samples are followed by others.

        :param second: the second of two native samples / the first
        """
        run = runs.run(NATIVE, scaled(ratio), **more)
        controls = [dataclasses.replace(
            sample, control=True, position=100 + sample.pair,
            outcome=runs.good(
                sample.outcome.metrics['mops_total'].value
                * second * (1 + 0.001 * sample.pair)))
            for sample in run.samples
            if sample.side is record.Side.NATIVE and sample.pair < pairs]
        return self.judge(dataclasses.replace(
            run, samples=(*run.samples, *controls)))

    def test_controls_show_how_much_native_differs_from_itself(self):
        found, figure = self.controlled(1.0)
        self.assertEqual(Word.PASS, found.result)
        self.assertAlmostEqual(1.0, figure.machine.ratio, places=2)
        self.assertEqual(10, figure.pairs)

    def test_native_that_fails_against_itself_decides_nothing(self):
        for second in (1.2, 0.8):
            for ratio, word in ((0.98, Word.PASS), (0.92, Word.FAIL)):
                alone, _ = self.judge(runs.run(NATIVE, scaled(ratio)))
                self.assertEqual(word, alone.result)
                found, figure = self.controlled(second, ratio)
                self.assertEqual(Word.INCONCLUSIVE, found.result)
                self.assertIn('the second of two native runs differs',
                              figure.reason)
                self.assertEqual(judgement.Remedy.QUIETER_MACHINE,
                                 figure.remedy)

    def test_a_loss_beyond_all_of_that_fails_all_the_same(self):
        self.assertEqual(Word.FAIL, self.controlled(1.2, 0.5)[0].result)

    def test_a_difference_within_the_bound_does_not_matter(self):
        self.assertEqual(Word.PASS, self.controlled(1.03)[0].result)

    def test_fewer_than_five_controls_say_nothing(self):
        found, figure = self.controlled(1.2, pairs=4)
        self.assertEqual(Word.PASS, found.result)
        self.assertIsNone(figure.machine)

    def test_noise_alone_withdraws_few_decisions(self):
        dice = random.Random(1)

        def noisy(count):
            return [100 * math.exp(dice.gauss(0, 0.1)) for _ in range(count)]
        withdrawn = 0
        for _ in range(300):
            run = runs.run(noisy(5), noisy(5))
            controls = [runs.sample(record.Side.NATIVE, pair, runs.good(value),
                                    control=True)
                        for pair, value in enumerate(noisy(5))]
            _, figure = self.judge(dataclasses.replace(
                run, samples=(*run.samples, *controls)))
            withdrawn += 'second of two' in (figure.reason or '')
        self.assertLessEqual(withdrawn, 12)


class TestUnpaired(VerdictTestCase):
    def test_unpaired_sides_are_compared_without_a_promise(self):
        for ratio in (1.0, 0.5):
            result, figure = self.judge(runs.run(
                NATIVE, scaled(ratio)[:7], purpose=record.Purpose.UNPAIRED))
            self.assertEqual(Word.COMPARED, result.result)
            self.assertFalse(figure.paired)
            self.assertEqual((None, None), (figure.p_pass, figure.p_fail))
            self.assertEqual(judgement.Remedy.IN_TURN, figure.remedy)
            self.assertIn('not measured in turn', result.reason)
            self.assertNotIn('5 %', result.method)
            self.assertAlmostEqual(ratio, figure.interval.ratio, places=1)

    def test_invalid_samples_are_invalid_all_the_same(self):
        result, _ = self.judge(runs.run(
            NATIVE, [*scaled(0.99)[:6], runs.bad()],
            purpose=record.Purpose.UNPAIRED))
        self.assertEqual(Word.INVALID, result.result)

    def test_unpaired_arms_need_five_samples_each(self):
        result, figure = self.judge(runs.run(
            NATIVE, NATIVE[:4], purpose=record.Purpose.UNPAIRED))
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('4 samples on a side', figure.reason)

    def test_pairs_make_the_interval_narrower_where_the_host_drifts(self):
        drift = [100 * 0.98 ** step for step in range(10)]
        _, paired = self.judge(runs.run(drift, scaled(0.99, drift)))
        _, alone = self.judge(runs.run(
            drift, scaled(0.99, drift), purpose=record.Purpose.UNPAIRED))
        self.assertEqual(Word.PASS, paired.result)
        self.assertLess(paired.interval.high - paired.interval.low, 0.02)
        self.assertGreater(alone.interval.high - alone.interval.low, 0.1)


class TestMachine(VerdictTestCase):
    def aa(self, second, **more):
        return runs.run(NATIVE, second, purpose=record.Purpose.AA, **more)

    def test_a_quiet_machine_changes_nothing(self):
        result, figure = self.judge(runs.run(NATIVE, scaled(0.98)),
                                    self.aa(scaled(1.0)))
        self.assertEqual(Word.PASS, result.result)
        self.assertAlmostEqual(1.0, figure.machine.ratio, places=3)
        self.assertEqual(1, len(result.judgements))

    def test_a_noisy_machine_cannot_decide(self):
        noisy = [value * (0.8 if number % 2 else 1.25)
                 for number, value in enumerate(NATIVE)]
        for ratio in (0.98, 0.93):
            result, figure = self.judge(runs.run(NATIVE, scaled(ratio)),
                                        self.aa(noisy))
            self.assertEqual(Word.INCONCLUSIVE, result.result)
            self.assertIn('this machine cannot decide', figure.reason)

    def test_a_loss_beyond_all_noise_still_fails(self):
        noisy = [value * (0.8 if number % 2 else 1.25)
                 for number, value in enumerate(NATIVE)]
        result, _ = self.judge(runs.run(NATIVE, scaled(0.05)), self.aa(noisy))
        self.assertEqual(Word.FAIL, result.result)

    def test_the_machine_of_another_benchmark_or_host_does_not_matter(self):
        noisy = [value * (0.8 if number % 2 else 1.25)
                 for number, value in enumerate(NATIVE)]
        result, figure = self.judge(runs.run(NATIVE, scaled(0.98)),
                                    self.aa(noisy, benchmark='npb-ep'))
        self.assertEqual((Word.PASS, None), (result.result, figure.machine))

    def test_too_short_a_check_says_nothing(self):
        result, figure = self.judge(
            runs.run(NATIVE, scaled(0.98)),
            runs.run(NATIVE[:3], NATIVE[:3], purpose=record.Purpose.AA))
        self.assertEqual((Word.PASS, None), (result.result, figure.machine))


class TestTogether(VerdictTestCase):
    def many(self, *ratios):
        return [runs.run(NATIVE, scaled(ratio), id=f'r{number}',
                         case=f'c{number}')
                for number, ratio in enumerate(ratios)]

    def test_all_must_pass(self):
        self.assertEqual(Word.PASS,
                         verdict.judge(self.many(0.98, 0.99, 1.0)).result)
        result = verdict.judge(self.many(0.98, 0.95, 1.0))
        self.assertEqual(Word.INCONCLUSIVE, result.result)
        self.assertIn('c1', result.reason)

    def test_one_failure_fails_all(self):
        result = verdict.judge(self.many(0.98, 0.95, 0.9))
        self.assertEqual(Word.FAIL, result.result)

    def test_what_passes_alone_may_not_pass_among_many(self):
        wide = [value * (0.93 + 0.01 * (7 * number % 10))
                for number, value in enumerate(NATIVE)]
        native = [value * (0.955 + 0.01 * ((3 * number + 4) % 10))
                  for number, value in enumerate(NATIVE)]
        alone = verdict.judge([runs.run(native, wide)])
        self.assertEqual(Word.PASS, alone.result)
        many = verdict.judge([
            runs.run(native, wide, id=f'r{number}', case=f'c{number}')
            for number in range(8)])
        self.assertEqual(Word.INCONCLUSIVE, many.result)
        self.assertIn('Holm', many.reason)

    def test_too_few_pairs_for_so_many_figures_are_named(self):
        few = [runs.run(NATIVE[:6], scaled(0.85)[:6], id=f'r{number}',
                        case=f'c{number}') for number in range(3)]
        self.assertEqual(Word.FAIL, verdict.judge(few[:2]).result)
        found = verdict.judge(few)
        self.assertEqual(Word.INCONCLUSIVE, found.result)
        self.assertIn('6 pairs cannot decide among 3 figures that are judged '
                      'together, at least 7 are needed', found.reason)

    def test_metrics_of_one_run_are_judged_together_too(self):
        found = [runs.figures(
            {'latency_us[1]': value, 'latency_us[8]': value * 2}, 'us',
            runs.DOWN) for value in NATIVE]
        bounds = {'latency_us[1]': judgement.Bound(1.3),
                  'latency_us[8]': judgement.Bound(1.1),
                  'latency_us[16]': judgement.Bound(1.1)}
        result = verdict.judge([runs.run(found, found[::-1], bounds=bounds)])
        self.assertEqual([Word.PASS, Word.PASS, Word.INCONCLUSIVE],
                         [figure.result for figure in result.judgements])


class TestResult(VerdictTestCase):
    def test_a_result_gets_the_bounds_of_its_definition(self):
        judged = verdict.judge_result(record.Result((
            runs.run(NATIVE, scaled(0.90), bounds={}),)))
        self.assertEqual(Word.FAIL, judged.verdict.result)
        self.assertIn('mops_total', judged.runs[0].bounds)

    def test_the_bounds_of_the_user_take_precedence(self):
        judged = verdict.judge_result(record.Result((
            runs.run(NATIVE, scaled(0.90), ratio=0.85),)))
        self.assertEqual(Word.PASS, judged.verdict.result)

    def test_native_alone_is_judged_as_if_the_second_arm_were_a_guest(self):
        for ratio, word in ((1.0, Word.PASS), (0.5, Word.FAIL)):
            judged = verdict.judge_result(record.Result((
                runs.run(NATIVE, scaled(ratio), purpose=record.Purpose.AA),)))
            self.assertEqual(word, judged.verdict.result)
            self.assertIs(record.Purpose.AA, judged.runs[0].purpose)

    def test_only_a_pass_ends_with_status_0(self):
        for ratio, status in ((0.99, 0), (0.95, 1), (0.5, 1)):
            result = record.Result((runs.run(NATIVE, scaled(ratio)),))
            self.assertEqual(
                status, verdict.exit_status(verdict.judge_result(result)))
        self.assertEqual(1, verdict.exit_status(record.Result(())))

    def test_unpaired_samples_end_with_status_0_if_all_are_valid(self):
        for guest, status in ((NATIVE[:3], 0), ([runs.bad()], 1)):
            result = record.Result((runs.run(
                NATIVE[:3], guest, purpose=record.Purpose.UNPAIRED),))
            self.assertEqual(status, verdict.exit_status(result))
