# SPDX-License-Identifier: Apache-2.0

"""Make the moves of make-room in a Nova, and boot what they made room for."""

import dataclasses
import json

import fixtures

from hpcvirt.cloud import migrations
from hpcvirt.cloud import session
from hpcvirt.fleet import moving
from testing import machines
from tests.builders import commands
from tests.functional import lives


class MakeRoomApplyTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.migrations.PAUSE_S', 0.05))
        self.configure_alias()
        self.add_machines(*(machines.build(
            name, pages={2048: 1024}, vfs={0: 2, 1: 2})
            for name in ('node1', 'node2')))
        self.use_as_cloud()
        self.move_domains()

    def hpcvirt(self, *words):
        return commands.run('make-room', *words)[:2]

    def name(self, flavor):
        return self.api.get_flavor(flavor)['name']

    def half_full(self, **more):
        """Boot an instance on each cell, so that each has half its CPUs."""
        flavor = self.create_hpc_flavor(pcpus=2, **more)
        servers = [server for host in ('node1', 'node2')
                   for server in self.boot_many(flavor, 2, host=host)]
        self.assertEqual({(host, (cell,)) for host in ('node1', 'node2')
                          for cell in (0, 1)}, set(map(self.place, servers)))
        return servers

    def place(self, server):
        return self.host_of(server), self.guest(server).host_cells

    def move_of(self, server, **more):
        source, cells = self.place(server)
        target = {'node1': 'node2', 'node2': 'node1'}[source]
        return moving.Move(server['id'], source, target, cells, **more)

    def carry_out(self, move):
        return migrations.Migrator(session.compute()).carry_out(move)

    def test_periodic_live_migrations_make_room(self):
        servers = {item['id']: item for item in self.half_full()}
        big = self.create_hpc_flavor(pcpus=4)
        words = ('--flavor', self.name(big), '--count', '2')
        status, text = self.hpcvirt(*words, '--format', 'json')
        before = {item['id']: self.place(item) for item in servers.values()}
        self.assertEqual(0, status)
        document = json.loads(text)
        self.assertEqual(2, len(document['moves']))
        status, text = self.hpcvirt(*words, '--apply')
        self.assertEqual(0, status, text)
        for move in document['moves']:
            self.assertEqual(move['from'], before[move['id']][0])
            self.assertEqual((move['to'], tuple(move['cells'])),
                             self.place(servers[move['id']]))
            self.assertIn(f'{move["id"]} is on {move["to"]}, cell', text)
        places = sorted(self.place(self.boot(big)) for _ in range(2))
        self.assertEqual(places, sorted(
            (place['host'], tuple(place['cells']))
            for place in document['places']))
        self.assertEqual([], self.faults())

    def test_periodic_cold_migrations_make_room_if_they_are_allowed(self):
        servers = {item['id']: item for item in self.half_full(
            pci_passthrough__alias='vf:1',
            hw__pci_numa_affinity_policy='preferred')}
        big = self.create_hpc_flavor(pcpus=4)
        words = ('--flavor', self.name(big), '--format', 'json')
        self.assertEqual(1, self.hpcvirt(*words)[0])
        status, text = self.hpcvirt(*words, '--cold', '--apply')
        self.assertEqual(0, status, text)
        document = json.loads(text)
        (move,) = document['moves']
        self.assertEqual(('cold', True, None), (
            move['kind'], move['done'], move['failure']))
        self.assertEqual((move['to'], tuple(move['cells'])),
                         self.place(servers[move['id']]))
        place = self.place(self.boot(big))
        self.assertEqual((document['then']['host'],
                          tuple(document['then']['cells'])), place)
        self.assertEqual([], self.faults())
        # It was stopped before it could confirm, and is run again.
        server = next(server for server in servers.values()
                      if self.host_of(server) == move['to'])
        again = self.move_of(server, cold=True)
        self.delete(next(item for item in self.api.get_servers()
                         if item['id'] not in servers))
        self.migrate(server)
        again = dataclasses.replace(again, cells=self.place(server)[1])
        self.assertIsNone(self.carry_out(again))
        self.assertEqual('ACTIVE', self.wait_for(server, 'ACTIVE')['status'])
        self.assertEqual(again.target, self.host_of(server))

    def test_what_is_not_as_planned_is_left_alone(self):
        first, second, third, fourth = self.half_full()
        self.api.post_server_action(third['id'], {'lock': None})
        self.assertEqual('it is locked', self.carry_out(self.move_of(third)))
        move = self.move_of(second)
        self.assertEqual('it is on node1, not on elsewhere', self.carry_out(
            moving.Move(move.id, 'elsewhere', 'node2', (0,))))
        self.assertRegex(self.carry_out(moving.Move(
            fourth['id'], 'node2', 'absent', (0,))), '^Nova refuses: .*absent')
        # It was moved before, but to other cells.
        move = self.move_of(first)
        other = {(0,): (1,), (1,): (0,)}[move.cells]
        found = {self.carry_out(moving.Move(
            move.id, move.source, move.target, cells))
            for cells in (move.cells, other)}
        place, = self.place(first)[1]
        self.assertEqual({None, (f'it is on cells {place} of node2, not on '
                                 f'cells {1 - place}')}, found)
        self.boot(self.create_hpc_flavor(pcpus=2), host='node2')
        before = self.place(second)
        for cold in (False, True):
            self.assertRegex(
                self.carry_out(self.move_of(second, cold=cold)),
                r'^it is ACTIVE on node1: .*[Nn]o valid host')
        self.api.post_server_action(second['id'], {'os-stop': None})
        self.wait_for(second, 'SHUTOFF')
        self.assertEqual('it is SHUTOFF', self.carry_out(self.move_of(second)))
        self.assertEqual(before, self.place(second))
