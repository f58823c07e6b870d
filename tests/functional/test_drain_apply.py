# SPDX-License-Identifier: Apache-2.0

"""Empty hosts in a Nova that changes meanwhile."""

import json
import time
import types

import fixtures
from nova.tests.fixtures import libvirt

from hpcvirt.cloud import migrations
from hpcvirt.model import quarantine
from tests.functional import test_quarantine


class DrainApplyTest(test_quarantine.QuarantineNova):
    HOSTS = ('node1', 'node2', 'node3')

    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.migrations.PAUSE_S', 0.05))
        self.move_domains()
        self.flavor = self.create_hpc_flavor(pcpus=1)

    def drain(self, *words):
        status, text = self.hpcvirt('drain', *words, '--format', 'json')
        self.assertTrue(text.startswith('{'), text)
        # Warnings of the client libraries follow.
        return status, json.JSONDecoder().raw_decode(text)[0]

    def fail_first_instance(self):
        """Let the live migrations of the first instance fail."""
        failed = {}
        migrate = libvirt.Domain.migrateToURI3

        def fail(domain, *args, **kwargs):
            if domain.UUIDString() != failed.setdefault(
                    'id', domain.UUIDString()):
                migrate(domain, *args, **kwargs)
            else:
                domain.fail_job()
        self.stub_out('nova.tests.fixtures.libvirt.Domain.migrateToURI3', fail)
        return failed

    def test_a_migration_that_does_not_converge_is_aborted(self):
        self.stub_out('nova.tests.fixtures.libvirt.Domain.abortJob',
                      lambda domain: setattr(
                          domain, '_job_type',
                          libvirt.VIR_DOMAIN_JOB_CANCELLED))
        # The time is up as soon as the migration runs, on any machine.
        runs = []
        self.stub_out('nova.tests.fixtures.libvirt.Domain.migrateToURI3',
                      lambda domain, *_, **__: runs.append(domain))
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.waiting.time', types.SimpleNamespace(
                sleep=time.sleep, monotonic=lambda: (
                    time.monotonic() + len(runs) * migrations.MIGRATION_S))))
        # One migration only: nova-compute waits for all when it stops.
        (service,) = self.api.get_services(host='node3')
        self.api.put_service(service['id'], {'status': 'disabled'})
        server = self.boot(self.flavor, host='node1')
        status, document = self.drain('node1', '--apply')
        self.assertEqual(1, status, document)
        why = 'it did not move within 3600 s, and was aborted'
        self.assertEqual([('node2', False, why)], [
            (move['to'], move['done'], move['failure'])
            for move in document['moves']])
        self.assertIn(f'did not move to node2: {why}; now: ',
                      document['left'][0]['reason'])
        found = self.api.get_server(server['id'])
        self.assertEqual(('node1', 'ACTIVE', None), (
            self.host_of(server), found['status'],
            found['OS-EXT-STS:task_state']))
        self.assertEqual([], self.faults())

    def change_before(self, number, change):
        """Change the cloud before a move is begun."""
        begun = []
        carry_out = migrations.Migrator.carry_out

        def change_and_carry_out(migrator, move):
            begun.append(move)
            if len(begun) == number:
                change(move)
            return carry_out(migrator, move)
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.migrations.Migrator.carry_out',
            change_and_carry_out))

    def test_periodic_a_drain_continues_after_failures_and_changes(self):
        servers = [self.boot(self.flavor, host='node1') for _ in range(4)]
        failed = self.fail_first_instance()
        arrived = []
        self.change_before(3, lambda move: arrived.append(
            self.boot(self.flavor, host=move.target)))
        status, document = self.drain('node1', '--apply')
        self.assertEqual(1, status, document)
        first = failed['id']
        self.assertEqual([(first, 'did not move: it is ACTIVE on node1')], [
            (one['id'], one['reason']) for one in document['left']])
        outcomes = [(move['id'], move['done']) for move in document['moves']]
        self.assertEqual(2, outcomes.count((first, False)))
        (newcomer,) = arrived
        self.assertNotIn(newcomer['id'], [each for each, _ in outcomes])
        self.assertEqual([first], [
            each['id'] for each in (*servers, newcomer)
            if self.host_of(each) == 'node1'])
        self.assertEqual([quarantine.DRAIN], self.holders('node1'))
        self.assertEqual([], self.faults())
        # Nothing new starts on the host until it is released.
        self.boot(self.flavor, host='node1', status='ERROR')
        self.release('node1', '--holder', 'drain')
        self.boot(self.flavor, host='node1')

    def test_periodic_a_deleted_instance_is_no_failure_of_the_drain(self):
        self.boot_many(self.flavor, 2, host='node1')
        self.change_before(1, lambda move: self.delete({'id': move.id}))
        status, document = self.drain('node1', '--apply')
        self.assertEqual((0, True), (status, document['empty']), document)
        self.assertEqual([False, True], [
            move['done'] for move in document['moves']])
        self.assertIn('no such server', document['moves'][0]['failure'])

    def test_the_first_wave_is_emptied(self):
        aggregate = self.api.post_aggregate({'aggregate': {'name': 'rack'}})
        for host in ('node1', 'node2', 'node3'):
            self.api.add_host_to_aggregate(aggregate['id'], host)
        self.boot(self.flavor, host='node1')
        other = self.boot(self.flavor, host='node2')
        # All hosts of an aggregate are emptied, at times.
        status, document = self.drain('--aggregate', 'rack', '--rolling', '1')
        self.assertEqual((0, 3), (status, len(document['waves'])))
        status, document = self.drain('--rolling', '1', 'node1', 'node2')
        self.assertEqual((0, [['node1'], ['node2']]), (
            status, document['waves']))
        status, document = self.drain('--rolling', '1', 'node1', 'node2',
                                      '--apply')
        self.assertEqual((0, [['node1']]), (status, document['waves']))
        self.assertEqual(['node3'], [
            move['to'] for move in document['moves']])
        self.assertEqual('node2', self.host_of(other))
        self.assertEqual([], self.holders('node2'))

    def test_periodic_an_instance_that_must_stay_is_named(self):
        server = self.boot(self.flavor, host='node1')
        self.api.post_server_action(server['id'], {'lock': None})
        status, document = self.drain('node1', '--apply')
        self.assertEqual((1, False), (status, document['empty']))
        self.assertEqual([(server['id'], 'is locked')], [
            (one['id'], one['reason']) for one in document['left']])
