# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the guest sees, and what its host does for it."""

import json
import subprocess
from typing import Any

from tempest.lib import decorators

from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import guest
from hpcvirt.tempest_plugin import guest_base
from hpcvirt.tempest_plugin import plan
from hpcvirt.topology import domain

CONF = base.CONF


class HostSideTestCase(guest_base.GuestTestCase):
    """A guest that is looked at from its host as well."""

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.flavor = max(cls.plan_flavors,
                         key=lambda flavor: flavor['vcpus'])

    def definition(self, server: dict[str, Any]) -> domain.Domain:
        """Read the domain's definition on the hypervisor."""
        if not CONF.hpcvirt.libvirt_uri:
            self.skipTest('[hpcvirt]libvirt_uri is not set')
        # Anyone may read; the user who runs Tempest need not be more.
        done = subprocess.run(
            ['virsh', '--readonly', '-c', CONF.hpcvirt.libvirt_uri,
             'dumpxml', server['id']],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return domain.read(done.stdout)

    def assert_bound(self, flavor: plan.Flavor,
                     server: dict[str, Any]) -> None:
        """Check the definition against the API's answer and the flavor."""
        found = self.assert_kept(flavor, server['id'])
        defined = self.definition(server)
        pins = {guest_cpu: frozenset([cpu]) for node in found
                for guest_cpu, cpu in node.pins.items()}
        self.assertEqual(pins, defined.pins)
        self.assertEqual([node.host_cell for node in found],
                         list(defined.host_cells))
        self.assertTrue(all(cell.strict for cell in defined.cells),
                        f'memory is not bound strictly: {defined.cells}')
        wanted = codec.decode(flavor['vcpus'], flavor['ram_mib'],
                              flavor['extra_specs'])
        for cell, given in zip(wanted.cells, defined.cells, strict=True):
            if (cell.page_kib and not isinstance(
                    cell.page_kib, shape.PageClass)
                    and cell.page_kib > domain.SMALL_PAGE_KIB):
                self.assertEqual(cell.page_kib, given.page_kib)


class GuestViewTest(HostSideTestCase):
    """The guest of the largest flavor that the hypervisor takes."""

    @decorators.idempotent_id('da929dcc-974e-4e70-9268-024f0ac57126')
    def test_guest_sees_the_topology_of_its_flavor(self) -> None:
        """CPUs, cells, threads, memory, pools of huge pages."""
        server = self.boot_guest(self.flavor)
        answer = self.ask(server, guest.COMMAND)
        seen = guest.parse(answer)
        wanted = codec.decode(
            self.flavor['vcpus'], self.flavor['ram_mib'],
            self.flavor['extra_specs'])
        self.assertEqual(self.flavor['vcpus'], len(seen.cpus), answer)
        self.assertEqual(len(wanted.cells), len(seen.cells), answer)
        threads = int(self.flavor['extra_specs'].get('hw:cpu_threads', '1'))
        self.assertEqual({threads}, {len(core) for core in seen.cores},
                         answer)
        self.assertLessEqual(seen.memory_kib, self.flavor['ram_mib'] * 1024)
        self.assertGreater(seen.memory_kib, self.flavor['ram_mib'] * 512)
        self.assertIn('hugepages-2048kB', seen.page_pools, answer)

    @decorators.idempotent_id('a68186c9-969c-4609-b4b0-7626dd8d3f5b')
    def test_host_binds_cpus_and_memory(self) -> None:
        """Each vCPU on its own host CPU; memory strict, in huge pages."""
        server = self.boot_guest(self.flavor)
        self.assert_bound(self.flavor, server)

    @decorators.idempotent_id('3f837218-ea80-4551-a0a4-b8b96ed523d6')
    def test_host_refuses_one_guest_too_many(self) -> None:
        """The hypervisor holds as many as planned, and no more."""
        (host, planned), = ((name, number) for name, number
                            in self.flavor['per_host'].items() if number)
        self.boot_guest(self.flavor)
        if planned != 1:
            self.skipTest('the largest flavor of [hpcvirt]guest_plan_file '
                          f'fits {planned} times on {host}')
        image = CONF.hpcvirt.guest_image_ref or CONF.compute.image_ref
        message = self.refused(self.create_flavor(self.flavor),
                               host=host, imageRef=image)
        self.assertIn('No valid host', message)


class GuestLifeTest(HostSideTestCase):
    """What holds at the start holds later."""

    @decorators.idempotent_id('dcc15a1e-cfca-4e77-9dba-49cc4b9c88b4')
    def test_rebuild_and_shelve_keep_the_binding(self) -> None:
        """After a rebuild and after unshelving the guest is bound again."""
        server = self.boot_guest(self.flavor)
        before = contract.host_cpus(self.topology(server['id']))
        self.servers.rebuild_server(
            server['id'],
            CONF.hpcvirt.guest_image_ref or CONF.compute.image_ref)
        rebuilt = self.active(server['id'])
        self.assertEqual(before,
                         contract.host_cpus(self.topology(server['id'])))
        self.assert_bound(self.flavor, rebuilt)
        self.servers.shelve_server(server['id'])
        shelved = self.settled(server['id'], ('SHELVED', 'SHELVED_OFFLOADED'))
        self.addCleanup(self._delete_snapshot, f'{shelved["name"]}-shelved')
        if shelved['status'] == 'SHELVED':
            self.servers.shelve_offload_server(server['id'])
            self.settled(server['id'], ('SHELVED_OFFLOADED',))
        self.servers.unshelve_server(server['id'])
        self.assert_bound(self.flavor, self.active(server['id']))

    def _delete_snapshot(self, name: str) -> None:
        images = self.os_admin.image_client_v2
        for image in images.list_images({'name': name})['images']:
            images.delete_image(image['id'])


class GuestDeviceTest(HostSideTestCase):
    """A guest with a virtual function."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('guest_pci_alias')

    @decorators.idempotent_id('cf881ae6-133c-448a-9fbb-06d3aeffe98f')
    def test_function_is_on_a_cell_of_the_guest(self) -> None:
        """The guest's kernel sees the device, and on which cell it is."""
        flavor = plan.extended(self.flavor, {
            'pci_passthrough:alias': f'{CONF.hpcvirt.guest_pci_alias}:1',
            'hw:pci_numa_affinity_policy': 'required'})
        server = self.boot_guest(flavor)
        self.assertEqual(1, len(self.definition(server).devices))
        answer = self.ask(server, guest.COMMAND)
        seen = guest.parse(answer)
        cells = [cell for _, _, cell in seen.network_devices]
        self.assertTrue(cells, f'no network device: {json.dumps(answer)}')
        self.assertTrue(set(cells) & seen.cells,
                        f'cells {cells} of devices, {answer}')
