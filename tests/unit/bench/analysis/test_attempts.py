# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

import testtools

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

Word = judgement.VerdictResult


def noisy(pairs, ratio=1.0, seed=1, deviation=0.3):
    dice = random.Random(seed)
    return ([100 + dice.gauss(0, deviation) for _ in range(pairs)],
            [100 * ratio + dice.gauss(0, deviation) for _ in range(pairs)])


def attempt(native, guest, **more):
    run = runs.run(native, guest, **more)
    return record.Attempt(run.id, '', run.planned_pairs, run.samples)


def after(earlier, pairs=10, ratio=1.0, seed=0, **more):
    return runs.run(*noisy(pairs, ratio, seed), earlier=tuple(
        attempt(*each) for each in earlier), **more)


class TestGather(testtools.TestCase):
    def test_pairs_of_all_attempts_count_in_their_order(self):
        found = attempts.gather(after([noisy(3), noisy(4, seed=2)])).run
        (judged,) = verdict.judge([after([noisy(3), noisy(4, seed=2)])
                                   ]).judgements
        self.assertEqual((17, 17), (found.planned_pairs, judged.pairs))
        self.assertEqual(
            [sorted([*range(17)] * 2)],
            [sorted(sample.pair for sample in found.samples)])

    def test_without_earlier_attempts_nothing_changes(self):
        run = after([])
        self.assertEqual(attempts.Evidence(run), attempts.gather(run))

    def test_only_complete_and_valid_pairs_count(self):
        native, guest = noisy(6)
        guest[1] = runs.bad()
        (judged,) = verdict.judge([after([(native, guest[:4])])]).judgements
        self.assertEqual(13, judged.pairs)
        self.assertIsNot(Word.INVALID, judged.result)

    def test_what_failed_before_is_a_straggler(self):
        native, guest = noisy(6)
        for side, number in (((native, [*guest[:5], runs.bad()]), (0, 1)),
                             (([*native[:4], *[runs.bad()] * 2], guest),
                              (2, 0))):
            run = after([side])
            self.assertEqual(number, attempts.gather(run).failed)
            (judged,) = verdict.judge([run]).judgements
            self.assertEqual(number, (judged.tail.native, judged.tail.guest))
            # A run that hung has no length.
            self.assertEqual(bool(number[1]), judged.tail.ratio is None)
            self.assertEqual(Word.INCONCLUSIVE if number[1] else Word.PASS,
                             judged.result)
            self.assertIn(f'of these, {number[1]} of the guest and '
                          f'{number[0]} of native failed in earlier attempts',
                          judged.remarks)

    def test_a_guest_whose_jobs_hang_does_not_pass_at_last(self):
        # Each attempt is measured again because it is not welcome.
        native, guest = noisy(10)
        hung = (native, [*guest[:9], runs.bad('stopped at its time limit')])
        for earlier in ([hung], [hung, noisy(10, seed=2), noisy(10, seed=3)]):
            judged = verdict.judge([after(earlier)])
            self.assertEqual(Word.INCONCLUSIVE, judged.result)
            self.assertIn('much slower or failed', judged.reason)

    def test_a_failed_sample_is_named_as_in_its_own_attempt(self):
        native, guest = noisy(10)
        run = runs.run(native, [*guest[:3], runs.bad(), *guest[4:]],
                       earlier=(attempt(*noisy(10, seed=2)),))
        reason = verdict.judge([run]).reason
        self.assertIn('1 of 20 samples failed their own check; the first, '
                      'guest pair 3', reason)

    def test_attempts_at_something_else_do_not_count(self):
        native, guest = ([runs.good(value, **{'class': 'D'}) for value in side]
                         for side in noisy(6))
        self.assertEqual(1.0, attempts.gather(after([(native, guest)])).share)
        (judged,) = verdict.judge([after([(native, guest)])]).judgements
        self.assertEqual(10, judged.pairs)

    def test_a_verdict_on_one_launch_has_the_pairs_of_that_launch(self):
        def booted(run, boot):
            return dataclasses.replace(run, samples=tuple(
                dataclasses.replace(sample, environment={'boot_id': boot})
                for sample in run.samples))
        earlier = tuple(
            record.Attempt(boot, '', 6, booted(
                runs.run(*noisy(6, seed=number)), boot).samples)
            for number, boot in enumerate('aba'))
        run = dataclasses.replace(booted(after([]), 'a'), earlier=earlier)
        for of_launch, pairs in ((True, 22), (False, 28)):
            found = attempts.gather(dataclasses.replace(
                run, of_launch=of_launch)).run
            self.assertEqual(pairs, found.planned_pairs)

    def test_unpaired_runs_are_not_attempts(self):
        run = after([noisy(6)], purpose=record.Purpose.UNPAIRED)
        self.assertEqual(run, attempts.gather(run).run)


class TestShare(testtools.TestCase):
    def test_all_attempts_together_stay_within_the_promise(self):
        self.assertEqual(1.0, attempts.share(1))
        total = stats.ALPHA * sum(map(attempts.share, range(1, 2000)))
        self.assertLessEqual(total, 0.05)
        self.assertGreater(total, 0.049)

    def test_each_attempt_that_had_enough_pairs_takes_its_part(self):
        for earlier, number in (([], 1), ([3], 1), ([3, 3], 2), ([5], 2),
                                ([5, 1], 3), ([10, 10, 10], 4)):
            run = after([noisy(pairs, seed=pairs) for pairs in earlier])
            self.assertEqual(attempts.share(number),
                             attempts.gather(run).share)

    def test_it_widens_the_interval(self):
        run = after([noisy(10, seed=3)])
        all_at_once = runs.run(*(
            [*first, *second] for first, second
            in zip(noisy(10, seed=3), noisy(10, seed=0), strict=True)))
        later, once = (verdict.judge([each]).judgements[0].interval
                       for each in (run, all_at_once))
        self.assertEqual(once.ratio, later.ratio)
        self.assertLess(later.low, once.low)
        self.assertGreater(later.high, once.high)


class TestVerdict(testtools.TestCase):
    def test_it_says_how_the_earlier_attempts_ended(self):
        run = after([noisy(3), noisy(10, 0.95, 4, 2.0)], ratio=1.0)
        found = verdict.judge([run])
        (figure,) = found.judgements
        self.assertEqual((Word.INCONCLUSIVE,) * 2, figure.earlier)
        self.assertIn('third attempt; two were INCONCLUSIVE', figure.remarks)
        self.assertEqual((), verdict.judge([run], tell=False).judgements[
            0].earlier)

    def test_the_words(self):
        for words, text in (
                ([Word.FAIL], 'second attempt; the first was FAIL'),
                ([Word.PASS, Word.FAIL, Word.PASS],
                 'fourth attempt; two were PASS, one was FAIL'),
                ([Word.INCONCLUSIVE] * 11,
                 '12th attempt; 11 were INCONCLUSIVE')):
            self.assertEqual(text, attempts.describe_attempt(words))

    def test_of_many_attempts_the_last_ones_count(self):
        earlier = [noisy(5, seed=seed) for seed in range(12)]
        run = dataclasses.replace(after(earlier), omitted=300)
        (figure,) = verdict.judge([run]).judgements
        self.assertEqual((60, 10), (figure.pairs, len(figure.earlier)))
        self.assertEqual(attempts.share(313), attempts.gather(run).share)
        self.assertTrue(figure.remarks[-1].startswith(
            '313th attempt; of the last 10, '), figure.remarks)
        # What is told of them is what was told of them then.
        last = dataclasses.replace(
            run, samples=run.earlier[-1].samples, planned_pairs=5,
            earlier=run.earlier[:-1])
        self.assertEqual(verdict.judge([last]).judgements[0].result,
                         figure.earlier[-1])

    def test_a_good_attempt_does_not_replace_a_bad_one(self):
        bad = noisy(10, 0.90)
        alone = verdict.judge([after([])])
        self.assertIs(Word.PASS, alone.result)
        found = verdict.judge([after([bad])])
        self.assertIs(Word.INCONCLUSIVE, found.result)
        (figure,) = found.judgements
        self.assertEqual((Word.FAIL,), figure.earlier)

    def test_attempts_that_contradict_each_other_decide_nothing(self):
        found = verdict.judge([after([noisy(60, 0.90)])])
        self.assertIs(Word.INCONCLUSIVE, found.result)
        self.assertIn('this attempt alone is', found.reason)
        self.assertIn('find out what changed', found.reason)

    def test_a_bad_attempt_after_good_ones_leaves_the_mean_open(self):
        found = verdict.judge([after([noisy(60)], ratio=0.90)])
        self.assertIs(Word.INCONCLUSIVE, found.result)
        self.assertIn('a typical run is within the bound, and the mean time '
                      'may be on either side of the bound', found.reason)

    def test_arms_that_are_exchanged_exchange_the_words(self):
        # The loss is 0 at the bound; the guest gains or loses 1 %.
        for ratio, word in ((1.01, Word.PASS), (1 / 1.01, Word.FAIL)):
            run = after([noisy(10, ratio, 2)], ratio=ratio)
            run = dataclasses.replace(
                run, bounds={'mops_total': judgement.Bound(1.0)})
            self.assertIs(word, verdict.judge([run]).result)
