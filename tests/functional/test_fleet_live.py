# SPDX-License-Identifier: Apache-2.0

"""Read the fleet of a cloud as a controller does."""

import contextlib
import dataclasses
import json
import pathlib
import unittest

import fixtures
import sqlalchemy
from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils

from hpcvirt import exception
from hpcvirt.cmd import hosts
from hpcvirt.cmd.fleet import arguments
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import assemble
from hpcvirt.fleet import count
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import read_only
from hpcvirt.nova_live import view
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.functional import base


class FleetOfACloudTest(base.HPCNova):
    OPTIONS = (
        ('pci', 'alias', [json.dumps({
            'name': name, 'vendor_id': machines.VENDOR_ID,
            'product_id': machines.VF_PRODUCT_ID, 'device_type': 'type-VF'})
            for name in ('fast', 'Quick')]),)

    def setUp(self):
        super().setUp()
        # The embedded Nova has its settings already.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.nova_live.settings.load', lambda *_: None))
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.add_machines(*(machines.build(
            name, pages={2048: 1024}, vfs={1: 2})
            for name in ('node1', 'node2')))

    def hpcvirt(self, *words):
        status, out, err = commands.run(*words, '--format', 'json')
        self.assertEqual('', err)
        return status, json.loads(out)

    def flavor(self, flavors, flavor_id):
        name = self.api.get_flavor(flavor_id)['name']
        return next(item for item in flavors if item.name == name)

    def add_cards(self, host, *counts):
        """Give a host cards with vGPUs, as nova-compute reports them."""
        found = self.placement.get(f'/resource_providers?name={host}').body
        (root,) = found['resource_providers']
        for number, total in enumerate(counts):
            card = uuidutils.generate_uuid()
            self.placement.post('/resource_providers', {
                'name': f'{host}_pci_0000_0{number}_00_0', 'uuid': card,
                'parent_provider_uuid': root['uuid']}, version='1.20')
            self.placement.put(f'/resource_providers/{card}/inventories', {
                'resource_provider_generation': 0,
                'inventories': {'VGPU': {'total': total}}}, version='1.20')

    def test_vgpus_are_those_that_placement_has_on_one_card(self):
        self.add_cards('node1', 1, 3)
        pair = self.create_hpc_flavor(pcpus=1, resources__VGPU='2')
        one = self.create_hpc_flavor(pcpus=1, resources__VGPU='1')
        for expected, status in (((1, 4), 'ACTIVE'), ((0, 2), 'ERROR')):
            seen = view.read()
            fleet, flavors = seen.fleet, seen.flavors
            found = count.count(fleet, [
                self.flavor(flavors, each) for each in (pair, one)])
            self.assertEqual(expected, tuple(item.total for item in found))
            self.assertEqual(expected, tuple(item.by_sums for item in found))
            self.boot(pair, status=status, host='node1')

    def test_periodic_no_guest_has_more_than_an_inventory_gives_one(self):
        self.add_machines(machines.build(
            'small', cells=1, housekeeping_cores=1))
        one, two = (self.create_flavor(vcpus, 64, {}) for vcpus in (1, 2))
        seen = view.read()
        ones, twos = (item.per_host['small'] for item in count.count(
            seen.fleet, [self.flavor(seen.flavors, each)
                         for each in (one, two)]))
        self.assertGreaterEqual(ones, 2)
        self.assertEqual(0, twos)
        self.boot(two, status='ERROR', host='small')
        self.boot_many(one, ones, host='small')
        self.boot(one, status='ERROR', host='small')

    def test_sums_are_only_of_hosts_with_the_cores_of_a_thread_policy(self):
        self.flags(disable_fallback_pcpu_query=True, group='workarounds')
        self.add_machines(machines.build('smt', threads=2,
                                         pages={2048: 1024}))
        wanted = [self.create_hpc_flavor(pcpus=2, hw__cpu_thread_policy=policy)
                  for policy in ('prefer', 'require', 'isolate')]
        seen = view.read()
        self.assertEqual(['smt'], [
            host.name for host in seen.fleet.hosts
            if placement.SMT_TRAIT in host.state.traits])
        asked = {}
        for flavor in wanted:
            name = self.flavor(seen.flavors, flavor).name
            _, document = self.hpcvirt('explain', '--flavor', name)
            # The real Placement has answered.
            asked[name] = {host['name'] for host in document['hosts']
                           if host['step'] != 'placement'}
        self.assertEqual([3, 1, 2], [*map(len, asked.values())])
        _, document = self.hpcvirt('capacity')
        for item in document['flavors']:
            if item['name'] in asked:
                self.assertEqual(asked[item['name']], {
                    host for host, number in item['per_host'].items()
                    if number})
                # Hosts with SMT have twice as many PCPUs.
                self.assertEqual({3: 16, 1: 8, 2: 8}[len(asked[item['name']])],
                                 item['by_sums'])

    def test_instances_are_where_they_are_and_counts_are_what_nova_takes(self):
        small = self.create_hpc_flavor(pcpus=1)
        device = self.create_hpc_flavor(
            pcpus=1, pci_passthrough__alias='Quick:1')
        whole = self.create_hpc_flavor(pcpus=4)
        servers = self.boot_many(small, 2, host='node1')
        servers.append(self.boot(device, host='node2'))
        seen = view.read()
        fleet, flavors = seen.fleet, seen.flavors
        self.assertEqual({}, fleet.broken)
        by_name = {host.name: host for host in fleet.hosts}
        found = {instance.id: instance for host in fleet.hosts
                 for instance in host.instances}
        self.assertEqual({server['id'] for server in servers}, set(found))
        for server in servers:
            guest, instance = self.guest(server), found[server['id']]
            self.assertEqual(self.host_of(server), instance.host)
            self.assertEqual(guest.host_cells, instance.cells)
            self.assertEqual(guest.pinned_of(guest.cells[0]),
                             instance.holding.cpus)
            self.assertEqual({2048}, set(instance.holding.placement.pages_kib))
            self.assertIsNone(instance.stays)
            self.assertEqual({'node1', 'node2'}, instance.hosts)
        self.assertEqual(1, len(found[servers[2]['id']].devices))
        self.assertEqual('has PCI devices',
                         moving.stays(found[servers[2]['id']]))
        # What an instance has is what its host has less of.
        self.assertEqual(6, by_name['node1'].state.free.pcpus)
        before = view.read().fleet
        self.delete(servers.pop(1))
        after = view.read().fleet
        gone = next(instance for instance in before.hosts[0].instances
                    if instance.id not in {
                        server['id'] for server in servers})
        self.assertEqual(after.hosts[0].state,
                         moving.leave(gone, before.hosts[0]).state)
        # Each count is what Nova takes until it refuses.
        status, document = self.hpcvirt('capacity')
        self.assertEqual(0, status)
        totals = {item['name']: item['total'] for item in document['flavors']}
        self.assertIn(self.flavor(flavors, small).name, totals)
        for each in (whole, device):
            taken = self.boot_many(
                each, totals[self.flavor(flavors, each).name])
            taken.append(self.boot(each, status='ERROR'))
            for server in taken:
                self.delete(server)

    def dump(self, *words):
        status, out, _ = commands.run('fleet', 'dump', *words)
        self.assertEqual(0, status)
        path = pathlib.Path(self.folder, 'fleet.json')
        path.write_text(out)
        return path, json.loads(out)

    def assert_same_from_a_dump(self, *words, status=0):
        """A dump gives the same answers as the cloud.

        Only a document has classes.
        """
        live = self.hpcvirt(*words)
        self.assertEqual(status, live[0])
        for options in ((), ('--anonymize',)):
            path, _ = self.dump(*options)
            found = self.hpcvirt(*words, '--fleet', str(path))
            self.assertEqual(status, found[0])
            for document in (live[1], found[1]):
                commands.drop_classes(document)
                for key in ('hosts', 'closed', 'broken'):
                    document[key] = sorted(
                        document.get(key, ()), key=lambda row: row['name'])
                    if options:
                        for row in document[key]:
                            row.pop('reason', None)
            self.assertEqual(live[1], found[1])

    def test_zones_and_project_aggregates_are_those_of_the_cloud(self):
        for name, host, metadata in (
                ('zone', 'node1', {'availability_zone': 'az1'}),
                ('of bio', 'node1', {'filter_tenant_id2': 'bio'}),
                ('of chem', 'node2', {'filter_tenant_id': 'chem'}),
                ('of all', 'node2', {'filter_tenant_id': 'bio'})):
            aggregate = self.api.post_aggregate({'aggregate': {'name': name}})
            self.api.add_host_to_aggregate(aggregate['id'], host)
            self.api.post_aggregate_action(aggregate['id'], {
                'set_metadata': {'metadata': metadata}})
        server = self.boot(self.create_hpc_flavor(pcpus=3), host='node2')
        path, _ = self.dump()
        status, text, _ = commands.run('capacity', '--format', 'prometheus')
        self.assertEqual(0, status)
        self.assertEqual((0, text), commands.run(
            'capacity', '--format', 'prometheus', '--fleet', path)[:2])
        for host, zone, aggregate, free in (
                ('node1', 'az1', 'of bio', 8.0),
                ('node2', '', 'multiple', 5.0)):
            self.assertIn(
                f'\nhpcvirt_hypervisor_pcpus_free{{az_aggregate="{zone}",'
                f'hypervisor="{host}",project_aggregate="{aggregate}"}} '
                f'{free}\n', text)
        self.assertIn('\nhpcvirt_project_pcpus{project_id="'
                      f'{server["tenant_id"]}"}} 3.0\n', text)

    def test_a_dump_gives_the_answers_of_the_cloud(self):
        self.add_machines(
            machines.build('node4', pages={2048: 512}), machines.build(
                'node3', pages={2048: 1024, 1048576: (2, 0)}, vfs={0: 2}))
        mixed = self.create_flavor(4, 2048, {
            'hw:numa_nodes': '2', 'hw:cpu_policy': 'dedicated',
            'hw:mem_page_size': 'large'})
        device = self.create_hpc_flavor(
            pcpus=1, pci_passthrough__alias='Quick:1')
        self.create_hpc_flavor(pcpus=2, numa_nodes=2)
        server = self.boot(mixed, host='node3')
        self.boot(device, host='node3')
        self.boot(device, host='node1')
        service = self.api.get_services(host='node4')[0]
        self.api.put_service(service['id'], {
            'status': 'disabled', 'disabled_reason': 'of project secret'})
        _, document = self.dump()
        (written,) = (each for each in document['instances']
                      if each['id'] == server['id'])
        self.assertEqual([{'1048576': 1}, {'2048': 512}], [
            cell['pages'] for cell in written['cells']])
        self.assert_same_from_a_dump('capacity')
        name = self.api.get_flavor(mixed)['name']
        path, _ = self.dump()
        fleet, _ = assemble.make_fleet(hosts.read_fleet(str(path)))
        # What Nova reports as used has all that its instances have.
        self.assertEqual((), fleet.warnings)
        seen = view.read().fleet
        # Of equally good hosts, both propose the same one.
        self.assertEqual([host.name for host in seen.hosts],
                         [host.name for host in fleet.hosts])
        for now, read_back in zip(seen.hosts, fleet.hosts, strict=True):
            self.assertEqual(now.state, read_back.state)
            for ours, theirs in zip(now.instances, read_back.instances,
                                    strict=True):
                self.assertEqual(dataclasses.replace(ours, where=''),
                                 dataclasses.replace(theirs, where=''))
                # The record is whole: both give the same room back.
                self.assertEqual(moving.leave(ours, now).state,
                                 moving.leave(theirs, read_back).state)
        self.assertEqual(['node1', 'node2', 'node3', 'node4'], sorted(
            host.name for host in hosts.read_fleet(
                str(path)).list_topologies()))
        # Without its instance the host takes the next one like it.
        (node3,) = (host for host in fleet.hosts if host.name == 'node3')
        leaver = next(item for item in node3.instances
                      if item.id == server['id'])
        flavor = next(item for item in view.read().flavors
                      if item.name == name)
        (item,) = count.count(state.Fleet((moving.leave(leaver, node3),), {}),
                              [flavor])
        self.delete(server)
        (real,) = count.count(view.read().fleet, [flavor])
        self.assertEqual(real.per_host['node3'], item.total)
        self.assertGreater(item.total, 0)
        # Nobody is named, neither by words of an operator.
        self.set_topology('node2', '{"nova_object.name": "NUMA')
        self.assert_same_from_a_dump('capacity')
        _, document = self.dump('--anonymize')
        text = json.dumps(document)
        self.assertNotIn('secret', text)
        for each in document['instances']:
            self.assertRegex(each['id'], '^instance-[0-9]+$')
        self.assertNotIn(self.api.project_id, text)

    def test_a_host_that_is_closed_or_broken_is_shown_as_such(self):
        flavor = self.create_hpc_flavor()
        other = self.boot(flavor, host='node2')
        # Only one host has a trait that a flavor requires.
        self._create_trait('CUSTOM_BIG')
        uuid = self._get_provider_uuid_by_name('node2')
        self._set_provider_traits(uuid, [
            *self._get_provider_traits(uuid), 'CUSTOM_BIG'])
        wishes = [self.create_hpc_flavor(**{'trait:CUSTOM_BIG': wish})
                  for wish in ('required', 'forbidden')]
        # Each host has disk for one instance of another.
        wishes.append(self.create_flavor(
            1, 64, {'hw:cpu_policy': 'dedicated'}, disk_gib=60_000))
        seen = view.read()
        wanted = [self.flavor(seen.flavors, each) for each in wishes]
        self.assertEqual(
            [{'node1': 0, 'node2': 1}, {'node1': 2, 'node2': 0},
             {'node1': 1, 'node2': 1}],
            [item.per_host for item in count.count(seen.fleet, wanted)])
        self.assertIsNone(make_room.search(
            compiled_flavor.make(wanted[0]), seen.fleet.hosts[:1], 2))
        service = self.api.get_services(host='node1')[0]
        self.api.put_service(service['id'], {
            'status': 'disabled', 'disabled_reason': 'new memory'})
        name = self.api.get_flavor(flavor)['name']
        _, document = self.hpcvirt('explain', '--flavor', name)
        self.assertEqual(
            {'node1': False, 'node2': True},
            {host['name']: host['fits'] for host in document['hosts']})
        (closed,) = (host for host in document['hosts'] if not host['fits'])
        self.assertIn('is disabled (new memory)', closed['reason'])
        fleet = view.read().fleet
        guest = compiled_flavor.make(next(
            instance.flavor for host in fleet.hosts
            for instance in host.instances))
        self.assertEqual([False, True], [
            item.fits for item in verdict.judge(guest, fleet)])
        self.assertIsNone(make_room.search(guest, fleet.hosts[:1], 2))
        # Nova's scheduler stops at a record like this one.
        self.set_topology('node2', '{"nova_object.name": "NUMA')
        status, document = self.hpcvirt('capacity')
        self.assertEqual(0, status)
        (broken,) = document['broken']
        self.assertEqual('node2', broken['name'])
        self.assertEqual(other['id'], self.api.get_server(other['id'])['id'])
        self.assertEqual([{'node1': 0}], [
            item['per_host'] for item in document['flavors']
            if item['name'] == name])
        # A flavor that Nova's API accepts, but no request for it.
        bad = self.api.get_flavor(self.create_flavor(
            8, 512, {'hw:numa_nodes': '3'}))['name']
        status, _, err = commands.run('capacity')
        self.assertEqual(0, status)
        self.assertRegex(err, f'^hpcvirt: flavor {bad}: .*; it is left out\n$')

    def test_each_malformed_record_is_a_line(self):
        name = self.api.get_flavor(self.create_hpc_flavor())['name']
        for said, change in (
                ('several NUMA cells have the same id',
                 lambda cells: cells.append(cells[0])),
                ('pages of 0 KiB',
                 lambda cells: cells[0]['nova_object.data']['mempages'][0]
                 ['nova_object.data'].update(size_kb=0)),
                ('OverflowError',
                 lambda cells: cells[0]['nova_object.data'].update(
                     memory=float('inf')))):
            with self.subTest(said), self.changed_topology('node2', change):
                status, document = self.hpcvirt('capacity')
                (broken,) = document['broken']
                self.assertEqual((0, 'node2'), (status, broken['name']))
                self.assertIn(said, broken['reason'])
                _, document = self.hpcvirt('explain', '--flavor', name)
                hosts = {each['name']: each for each in document['hosts']}
                self.assertTrue(hosts['node1']['fits'])
                self.assertEqual('malformed-host', hosts['node2']['code'])
                _, document = self.dump()
                self.assertIn(said, json.dumps(document))

    @contextlib.contextmanager
    def changed_topology(self, host, change):
        before = self.set_topology(host)
        record = json.loads(before)
        change(record['nova_object.data']['cells'])
        self.set_topology(host, json.dumps(record))
        yield
        self.set_topology(host, before)

    def set_topology(self, host, text=None):
        """Read the record of a host, or write it."""
        with nova_context.target_cell(
                nova_context.get_admin_context(),
                self.cell_mappings['cell1']) as targeted:
            (node,) = objects.ComputeNodeList.get_all_by_host(targeted, host)
            if text is None:
                return node.numa_topology
            node.numa_topology = text
            node.save()
            return text


class SecretsTest(unittest.TestCase):
    def test_nothing_is_written(self):
        engine = sqlalchemy.create_engine('sqlite://')
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text('CREATE TABLE t (x INT)'))
            connection.execute(sqlalchemy.text('INSERT INTO t VALUES (1)'))
        read_only.guard(engine)
        with engine.connect() as connection:
            self.assertEqual(1, connection.execute(
                sqlalchemy.text('SELECT x FROM t')).scalar())
            for statement in ('INSERT INTO t VALUES (2)', 'DELETE FROM t',
                              'UPDATE t SET x = 2', 'DROP TABLE t'):
                self.assertRaises(read_only.WouldWrite, connection.execute,
                                  sqlalchemy.text(statement))

    def test_no_message_has_a_secret(self):
        secret = 'mysql+pymysql://nova:pa@ss/w0rd@db/nova?charset=utf8'
        for name, group, value in (
                ('connection', 'api_database', secret),
                ('metadata_proxy_shared_secret', 'neutron', 'hunter22')):
            base.nova.CONF.set_override(name, value, group)
            self.addCleanup(base.nova.CONF.clear_override, name, group)
        for message in (
                f'Could not parse URL from {secret!r}',
                'cannot open mysql+pymysql://nova:pa@ss/w0rd@other/nova_api',
                'rabbit://u:pa@ss/w0rd@mq:5672// is refused',
                'the token of hunter22 is wrong'):
            said = masking.mask(message)
            self.assertNotIn('w0rd', said)
            self.assertNotIn('hunter22', said)
            self.assertIn('***', said)
        self.assertEqual("Can't connect to db (111)",
                         masking.mask("Can't connect to db (111)"))


class ArgumentsTest(unittest.TestCase):
    def test_a_flavor_may_be_in_a_file(self):
        path = folders.make(self) / 'flavor.json'
        path.write_text(json.dumps({
            'name': 'mine', 'vcpus': 4, 'ram': 1024, 'disk': 0,
            'properties': {'hw:cpu_policy': 'dedicated'}}))
        self.assertEqual('mine', arguments.find_flavor(
            str(path), [], state.Fleet((), {})).name)
        self.assertRaisesRegex(
            exception.InvalidInput, 'not a flavor of the cloud',
            arguments.find_flavor, 'unknown', [], state.Fleet((), {}))
