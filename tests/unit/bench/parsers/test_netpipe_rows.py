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

import itertools

import testtools

from hpcvirt.bench.parsers import netpipe_rows
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text
from tests.unit.bench.parsers import base

FILE = base.data('netpipe/np5.out').decode()
SCREEN = text.clean(base.data('netpipe/np5_stdout.txt'))


def rows(sizes):
    return [netpipe_rows.Row(size, 1.0, 1.0, 0.0) for size in sizes]


class TestSizes(testtools.TestCase):
    def test_the_sizes_of_a_real_run_are_found(self):
        measured = [row.size for row in netpipe_rows.of_file(FILE)]
        self.assertEqual(118, len(measured))
        self.assertEqual(tuple(measured),
                         netpipe_rows.sizes(netpipe_rows.of_file(FILE)))

    def test_sizes_that_are_rounded_are_exact(self):
        # 1.049 MB stands for 1048573, 1048576 and 1048579 bytes.
        exact = [size for size in netpipe_rows.sizes(
            netpipe_rows.of_file(FILE)) if size > 1e6]
        shown = [round(size, -3) for size in exact]
        self.assertEqual(3, shown.count(1049000))
        small = [row for row in netpipe_rows.of_file(FILE) if row.size < 1e6]
        self.assertEqual(
            exact, list(netpipe_rows.sizes(small + rows(shown)))[-len(exact):])

    def test_other_perturbations_are_recognized(self):
        # The options -p 0, --fac2, --start 64 --quick.
        for sizes in ((1, 2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 4, 8, 16, 32),
                      (64, 96, 128, 192, 256)):
            self.assertEqual(sizes, netpipe_rows.sizes(rows(sizes)))

    def test_no_size_can_be_missing(self):
        sizes = [row.size for row in netpipe_rows.of_file(FILE)]
        for begin, end in itertools.combinations(range(3, len(sizes), 7), 2):
            for cut in (sizes[:begin] + sizes[end:],
                        sizes[:begin] + sizes[begin + 1:]):
                self.assertRaises(reading.Refused, netpipe_rows.sizes,
                                  rows(cut))


class TestRows(testtools.TestCase):
    def test_units_are_converted(self):
        row, = netpipe_rows.on_screen(
            '  1:   1.024 KB     20 times -->   2.048 Gbps  in  4.000 usecs\n')
        self.assertEqual((1024, 2048, 4), (
            round(row.size), round(row.mbps), row.time_us))

    def test_a_slow_rate_is_that_of_the_time(self):
        # 0.001 Gbps could be 0.0005 or 0.0015.
        row, = netpipe_rows.of_file(
            '        1     0.001     0.001     0.003    7.11\n')
        self.assertAlmostEqual(8 / 7.11, row.mbps)

    def test_a_row_that_was_lost_is_noticed_by_its_number(self):
        lines = SCREEN.splitlines(keepends=True)
        self.assertRaises(reading.Refused, netpipe_rows.on_screen,
                          ''.join(lines[:20] + lines[21:]))
