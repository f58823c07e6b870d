# SPDX-License-Identifier: Apache-2.0

"""A refused request says why: each host at DEBUG, all together at INFO."""

import json

import fixtures

from testing import machines
from tests.builders import commands
from tests.functional import base


class RefusalTest(base.HPCNova):
    def assert_refused(self, flavor, *sentences, ports=(), hosts=1):
        """Boot, expect no valid host, and look for the reasons in the log.

        :param sentences: what the line of some host says
        :param hosts: hosts that the summary counts
        """
        before = len(self.log.output)
        server = self.boot(flavor, ports=ports, status='ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        log = self.log.output[before:]
        for sentence in sentences:
            self.assertIn(sentence, log)
        summaries = [line for line in log.splitlines() if 'No host of' in line]
        self.assertTrue(summaries, log)
        for summary in summaries:
            self.assertIn(f'No host of {hosts} can take', summary)

    def test_periodic_cpus_are_free_in_sum_but_not_on_a_cell(self):
        self.add_machines(machines.build('host', 2, 8, pages={2048: 2048}))
        self.boot_many(self.create_hpc_flavor(1, 5, 256), 2)
        self.assert_refused(
            self.create_hpc_flavor(1, 4, 256),
            'cell 0 has 3 of the 4 free PCPUs needed',
            'cell 1 has 3 of the 4 free PCPUs needed')
        self.boot(self.create_hpc_flavor(2, 3, 256))

    def test_periodic_pages_are_free_in_sum_but_not_on_a_cell(self):
        self.add_machines(machines.build('host', 2, 8, pages={2048: 1024}))
        for _ in range(2):
            self.boot(self.create_hpc_flavor(1, 1, 1536))
        self.assert_refused(
            self.create_hpc_flavor(1, 1, 514),
            'cell 0 has 256 of the 257 free pages of 2048 KiB needed',
            'cell 1 has 256 of the 257 free pages of 2048 KiB needed')

    def test_periodic_a_page_size_that_no_cell_has(self):
        self.add_machines(machines.build('host', pages={2048: 1024}))
        self.assert_refused(
            self.create_hpc_flavor(1, 1, 1024, '1048576'),
            'cell 0 has no pages of 1048576 KiB')

    def test_periodic_the_cell_of_the_device_is_full(self):
        self.add_machines(machines.build(
            'host', 2, 4, pages={2048: 1024}, vfs={1: 4}))
        flavor = self.create_hpc_flavor(
            1, 2, 256, hw__pci_numa_affinity_policy='required')
        ports = [self.create_sriov_port(machines.PHYSNET) for _ in range(3)]
        for port in ports[:2]:
            self.boot(flavor, ports=[port])
        self.assert_refused(
            flavor, 'satisfy the affinity policy of the PCI devices'
            ' (devices on cell 1)', ports=ports[2:])

    def test_periodic_more_cells_than_the_host_has(self):
        self.add_machines(machines.build('host', 2, 4, pages={2048: 1024}))
        self.assert_refused(self.create_hpc_flavor(4, 1, 256),
                            'the host has 2 of the 4 cells needed')

    def test_periodic_siblings_are_required_where_there_are_none(self):
        self.add_machines(machines.build('host', 2, 4, pages={2048: 1024}))
        flavor = self.create_hpc_flavor(1, 2, 256,
                                        hw__cpu_thread_policy='require')
        before = len(self.log.output)
        self.boot(flavor, status='ERROR')
        # Placement knows the trait, so no host comes as far as the filter.
        self.assertEqual('', self.log.output[before:])

    def test_a_nova_cell_that_is_disabled(self):
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.add_machines(machines.build('host', pages={2048: 1024}))
        flavor = self.create_hpc_flavor(1, 1, 256)
        mapping = self.cell_mappings['cell1']
        mapping.disabled = True
        mapping.save()
        self.scheduler.manager.host_manager.refresh_cells_caches()
        self.boot(flavor, status='ERROR')
        status, out, _ = commands.run(
            'explain', '--flavor', self.api.get_flavor(flavor)['name'],
            '--format', 'json')
        self.assertEqual(1, status)
        host, = json.loads(out)['hosts']
        self.assertEqual(('filter', 'closed', False),
                         (host['step'], host['code'], host['fits']))
        self.assertIn('disabled', host['reason'])

    def test_every_host_of_a_mixed_fleet_says_its_own(self):
        self.add_machines(
            machines.build('wide', 8, 4, sockets=2, pages={2048: 256}),
            machines.build('thin', 2, 16, pages={2048: 4096}),
            machines.build('quad', 4, 8, pages={2048: 512}))
        server = self.boot(self.create_hpc_flavor(2, 8, 2048))
        self.assertEqual('thin', self.host_of(server))
        self.assert_sits(server, (0, 1), 8, 2048)
        self.assertIn('wide, wide refused', self.log.output)
        self.assertIn('cell 0 has 4 of the 8 PCPUs needed', self.log.output)
        self.assertIn('quad, quad refused', self.log.output)
        self.assertIn('cell 0 has 512 of the 1024 free pages of 2048 KiB'
                      ' needed', self.log.output)
        self.assertNotIn('No host of', self.log.output)
        # Placement drops the host with too few CPUs left in sum.
        self.boot(self.create_hpc_flavor(2, 16, 2048), status='ERROR')
        self.assertIn('No host of 2 can take the guest:'
                      ' too few PCPUs in a cell (2)', self.log.output)


class NovaDefectTest(base.HPCNova):
    """Guests with unequal cells, which meet defect A of Nova's claim.

    It remembers by a number that changes on the way which guest cell fits on
    which host cell.
    """

    def create_uneven_flavor(self, *cells):
        """Create a flavor from (dedicated CPUs, MiB) of each cell."""
        specs = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
                 'hw:numa_nodes': str(len(cells))}
        first = 0
        for number, (pcpus, mib) in enumerate(cells):
            specs[f'hw:numa_cpus.{number}'] = f'{first}-{first + pcpus - 1}'
            specs[f'hw:numa_mem.{number}'] = str(mib)
            first += pcpus
        return self.create_flavor(first, sum(mib for _, mib in cells), specs)

    def test_what_the_claim_refuses_wrongly_is_refused_with_its_name(self):
        self.add_machines(machines.build(
            'host', 3, [2, 4, 2], pages={2048: [256, 2048, 1024]}))
        self.boot(self.create_uneven_flavor((2, 2048), (4, 4096)),
                  status='ERROR')
        self.assertIn(
            'the guest fits on cells 2, 1, but the claim on the compute host'
            " would refuse it (Nova's defect A)", self.log.output)
        server = self.boot(self.create_uneven_flavor((4, 4096), (2, 2048)))
        self.assertEqual((1, 2), self.guest(server).host_cells)
        self.assertEqual([], self.faults())

    def test_what_the_claim_accepts_wrongly_is_refused(self):
        """The third cell would start without pages and without pins."""
        self.add_machines(machines.build(
            'host', 3, [2, 2, 6], pages={2048: [256, 1024, 256]}))
        self.boot(self.create_uneven_flavor((2, 512), (2, 512), (4, 4096)),
                  status='ERROR')
        self.assertIn('cell 2 has 256 of the 2048 free pages of 2048 KiB'
                      ' needed', self.log.output)
        self.assertEqual((), self.ledger('host').guests)
