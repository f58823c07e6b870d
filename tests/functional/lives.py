# SPDX-License-Identifier: Apache-2.0

"""A Nova in which instances are built again, moved and shelved."""

import json

from testing import machines
from tests.functional import base


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

    def live_migrate(self, server, outcome='completed'):
        """Migrate a server live."""
        self.move_domains()
        self.api.post_server_action(server['id'], {'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}})
        self._wait_for_migration_status(server, [outcome])
        return self.wait_for(server, 'ACTIVE')

    def move_domains(self):
        """Let live migrations move domains as libvirt would."""
        def migrate(domain, _uri, params, flags):  # noqa: ARG001
            target = self._migration_of(
                {'id': domain.UUIDString()})['dest_compute']
            self.connections[target].createXML(params['destination_xml'], 0)
            domain.complete_job()
        self.stub_out('nova.tests.fixtures.libvirt.Domain.migrateToURI3',
                      migrate)
        self.stub_out('nova.tests.fixtures.libvirt.Domain.XMLDesc',
                      lambda domain, flags:  # noqa: ARG005
                      domain._connection.domain(domain.name()))

    def _migration_of(self, server):
        """The newest migration of a server."""
        return max((migration for migration in
                    self.api.api_get('os-migrations').body['migrations']
                    if migration['instance_uuid'] == server['id']),
                   key=lambda migration: migration['id'])

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
