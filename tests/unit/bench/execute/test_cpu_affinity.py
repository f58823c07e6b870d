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
