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

"""Lists of CPUs on the kernel command line."""

import unittest

from hpcvirt.audit import kernel_cpus

EIGHT = frozenset(range(8))


class KernelCpusTest(unittest.TestCase):

    def test_lists_as_the_kernel_documents_them(self):
        for text, expected in (
                ('2-5', {2, 3, 4, 5}), ('1,7', {1, 7}), ('all', EIGHT),
                ('N', {7}), ('4-N', {4, 5, 6, 7}), ('0-7:1/4', {0, 4}),
                ('0-7:2/4', {0, 1, 4, 5}), ('managed_irq,domain,2-3', {2, 3}),
                ('6-99', {6, 7}), ('', set()), ('nohz', set())):
            self.assertEqual(expected, kernel_cpus.members(text, EIGHT), text)

    def test_the_last_of_a_parameter_counts(self):
        line = ('quiet', 'rcu_nocbs=1', 'rcu_nocbs=2-3', 'rcu_nocb_poll')
        self.assertEqual({2, 3}, kernel_cpus.of_parameter(
            line, 'rcu_nocbs', EIGHT))
        self.assertEqual(frozenset(), kernel_cpus.of_parameter(
            line, 'isolcpus', EIGHT))
