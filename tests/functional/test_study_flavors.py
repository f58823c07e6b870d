# SPDX-License-Identifier: Apache-2.0

"""The guests of the studies, claimed as Nova claims them."""

import unittest

import nova.conf
from nova.api.validation.extra_specs import validators

from hpcvirt import serialization
from hpcvirt.acceptance import case_plan
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.functional import planned_nova

PACKING = 'packing_host_numa_cells_allocation_strategy'


class StudyFlavorsTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(nova.conf.CONF.clear_override, PACKING, 'compute')

    def sockets(self, planned):
        """Claim the guests of a host; the sockets that each is on."""
        host = planned.plan.hosts[0]
        config = serialization.dump(host.settings)
        nova.conf.CONF.set_override(
            PACKING, planned.plan.packing, 'compute')
        claimed = planned_nova.ComputeHost(host.host, config)
        flavor = {'name': planned.flavor.name,
                  'vcpus': planned.flavor.vcpus,
                  'ram_mib': planned.flavor.ram_mib,
                  'disk_gib': planned.flavor.disk_gib,
                  'extra_specs': planned.flavor.extra_specs}
        found = []
        for _ in range(planned.scaled.per_host):
            before = self.pinned(claimed)
            self.assertIsNotNone(claimed.take(flavor), planned.flavor.name)
            after = self.pinned(claimed)
            found.append({cell.socket for cell in claimed.topology.cells
                          if after[cell.id] - before[cell.id]})
        return found

    @staticmethod
    def pinned(claimed):
        return {cell.id: set(cell.pinned_cpus)
                for cell in claimed.topology.cells}

    def plans(self):
        """Each case that a shipped host can run, with its plan."""
        for host in hosts.shipped():
            planner = case_plan.CasePlanner([host], profiles.Profile())
            for study_ in study_catalogue.studies():
                for case in study_.cases:
                    planned = planner.plan(study_, case)
                    if not isinstance(planned, scaling.CaseRefusal):
                        yield host, case, planned

    def test_tuned_guests_fit_and_stay_in_a_socket_where_they_can(self):
        checked = 0
        for host, case, planned in self.plans():
            if not case.guests.tuned:
                continue
            checked += 1
            found = self.sockets(planned)
            if case.guests.partition is study.GuestSpan.SOCKET:
                where = f'{case.id} on {host.name}'
                for sockets in found:
                    self.assertEqual(1, len(sockets), where)
                self.assertEqual(len(found), len(set.union(*found)), where)
        self.assertGreater(checked, 50)

    def test_the_validators_of_nova_take_every_extra_spec(self):
        for _, _, planned in self.plans():
            for name, value in planned.flavor.extra_specs.items():
                validators.validate(name, value)
