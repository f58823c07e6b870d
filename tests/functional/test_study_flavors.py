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

"""The guests of the studies, claimed as Nova claims them."""

import json
import unittest

import nova.conf
from nova.api.validation.extra_specs import validators

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.flavors import json_document
from hpcvirt.flavors import profile as profiles
from hpcvirt.replication import case_plan
from tests import hosts
from tests.functional import planned_nova

PACKING = 'packing_host_numa_cells_allocation_strategy'


class StudyFlavorsTest(unittest.TestCase):

    def setUp(self):
        self.addCleanup(nova.conf.CONF.clear_override, PACKING, 'compute')

    def packages(self, planned):
        """Claim the guests of a host; the packages that each is on."""
        host = planned.plan.hosts[0]
        config = json.loads(json.dumps(json_document.host_config(
            host.settings, planned.plan.profile)))
        nova.conf.CONF.set_override(
            PACKING, planned.plan.profile.pack_cells, 'compute')
        claimed = planned_nova.ComputeHost(host.host, config)
        flavor = {'name': planned.flavor.name,
                  'vcpus': planned.flavor.vcpus,
                  'ram_mib': planned.flavor.ram_mib,
                  'disk_gib': planned.flavor.disk_gib,
                  'extra_specs': planned.flavor.extra_specs}
        found = []
        for _ in range(planned.scaled.per_host):
            before = self.pinned(claimed)
            self.assertTrue(claimed.claim(flavor), planned.flavor.name)
            after = self.pinned(claimed)
            found.append({cell.socket for cell in claimed.topology.cells
                          if after[cell.id] - before[cell.id]})
        return found

    @staticmethod
    def pinned(claimed):
        return {cell.id: set(cell.pinned_cpus)
                for cell in claimed.topology.cells}

    def test_tuned_guests_fit_and_stay_in_a_package_where_they_can(self):
        checked = 0
        for host in hosts.shipped():
            planner = case_plan.CasePlanner([host], profiles.Profile())
            for study_ in study_catalogue.studies():
                for case in study_.cases:
                    planned = planner.plan(study_, case)
                    if isinstance(planned, scaling.Refusal) or not (
                            case.guests.tuned):
                        continue
                    checked += 1
                    found = self.packages(planned)
                    if case.guests.partition is study.Partition.SOCKET:
                        where = f'{case.id} on {host.name}'
                        for packages in found:
                            self.assertEqual(1, len(packages), where)
                        self.assertEqual(
                            len(found), len(set.union(*found)), where)
        self.assertGreater(checked, 50)

    def test_the_validators_of_nova_take_every_extra_spec(self):
        for host in hosts.shipped():
            planner = case_plan.CasePlanner([host], profiles.Profile())
            for study_ in study_catalogue.studies():
                for case in study_.cases:
                    planned = planner.plan(study_, case)
                    if isinstance(planned, scaling.Refusal):
                        continue
                    for name, value in planned.flavor.extra_specs.items():
                        validators.validate(name, value)
