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

import shlex
import unittest

from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.flavors import shell
from tests import hosts


def plan(*machines):
    return planner.plan(machines, profile.Profile())


class ShellTest(unittest.TestCase):

    def test_a_line_creates_the_flavor_that_the_plan_has(self):
        for host in hosts.shipped():
            found = plan(host)
            commands = [line for line in shell.commands(found)
                        if not line.startswith('#')]
            self.assertEqual(len(found.flavors), len(commands))
            for row, line in zip(found.flavors, commands, strict=True):
                words = shlex.split(line)
                self.assertEqual(['openstack', 'flavor', 'create'],
                                 words[:3])
                self.assertEqual(row.flavor.name, words[-1])
                self.assertEqual(
                    {f'{key}={value}' for key, value
                     in row.flavor.extra_specs.items()},
                    {words[at + 1] for at, word in enumerate(words)
                     if word == '--property'})
                for option, value in (('--vcpus', row.flavor.vcpus),
                                      ('--ram', row.flavor.ram_mib),
                                      ('--disk', row.flavor.disk_gib)):
                    self.assertEqual(str(value),
                                     words[words.index(option) + 1])
                self.assertNotIn('--id', words)

    def test_warnings_are_comments(self):
        first = next(shell.commands(plan(hosts.build())))
        self.assertTrue(first.startswith('# no-housekeeping: '))
