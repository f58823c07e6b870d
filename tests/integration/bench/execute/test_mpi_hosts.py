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

"""How the machines of a parallel run are reached, with the ssh of this one."""

import testtools

from hpcvirt import exception
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import mpi_hosts


class TestReach(testtools.TestCase):
    def test_the_message_of_ssh_is_in_the_error(self):
        exc = self.assertRaises(
            exception.Unreachable, mpi_hosts.reach, local.LocalExecutor(),
            ['no-such-host.invalid'])
        self.assertIn('local does not reach no-such-host.invalid', str(exc))
