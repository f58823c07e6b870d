# SPDX-License-Identifier: Apache-2.0

"""The CPU options of nova-compute against the topology."""

from hpcvirt.audit import audit
from hpcvirt.flavors import profile as profiles
from tests.builders import audited

DEDICATED = ('compute', 'cpu_dedicated_set')
SHARED = ('compute', 'cpu_shared_set')
PARKING = {('libvirt', 'cpu_power_management'): ('true',)}


class NovaCpuSetsTest(audited.Case):
    def findings(self, **options):
        found = audit.audit(self.but(nova=options['nova']), None).findings
        return [item for item in found if item.code == 'nova-cpu-sets']

    def test_shared_cpus_are_online_even_where_nova_parks_dedicated_ones(self):
        for parking in ({}, PARKING):
            found, = self.findings(nova={SHARED: ('0,99',), **parking})
            self.assertEqual('[compute]cpu_shared_set names CPU 99, which the '
                             'host does not have online', found.found)

    def test_the_change_leaves_the_cpus_that_are_online(self):
        found, = self.findings(nova={SHARED: ('0,99',)})
        self.assertEqual(('# nova.conf', '[compute]', 'cpu_shared_set = 0'),
                         found.change)


class SiblingsTest(audited.Case):
    def test_a_profile_may_leave_siblings_to_the_host(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        facts = audited.facts(audited.tree(profile=leave))
        self.check('nova-siblings', [], facts, leave)
        self.check('nova-siblings', ['warning'] * 2, facts, None)
