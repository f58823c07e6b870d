# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import summary
from tests.builders import runs
from tests.builders import shown_results


class TestSummary(testtools.TestCase):
    """The summary of several results on a terminal."""

    def lines(self, *some):
        return summary.lines(shown_results.shown(some))

    def test_verdicts_are_counted_and_sorted(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {'benchmark': 'npb-ft'},
                           {'benchmark': 'npb-lu', 'pairs': 3},
                           {'benchmark': 'npb-bt', 'figures': {
                               'mops_total': (1, 0.5, 'Mop/s',
                                              shown_results.UP)}})
        self.assertEqual(['FAIL', 'INCONCLUSIVE', 'PASS', 'PASS'],
                         [line.word for line in lines])
        # The newest of equal ones is first.
        self.assertEqual(['npb-ft mpi', 'npb-cg mpi'], [
            line.subject.benchmarks for line in lines[2:]])
        self.assertEqual('4 results: 1 FAIL, 1 INCONCLUSIVE, 2 PASS',
                         summary.count(lines))

    def test_what_the_user_named_tells_results_apart(self):
        subject = summary.make_subject(record.Result((runs.stream(
            parameters={'ranks': '4'}, identity={
                'guest kernel': '6.1', f'{record.SETTING}ranks': '4',
                f'{record.SETTING}script': '/opt/md/run'}),)))
        self.assertEqual(('stream openmp run', ('script: /opt/md/run',)),
                         (subject.benchmarks, subject.paths))

    def test_an_attempt_that_is_continued_is_last(self):
        first, second, other = shown_results.shown([
            {'benchmark': 'npb-lu', 'pairs': 3}, {'benchmark': 'npb-lu'},
            {'benchmark': 'npb-cg'}])
        run, before = second.result.runs[0], first.result.runs[0]
        result = verdict.judge_result(record.Result((dataclasses.replace(
            run, earlier=(record.Attempt(before.id, '', 3,
                                         before.samples),)),)))
        lines = summary.lines([
            first, dataclasses.replace(second, result=result), other])
        self.assertEqual([(), ('second attempt',), ('continued',)],
                         [line.states for line in lines])
        self.assertEqual('2 results: 2 PASS; 1 earlier attempt',
                         summary.count(lines))
        self.assertIn('0000000000000001, second attempt',
                      summary.table(lines, None))

    def test_the_best_of_several_hosts_has_more_chances(self):
        hosts = [{'benchmark': 'npb-cg', 'host': f'n{number}', 'pairs': 12,
                  'noise': noise,
                  'figures': {'mops_total': (24000, 1.0, 'Mop/s',
                                             shown_results.UP)}}
                 for number, noise in enumerate([0.028, *[0.006] * 13])]
        lines = self.lines(*hosts)
        self.assertEqual(14, sum(line.word == 'PASS' for line in lines))
        worst = next(line for line in lines if line.subject.hosts == 'n0')
        self.assertGreater(14 * worst.p_pass, stats.ALPHA)
        self.assertIn(
            'each of the 14 results is judged by itself; the best of as many '
            'guests that are exactly at their bounds passes in up to 51% of '
            'all cases; 13 of 14 PASS hold for the best of them as well, not '
            f'{worst.id}', ' '.join(summary.table(lines, 70).split()))

    def test_several_benchmarks_of_one_host_are_no_selection(self):
        self.assertEqual('', summary.describe_selection(self.lines(
            {'benchmark': 'npb-cg'}, {'benchmark': 'npb-ft'})))

    def test_of_guests_at_their_bounds_no_best_one_holds_too_often(self):
        held = passed = 0
        for seed in range(60):
            dice = random.Random(seed)
            some = []
            for number in range(5):
                run = dataclasses.replace(runs.run(*(
                    [100 * ratio * math.exp(dice.gauss(0, 0.08))
                     for _ in range(10)] for ratio in (1, 0.95)), 0.95),
                    host=f'n{number}')
                some.append(summary.Shown(str(number), record.Result(
                    (run,), verdict.judge([run])), '', True))
            passed += any(each.word == 'PASS' for each in some)
            found = summary.describe_selection(some)
            held += 'PASS hold' in found and '; 0 of' not in found
        self.assertGreater(passed, 6)
        self.assertLessEqual(held, 7)

    def test_the_table_names_each(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {
            'benchmark': 'npb-ft', 'flavor': shown_results.LONG_FLAVOR,
            'host': shown_results.LONG_HOST})
        for width in (60, None):
            table = summary.table(lines, width)
            self.assertIn('npb-cg', table)
            self.assertIn(shown_results.LONG_FLAVOR, table)
