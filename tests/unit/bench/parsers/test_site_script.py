# SPDX-License-Identifier: Apache-2.0

from hpcvirt.bench.model import outcome
from tests.unit.bench.parsers import base

GOOD_OUTPUTS = ((b'step 1 of 2\nstep 2 of 2\nrate: 812.5\n', {}),
                (b'done\ntime: 93.25\n', {}))


class TestSiteScript(base.ParserTestCase):
    parser = 'site_script'
    refused = (
        ('no figure', '0 complete lines', 'all went well\n'),
        ('a figure that may be truncated', '0 complete lines', 'rate: 812'),
        ('two figures', '2 complete lines', 'rate: 1\ntime: 2\n'),
        ('a figure within a sentence', '0 complete lines',
         'the time: 3 s\n'),
        ('a number with a unit', '0 complete lines', 'time: 3 s\n'),
        ('the complaint of a script', 'out of memory',
         'error: out of memory\n'),
    )

    def test_a_rate_is_better_if_it_is_larger(self):
        found = self.parse('start\nrate: 812.5\nend\n')
        self.assertEqual(outcome.Metric(812.5, '1/s', outcome.Direction.UP),
                         found.metrics['rate'])

    def test_a_time_is_better_if_it_is_smaller(self):
        found = self.parse('  time : 9.325e1\n')
        self.assertEqual(outcome.Metric(93.25, 's', outcome.Direction.DOWN),
                         found.metrics['time'])

    def test_bad_figures_are_refused(self):
        for word in ('nan', '0', '-1', '3,5', 'n/a'):
            self.assert_refused('rate', f'rate: {word}\n')
