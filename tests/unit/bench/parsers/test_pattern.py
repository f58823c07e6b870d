# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import output_format
from hpcvirt.bench.parsers import parser

RULES = line_pattern.LineRules(
    {'rate': r'Performance: +(\S+) steps/s', 'time': r'Total: (\S+) s'},
    {'ranks': r'Running on (\d+) ranks'}, ('Run finished',),
    ('residual is wrong', 'ERROR'))
FORM = output_format.OutputFormat('spin', 'pattern', (
    metric_definition.MetricDefinition(
        'rate', 'steps/s', outcome.Direction.UP, 'speed'),
    metric_definition.MetricDefinition(
        'time', 's', outcome.Direction.DOWN, 'duration')), RULES)
OUTPUT = ('Running on 4 ranks\n   Performance:  12.5 steps/s  \n'
          'Total: 3.5 s\nRun finished after 9 steps\n')


class TestPattern(testtools.TestCase):
    def parse(self, raw, expect=None):
        return parser.parse(FORM, raw.encode(), expect or {})

    def test_figures_stand_on_the_lines_that_are_described(self):
        found = self.parse(OUTPUT, {'ranks': '4'})
        self.assertTrue(found.valid, found.reason)
        self.assertEqual({
            'rate': outcome.Metric(12.5, 'steps/s', outcome.Direction.UP),
            'time': outcome.Metric(3.5, 's', outcome.Direction.DOWN)},
            found.metrics)
        self.assertEqual({'ranks': '4'}, found.parameters)

    def test_what_does_not_count_is_refused(self):
        for what, raw in (
                ('no complete line with "Run finished"',
                 OUTPUT[:OUTPUT.index(' after')]),
                ('no complete line with "Run finished"',
                 OUTPUT[:OUTPUT.rindex('Run')]),
                ('no complete line of rate', OUTPUT.replace('steps/s', 'x')),
                ('no complete line of rate',
                 OUTPUT.replace('12.5 steps/s', '12.5 steps/s twice')),
                ('2 different values of rate: 12.5, 12.6',
                 OUTPUT + 'Performance: 12.6 steps/s\n'),
                ('2 different values of ranks: 4, 8',
                 OUTPUT + 'Running on 8 ranks\n'),
                ("rate is 'nan'", OUTPUT.replace('12.5', 'nan')),
                ("rate is 'inf'", OUTPUT.replace('12.5', 'inf')),
                ('rate is 0.0', OUTPUT.replace('12.5', '0.0')),
                ('rate is -1', OUTPUT.replace('12.5', '-1')),
                ('rate is 1e99', OUTPUT.replace('12.5', '1e99')),
                ('step 3: RESIDUAL IS WRONG',
                 OUTPUT + 'step 3: RESIDUAL IS WRONG'),
                ('Error: no GPU', 'Error: no GPU\n' + OUTPUT),
                ('rate is ****', OUTPUT.replace('12.5', '****')),
                ('the output is empty', '')):
            found = self.parse(raw)
            self.assertFalse(found.valid, what)
            self.assertIn(what, found.reason)
            self.assertEqual({}, found.metrics)

    def test_another_number_of_ranks_is_refused(self):
        found = self.parse(OUTPUT, {'ranks': '8'})
        self.assertIn('ranks=8 was requested', found.reason)

    def test_a_figure_that_is_repeated_is_one_figure(self):
        self.assertTrue(self.parse(
            OUTPUT + 'Performance: 12.5 steps/s\n').valid)

    def test_every_truncated_output_is_refused(self):
        for end in range(len(OUTPUT) - 1):
            self.assertFalse(self.parse(OUTPUT[:end]).valid, end)
