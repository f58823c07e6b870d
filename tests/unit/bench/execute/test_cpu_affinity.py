# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.bench.execute import cpu_affinity

MPIRUN = ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'core',
          'hpcc')


class BoundTest(unittest.TestCase):
    def test_ranks_bind_themselves_instead_of_mpirun(self):
        self.assertEqual(
            ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'none',
             'sh', './bind', 'hpcc'), cpu_affinity.bind_ranks(MPIRUN))

    def test_a_command_that_binds_nothing_is_unchanged(self):
        command = ('mpirun', '-np', '4', '--bind-to', 'none', 'hpcc')
        self.assertEqual(command, cpu_affinity.bind_ranks(command))

    def test_ranks_may_bind_themselves_on_all_cpus(self):
        self.assertFalse(cpu_affinity.is_bound_by_rank(MPIRUN))
        self.assertTrue(cpu_affinity.is_bound_by_rank(
            cpu_affinity.bind_ranks(MPIRUN)))
        self.assertEqual({'bind'}, {*cpu_affinity.files(frozenset())})
        self.assertEqual(b'1-2\n',
                         cpu_affinity.files(frozenset({1, 2}))['cpus'])

    def test_what_the_first_ranks_say_is_found_among_other_lines(self):
        self.assertEqual(
            'a: first rank on cell 0, mlx5_0 on cell 0; '
            'b: first rank on cell 1, mlx5_0 on cell 1',
            cpu_affinity.find_first_cells(
                b'hpcvirt bind: b: first rank on cell 1, mlx5_0 on cell 1\n'
                b'a warning\n\xff\n'
                b'hpcvirt bind: a: first rank on cell 0, mlx5_0 on cell 0\n'))
        self.assertEqual('', cpu_affinity.find_first_cells(b'a warning\n'))
