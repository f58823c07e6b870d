# SPDX-License-Identifier: Apache-2.0

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

    def test_a_loss_that_is_too_near_is_named(self):
        found = self.judged(0.03, None, 1.0, 1.0, 0.001)
        self.assertEqual((Word.INCONCLUSIVE, judgement.Remedy.PAIRS),
                         (found.result, found.remedy))
        self.assertIn('nearer to the bound than 10 pairs', found.reason)
