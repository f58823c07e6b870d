# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from hpcvirt.bench.analysis import figure_verdict
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from tests.builders import runs

Word = judgement.VerdictResult


def figure(typical, mean, limit=0.05):
    """A figure whose losses are intervals about two values."""
    found = [judgement.Interval(1 + each, 1 + each - 0.01, 1 + each + 0.01)
             if each is not None else None for each in (typical, mean)]
    return figures.Figure(judgement.Judgement(
        'run', 'wall_s', 's', runs.DOWN, Word.INCONCLUSIVE, None, 1.05,
        found[0], 10, mean=found[1]), limit=limit)


class TestDecide(testtools.TestCase):
    def judged(self, typical, mean, p_pass, p_fail, error=0.01):
        return figure_verdict.decide(
            figure(typical, mean), stats.Normal(typical, error, 9), p_pass,
            p_fail, min(p_pass, p_fail))

    def test_a_reason_says_where_both_losses_are(self):
        for typical, mean, p_fail, word, places in (
                (0.0, 0.05, 1.0, Word.INCONCLUSIVE,
                 ('within', 'on either side of')),
                (0.0, 0.1, 0.0, Word.FAIL, ('within', 'beyond')),
                (0.1, 0.1, 0.0, Word.FAIL, ('beyond', 'beyond'))):
            found = self.judged(typical, mean, 1.0, p_fail)
            self.assertEqual(word, found.result)
            first, second = found.reason.split(', and the mean time ')
            for place, text in zip(places, (first, second), strict=True):
                self.assertIn(f'{place} the bound', text)
        found = self.judged(0.1, None, 1.0, 0.0)
        self.assertEqual('the loss is beyond the bound', found.reason)

    def judged_on(self, machine, typical, p_pass, p_fail, error=0.0):
        """Judge a loss where native differs from native by another one."""
        return figure_verdict.decide(
            dataclasses.replace(figure(typical, None),
                                machine=stats.Normal(machine, error, 9)),
            stats.Normal(typical, 0.001, 9), p_pass, p_fail,
            min(p_pass, p_fail))

    def test_a_machine_that_differs_by_more_than_the_bound_cannot_decide(self):
        for machine, word in ((0.04, Word.PASS), (0.06, Word.INCONCLUSIVE),
                              (-0.06, Word.INCONCLUSIVE)):
            found = self.judged_on(machine, 0.0, 0.0, 1.0)
            self.assertEqual(word, found.result)
            if word is Word.INCONCLUSIVE:
                self.assertIn('native against native differs by more than '
                              'the bound', found.reason)
                self.assertEqual(judgement.Remedy.QUIETER_MACHINE,
                                 found.remedy)

    def test_a_machine_that_may_differ_by_more_than_the_bound_cannot(self):
        for machine in (0.04, -0.04):
            found = self.judged_on(machine, 0.0, 0.0, 1.0, error=0.02)
            self.assertEqual(Word.INCONCLUSIVE, found.result)

    def test_controls_may_differ_by_what_the_clock_cannot_tell_apart(self):
        for step, word in ((0.0, Word.INCONCLUSIVE), (0.02, Word.PASS)):
            found = figure_verdict.decide(
                dataclasses.replace(figure(0.0, None), step=step,
                                    control=stats.Normal(0.06, 0.002, 9)),
                stats.Normal(0.0, 0.001, 9), 0.0, 1.0, 0.0)
            self.assertEqual(word, found.result, step)

    def test_a_loss_beyond_the_noise_of_the_machine_fails(self):
        for typical, word in ((0.07, Word.INCONCLUSIVE), (0.2, Word.FAIL)):
            found = self.judged_on(0.1, typical, 1.0, 0.0)
            self.assertEqual(word, found.result)

    def test_an_implausible_gain_is_invalid_on_a_noisy_machine_too(self):
        for machine in (0.01, 0.1):
            found = self.judged_on(machine, -0.3, 0.0, 1.0)
            self.assertEqual((Word.INVALID, judgement.Remedy.BASELINE),
                             (found.result, found.remedy))
            self.assertIn('faster than native by more than a fifth',
                          found.reason)

    def test_a_loss_that_is_too_near_is_named(self):
        found = self.judged(0.03, None, 1.0, 1.0, 0.001)
        self.assertEqual((Word.INCONCLUSIVE, judgement.Remedy.PAIRS),
                         (found.result, found.remedy))
        self.assertIn('nearer to the bound than 10 pairs', found.reason)
