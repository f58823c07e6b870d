# SPDX-License-Identifier: Apache-2.0

"""Refused requests that succeed once a change of explain is made."""

import json
import re

import fixtures

from testing import machines
from tests.builders import commands
from tests.functional import base
from tests.functional import lives


class ChangesTest(lives.LivesNova):
    """Each refusal is by a running Nova, and so is what succeeds then."""

    OPTIONS = (base.PCI_ALIAS,)

    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))

    def changes_for(self, flavor):
        """Let Nova refuse a flavor; return the changes in words."""
        self.delete(self.boot(flavor, status='ERROR'))
        status, out, _ = commands.run(
            'explain', '--flavor', self.api.get_flavor(flavor)['name'],
            '--format', 'json')
        self.assertEqual(1, status, out)
        return [item['change'] for item in json.loads(out)['nearest']]

    def assert_helps(self, found, pattern, flavor):
        """Boot the flavor that a change asks for, where it says."""
        said, = (change for change in found if re.search(pattern, change))
        server = self.boot(flavor)
        self.assertIn(f'fits on {self.host_of(server)}', said)
        cells = ', '.join(map(str, self.guest(server).host_cells))
        self.assertRegex(said, rf'cells? {cells}\)')
        self.assertEqual([], self.faults())
        self.delete(server)

    def test_periodic_another_flavor_and_more_pages_are_accepted(self):
        def build(pages, small):
            return machines.build('host', 2, [4, 1], pages={2048: pages},
                                  small_mib=small, vfs={1: 2})
        self.add_machines(build([500, 512], 4096))
        make = self.create_hpc_flavor
        found = self.changes_for(make(2, 2, 128))
        self.assert_helps(found, '^1 guest cell instead of 2', make(1, 4, 256))
        self.assert_helps(self.changes_for(make(1, 5, 128)),
                          '^1 CPU fewer', make(1, 4, 128))
        found = self.changes_for(make(1, 2, 512, '1048576'))
        self.assert_helps(found, '^pages of 2048 KiB', make(1, 2, 512))
        device = {'pci_passthrough__alias': 'fast:1'}
        found = self.changes_for(make(
            1, 2, 128, hw__pci_numa_affinity_policy='required', **device))
        self.assert_helps(found, 'policy preferred', make(
            1, 2, 128, hw__pci_numa_affinity_policy='preferred', **device))
        large = make(1, 1, 1040)
        found = self.changes_for(large)
        self.computes.pop('host').stop()
        del self.compute_rp_uuids['host']
        self.add_machines(build([500, 520], 4080))
        self.assert_helps(
            found, '^8 more pages of 2048 KiB on cell 1 of host', large)

    def test_periodic_weaker_policies_are_accepted(self):
        self.add_machines(machines.build('host', pages={2048: 512}))
        make = self.create_hpc_flavor
        self.fill_cell('host', 1, 4)
        self.boot(make(1, 1, 128))
        found = self.changes_for(make(
            1, 2, 128, hpcvirt__exclusive_cells='true'))
        self.assert_helps(found, 'other instances use too', make(1, 2, 128))
        found = self.changes_for(make(
            1, 3, 128, hw__emulator_threads_policy='isolate'))
        self.assert_helps(found, 'not isolated', make(1, 3, 128))

    def test_periodic_other_cells_are_accepted_in_spite_of_a_defect(self):
        self.add_machines(machines.build(
            'host', 3, [2, 4, 2], pages={2048: [256, 2048, 1024]}))

        def uneven(*cells):
            specs = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
                     'hw:mem_page_size': '2048'}
            first = 0
            for number, (pcpus, mib) in enumerate(cells):
                specs[f'hw:numa_cpus.{number}'] = (
                    f'{first}-{first + pcpus - 1}')
                specs[f'hw:numa_mem.{number}'] = str(mib)
                first += pcpus
            return self.create_flavor(first, sum(
                mib for _, mib in cells), specs)
        found = self.changes_for(uneven((2, 2048), (4, 4096)))
        self.assertIn("Nova's defect A", self.log.output)
        self.assert_helps(found, 'largest guest cells first',
                          uneven((4, 4096), (2, 2048)))

    def test_periodic_moves_make_room(self):
        self.add_machines(machines.build('one', pages={2048: 1024}),
                          machines.build('two', 1, 3, pages={2048: 1024}))
        small = self.create_hpc_flavor(1, 2, 128)
        residents = [self.boot(small, host='one') for _ in range(2)]
        wanted = self.create_hpc_flavor(1, 4, 128)
        found = self.changes_for(wanted)
        said, = (change for change in found if 'moves from' in change)
        moved = re.match(r'(\S+) moves from one to two \(', said)[1]
        server, = (server for server in residents
                   if moved in (server['id'], server['name']))
        self.live_migrate(server)
        self.assert_helps(found, 'moves from one to two', wanted)
