# SPDX-License-Identifier: Apache-2.0

"""The lines in which the filter logs its decisions."""

import unittest

from hpcvirt.fit import decision_log
from hpcvirt.fleet import log_reading
from hpcvirt.model import shape
from tests.builders import log_records
from tests.builders import tiny


class NeedsTest(unittest.TestCase):
    def test_equal_cells_are_described_once(self):
        guest = tiny.guest(4, 4, 2, requests=(tiny.request(count=2),))
        self.assertEqual(
            '10 vCPUs and 3072 MiB, 2 guest cells of 4 dedicated CPUs and '
            '1024 MiB in pages of 2048 KiB, 1 guest cell of 2 dedicated CPUs '
            'and 1024 MiB in pages of 2048 KiB, 2 devices for gpu (required)',
            decision_log.describe_needs(10, 3072, guest))

    def test_a_class_of_pages_and_several_instances_are_named(self):
        guest = type(tiny.guest())((tiny.guest_cell(
            0, vcpus=1, page_kib=shape.PageClass.LARGE,
            policy=shape.CPUPolicy.SHARED),))
        self.assertEqual(
            '1 vCPU and 1024 MiB, 1 guest cell of 1 shared vCPU and 1024 MiB '
            'in large pages, one of 3 instances',
            decision_log.describe_needs(1, 1024, guest, 3))

    def test_an_unknown_demand_is_described_by_its_flavor(self):
        self.assertEqual('2 vCPUs and 64 MiB',
                         decision_log.describe_needs(2, 64, None))


class LineTest(unittest.TestCase):
    def test_a_line_is_read_back(self):
        for record in (log_records.a_refusal(),
                       log_records.a_comparison(error='KeyError: 3'),
                       log_records.a_difference(code=None)):
            self.assertEqual(record, log_reading.read_message(
                decision_log.write(record)))

    def test_a_comparison_that_failed_says_so(self):
        for error, says in (('KeyError: 3', True), (None, False)):
            line = decision_log.write(log_records.a_comparison(error=error))
            self.assertEqual(says, 'the comparison failed' in line)

    def test_long_texts_are_cut(self):
        line = decision_log.write(log_records.a_refusal(
            flavor='f' * 255, examples='x' * 900, reason='y' * 9000))
        self.assertLess(len(line), 1500)
        self.assertIn(f'examples="{"x" * 297}..."', line)

    def test_another_line_is_none_of_these(self):
        self.assertIsNone(log_reading.read_message('No hosts; a=1'))
