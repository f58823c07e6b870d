# SPDX-License-Identifier: Apache-2.0

"""A guest sees its topology, and its host enforces it."""

import json
from typing import Any

from tempest.lib import decorators

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt.flavors import plan_document
from hpcvirt.model import shape as shape_model
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import guest_base
from hpcvirt.tempest_plugin import plan
from hpcvirt.topology import domain

CONF = base.CONF


class HostSideTestCase(guest_base.GuestTestCase):
    """A test that examines a guest from inside and from its host."""

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.flavor = max(cls.plan_flavors,
                         key=lambda flavor: flavor.vcpus)

    def definition(self, server: dict[str, Any]) -> domain.Domain:
        """Read the domain's definition on the hypervisor."""
        if not CONF.hpcvirt.libvirt_uri:
            self.skipTest('[hpcvirt]libvirt_uri is not set')
        # The user may have the rights for read-only access only.
        status, stdout, stderr = child_process.run(
            ['virsh', '--readonly', '-c', CONF.hpcvirt.libvirt_uri,
             'dumpxml', server['id']], where='virsh', limit_s=60,
            environment=child_environment.choose(*child_environment.SITE))
        self.assertEqual(0, status, stderr)
        return domain.read(stdout.decode())

    def assert_placed(self, flavor: plan_document.FlavorSummary,
                      server: dict[str, Any]) -> None:
        """Compare the domain with the answer of the API and the flavor."""
        nodes = self.assert_matches_flavor(flavor, server['id'])
        defined = self.definition(server)
        pins: dict[int, frozenset[int]] = {}
        for node in nodes:
            for guest_cpu, cpu in node.pins.items():
                pins[guest_cpu] = frozenset([cpu])
        self.assertEqual(pins, defined.pins)
        self.assertEqual([node.host_cell for node in nodes],
                         list(defined.host_cells))
        self.assertTrue(all(cell.strict for cell in defined.cells),
                        f'memory is not bound strictly: {defined.cells}')
        shape = plan.decode(flavor)
        for cell, guest_cell in zip(shape.cells, defined.cells, strict=True):
            if (cell.page_kib and not isinstance(
                    cell.page_kib, shape_model.PageClass)
                    and cell.page_kib > domain.SMALL_PAGE_KIB):
                self.assertEqual(cell.page_kib, guest_cell.page_kib)


class GuestViewTest(HostSideTestCase):
    """Boots a guest of the largest flavor."""

    @decorators.idempotent_id('da929dcc-974e-4e70-9268-024f0ac57126')
    def test_guest_sees_the_topology_of_its_flavor(self) -> None:
        """The guest sees the CPUs, cells, threads and memory of its flavor."""
        server = self.boot_guest(self.flavor)
        answer = self.execute(server, contract.GUEST_COMMAND)
        seen = contract.parse_guest(answer)
        shape = plan.decode(self.flavor)
        self.assertEqual(self.flavor.vcpus, len(seen.cpus), answer)
        self.assertEqual(len(shape.cells), len(seen.cells), answer)
        threads = int(self.flavor.extra_specs.get('hw:cpu_threads', '1'))
        self.assertEqual({threads}, {len(core) for core in seen.cores},
                         answer)
        self.assertLessEqual(seen.memory_kib, self.flavor.ram_mib * 1024)
        self.assertGreater(seen.memory_kib, self.flavor.ram_mib * 512)
        self.assertIn('hugepages-2048kB', seen.page_pools, answer)

    @decorators.idempotent_id('a68186c9-969c-4609-b4b0-7626dd8d3f5b')
    def test_host_binds_cpus_and_memory(self) -> None:
        """The host pins each vCPU and binds the memory strictly."""
        server = self.boot_guest(self.flavor)
        self.assert_placed(self.flavor, server)

    @decorators.idempotent_id('3f837218-ea80-4551-a0a4-b8b96ed523d6')
    def test_host_refuses_one_guest_too_many(self) -> None:
        """The hypervisor accepts no more guests than planned."""
        (host, count), = ((name, count) for name, count
                          in self.flavor.per_host.items() if count)
        self.boot_guest(self.flavor)
        if count != 1:
            self.skipTest('the largest flavor of [hpcvirt]guest_plan_file '
                          f'fits {count} times on {host}')
        message = self.boot_refused(self.create_flavor(self.flavor),
                                    host=host, imageRef=self.guest_image())
        self.assertIn('No valid host', message)


class GuestLifeTest(HostSideTestCase):
    """A guest keeps its placement through its life."""

    @decorators.idempotent_id('dcc15a1e-cfca-4e77-9dba-49cc4b9c88b4')
    def test_rebuild_and_unshelve_pin_the_guest_again(self) -> None:
        """A rebuilt and an unshelved guest are pinned and bound again."""
        server = self.boot_guest(self.flavor)
        before = contract.host_cpus(self.topology(server['id']))
        self.servers.rebuild_server(server['id'], self.guest_image())
        rebuilt = self.wait_until_active(server['id'])
        self.assertEqual(before,
                         contract.host_cpus(self.topology(server['id'])))
        self.assert_placed(self.flavor, rebuilt)
        self.shelve_and_unshelve(server['id'])
        self.assert_placed(self.flavor, self.wait_until_active(server['id']))


class GuestDeviceTest(HostSideTestCase):
    """Boots a guest with a virtual function."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('guest_pci_alias')

    @decorators.idempotent_id('cf881ae6-133c-448a-9fbb-06d3aeffe98f')
    def test_device_is_on_a_cell_of_the_guest(self) -> None:
        """The guest sees the device on one of its cells."""
        flavor = plan.extend(self.flavor, {
            'pci_passthrough:alias': f'{CONF.hpcvirt.guest_pci_alias}:1',
            'hw:pci_numa_affinity_policy': 'required'})
        server = self.boot_guest(flavor)
        self.assertEqual(1, len(self.definition(server).devices))
        answer = self.execute(server, contract.GUEST_COMMAND)
        seen = contract.parse_guest(answer)
        cells = [cell for _, _, cell in seen.network_devices]
        self.assertTrue(cells, f'no network device: {json.dumps(answer)}')
        self.assertTrue(set(cells) & seen.cells,
                        f'cells {cells} of devices, {answer}')
