# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome

RATE = metric_definition.MetricDefinition(
    'mops_total', 'Mop/s', outcome.Direction.UP, 'all processes')
LATENCY = metric_definition.MetricDefinition(
    'latency_us', 'us', outcome.Direction.DOWN, 'a message', per_size=True)


class TestNames(testtools.TestCase):
    def test_a_size_in_brackets_is_no_part_of_the_name(self):
        for metric, parts in (
                ('latency_us[128]', ('latency_us', 128)),
                ('mops_total', ('mops_total', None)),
                ('x[]', ('x[]', None)), ('x[-1]', ('x[-1]', None)),
                ('x[1][2]', ('x[1][2]', None)),
                (f'x[{"9" * 16}]', (f'x[{"9" * 16}]', None))):
            self.assertEqual(parts, metric_definition.split(metric))

    def test_only_a_figure_per_size_is_found_with_a_size(self):
        for metric, figure in (
                ('mops_total', RATE), ('mops_total[8]', None),
                ('latency_us[8]', LATENCY), ('latency_us', None),
                ('latency_us[x]', None), ('time_s', None)):
            self.assertIs(figure, metric_definition.find((RATE, LATENCY),
                                                         metric))
