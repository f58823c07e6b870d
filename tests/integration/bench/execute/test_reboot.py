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

from hpcvirt import exception
from hpcvirt.bench.execute import reboot
from tests.integration.bench import rebooting


class RebootTest(unittest.TestCase):

    def test_it_waits_for_another_kernel(self):
        guest = rebooting.Guest(silent=3)
        reboot.reboot(guest, guest, pause_s=0)
        self.assertEqual(['sync', 'reboot'], guest.done)
        self.assertEqual(0, guest.run(['true']).status)

    def test_the_error_says_whether_the_guest_still_runs_or_is_lost(self):
        for guest, cause in (
                (rebooting.Guest(deaf=True), 'it is still running as before'),
                (rebooting.Guest(silent=10 ** 6), 'no route')):
            with self.assertRaisesRegex(exception.Unreachable,
                                        f'did not reboot.*{cause}'):
                reboot.reboot(guest, guest, 0.05, 0.01)
