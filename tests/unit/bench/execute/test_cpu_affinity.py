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

import unittest

from hpcvirt.bench.execute import cpu_affinity

MPIRUN = ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'core',
          'hpcc')


class BoundTest(unittest.TestCase):

    def test_ranks_bind_themselves_instead_of_mpirun(self):
        self.assertEqual(
            ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'none',
             'sh', './bind', 'hpcc'), cpu_affinity.bound_by_rank(MPIRUN))

    def test_a_command_that_binds_nothing_is_unchanged(self):
        command = ('mpirun', '-np', '4', '--bind-to', 'none', 'hpcc')
        self.assertEqual(command, cpu_affinity.bound_by_rank(command))
