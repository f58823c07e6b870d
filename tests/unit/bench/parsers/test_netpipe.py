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

from tests.unit.bench.parsers import base

TABLE = base.data('netpipe/shm_stderr.txt').decode()
FILE = base.data('netpipe/np.out').decode()

GOOD_OUTPUTS = (
    (base.data('netpipe/np.out'), {'max_size': '65536'}),
    (base.data('netpipe/shm_stderr.txt'), {}))


class TestNetpipe(base.ParserTestCase):
    parser = 'netpipe'

    def test_the_table_gives_time_and_an_eighth_of_the_megabits(self):
        figures = self.figures(TABLE, {'max_size': '65536'})
        self.assertEqual(2.77, figures['latency_us[16384]'])
        self.assertEqual(45100.04 / 8, figures['bandwidth_mb_s[16384]'])

    def test_the_file_says_the_same(self):
        table, file = self.figures(TABLE), self.figures(FILE)
        self.assertEqual(table.keys(), file.keys())
        for name, value in table.items():
            self.assertAlmostEqual(value, file[name], delta=0.01)

    def test_a_megabit_of_2_to_the_20_bits_is_noticed(self):
        self.assertIn('2^20', ' '.join(self.parse(TABLE).remarks))

    def test_a_table_that_ends_early_is_refused(self):
        self.assert_refused('ends at 65539 bytes', TABLE,
                            {'max_size': '1048576'})

    def test_without_an_asked_size_it_is_said_that_nobody_can_know(self):
        self.assertIn('no end marker', self.parse(TABLE).remarks[0])

    def test_a_broken_row_is_refused(self):
        cut = TABLE[:TABLE.rindex('usec')]
        self.assert_refused('broken', cut)
        self.assert_refused('not a row of np.out', FILE + '  1024 12.')

    def test_a_time_that_does_not_belong_to_the_rate_is_refused(self):
        self.assert_refused('do not agree', TABLE.replace(
            '45100.04 Mbps in       2.77', '45100.04 Mbps in      27.70'))

    def test_two_tables_are_refused(self):
        self.assert_refused('several', TABLE + TABLE)
        self.assert_refused('several', FILE + FILE)

    def test_bad_figures_are_refused(self):
        for word in ('nan', '-1.00', '0.00', 'inf'):
            self.assert_refused('16384 bytes', TABLE.replace(
                '45100.04 Mbps', f'{word} Mbps'))

    def test_nothing_is_refused(self):
        self.assert_refused('no row', 'Now starting the main loop\n')
