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

"""The summary of several results on a terminal."""

import dataclasses

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import summary
from tools import report_example


class TestSummary(testtools.TestCase):
    def lines(self, *some):
        return summary.lines(report_example.shown(some))

    def test_verdicts_are_counted_and_sorted(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {'benchmark': 'npb-ft'},
                           {'benchmark': 'npb-lu', 'pairs': 3},
                           {'benchmark': 'npb-bt', 'figures': {
                               'mops_total': (1, 0.5, 'Mop/s',
                                              report_example.UP)}})
        self.assertEqual(['FAIL', 'INCONCLUSIVE', 'PASS', 'PASS'],
                         [line.word for line in lines])
        # The newest of equal ones is first.
        self.assertEqual(['npb-ft mpi', 'npb-cg mpi'], [
            line.subject.benchmarks for line in lines[2:]])
        self.assertEqual('4 results: 1 FAIL, 1 INCONCLUSIVE, 2 PASS',
                         summary.count(lines))

    def test_an_attempt_that_is_continued_is_last(self):
        first, second, other = report_example.shown([
            {'benchmark': 'npb-lu', 'pairs': 3}, {'benchmark': 'npb-lu'},
            {'benchmark': 'npb-cg'}])
        run, before = second.result.runs[0], first.result.runs[0]
        result = verdict.judge_result(record.Result((dataclasses.replace(
            run, earlier=(record.Attempt(before.id, '', 3,
                                         before.samples),)),)))
        lines = summary.lines([
            first, dataclasses.replace(second, result=result), other])
        self.assertEqual([(), ('second attempt',), ('continued',)],
                         [summary.states(line) for line in lines])
        self.assertEqual('2 results: 2 PASS; 1 earlier attempt',
                         summary.count(lines))
        self.assertIn('0000000000000001, second attempt',
                      summary.table(lines, None))

    def test_the_table_names_each(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {
            'benchmark': 'npb-ft', 'flavor': report_example.LONG_FLAVOR,
            'host': report_example.LONG_HOST})
        for width in (60, None):
            table = summary.table(lines, width)
            self.assertIn('npb-cg', table)
            self.assertIn(report_example.LONG_FLAVOR, table)
