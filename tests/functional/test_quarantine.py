# SPDX-License-Identifier: Apache-2.0

"""Hosts in quarantine, in a Nova and a Placement."""

import json
import pathlib

import fixtures
import keystoneauth1.exceptions

from hpcvirt import exception
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.cloud import session
from hpcvirt.fleet import log_reading
from hpcvirt.model import quarantine
from hpcvirt.nova_live import view
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.builders import supervised
from tests.functional import lives


class QuarantineNova(lives.LivesNova):
    """Two hosts, and the command of an operator."""

    HOSTS = ('node1', 'node2')

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.placement.PAUSE_S', 0.01))
        self.add_machines(*(machines.build(name, pages={2048: 1024},
                                           housekeeping_cores=1)
                            for name in self.HOSTS))
        self.use_as_cloud()
        self.nova = session.compute()
        self.cloud = cloud_quarantine.Quarantine(
            self.nova, placement.PlacementClient(session.placement(),
                                                 pause_s=0.01))

    def hpcvirt(self, *words):
        status, out, err = commands.run(*words)
        return status, out + err

    def quarantine(self, host, reason='it swaps', *more):
        status, text = self.hpcvirt('host', 'quarantine', host, '--reason',
                                    reason, '--apply', *more)
        self.assertEqual(0, status, text)
        return text

    def release(self, host, *more):
        status, text = self.hpcvirt('host', 'quarantine', host, '--release',
                                    '--apply', *more)
        self.assertEqual(0, status, text)
        return text

    def hold(self, host, holder, reason='why'):
        self.cloud.hold(host, quarantine.Hold(
            holder, reason, '2026-01-02T03:04:05Z', 'me@here'))

    def provider(self, host):
        (found,) = compute_hosts.find_providers(self.nova, host)
        return found

    def traits(self, host):
        return self.cloud.placement.traits(self.provider(host)).names

    def holders(self, host):
        return [hold.holder for hold in self.cloud.holds(host)]


class QuarantineSchedulingTest(QuarantineNova):
    """What is scheduled to a host in quarantine, and what is not."""

    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))

    def read(self, *words):
        status, text = self.hpcvirt(*words, '--format', 'json')
        return status, json.loads(text)

    def test_a_host_in_quarantine_gets_no_new_instance(self):
        flavor = self.create_hpc_flavor(pcpus=1)
        name = self.api.get_flavor(flavor)['name']
        small = self.create_flavor(1, 64)
        resident = self.boot(flavor, host='node1')
        before = self.guest(resident)
        self.quarantine('node1', 'it swaps')
        self.hold('node1', quarantine.WATCH, 'steal')
        # Nothing happens to what runs there.
        self.assertEqual('node1', self.host_of(resident))
        self.assertEqual(before, self.guest(resident))
        # No flavor has to say anything.
        for each in (flavor, small):
            for server in self.boot_many(each, 2):
                self.assertEqual('node2', self.host_of(server))
        server = self.boot(flavor, host='node1', status='ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        refused, = log_reading.read(
            (line.encode() for line in self.log.output.splitlines()),
            server['id']).refusals.values()
        self.assertEqual(['quarantined'],
                         [group.code for group in refused])
        self.assertIn('the host is in quarantine: operator since',
                      refused[0].reason)
        # Nova asks no filter about a host that an administrator forces.
        self.assertEqual('node1', self.host_of(self.boot(
            small, availability_zone='nova:node1')))
        self.assert_same_from_a_dump(name)
        self.assert_explained(name)
        self.release('node1')
        self.boot(flavor, host='node1', status='ERROR')
        self.release('node1', '--holder', 'watch')
        self.assertEqual('node1', self.host_of(
            self.boot(flavor, host='node1')))
        self.assertEqual([], self.read('capacity')[1]['closed'])

    def assert_same_from_a_dump(self, name):
        """A dump gives the same answers as the cloud."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join('fleet'))
        path.write_text(self.hpcvirt('fleet', 'dump')[1])
        for words in (('capacity',), ('explain', '--flavor', name),
                      ('make-room', '--flavor', name)):
            status, live = self.read(*words)
            again, found = self.read(*words, '--fleet', str(path))
            self.assertEqual(
                (status, commands.drop_classes(live)),
                (again, commands.drop_classes(found)))

    def assert_explained(self, name):
        status, document = self.read('explain', '--flavor', name)
        self.assertEqual(0, status)
        host, other = document['hosts']
        self.assertEqual(('node1', 'filter', 'quarantined'),
                         (host['name'], host['step'], host['code']))
        self.assertIn('watch since 2026-01-02T03:04:05Z by me@here: steal',
                      host['reason'])
        self.assertTrue(other['fits'])
        _, document = self.read('capacity', '--flavor', name)
        (counted,) = document['flavors']
        self.assertEqual(0, counted['per_host']['node1'])
        self.assertGreater(counted['per_host']['node2'], 0)
        (closed,) = document['closed']
        self.assertEqual('node1', closed['name'])
        self.assertIn('it is in quarantine: operator', closed['reason'])
        self.assertIn('1 host counted as full', self.hpcvirt('capacity')[1])
        # Its instances may leave.
        hosts = {host.name: host for host in view.read().fleet.hosts}
        self.assertEqual({'node1', 'node2'}, hosts['node1'].instances[0].hosts)
        # A filter that does not decide does not close the host.
        self.flags(filter_mode='shadow', group='hpcvirt')
        self.assertEqual([], self.read('capacity')[1]['closed'])
        self.assertTrue(self.read('explain', '--flavor', name)[1][
            'hosts'][0]['fits'])
        self.flags(filter_mode='enforce', group='hpcvirt')

    def test_periodic_instances_leave_a_host_and_do_not_return(self):
        flavor, larger = (self.create_hpc_flavor(pcpus=pcpus)
                          for pcpus in (1, 2))
        self.flags(allow_resize_to_same_host=True)
        servers = [self.boot(flavor, host='node1') for _ in range(2)]
        self.quarantine('node1')
        self.api.post_server_action(servers[0]['id'], {
            'rebuild': {'imageRef': self.glance.image2['id']}})
        self.assertEqual('node1', self.host_of(
            self.wait_for(servers[0], 'ACTIVE')))
        self.assertEqual('node2', self.host_of(self.live_migrate(servers[1])))
        self.assertEqual('node2', self.host_of(
            self.resize(servers[0], larger)))
        self.api.post_server_action(servers[0]['id'], {'revertResize': None})
        self.assertEqual('node1', self.host_of(
            self.wait_for(servers[0], 'ACTIVE')))
        before = len(self.refusals())
        self.api.post_server_action(
            servers[1]['id'], {'migrate': {'host': 'node1'}})
        self.assertEqual('node2', self.host_of(
            self.wait_for(servers[1], 'ACTIVE')))
        self.assertIn('node1, node1 refused: the host is in quarantine',
                      self.refusals()[before])


class WatchTest(QuarantineNova):
    """A slow host that is supervised, and a Placement that is stopped."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.down = False
        ask = session.placement().__class__.request

        def request(adapter, *args, **kwargs):
            if self.down and adapter.service_type == 'placement':
                raise keystoneauth1.exceptions.ConnectFailure('no Placement')
            return ask(adapter, *args, **kwargs)
        self.useFixture(fixtures.MonkeyPatch(
            'keystoneauth1.adapter.Adapter.request', request))

    def supervise(self, score, status=0):
        """Let a quarter of an hour pass, in which the host has this score."""
        ended, text = self.hpcvirt(
            *supervised.write(self.folder, 'node1', score), '--apply')
        self.assertEqual(status, ended, text)
        return text

    def test_periodic_a_signature_moves_instances_away_until_it_clears(self):
        flavor = self.create_hpc_flavor(pcpus=1)
        self.supervise(0.0)
        self.boot(flavor, host='node1')
        self.assertIn('quarantine is done', self.supervise(1.7))
        (hold,) = self.cloud.holds('node1')
        self.assertEqual('watch', hold.holder)
        self.assertIn('cpu-shootdowns on cpu7', hold.reason)
        self.assertIn(quarantine.TRAIT, self.traits('node1'))
        for _ in range(3):
            self.assertEqual('node2', self.host_of(self.boot(flavor)))
        self.supervise(0.0)
        self.assertIn('is over', self.supervise(0.0))
        self.assertEqual([], self.holders('node1'))
        self.assertNotIn(quarantine.TRAIT, self.traits('node1'))
        self.boot(flavor, host='node1')

    def test_an_outage_of_placement_loses_and_harms_nothing(self):
        self.quarantine('node1')
        self.supervise(0.0)
        self.down = True
        self.assertIn('its trait CUSTOM_HPCVIRT_QUARANTINED may be wrong',
                      self.supervise(1.7, status=2))
        self.down = False
        # Nova knows it already, and the next time completes it.
        self.assertEqual(['operator', 'watch'], self.holders('node1'))
        self.assertIn('quarantine is done', self.supervise(1.7))
        self.down = True
        self.supervise(0.0)
        self.supervise(0.0, status=2)
        self.down = False
        self.assertIn('release from quarantine is done', self.supervise(0.0))
        self.assertEqual(['operator'], self.holders('node1'))
        self.assertIn(quarantine.TRAIT, self.traits('node1'))


class QuarantineStateTest(QuarantineNova):
    def test_a_host_is_put_in_quarantine_and_released(self):
        before = self.traits('node1')
        status, text = self.hpcvirt('host', 'quarantine', 'node1',
                                    '--reason', 'it swaps')
        self.assertEqual(0, status)
        self.assertIn('node1 is not in quarantine', text)
        self.assertIn('use --apply', text)
        self.assertEqual([], self.holders('node1'))
        self.assertEqual([], self.nova.aggregates.list())

        self.assertIn('it swaps', self.quarantine('node1'))
        (hold,) = self.cloud.holds('node1')
        self.assertEqual(('operator', 'it swaps'), (hold.holder, hold.reason))
        self.assertEqual(before | {quarantine.TRAIT}, self.traits('node1'))
        self.assertNotIn(quarantine.TRAIT, self.traits('node2'))
        self.assertEqual([], self.holders('node2'))

        self.assertIn('Nothing is to be done', self.quarantine('node1'))
        self.quarantine('node1', 'its fan is broken')
        (again,) = self.cloud.holds('node1')
        self.assertEqual((hold.since, 'its fan is broken'),
                         (again.since, again.reason))

        self.assertIn('node1 is not in quarantine', self.release('node1'))
        self.assertEqual(before, self.traits('node1'))
        self.assertIn('Nothing is to be done', self.release('node1'))
        # All holders must release it.
        self.quarantine('node1')
        self.hold('node1', quarantine.WATCH, 'steal')
        self.assertEqual(['operator', 'watch'], self.holders('node1'))
        self.release('node1')
        self.assertEqual(['watch'], self.holders('node1'))
        self.assertIn(quarantine.TRAIT, self.traits('node1'))
        self.release('node1', '--holder', 'watch')
        self.assertEqual([], self.holders('node1'))
        self.assertNotIn(quarantine.TRAIT, self.traits('node1'))
        self.refuse_bad_input()

    def test_periodic_a_trait_that_could_not_be_set_is_set_by_repeating(self):
        down = [True]
        ask = placement.PlacementClient._ask

        def ask_or_fail(this, *args):
            if down[0]:
                raise exception.Unreachable('Placement is down')
            return ask(this, *args)
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.placement.PlacementClient._ask', ask_or_fail))
        status, text = self.hpcvirt('host', 'quarantine', 'node1', '--reason',
                                    'x', '--apply')
        self.assertEqual(2, status)
        self.assertIn('node1 is in quarantine, but its trait', text)
        self.assertEqual(['operator'], self.holders('node1'))
        down[0] = False
        self.quarantine('node1', 'x')
        self.assertIn(quarantine.TRAIT, self.traits('node1'))

    def test_periodic_a_holder_that_comes_during_a_release(self):
        self.hold('node1', quarantine.OPERATOR)
        change = placement.PlacementClient.change_traits

        def change_late(this, provider, add=(), remove=()):
            if remove and 'watch' not in self.holders('node1'):
                self.hold('node1', quarantine.WATCH)
            return change(this, provider, add, remove)
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.placement.PlacementClient.change_traits',
            change_late))
        self.release('node1')
        self.assertEqual(['watch'], self.holders('node1'))
        self.assertIn(quarantine.TRAIT, self.traits('node1'))

    def refuse_bad_input(self):
        """Bad input is reported in one line, and changes nothing."""
        for words, pattern in (
                (('host', 'quarantine', 'node9', '--reason', 'x'),
                 'no compute host'),
                (('host', 'quarantine', 'node', '--release'),
                 'no compute host'),
                (('host', 'quarantine', 'node1', '--reason', ' '), '1 to 150'),
                (('host', 'quarantine', 'node1', '--reason', 'x' * 151),
                 '1 to 150')):
            status, text = self.hpcvirt(*words, '--apply')
            self.assertEqual(2, status)
            self.assertIn(pattern, text)
            self.assertEqual(1, text.count('\n'), text)
        self.assertEqual([], self.holders('node1'))
