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

from hpcvirt.flavors import finding


def found(*hosts, code='does-not-fit'):
    return finding.Finding(code, finding.Severity.ERROR, 'm1', 'vcpus',
                           'no instance fits', 'make it smaller', hosts)


class FindingTest(unittest.TestCase):

    def test_the_message_names_the_hosts(self):
        self.assertEqual('no instance fits', found().message)
        self.assertEqual('a, b: no instance fits', found('a', 'b').message)

    def test_equal_findings_become_one_with_all_hosts(self):
        self.assertEqual(
            (found('a', 'b', 'c'), found('a', code='other')),
            finding.gather([found('a'), found('a', code='other'),
                            found('b', 'c')]))
