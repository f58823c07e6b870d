# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.specs import policies
from tests.builders import refusals

SHARED = policies.read(8, {})
DEDICATED = policies.read(8, {'hw:cpu_policy': 'dedicated'})
#: vCPUs 0 and 4 of 8 are shared.
MIXED = policies.read(8, {'hw:cpu_policy': 'mixed',
                          'hw:cpu_dedicated_mask': '^0,^4'})
TWO_CELLS = {'hw:numa_nodes': '2',
             'hw:numa_cpus.0': '0-5', 'hw:numa_mem.0': '6000',
             'hw:numa_cpus.1': '6-7', 'hw:numa_mem.1': '2000'}


def read(specs, policy=DEDICATED, vcpus=8, ram_mib=8000, page_kib=None,
         has_page=False):
    return codec.read_cells(vcpus, ram_mib, specs, policy, page_kib, has_page)


class ReadTest(unittest.TestCase):
    def assert_refused(self, message, specs, **more):
        self.assertRegex(refusals.message(self, read, specs, **more),
                         message)

    def test_only_some_flavors_have_a_topology(self):
        one = (shape.GuestCell(0, 8, 8000),)
        self.assertEqual((), read({}, SHARED))
        self.assertEqual((), read({'hw:pmem': ' , '}, SHARED))
        self.assertEqual(one, read({'hw:pmem': '6GB'}, SHARED))
        self.assertEqual(one, read({'hw:numa_nodes': '1'}, SHARED))
        self.assertEqual((shape.GuestCell(0, 8, 8000, 2048),),
                         read({}, SHARED, page_kib=2048, has_page=True))
        self.assertEqual((shape.GuestCell(8, 0, 8000),), read({}))

    def test_an_even_split_counts_the_shared_vcpus_of_each_cell(self):
        self.assertEqual(
            (shape.GuestCell(1, 1, 2000), shape.GuestCell(2, 0, 2000),
             shape.GuestCell(1, 1, 2000), shape.GuestCell(2, 0, 2000)),
            read({'hw:numa_nodes': '4'}, MIXED))

    def test_cells_that_are_written_out(self):
        self.assertEqual((shape.GuestCell(6, 0, 6000),
                          shape.GuestCell(2, 0, 2000)), read(TWO_CELLS))
        self.assertEqual((shape.GuestCell(4, 2, 6000),
                          shape.GuestCell(2, 0, 2000)),
                         read(TWO_CELLS, MIXED))

    def test_what_does_not_divide_is_refused(self):
        self.assert_refused('8 vCPUs and 8000 MiB do not divide into 3',
                            {'hw:numa_nodes': '3'})
        self.assert_refused('8001 MiB do not divide into 2',
                            {'hw:numa_nodes': '2'}, ram_mib=8001)

    def test_cpus_and_memory_are_given_for_each_cell_or_for_none(self):
        for change in ({'hw:numa_nodes': '1'}, {'hw:numa_nodes': '3'}):
            self.assert_refused('give both for each cell, or neither',
                                {**TWO_CELLS, **change})
        for missing in ('hw:numa_cpus.1', 'hw:numa_mem.0'):
            specs = {name: value for name, value in TWO_CELLS.items()
                     if name != missing}
            self.assert_refused('give both for each cell, or neither', specs)

    def test_cells_must_add_up_to_the_flavor(self):
        for change, message in (
                ({'hw:numa_cpus.1': '5-7'},
                 'numa_cpus.1: vCPU 5 is in two guest cells'),
                ({'hw:numa_cpus.1': '6-8'},
                 'numa_cpus.1: vCPU 8 is not one of the 8'),
                ({'hw:numa_cpus.1': '7'},
                 'numa_cpus.N: vCPU 6 is in no guest cell'),
                ({'hw:numa_cpus.0': '0-3', 'hw:numa_cpus.1': '6-7'},
                 'numa_cpus.N: vCPUs 4-5 are in no guest cell'),
                ({'hw:numa_mem.1': '1999'},
                 'the cells have 7999 MiB, the flavor 8000'),
                ({'hw:numa_mem.1': '-1'}, 'numa_mem.1.*not a size in MiB')):
            self.assert_refused(message, {**TWO_CELLS, **change})

    def test_the_number_of_cells_has_one_form(self):
        for text in ('0', '-1', '+2', ' 2', '02', '2.0', 'two', '\xb2'):
            self.assert_refused('hw:numa_nodes', {'hw:numa_nodes': text})
        # A number of many digits is one of cells, which do not divide.
        self.assert_refused('do not divide', {'hw:numa_nodes': '9' * 5000})


class WriteTest(unittest.TestCase):
    def test_vcpus_are_numbered_through_all_cells(self):
        given = (shape.GuestCell(5, 1, 6000), shape.GuestCell(2, 0, 2000))
        expected = {name: value for name, value in TWO_CELLS.items()
                    if name != 'hw:numa_nodes'}
        self.assertEqual(expected, codec.write_cells(given))

    def test_shared_vcpus_are_the_first_of_each_cell(self):
        self.assertEqual({1, 2, 4, 6, 7}, codec.dedicated_cpus((
            shape.GuestCell(2, 1, 1), shape.GuestCell(1, 1, 1),
            shape.GuestCell(2, 1, 1))))

    def test_even_cells_have_equal_cpus_and_memory(self):
        cell = shape.GuestCell
        for given, even in (
                ((cell(4, 0, 100), cell(4, 0, 100)), True),
                ((cell(4, 0, 100), cell(2, 2, 100)), True),
                ((cell(4, 0, 100), cell(3, 0, 100)), False),
                ((cell(4, 0, 100), cell(4, 0, 99)), False)):
            self.assertEqual(even, codec.are_even(given))
