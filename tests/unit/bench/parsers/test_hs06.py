# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.bench.parsers import base

GOOD_OUTPUTS = ((b'copies: 32\nHS06: 357.25\n', {}),)


class TestHs06(base.ParserTestCase):
    parser = 'hs06'
    refused = (
        ('no score and two scores', '0 complete lines', 'all went well\n'),
        ('no score and two scores', '2 complete lines', 'HS06: 1\nHS06: 2\n'),
        ('a failed copy', 'miscompare',
         '471.omnetpp miscompare of run 3\nHS06: 300\n'),
        ('a report without the profile', '0 profiles', '{"profiles": {}}'),
    )

    def test_the_line_of_the_script_is_read(self):
        for line in ('HS06: 357.2', 'HS06 = 357.2', 'HEP-SPEC06: 357.2',
                     'Total HS06 : 357.2 HS06', 'HS06 score: 357.2'):
            self.assertEqual({'score': 357.2},
                             self.figures(f'start\n{line}\nend\n'))

    def test_the_report_of_a_suite_is_read(self):
        raw = json.dumps({'profiles': {'hs06_32': {
            'score': 357.2, 'runcpu_num': 32}}})
        self.assertEqual({'score': 357.2}, self.figures(raw, {'copies': '32'}))

    def test_bad_scores_are_refused(self):
        for word in ('nan', '0', '-1', '3,5', 'n/a'):
            self.assert_refused('HS06', f'HS06: {word}\n')
