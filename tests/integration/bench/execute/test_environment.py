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

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import local


class EnvironmentTest(unittest.TestCase):

    def test_kernel_and_memory_of_this_machine_are_captured(self):
        facts = environment.facts(local.LocalExecutor())
        self.assertEqual(os.uname().release, facts['kernel'])
        total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        self.assertEqual(total // 1024, int(facts['memory.total_kib']))
        self.assertIn(facts['virtual'], ('yes', 'no'))

    def test_no_fact_is_empty_or_has_a_second_line(self):
        for name, value in environment.facts(local.LocalExecutor()).items():
            with self.subTest(name):
                self.assertTrue(value)
                self.assertNotIn('\n', value)

    def test_load_of_this_machine_is_captured(self):
        load = environment.load(local.LocalExecutor())
        self.assertGreaterEqual(float(load['load']), 0)
        self.assertGreater(float(load['uptime_s']), 0)

    def test_stolen_and_waited_time_are_shares_of_the_time_between(self):
        before = {'load': '0.10', 'ticks': '100 0 50 800 10 0 0 40 0 0'}
        after = {'load': '0.90', 'ticks': '150 0 50 820 20 0 0 60 0 0'}
        change = environment.around(before, after)
        self.assertEqual({'load.before': '0.10', 'load.after': '0.90',
                          'iowait_percent': '10.00',
                          'steal_percent': '20.00'}, change)

    def test_without_counters_there_are_no_shares(self):
        change = environment.around({'load': '1'}, {'load': '2'})
        self.assertEqual({'load.before': '1', 'load.after': '2'}, change)

    def test_lines_of_another_form_are_ignored(self):
        printed = b'Welcome!\nkernel=6.1\n\xff\xfe\n=x\n'
        self.assertEqual({'kernel': '6.1'}, environment.parse(printed))
