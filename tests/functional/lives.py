# SPDX-License-Identifier: Apache-2.0

"""A Nova in which instances are built again, moved and shelved."""

import json
import operator

from hpcvirt import waiting
from testing import machines
from testing import nova
from tests.functional import base

#: The statuses of a live migration that has not ended.
IN_PROGRESS = frozenset({
    'accepted', 'queued', 'preparing', 'running', 'post-migrating'})


class LivesNova(base.HPCNova):
    """What can happen to an instance; each method waits for the end."""

    def fail_next_build(self):
        """Let the next build fail on its first host, after the claim.

        :returns: a list in which the name of that host will be
        """
        failed = []

        def failing(host, spawn):
            def wrapper(*args, **kwargs):
                if not failed:
                    failed.append(host)
                    raise RuntimeError('this build fails')
                return spawn(*args, **kwargs)
            return wrapper
        for host, compute in self.computes.items():
            compute.driver.spawn = failing(host, compute.driver.spawn)
        return failed

    def migrate(self, server, status='VERIFY_RESIZE'):
        self.api.post_server_action(server['id'], {'migrate': None})
        return self.wait_for(server, status)

    def resize(self, server, flavor, status='VERIFY_RESIZE'):
        self.api.post_server_action(server['id'], {
            'resize': {'flavorRef': flavor}})
        return self.wait_for(server, status)

    def confirm(self, server):
        self.api.post_server_action(server['id'], {'confirmResize': None})
        return self.wait_for(server, 'ACTIVE')

    def live_migrate(self, server):
        """Migrate a server live."""
        self.move_domains()
        self.start_live_migration(server)
        moved = self.wait_for(server, 'ACTIVE')
        # The source still has to free what the server had there.
        self.wait_for_live_migrations()
        *_, migration = self.migrations_of(server)
        self.assertEqual('completed', migration['status'])
        return moved

    def start_live_migration(self, server):
        self.api.post_server_action(server['id'], {'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}})

    def wait_for_live_migrations(self):
        """Wait until no live migration is in progress.

        Nova's own way to wait for a migration gives up after some 5 s, while
        a busy machine still migrates.
        """
        self.assertEqual([], waiting.poll(
            lambda: [migration for migration in self.migrations()
                     if migration['status'] in IN_PROGRESS],
            operator.not_, nova.PATIENCE_S, nova.POLL_S))

    def end_live_migrations(self):
        """End live migrations while all hosts can still answer.

        A nova-compute that stops waits for its live migrations. They wait for
        other hosts, which may have stopped before, and never end while the
        fake libvirt reports a running job, as it does by default: a test that
        fails during a migration would never end.
        """
        for connection in self.connections.values():
            for guest in list(connection._vms.values()):
                guest.fail_job()
        self.wait_for_live_migrations()

    def migrations(self):
        """The live migrations, the oldest first."""
        return sorted(
            self.api.api_get('/os-migrations?migration_type=live-migration')
            .body['migrations'], key=operator.itemgetter('id'))

    def migrations_of(self, server):
        return [migration for migration in self.migrations()
                if migration['instance_uuid'] == server['id']]

    def move_domains(self):
        """Let live migrations move domains as libvirt would."""
        def migrate(domain, _uri, params, flags):  # noqa: ARG001
            *_, migration = self.migrations_of({'id': domain.UUIDString()})
            target = migration['dest_compute']
            self.connections[target].createXML(params['destination_xml'], 0)
            domain.complete_job()
        self.stub_out('nova.tests.fixtures.libvirt.Domain.migrateToURI3',
                      migrate)
        self.stub_out('nova.tests.fixtures.libvirt.Domain.XMLDesc',
                      lambda domain, flags:  # noqa: ARG005
                      domain._connection.domain(domain.name()))
        self.addCleanup(self.end_live_migrations)

    def evacuate(self, server, status='SHUTOFF'):
        """Evacuate a server, and leave its host down."""
        source = self.host_of(server)
        self.computes[source].stop()
        service, = self.api.get_services(host=source, binary='nova-compute')
        self.api.put_service_force_down(service['id'], True)
        self.api.post_server_action(server['id'], {'evacuate': {}})
        return self.wait_for(server, status)

    def shelve(self, server):
        """Shelve a server, and let its host count what it has left."""
        self.api.post_server_action(server['id'], {'shelve': None})
        self.wait_for(server, 'SHELVED_OFFLOADED')
        self._run_periodics()

    def unshelve(self, server, status='ACTIVE'):
        self.api.post_server_action(server['id'], {'unshelve': None})
        return self.wait_for(server, status)

    def configure_alias(self, **more):
        """Give an alias to the virtual functions."""
        self.flags(alias=[json.dumps({
            'name': 'vf', 'vendor_id': machines.VENDOR_ID,
            'product_id': machines.VF_PRODUCT_ID,
            'device_type': 'type-VF', **more})], group='pci')

    def refusals(self):
        """Why the filter has refused hosts, one line each."""
        return [line for line in self.log.output.splitlines()
                if ' refused: ' in line]
