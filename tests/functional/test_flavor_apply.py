# SPDX-License-Identifier: Apache-2.0

"""Run ``hpcvirt flavor`` with a Nova: create, compare and boot."""

import contextlib
import dataclasses
import io
import json
import types

import fixtures
from openstack import config as openstack_config
from osc_lib import clientmanager
from wsgi_intercept import interceptor

from hpcvirt.cmd import openstackclient
from hpcvirt.cmd.flavor import apply
from hpcvirt.model import host as host_model
from testing import libvirt
from testing import nova
from testing import settings
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.functional import base

CLOUDS = """
clouds:
  embedded:
    auth_type: admin_token
    auth: {endpoint: 'http://compute.test:8774/v2.1', token: admin}
"""

PROFILE = """
base: dense
disk_gib: 0
devices: [{vendor_id: '15b3', product_id: '101e', affinity: preferred}]
host_reserve_mib_per_cell: 512
guest_overhead_mib: 32
"""


class CloudOfNova(nova.EmbeddedNova):
    """A Nova that clients reach as a cloud."""

    WEIGHT_CLASSES = ('nova.scheduler.weights.all_weighers',)

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        clouds = self.folder / 'clouds.yaml'
        clouds.write_text(CLOUDS)
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', str(clouds)))
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', 'embedded'))
        self._publish_api()

    def _publish_api(self):
        """Accept every client as an administrator."""
        inner = self.api_fixture.app()

        def application(environ, start_response):
            environ.update({
                'HTTP_X_AUTH_USER': 'admin', 'HTTP_X_ROLES': 'admin',
                'HTTP_X_AUTH_PROJECT_ID': self.api.project_id})
            return inner(environ, start_response)

        intercept = interceptor.RequestsInterceptor(
            lambda: application, host='compute.test', port=8774)
        intercept.install_intercept()
        self.addCleanup(intercept.uninstall_intercept)

    def write(self, host):
        return hosts.as_json(host, self.folder / f'{host.name}.json')

    def flavors(self):
        """Read all flavors from the API."""
        found = self.api.api_get('flavors?is_public=None').body['flavors']
        return {flavor['name']: flavor for flavor in (
            self.api.get_flavor(item['id']) for item in found)}


class ApplyNova(CloudOfNova):
    OPTIONS = (('pci', 'alias', [json.dumps({
        'name': 'hpc-vf', 'vendor_id': '15b3', 'product_id': '101e',
        'device_type': 'type-VF'})]),)


class ApplyTestCase(base.OneNovaTestCase):
    NOVA = ApplyNova

    def setUp(self):
        super().setUp()
        self.folder, self.api = self.nova.folder, self.nova.api
        self.flavors, self.write = self.nova.flavors, self.nova.write
        self.addCleanup(self.delete_flavors, self.flavors())

    def delete_flavors(self, before):
        """Delete those that were not there before."""
        for name, flavor in self.flavors().items():
            if name not in before:
                self.api.delete_flavor(flavor['id'])

    def openstack(self, *words):
        """Run the command of OpenStackClient, as its shell does."""

        class Manager(clientmanager.ClientManager):
            hpc = clientmanager.ClientCache(openstackclient.make_client)

        region = openstack_config.OpenStackConfig().get_one()
        out = io.StringIO()
        app = types.SimpleNamespace(
            NAME='openstack', options=types.SimpleNamespace(),
            client_manager=Manager(region, {'hpc': '1'}))
        command = apply.ApplyFlavors(app, None)
        args = command.get_parser('openstack').parse_args(
            [*words, '-f', 'json'])
        with contextlib.redirect_stdout(out):
            return command.run(args), out.getvalue()

    def hpcvirt(self, *words):
        """Run the command, and return its status and its output."""
        if words[0] in ('plan', 'apply') and '--profile' not in words:
            words += ('--profile', 'dense')
        status, text, self.errors = commands.run('flavor', *words)
        return status, text

    def steps(self, *words):
        _, text = self.hpcvirt('apply', '--format', 'json', *words)
        return {step['name']: step for step in json.loads(text)['steps']}


class FlavorApplyTest(ApplyTestCase):
    def test_flavors_are_created_once(self):
        path = self.write(hosts.build(cells=2, cores=16))
        before = self.flavors()
        status, text = self.hpcvirt('apply', path)
        self.assertEqual(0, status)
        self.assertIn('4 flavors: 4 to create. Nothing was changed', text)
        self.assertEqual(before, self.flavors())

        status, text = self.hpcvirt('apply', path, '--apply')
        self.assertEqual(0, status, text)
        flavors = self.flavors()
        self.assertEqual(4, len(flavors) - len(before))
        _, document = self.hpcvirt('plan', path, '--format', 'json')
        for flavor in json.loads(document)['flavors']:
            found = flavors[flavor['name']]
            self.assertEqual(
                (flavor['vcpus'], flavor['ram_mib'], flavor['disk_gib'],
                 flavor['extra_specs']),
                (found['vcpus'], found['ram'], found['disk'],
                 found['extra_specs']))

        status, text = self.hpcvirt('apply', path, '--apply')
        self.assertEqual((0, flavors), (status, self.flavors()))
        self.assertIn('4 flavors: 4 as planned.', text)

    def test_unused_flavors_of_an_earlier_plan_are_deleted(self):
        former = self.write(hosts.build(cells=2, cores=16))
        now = self.write(hosts.build(cells=2, cores=6, name='other'))
        self.hpcvirt('apply', former, '--apply')
        earlier = self.flavors()
        _, text = self.hpcvirt('plan', former, '--format', 'json')
        names = sorted(each['name'] for each in json.loads(text)['flavors'])
        # No host takes it, but it is an instance with the flavor.
        server = self.nova.boot(earlier[names[0]]['id'], status='ERROR')
        self.addCleanup(self.nova.delete, server)
        before = self.flavors()
        status, text = self.hpcvirt('apply', now, '--prune')
        self.assertEqual((0, before), (status, self.flavors()))
        self.assertIn(f'keep     {names[0]}: instances have it', text)
        self.assertIn(f'delete   {names[1]}\n', text)
        status, text = self.hpcvirt('apply', now, '--prune', '--apply')
        self.assertEqual(0, status, text)
        left = set(self.flavors())
        self.assertIn(names[0], left)
        self.assertEqual(set(), left & set(names[1:]))

    def test_openstackclient_creates_them_with_its_own_session(self):
        words = (self.write(hosts.build(cells=2, cores=16)),
                 '--profile', 'dense')
        before = self.flavors()
        status, text = self.openstack(*words)
        self.assertEqual((0, before), (status, self.flavors()))
        planned = json.loads(text)['steps']
        self.assertEqual([False] * 4, [row['done'] for row in planned])
        status, text = self.openstack(*words, '--apply')
        self.assertEqual(0, status, text)
        self.assertEqual([True] * 4, [row['done'] for row
                                      in json.loads(text)['steps']])
        self.assertLessEqual({row['name'] for row in planned},
                             self.flavors().keys() - before.keys())

    def test_foreign_and_changed_flavors_are_left_alone(self):
        path = self.write(hosts.build(cells=2, cores=16))
        _, document = self.hpcvirt('plan', path, '--format', 'json')
        first, second, *_ = json.loads(document)['flavors']
        self.nova.create_flavor(1, 64, {'hw:cpu_policy': 'shared'},
                                name=first['name'])
        self.assertEqual(1, self.hpcvirt('apply', path, '--apply')[0])
        mine = self.flavors()[second['name']]
        self.api.post_extra_spec(mine['id'], {'extra_specs': {
            'hw:mem_page_size': 'large', 'hw:pmu': 'true'}})
        before = self.flavors()

        steps = self.steps(path)
        self.assertEqual('foreign', steps[first['name']]['action'])
        self.assertEqual('differs', steps[second['name']]['action'])
        self.assertTrue(steps[second['name']]['edited'])
        self.assertEqual(
            ['hw:mem_page_size is large, planned 2048'],
            steps[second['name']]['differences'])
        self.assertEqual(['hw:pmu'], steps[second['name']]['kept'])
        self.assertEqual(1, self.hpcvirt('apply', path, '--apply')[0])
        self.assertEqual(before, self.flavors())

        status, _ = self.hpcvirt('apply', path, '--apply', '--replace')
        self.assertEqual(1, status)
        after = self.flavors()
        self.assertEqual({'hw:pmu': 'true', **second['extra_specs']},
                         after[second['name']]['extra_specs'])
        self.assertEqual(mine['id'], after[second['name']]['id'])
        self.assertEqual(before[first['name']], after[first['name']])

    def test_periodic_a_flavor_made_anew_keeps_keys_and_projects(self):
        profile = self.folder / 'profile.yaml'
        profile.write_text('base: dense\nprojects: [p1]\n'
                           'extra_specs: {"trait:CUSTOM_A": required}\n')
        words = (self.write(hosts.build(cells=2, cores=16)),
                 '--profile', str(profile), '--apply')
        self.assertEqual(0, self.hpcvirt('apply', *words)[0])
        name = next(iter(self.steps(*words)))
        old = self.flavors()[name]
        self.assertEqual('required', old['extra_specs']['trait:CUSTOM_A'])
        self.assertEqual(['p1'], self.projects(old['id']))
        self.api.post_extra_spec(old['id'], {'extra_specs': {
            'aggregate_instance_extra_specs:rack': 'r1'}})
        self.api.api_post(f'flavors/{old["id"]}/action',
                          {'addTenantAccess': {'tenant': 'p9'}})
        profile.write_text(profile.read_text() + 'disk_gib: 7\n')
        self.assertTrue(self.steps(*words)[name]['new_id'])
        self.assertEqual(0, self.hpcvirt('apply', *words, '--replace')[0])
        new = self.flavors()[name]
        self.assertNotEqual(old['id'], new['id'])
        self.assertEqual(7, new['disk'])
        self.assertEqual(
            'r1', new['extra_specs']['aggregate_instance_extra_specs:rack'])
        self.assertEqual(['p1', 'p9'], self.projects(new['id']))
        self.assertEqual('same', self.steps(*words)[name]['action'])

    def projects(self, flavor_id):
        found = self.api.api_get(
            f'flavors/{flavor_id}/os-flavor-access').body['flavor_access']
        return sorted(item['tenant_id'] for item in found)

    def test_extra_specs_that_nova_refuses_are_one_line(self):
        profile = self.folder / 'profile.yaml'
        path = self.write(hosts.build())
        for text in ('quota:cpu_shares: many', 'os:secure_boot: maybe',
                     'quota:unknown: "1"', 'resources:VGPU: several'):
            profile.write_text(f'extra_specs: {{{text}}}\n')
            status, _ = self.hpcvirt('plan', path, '--profile', str(profile))
            self.assertEqual(2, status)
            self.assertRegex(
                self.errors, '^[^\n]*profile.yaml: extra_specs: '
                f'{text.partition(": ")[0]}: [^\n]+\n$')

    def test_extra_specs_without_a_validator_are_set_nevertheless(self):
        profile = self.folder / 'profile.yaml'
        specs = {'hw:maxphysaddr_mode': 'emulate',
                 'hw:maxphysaddr_bits': '46'}
        profile.write_text(f'extra_specs: {json.dumps(specs)}\n')
        words = (self.write(hosts.build()), '--profile', str(profile))
        status, text = self.hpcvirt('apply', *words, '--apply')
        self.assertEqual(0, status, text + self.errors)
        ours = [flavor['extra_specs']
                for name, flavor in self.flavors().items()
                if name.startswith('hpc.')]
        self.assertTrue(ours)
        for found in ours:
            self.assertEqual(specs, {key: found.get(key) for key in specs})
        self.assertEqual({'same'}, {
            step['action'] for step in self.steps(*words).values()})

    def test_a_flavor_without_its_extra_specs_is_completed(self):
        path = self.write(hosts.build(cells=2, cores=16))
        self.hpcvirt('apply', path, '--apply')
        whole = self.flavors()
        name = min(name for name in whole if name.startswith('hpc.'))
        for key in whole[name]['extra_specs']:
            self.api.api_delete(
                f'/flavors/{whole[name]["id"]}/os-extra_specs/{key}')
        self.assertEqual('complete', self.steps(path)[name]['action'])
        self.assertEqual(0, self.hpcvirt('apply', path, '--apply')[0])
        self.assertEqual(whole, self.flavors())

    def test_a_flavor_that_the_api_refuses_is_not_created(self):
        # This API has the validators of hpcvirt's extra specs.
        path = self.write(hosts.build(cells=2, cores=16))
        before = set(self.flavors())
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.specs.vocabulary.GENERATED_MARK', 'somebody'))
        status, text = self.hpcvirt('apply', path, '--apply')
        self.assertEqual(1, status)
        self.assertIn('FAILED', text)
        self.assertEqual(before, set(self.flavors()))


class BootTest(ApplyTestCase):
    def test_periodic_a_host_takes_what_the_plan_says_and_no_more(self):
        host = hosts.build(cells=2, cores=4, threads=2, mib=8192,
                           vfs={1: 3}, name='compute')
        profile = self.folder / 'profile.yaml'
        profile.write_text(PROFILE)
        words = (self.write(host), '--profile', str(profile))
        _, text = self.hpcvirt('plan', *words, '--format', 'json')
        plan = json.loads(text)
        self.nova.add_machines(machine(host, plan['host_config']['compute']))
        self.assertEqual(0, self.hpcvirt('apply', *words, '--apply')[0])
        flavors = self.flavors()
        counts = {}
        for flavor in plan['flavors']:
            counts[flavor['vcpus']] = flavor['per_host']['compute']
            servers = self.nova.boot_many(flavors[flavor['name']]['id'],
                                          flavor['per_host']['compute'])
            self.nova.boot(flavors[flavor['name']]['id'], status='ERROR')
            ledger = self.nova.ledger('compute')
            pinned = sum(len(guest.pinned) for guest in ledger.guests)
            self.assertEqual(
                flavor['unused_pcpus']['compute'], len(host.cpus) - pinned)
            self.assertEqual([], self.nova.faults())
            for server in servers:
                self.nova.delete(server)
        self.assertEqual({4: 3, 8: 2, 12: 1, 16: 1}, counts)


def machine(host: host_model.Host, config) -> libvirt.Machine:
    """Configure a compute host as planned."""
    cells = tuple(dataclasses.replace(cell, pages=tuple(
        host_model.PagePool(int(size), total) for size, total
        in config['pages'][str(cell.id)].items())) for cell in host.cells)
    return libvirt.Machine(
        dataclasses.replace(host, cells=cells),
        settings.ComputeSettings(
            cpu_dedicated_set=config['cpu_dedicated_set'],
            cpu_shared_set=config['cpu_shared_set'] or None,
            reserved_host_memory_mb=config['reserved_host_memory_mb'],
            device_spec=tuple(map(json.dumps, config['pci_device_spec']))),
        enabled_vfs=128)
