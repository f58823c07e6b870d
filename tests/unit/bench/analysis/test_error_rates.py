# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How often the verdict is wrong, and how often it comes: by simulation.

Noise is log-normal, both arms alike, with seeded dice. The tables here are
those of the documentation: a test reads them from there.
"""

import functools
import math
import pathlib
import random
import re

import testtools
from scipy import stats as reference

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from tests.unit.bench import runs

Word = judgement.Word
TIMES = 600
DOCS = (pathlib.Path(__file__).parents[4] / 'docs' / 'source'
        / 'benchmarks.rst')


def simulated(seed, pairs, cv, ratio, bound=0.95, drift=0.0, figures=1):
    """One set of runs with a known true ratio."""
    dice = random.Random(seed)
    sigma = math.sqrt(math.log(1 + cv ** 2))
    together = []
    for figure in range(figures):
        host = [100 * math.exp(drift * dice.gauss(0, 1))
                for _ in range(pairs)]
        native = [value * math.exp(sigma * dice.gauss(0, 1))
                  for value in host]
        guest = [value * ratio * math.exp(sigma * dice.gauss(0, 1))
                 for value in host]
        together.append(runs.run(native, guest, bound, id=str(figure),
                                 case=str(figure)))
    return verdict.judge(together)


@functools.cache
def words(pairs, cv, ratio, times=TIMES, **more):
    """How often each word comes, as parts of 1."""
    first = 100000 * pairs + 1000000 * round(cv * 1000)
    found = [simulated(first + number, pairs, cv, ratio, **more).word
             for number in range(times)]
    return {word: found.count(word) / times for word in Word}


def tolerance(rate, times=TIMES):
    """What a rate may be exceeded by chance, once in ten thousand."""
    return float(reference.binom.ppf(0.9999, times, rate)) / times


def power(pairs, cv, ratio, bound):
    """Chance of PASS (ratio above the bound) or FAIL, worked out."""
    sigma = math.sqrt(2 * math.log(1 + cv ** 2))
    shift = abs(math.log(ratio / bound)) * math.sqrt(pairs) / sigma
    return float(reference.nct.sf(reference.t.ppf(0.95, pairs - 1),
                                  pairs - 1, shift))


class TestErrorRates(testtools.TestCase):
    def test_a_guest_at_the_bound_passes_or_fails_5_percent_each(self):
        for pairs in (5, 10, 20):
            for cv in (0.01, 0.03, 0.10):
                found = words(pairs, cv, 0.95)
                self.assertLessEqual(found[Word.PASS], tolerance(0.05))
                self.assertLessEqual(found[Word.FAIL], tolerance(0.05))

    def test_a_guest_beyond_the_bound_passes_less_still(self):
        for cv in (0.03, 0.10):
            self.assertLessEqual(words(10, cv, 0.85)[Word.PASS],
                                 tolerance(0.005))

    def test_drift_of_the_host_does_not_matter_in_pairs(self):
        found = words(10, 0.01, 0.95, drift=0.2)
        self.assertLessEqual(found[Word.PASS], tolerance(0.05))
        self.assertLessEqual(found[Word.FAIL], tolerance(0.05))
        self.assertGreater(words(10, 0.01, 1.0, drift=0.2)[Word.PASS], 0.99)

    def test_over_several_figures_the_errors_stay_at_5_percent(self):
        for ratio in (0.95, 0.9500001):
            found = words(10, 0.03, ratio, times=200, figures=6)
            limit = tolerance(0.05, 200)
            self.assertLessEqual(found[Word.PASS], limit)
            self.assertLessEqual(found[Word.FAIL], limit)

    def test_no_figure_among_several_at_the_bound_passes_falsely(self):
        once = sum(
            any(figure.word is Word.PASS for figure in simulated(
                number, 10, 0.03, 0.95, figures=6).judgements)
            for number in range(200)) / 200
        self.assertLessEqual(once, tolerance(0.05, 200))

    def test_simulated_power_is_what_theory_says(self):
        for pairs, cv, ratio, word in (
                (5, 0.01, 1.0, Word.PASS), (10, 0.03, 1.0, Word.PASS),
                (20, 0.10, 0.90, Word.FAIL), (10, 0.03, 0.90, Word.FAIL)):
            expected = power(pairs, cv, ratio, 0.95)
            error = math.sqrt(expected * (1 - expected) / TIMES)
            self.assertAlmostEqual(
                expected, words(pairs, cv, ratio)[word],
                delta=4 * error + 0.005)

    def test_no_significant_difference_is_not_a_pass(self):
        # The fallacy that the interval avoids: with five pairs at CV 10 % a
        # loss of 15 % is mostly "not significant".
        missed = 0
        for number in range(300):
            figure, = simulated(number, 5, 0.10, 0.85).judgements
            reach = (reference.t.ppf(0.975, 4) / reference.t.ppf(0.95, 4)
                     * math.log(figure.interval.high / figure.interval.ratio))
            missed += math.log(figure.interval.ratio) + reach > 0
        self.assertGreater(missed / 300, 0.4)
        self.assertLess(words(5, 0.10, 0.85, times=300)[Word.PASS], 0.03)


class TestDocumentedPower(testtools.TestCase):
    def test_the_table_of_the_documentation_is_right(self):
        text = DOCS.read_text(encoding='utf-8')
        rows = re.findall(
            r'^   \* - (\d+)\n     - (\d+) %\n     - (\d+) %\n     - (\d+) %',
            text, re.MULTILINE)
        self.assertEqual(
            [(pairs, cv) for pairs in (5, 10, 20) for cv in (1, 3, 10)],
            [(int(pairs), int(cv)) for pairs, cv, _, _ in rows])
        for pairs, cv, passes, fails in rows:
            for ratio, printed in ((1.0, passes), (0.90, fails)):
                expected = power(int(pairs), int(cv) / 100, ratio, 0.95)
                self.assertEqual(round(100 * expected), int(printed))
