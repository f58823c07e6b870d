# SPDX-License-Identifier: Apache-2.0

"""Keep room in a Nova for what is usually requested."""

import json

import fixtures

from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.functional import lives


class StandingRoomTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.migrations.PAUSE_S', 0.05))
        self.add_machines(*(machines.build(name, pages={2048: 1024})
                            for name in ('node1', 'node2')))
        self.use_as_cloud()
        self.move_domains()
        self.small = self.create_hpc_flavor(pcpus=2)
        self.big = self.create_hpc_flavor(pcpus=4)

    def name(self, flavor):
        return self.api.get_flavor(flavor)['name']

    def half_full(self, **more):
        """Boot an instance on each cell, so that each has half its CPUs."""
        return [server for host in ('node1', 'node2') for server
                in self.boot_many(self.small, 2, host=host, **more)]

    def keep(self, *words, wanted=('--standing',)):
        # Client libraries may warn on standard error.
        status, text, _ = commands.run(
            'make-room', *wanted, *words, '--format', 'json')
        return status, json.loads(text)

    def test_periodic_room_is_kept_for_what_was_requested(self):
        for server in [self.boot(self.big) for _ in range(2)]:
            self.delete(server)
        self.boot(self.create_hpc_flavor(pcpus=40), status='ERROR')
        self.half_full()
        absent = self.create_hpc_flavor(pcpus=3)
        status, plan = self.keep()
        # A refused request counts, but a flavor of no request does not.
        self.assertEqual(1, status)
        self.assertEqual([40, 4, 2], [
            self.api.get_flavor(flavor['id'])['vcpus']
            for row in plan['standing']
            for flavor in self.api.get_flavors()
            if flavor['name'] == row['flavor']])
        self.assertNotIn(self.name(absent), str(plan))
        self.assertEqual(1, len(plan['moves']))
        folder = folders.make(self)
        status, plan = self.keep('--apply', '--budget', '1', '--textfile',
                                 folder / 'standing.prom')
        self.assertEqual([True], [move['done'] for move in plan['moves']])
        self.assertIn(
            f'hpcvirt_standing_room{{flavor_name="{self.name(self.big)}"}} '
            '1.0', (folder / 'standing.prom').read_text())
        self.assertEqual([], self.keep()[1]['moves'])
        # The request that would have been refused finds its room.
        self.boot(self.big)
        wanted = '--standing', f'{self.name(self.big)}=1'
        status, plan = self.keep('--budget', '1', wanted=wanted)
        self.assertEqual(
            (1, [], 'the budget has 0 moves left'),
            (status, plan['moves'], plan['why_waiting']))
        self.assertEqual(1, len(self.keep(
            '--budget', '2', wanted=wanted)[1]['moves']))

    def test_who_opts_out_stays(self):
        wanted = '--standing', f'{self.name(self.big)}=1'
        servers = self.half_full(metadata={'hpcvirt_move': 'never'})
        self.assertEqual(1, self.keep(wanted=wanted)[0])
        self.api.api_put(f'servers/{servers[0]["id"]}/metadata/hpcvirt_move',
                         {'meta': {'hpcvirt_move': 'now'}})
        status, plan = self.keep(wanted=wanted)
        self.assertEqual((0, [servers[0]['id']]), (
            status, [move['id'] for move in plan['moves']]))
        self.assertEqual(1, self.keep('--exclude-project',
                                      servers[0]['tenant_id'],
                                      wanted=wanted)[0])

    def test_periodic_nothing_moves_after_a_migration_has_failed(self):
        wanted = '--standing', f'{self.name(self.big)}=1'
        self.half_full()
        plan = self.keep('--budget', '9', wanted=wanted)[1]
        (move,) = plan['moves']

        def fail(*_args, **_more):
            raise RuntimeError('the network is slow')
        for compute in self.computes.values():
            compute.driver.pre_live_migration = fail
        status, plan = self.keep('--budget', '9', '--apply', wanted=wanted)
        self.assertEqual((3, False), (status, plan['moves'][0]['done']))
        status, plan = self.keep('--budget', '9', '--apply', wanted=wanted)
        self.assertEqual(
            (1, [], f'the migration of {move["id"]} has failed'),
            (status, plan['moves'], plan['why_waiting']))
