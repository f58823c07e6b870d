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

import dataclasses
import unittest

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import page
from hpcvirt.bench.report import published
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from tests.unit.bench import runs

MEASURED = judgement.Bound(0.962, 0, '[K], table 1',
                           judgement.BoundKind.MEASURED, 'one guest')
EXPECTED = dataclasses.replace(MEASURED, kind=judgement.BoundKind.EXPECTED)


def judged(benchmark, metric, **more):
    run = runs.run([1.0, 1.01, 0.99, 1.0, 1.02, 1.01],
                   [1.0, 1.0, 1.01, 0.99, 1.01, 1.02], metric=metric,
                   benchmark=benchmark, bounds={}, **more)
    return verdict.judge_result(record.Result((run,)))


class PublishedTest(unittest.TestCase):

    def test_only_what_was_measured_is_a_published_ratio(self):
        self.assertEqual((0.962, '0.962'), (published.ratio(MEASURED),
                                            published.word(MEASURED)))
        self.assertEqual((None, 'expected'), (published.ratio(EXPECTED),
                                              published.word(EXPECTED)))

    def test_the_bound_of_a_user_is_not_from_a_study(self):
        for bound in (None, judgement.Bound(0.9, source='given by the user')):
            self.assertEqual((None, '-'), (published.ratio(bound),
                                           published.word(bound)))

    def test_the_source_says_the_kind_the_line_and_the_conditions(self):
        self.assertEqual('0.962, measured, [K], table 1; one guest',
                         published.source(MEASURED))
        self.assertEqual('0.900, given by the user', published.source(
            judgement.Bound(0.9, source='given by the user')))

    def test_the_reports_name_what_was_not_published(self):
        for benchmark, metric, cell in (
                ('hs06', 'score', '0.954'),
                ('hepscore', 'score', 'transferred'),
                ('stream', 'triad_mb_s', 'expected')):
            result = judged(benchmark, metric, shape='2x16')
            row = next(line for line in text.table(result).splitlines()
                       if line.startswith(f'  {metric}'))
            self.assertEqual(cell, row.split()[-2], row)
            html = page.page([summary.Shown('r', result, '2026-01-01', True)],
                             'x')
            self.assertIn(f'>{cell}</td>', html)
            circles = html.count('<circle class="published"')
            self.assertEqual(int(cell == '0.954'), circles)

    def test_the_text_names_the_conditions_of_a_bound(self):
        shown = ' '.join(text.table(
            judged('stream', 'triad_mb_s')).split())
        self.assertIn('bound 0.952, expected, [LBNL-Partitioning], slide of '
                      'expectations', shown)
        self.assertIn('no study measured it', shown)
