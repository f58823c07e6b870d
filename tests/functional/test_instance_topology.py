# SPDX-License-Identifier: Apache-2.0

"""The topology of an instance, from a Nova and a Placement."""

import dataclasses
import json
import socket
import threading
import time
import urllib.error
import urllib.request
import wsgiref.simple_server

import fixtures
import nova.conf
import webob
from keystoneauth1 import loading
from keystonemiddleware import fixture as token_fixture
from nova import context
from nova import objects
from nova import service_auth
from nova.api.metadata import vendordata_dynamic

from hpcvirt.cmd.instance import vendordata
from hpcvirt.instance_topology import functions
from hpcvirt.instance_topology import places
from hpcvirt.model import wiring
from hpcvirt.topology import snapshot
from testing import identity
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.builders import guest_files
from tests.builders import nccl_reader
from tests.functional import base
from tests.functional import lives

LINK = wiring.PCIeLink(16.0, 16, 16.0, 16)


class QuietHandler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


class InstanceTopologyNova(lives.LivesNova):
    """A host with a switch on each of two cells, with two cards below it."""

    OPTIONS = (('pci', 'report_in_placement', True),
               ('filter_scheduler', 'pci_in_placement', True))

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        machine = machines.build('one', 2, 4, 2, pages={2048: 1024},
                                 vfs={0: 2, 1: 2}, housekeeping_cores=1)
        bridges, attached = [], []
        for device in machine.host.devices:
            bus = int(device.address[5:7], 16)
            ports = [f'0000:{bus - 3 + depth:02x}:00.0' for depth in range(3)]
            bridges += map(wiring.Bridge, ports, (None, *ports), (
                wiring.PortKind.ROOT, wiring.PortKind.UPSTREAM,
                wiring.PortKind.DOWNSTREAM), [LINK] * 3)
            attached.append(wiring.Attachment(device.address, ports[2], LINK))
        self.machine = dataclasses.replace(machine, host=dataclasses.replace(
            machine.host, wiring=wiring.Wiring(
                tuple(bridges), tuple(attached))),
            settings=dataclasses.replace(
                machine.settings, device_spec=tuple(
                    json.dumps({'address': device.address,
                                'vendor_id': machines.VENDOR_ID,
                                'product_id': machines.VF_PRODUCT_ID})
                    for device in machine.host.devices)))
        self.add_machines(self.machine)
        self.configure_alias()
        self.use_as_cloud()
        self.server = self.boot(self.create_hpc_flavor(
            cells=2, pcpus=4, pci_passthrough__alias='vf:3'))

    def cells(self):
        """The host cell of each virtual function of the host."""
        own = {device.address: device.cell
               for device in self.machine.host.devices}
        return {address: own[card.address]
                for card in self.machine.functions()
                for address in card.virtual}


class InstanceTopologyTestCase(base.OneNovaTestCase):
    NOVA = InstanceTopologyNova

    def setUp(self):
        super().setUp()
        self.machine = self.nova.machine
        self.server = self.nova.server
        self.guest = self.nova.guest(self.server)
        self.folder = folders.make(self)
        self.host_file = self.folder / 'one.json'
        self.host_file.write_text(snapshot.dumps(self.machine.host))


class CommandTest(InstanceTopologyTestCase):
    def hpcvirt(self, *words):
        return commands.run('fleet', 'instance-topology', self.server['name'],
                            self.host_file, *words)

    def test_devices_are_on_their_guest_cells(self):
        done = self.hpcvirt('-f', 'json')
        self.assertEqual(0, done.status, done.err)
        made = json.loads(done.out)['hpcvirt']
        guest = self.guest
        self.assertEqual([cell.vcpus for cell in guest.cells], [
            {cpu for core in cell for cpu in core} for cell in made['cells']])
        cells = self.nova.cells()
        self.assertEqual(
            sorted(cells[address] for address in guest.devices),
            sorted(guest.host_cells[device['cell']]
                   for device in made['devices']))
        self.assertEqual(3, len(made['devices']))

    def test_a_file_for_nccl_is_written(self):
        made = json.loads(self.hpcvirt('-f', 'json').out)['hpcvirt']
        cells = [device['cell'] for device in made['devices']]
        guest = guest_files.write(self.folder / 'guest', [
            places.Function(f'0000:0{number + 1}:00.0', machines.VENDOR_ID,
                            machines.VF_PRODUCT_ID, '0x020000', cell,
                            (f'mlx5_{number}:1',))
            for number, cell in enumerate(cells)])
        done = self.hpcvirt('--guest', guest, '-f', 'nccl')
        self.assertEqual((0, ''), (done.status, done.err))
        read = nccl_reader.read(done.out)
        for number, cpu in enumerate(read.all('cpu')):
            devices = [each for pci in cpu.all('pci')
                       for each in pci.all('pci') or [pci]]
            self.assertEqual(cells.count(number), len(devices))
            for each in devices:
                self.assertEqual(24, nccl_reader.bandwidth(each))
        self.assertIn('cell 0 mlx5_', self.hpcvirt(
            '--guest', guest, '-f', 'ucx').out)

    def test_what_the_guest_does_not_show_is_said(self):
        guest = guest_files.write(self.folder / 'guest', [
            places.Function(f'0000:0{number + 1}:00.0', machines.VENDOR_ID,
                            machines.VF_PRODUCT_ID, '0x020000')
            for number in range(3)])
        done = self.hpcvirt('--guest', guest, '-f', 'nccl')
        self.assertEqual(0, done.status)
        self.assertIn('the domain XML would', done.err)
        self.assertNotIn('<pci', done.out)

    def test_the_domain_tells_all(self):
        text, = self.nova.connections['one'].domains()
        text = guest_files.add_addresses(text)
        file = self.folder / 'domain.xml'
        file.write_text(text)
        virtual = self.nova.cells()
        card = self.machine.host.devices[0]
        devices = tuple(dataclasses.replace(
            card, address=address, product_id=machines.VF_PRODUCT_ID,
            cell=cell, total_vfs=0) for address, cell in virtual.items())
        self.host_file.write_text(snapshot.dumps(dataclasses.replace(
            self.machine.host, devices=tuple(sorted(
                (*self.machine.host.devices, *devices),
                key=lambda device: device.address)), wiring=None)))
        done = self.hpcvirt('--domain', file, '-f', 'json')
        self.assertEqual(0, done.status, done.err)
        found = json.loads(done.out)['functions']
        guest = self.guest
        cells = {each['address']: guest.host_cells[each['cell']]
                 for each in found}
        self.assertEqual({
            f'0000:00:{slot:02x}.0': virtual[address]
            for slot, address in enumerate(guest.devices, 1)}, cells)
        file.write_text(text.replace(self.server['id'], 'another'))
        commands.check_refused(self, 'is the domain of another', self.hpcvirt(
            '--domain', file))

    def test_unusable_input_is_refused(self):
        for said, words in (
                ('needs the addresses in the guest', ('-f', 'nccl')),
                ('No such file', ('--guest', self.folder))):
            commands.check_refused(self, said, self.hpcvirt(*words))
        commands.check_refused(self, 'no such server', commands.run(
            'fleet', 'instance-topology', 'nobody', self.host_file))

    def test_another_host_is_noticed(self):
        self.host_file.write_text(snapshot.dumps(dataclasses.replace(
            self.machine.host, name='two')))
        self.assertIn('the instance is on one, and', self.hpcvirt().err)


class VendordataTest(InstanceTopologyTestCase):
    """Nova's own code asks the service."""

    TOKEN = 'of-nova'

    def setUp(self):
        super().setUp()
        home = self.folder / '.hpcvirt'
        home.mkdir()
        (home / 'vendordata.conf').write_text(
            f'[DEFAULT]\ntopologies = {self.folder}\n'
            '[keystone_authtoken]\nwww_authenticate_uri = http://keystone\n')
        self.useFixture(fixtures.EnvironmentVariable('HOME',
                                                     str(self.folder)))
        tokens = self.useFixture(token_fixture.AuthTokenFixture())
        tokens.add_token_data(self.TOKEN, role_list=['service'],
                              project_id='p', user_id='nova')
        tokens.add_token_data('of-a-user', role_list=['admin', 'member'],
                              project_id='p', user_id='u')
        self.said = self.useFixture(fixtures.FakeLogger(
            name='hpcvirt.cmd.instance', level='INFO', nuke_handlers=False))
        server = wsgiref.simple_server.make_server(
            '127.0.0.1', 0, vendordata.make_application(),
            handler_class=QuietHandler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f'http://127.0.0.1:{server.server_port}/'
        self.nova.flags(group='api', vendordata_dynamic_targets=[
            f'hpcvirt@{self.url}'])
        self.use_token(self.TOKEN)

    def use_token(self, token):
        group = nova.conf.vendordata.vendordata_group.name
        nova.conf.CONF.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), group=group)
        self.nova.flags(group=group, auth_type='admin_token',
                        endpoint=self.url, token=token)
        service_auth.reset_globals()
        self.addCleanup(service_auth.reset_globals)
        # Before 2026.2, the module of Nova has a session of its own.
        for name in ('_SESSION', '_ADMIN_AUTH'):
            if hasattr(vendordata_dynamic, name):
                self.useFixture(fixtures.MonkeyPatch(
                    f'{vendordata_dynamic.__name__}.{name}', None))

    def ask_as_nova(self):
        cell, = (cell for cell in self.nova.cell_mappings.values()
                 if cell.uuid != objects.CellMapping.CELL0_UUID)
        with context.target_cell(context.get_admin_context(), cell) as within:
            instance = objects.Instance.get_by_uuid(within, self.server['id'])
        return vendordata_dynamic.DynamicVendorData(instance).get()['hpcvirt']

    def ask(self, body, token=TOKEN, method='POST', **headers):
        """Ask the service; its status, and what it logged.

        :param headers: further headers; ``content_length`` stands for
            ``Content-Length``
        """
        before = len(self.said.output)
        request = urllib.request.Request(  # noqa: S310
            self.url, body, {
                'X-Auth-Token': token, 'Content-Type': 'application/json',
                **{name.replace('_', '-'): value
                   for name, value in headers.items()}}, method=method)
        try:
            with urllib.request.urlopen(  # noqa: S310
                    request, timeout=20) as answer:
                status = answer.status
        except urllib.error.HTTPError as exc:
            status = exc.code
        return status, self.said.output[before:]

    def body(self, **more):
        return json.dumps({
            'project-id': self.server['tenant_id'],
            'instance-id': self.server['id'], **more}).encode()

    def test_nova_gets_what_concerns_the_instance(self):
        made = self.ask_as_nova()
        done = commands.run('fleet', 'instance-topology', self.server['id'],
                            self.host_file, '-f', 'json')
        self.assertEqual(json.loads(done.out)['hpcvirt'], made)
        # Nothing of the host is in it: no name, address or CPU number.
        text = json.dumps(made)
        self.assertNotRegex(text, '"one"|0000:|host')
        self.assertEqual(list(range(8)), sorted(
            cpu for cell in made['cells'] for core in cell for cpu in core))
        guest = [places.Function(f'0000:0{number + 1}:00.0', device['vendor'],
                                 machines.VF_PRODUCT_ID, cell=device['cell'])
                 for number, device in enumerate(made['devices'])]
        found = places.arrange(made, guest)
        self.assertEqual(3, len(found.functions))
        self.assertEqual([], list(functions.read(guest_files.write(
            self.folder / 'guest', []))))

    def test_the_config_drive_can_have_it(self):
        """nova-compute asks while it builds the instance."""
        driver, found = self.nova.computes['one'].driver, []

        def spawn(within, instance, *args, **kwargs):
            found.append(vendordata_dynamic.DynamicVendorData(instance).get())
            return driver.__class__.spawn(driver, within, instance, *args,
                                          **kwargs)
        driver.spawn = spawn
        server = self.nova.boot(self.nova.create_hpc_flavor(
            pcpus=1, pci_passthrough__alias='vf:1'))
        cells = self.nova.cells()
        guest = self.nova.guest(server)
        device, = found[0]['hpcvirt']['devices']
        self.assertEqual([cells[address] for address in guest.devices],
                         [guest.host_cells[device['cell']]])

    def test_without_a_token_of_a_service_there_is_nothing(self):
        for token in ('forged', 'of-a-user'):
            self.use_token(token)
            self.assertEqual({}, self.ask_as_nova())
        self.assertEqual(403, self.ask(self.body(), 'of-a-user')[0])
        for token in ('forged', ''):
            self.assertEqual(401, self.ask(self.body(), token)[0])

    def test_other_projects_and_unknown_instances_are_not_found(self):
        for more in ({'project-id': 'f' * 32}, {'instance-id': (
                '00000000-0000-0000-0000-000000000000')}):
            status, said = self.ask(self.body(**more))
            self.assertEqual((404, 1), (status, said.count('\n')), said)

    def test_malformed_requests_are_refused_in_one_line(self):
        for status, body in (
                (413, b''), (400, b'{'), (400, b'[]'),
                (400, b'[' * 100_000), (400, b'null'),
                (400, b'{}'), (400, self.body(**{'instance-id': 7})),
                (400, self.body(**{'instance-id': '../servers'})),
                (400, self.body(**{'project-id': ['x']})),
                (400, self.body(**{'project-id': '\ud800'})),
                (400, self.body(**{'instance-id': '\udfff'})),
                (400, self.body(**{'\udc80': 1})),
                (400, b'{"project-id": "\xff"}')):
            with self.subTest(body[:40]):
                found, said = self.ask(body)
                self.assertEqual((status, 1), (found, said.count('\n')), said)
        # The service reads nothing of it, and a client that goes on sending
        # may not see the answer.
        found, said = self.ask(b' ', content_length=str(1024 * 1024 + 1))
        self.assertEqual((413, 1), (found, said.count('\n')), said)
        self.assertEqual(405, self.ask(None, method='GET')[0])

    def test_an_unknown_host_is_said(self):
        for change in (lambda: self.host_file.write_text('{}'),
                       self.host_file.unlink):
            change()
            status, said = self.ask(self.body())
            self.assertEqual((503, 1), (status, said.count('\n')), said)
            self.assertIn('one.json', said)

    def test_a_client_that_stops_is_refused(self):
        before = len(self.said.output)
        port = int(self.url.rpartition(':')[2].strip('/'))
        with socket.create_connection(('127.0.0.1', port), 10) as client:
            client.sendall(
                b'POST / HTTP/1.0\r\nContent-Length: 99\r\nX-Auth-Token: '
                + self.TOKEN.encode() + b'\r\n\r\n{')
            client.shutdown(socket.SHUT_WR)
            self.assertIn(b' 400 ', client.recv(64))
        self.assertEqual(1, self.said.output[before:].count('\n'))

    def test_a_nova_that_does_not_answer_is_waited_for_briefly(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            url = f'http://127.0.0.1:{silent.getsockname()[1]}/'
            self.useFixture(identity.CloudsFile(url, url))
            application = vendordata.VendordataService(str(self.folder))
            request = webob.Request.blank('/', method='POST', headers={
                'X-Roles': 'reader,service'}, body=self.body())
            start = time.monotonic()
            self.assertEqual(503, request.get_response(application).status_int)
            self.assertLess(time.monotonic() - start, 5)
        self.assertIn('the cloud cannot be used', self.said.output)
