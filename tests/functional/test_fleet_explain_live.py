# SPDX-License-Identifier: Apache-2.0

"""Explain requests to a cloud, and try them."""

import json

import fixtures
from nova.scheduler.client import report

from testing import machines
from testing import nova
from tests.builders import commands
from tests.functional import base


class ExplainACloudTest(base.HPCNova):
    ENABLED_FILTERS = (*nova.USUAL_FILTERS, 'HPCTopologyFilter',
                       'AggregateInstanceExtraSpecsFilter')
    OPTIONS = (
        base.PCI_ALIAS,
        ('scheduler', 'enable_isolated_aggregate_filtering', True),
    )

    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.add_machines(*(machines.build(
            f'node{number}', pages={2048: 1024}, vfs={1: 2})
            for number in range(1, 4)))

    def explain(self, *words, status=1):
        """Explain; return host -> its verdict, and the changes."""
        got, out, err = commands.run('explain', *words, '--format', 'json')
        self.assertEqual(status, got, err)
        if status == 2:
            return err
        document = json.loads(out)
        return ({host['name']: host for host in document['hosts']},
                document['nearest'])

    def of(self, flavor, *words, status=1):
        return self.explain(
            '--flavor', self.api.get_flavor(flavor)['name'], *words,
            status=status)

    def assert_refused(self, found, host, step, code, reason):
        verdict = found[0][host]
        self.assertFalse(verdict['fits'])
        self.assertEqual((step, code), (verdict['step'], verdict['code']),
                         verdict['reason'])
        self.assertRegex(verdict['reason'], reason)

    def refuse(self, flavor, **more):
        """Nova refuses it, too."""
        server = self.boot(flavor, status='ERROR', **more)
        self.delete(server)

    def set_traits(self, host, *traits):
        uuid = self._get_provider_uuid_by_name(host)
        for trait in traits:
            self._create_trait(trait)
        self._set_provider_traits(
            uuid, [*self._get_provider_traits(uuid), *traits])
        report.report_client_singleton().clear_provider_cache()

    def test_periodic_what_refuses_a_host_is_named(self):
        self.set_traits('node1', 'CUSTOM_BIG')
        big = self.create_hpc_flavor(**{'trait:CUSTOM_BIG': 'required'})
        found = self.of(big, status=0)
        self.assertTrue(found[0]['node1']['fits'])
        self.assertEqual([0, 1, 2, 3], found[0]['node1']['cpus'])
        for host in ('node2', 'node3'):
            self.assert_refused(found, host, 'placement', 'trait',
                                'the host lacks the trait CUSTOM_BIG')
        self.assertEqual('node1', self.host_of(self.boot(big)))
        # A trait that is forbidden, and too much memory elsewhere.
        found = self.of(self.create_hpc_flavor(
            mib=9000, **{'trait:CUSTOM_BIG': 'forbidden'}))
        self.assert_refused(found, 'node1', 'placement', 'forbidden-trait',
                            'CUSTOM_BIG, which is forbidden; the host has')
        self.assert_refused(found, 'node2', 'placement', 'resources',
                            'MEMORY_MB free, 9000 needed')
        # A class that no host has, beside one that the guest may shrink.
        other = self.create_hpc_flavor(pcpus=16, resources__CUSTOM_X='1')
        self.assert_refused(self.of(other), 'node2', 'placement', 'request',
                            'refuses the request: .*CUSTOM_X')
        self._create_resource_class('CUSTOM_X')
        found = self.of(other)
        self.assert_refused(found, 'node2', 'placement', 'other-resource',
                            'the host has 0 CUSTOM_X free, 1 needed; the '
                            'host has 8 PCPU free, 16 needed')
        self.assertEqual([], found[1])
        # A cell that is too small.
        wide = self.create_hpc_flavor(pcpus=6)
        found = self.of(wide)
        self.assert_refused(found, 'node2', 'filter', 'no-cell',
                            'cell 0 has 4 of the 6 PCPUs needed')
        self.assertIn('2 guest cells instead of 1', found[1][0]['change'])
        self.refuse(wide)
        # Devices, which no cell is near to.
        self.assert_refused(
            self.of(self.create_hpc_flavor(
                pci_passthrough__alias='fast:3')),
            'node2', 'filter', 'devices', 'PCI device')
        # A disabled nova-compute.
        service = self.api.get_services(host='node3')[0]
        self.api.put_service(service['id'], {
            'status': 'disabled', 'disabled_reason': 'new memory'})
        small = self.create_hpc_flavor(pcpus=1)
        found = self.of(small, status=0)
        self.assert_refused(found, 'node3', 'placement', 'forbidden-trait',
                            'its nova-compute is disabled .new memory.')
        self.assertTrue(found[0]['node2']['fits'])
        self.assertIn('RAMWeigher', found[0]['node2']['scores'])
        self.assertRegex(found[0]['node2']['compared'],
                         '^it takes [0-9.]+ % of '
                         'the room for what is requested, .* CPUs and ')
        best = max((host for host in found[0].values() if host['fits']),
                   key=lambda host: host['weight'])
        server = self.boot(small)
        self.assertEqual(best['name'], self.host_of(server))
        guest = self.guest(server)
        self.assertEqual(tuple(best['cells']), guest.host_cells)
        self.assertEqual(set(best['cpus']), guest.pinned_of(guest.cells[0]))
        # Only the hosts that are asked for.
        self.assertEqual(['node2'], list(
            self.of(small, '--hosts', 'node2', status=0)[0]))
        self.assertIn("'node9' is not a host",
                      self.of(small, '--hosts', 'node9', status=2))

    def test_periodic_zones_ports_and_servers_are_explained(self):
        for name, host, metadata in (
                ('zone', 'node1', {'availability_zone': 'az1'}),
                ('kept', 'node2', {'trait:CUSTOM_KEPT': 'required'}),
                ('kind', 'node3', {'kind': 'other'})):
            aggregate = self.api.post_aggregate({'aggregate': {'name': name}})
            self.api.add_host_to_aggregate(aggregate['id'], host)
            self.api.post_aggregate_action(aggregate['id'], {
                'set_metadata': {'metadata': metadata}})
        self._create_trait('CUSTOM_KEPT')
        kind = self.create_hpc_flavor(
            aggregate_instance_extra_specs__kind='this')
        found = self.of(kind)
        self.assert_refused(found, 'node1', 'filter', 'other-filter',
                            'AggregateInstanceExtraSpecsFilter')
        self.assert_refused(found, 'node2', 'placement', 'aggregate',
                            'kept for instances with other traits .kept.')
        self.assertEqual([], found[1])
        self.refuse(kind)
        # A server in a zone can go nowhere else.
        small = self.create_hpc_flavor(pcpus=1)
        server = self.boot(small, availability_zone='az1')
        found = self.explain('--server', server['id'])
        self.assert_refused(found, 'node1', 'filter', 'not-wanted',
                            'excludes the host')
        self.assert_refused(
            found, 'node3', 'placement', 'aggregate',
            'the host is not in the availability zone az1')
        other = self.boot(small, host='node3')
        found = self.explain('--server', other['id'], status=0)
        self.assertEqual(['node1'], [name for name, host
                                     in found[0].items() if host['fits']])
        # A port that needs a virtual function of a full card.
        port = self.create_sriov_port(machines.PHYSNET)
        self.boot(small, ports=[port], host='node1')
        self.assertTrue(self.of(
            small, '--port', self.create_sriov_port(machines.PHYSNET),
            status=0)[0]['node1']['fits'])
        self.boot(small, host='node1',
                  ports=[self.create_sriov_port(machines.PHYSNET)])
        found = self.of(
            small, '--port', self.create_sriov_port(machines.PHYSNET),
            status=0)
        self.assert_refused(found, 'node1', 'filter', 'devices',
                            'no free PCI device')
        self.assertIn('--server', self.explain('--server', port, status=2))
