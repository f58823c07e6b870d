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

import os
import unittest

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import machine_probe


class ProbeTest(unittest.TestCase):

    def test_this_machine_has_the_cpus_that_this_process_may_use(self):
        machine = machine_probe.probe(local.LocalExecutor())
        self.assertEqual(len(os.sched_getaffinity(0)), machine.cpus)
        total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        self.assertEqual(total // 1024 ** 2, machine.memory_mib)

    def test_only_the_last_level_of_the_caches_counts_each_cache_once(self):
        machine = machine_probe.parse(
            'cpus 4\nmemory_kib 2097152\ncells 2\n'
            'cache 1 32K 0\ncache 2 1024K 0-1\n'
            'cache 3 8M 0-1\ncache 3 16M 2-3\n')
        self.assertEqual(sizing.Machine(4, 2048, 2, 24 * 1024), machine)

    def test_a_machine_without_cells_and_caches_has_one_cell(self):
        self.assertEqual(
            sizing.Machine(1, 1024, 1, None),
            machine_probe.parse('cpus 1\nmemory_kib 1048576\ncells 0\n'))

    def test_an_answer_without_the_counts_names_the_place(self):
        class Place:
            name = 'ssh://router'

            def run(self, _argv):
                return executor.Completed(0, b'% unknown command\n', b'')
        with self.assertRaisesRegex(exception.Unreachable, 'ssh://router'):
            machine_probe.probe(Place())
