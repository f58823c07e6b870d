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

from hpcvirt.flavors import alternative
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import hosts


class AlternativeTest(unittest.TestCase):

    def test_each_profile_names_the_plan_of_the_other(self):
        machines = [hosts.build(name='a'), hosts.build(name='b'),
                    hosts.build(cells=4, name='c')]
        for name, other in (('default', 'dense'), ('dense', 'default')):
            plan = planner.plan(machines, profiles.BUILT_IN[name])
            wanted = planner.plan(machines, profiles.BUILT_IN[other])
            found = alternative.of(plan)
            self.assertEqual((other, 128, ''), (
                found.profile, found.cpus, found.refusal))
            self.assertEqual(found.dedicated, sum(
                len(host.settings.dedicated) for host in wanted.hosts))
            self.assertEqual(found.vcpus, tuple(sorted({
                row.flavor.vcpus for row in wanted.flavors})))

    def test_a_plan_that_cannot_be_is_said_so(self):
        plan = planner.plan([hosts.build(cells=1, cores=1)], profiles.DENSE)
        found = alternative.of(plan)
        self.assertIn('no guest fits', found.message)
        self.assertNotIn('\n', found.message)

    def test_cpus_that_the_operator_names_are_all_for_guests(self):
        host = hosts.build()
        part = host_part.build('4-15,20-31', [])
        plan = planner.plan([host], profiles.DEFAULT, part)
        self.assertEqual(24, len(plan.hosts[0].settings.dedicated))
        self.assertEqual(24, alternative.of(plan, part).dedicated)
