# SPDX-License-Identifier: Apache-2.0

"""Moves of guests whose PCI devices are in Placement.

The claim of a move takes the first devices of the host, whatever Placement has
allocated. Afterwards nova-compute adds them to the allocation.
"""

import dataclasses
import json
import pathlib

from hpcvirt.nova import filters
from testing import machines
from tests.functional import lives

WARNING = 'the claim of this move takes other PCI devices than Placement'


class MovesInPlacementTest(lives.LivesNova):
    OPTIONS = (('pci', 'report_in_placement', True),
               ('filter_scheduler', 'pci_in_placement', True))

    def add_hosts(self, *traits):
        """Add two hosts, of which each card has a trait and a cell."""
        machine = machines.build('one', len(traits), 4, pages={2048: 1024},
                                 vfs=dict.fromkeys(range(len(traits)), 1),
                                 housekeeping_cores=2)
        settings = dataclasses.replace(machine.settings, device_spec=tuple(
            json.dumps({'address': json.loads(spec)['address'],
                        'vendor_id': machines.VENDOR_ID,
                        'product_id': machines.VF_PRODUCT_ID,
                        'traits': trait})
            for spec, trait in zip(machine.settings.device_spec, traits,
                                   strict=True)))
        self.add_machines(*(
            dataclasses.replace(machine, settings=settings, host=(
                dataclasses.replace(machine.host, name=name)))
            for name in ('one', 'two')))

    def boot_with_device(self, count, **more):
        self.configure_alias(**more)
        return self.boot_many(self.create_flavor(
            1, 256, {'pci_passthrough:alias': 'vf:1'}), count, host='one')

    def cards(self, server):
        """The cards of which the guest, and Placement, has devices."""
        names = {provider['uuid']: provider['name'] for provider
                 in self._get_all_providers()}
        allocated = [
            names[provider].lower() for provider, each
            in self._get_allocations_by_server_uuid(server['id']).items()
            if any(name.startswith('CUSTOM_PCI_')
                   for name in each['resources'])]
        host = self.host_of(server)
        held = set(self.guest(server).devices)
        return sorted(
            f'{host}_{card.address}' for card
            in self.connections[host].machine.functions()
            if held.intersection(card.virtual)), sorted(allocated)

    def test_periodic_placement_follows_where_it_can(self):
        self.add_hosts(*'ABC')
        servers = self.boot_with_device(2)
        for server in servers:
            self.migrate(server)
            self.assertEqual('two', self.host_of(server))
            self.confirm(server)
        self._run_periodics()
        for server in servers:
            self.assertEqual(*self.cards(server))
        self.assertNotIn(WARNING, self.log.output)

    def test_a_claim_that_placement_cannot_follow_is_told(self):
        """The claim does not know the trait for which Placement looks."""
        self.add_hosts('A', 'B')
        server, = self.boot_with_device(1, traits='B')
        self.migrate(server)
        taken, allocated = self.cards(server)
        self.assertNotEqual(taken, allocated)
        line, = (line for line in self.log.output.splitlines()
                 if WARNING in line)
        self.assertTrue(line.startswith('WARNING '))
        self.assertIn(f'{filters.MOVES_PATCH} in contrib/nova', line)
        self.assertTrue((pathlib.Path(__file__).parents[2] / 'contrib/nova'
                         / filters.MOVES_PATCH).is_file())
