# SPDX-License-Identifier: Apache-2.0

"""The scheduler places instances as planned and refuses the others."""

from tempest.lib import decorators

from hpcvirt.flavors import plan_document
from hpcvirt.model import shape as shape_model
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan

CONF = base.CONF

#: The most instances that one test creates.
MAX_INSTANCES = 8


class TilingTest(base.FleetTestCase):
    """Fills hosts with as many instances as the plan says."""

    @decorators.idempotent_id('13821b07-7cfe-40df-8c3b-cc993c42ab6d')
    def test_host_is_filled_exactly(self) -> None:
        """All planned instances start without overlap; one more does not."""
        filled = 0
        for name in CONF.hpcvirt.hosts:
            flavor = plan.tiling(self.plan.flavors, name, MAX_INSTANCES)
            if flavor is None:
                continue
            with self.subTest(host=name, flavor=flavor.name):
                self._fill(name, flavor)
                filled += 1
        if not filled:
            self.skipTest('no host of [hpcvirt]hosts holds a flavor of '
                          f'[hpcvirt]plan_file 1 to {MAX_INSTANCES} times')

    def _fill(self, name: str, flavor: plan_document.FlavorSummary) -> None:
        flavor_id = self.create_flavor(flavor)
        servers = [self.boot(flavor_id, wait=False, host=name)['id']
                   for _ in range(flavor.per_host[name])]
        pinned: set[int] = set()
        for server_id in servers:
            self.wait_until_active(server_id)
            cpus = contract.host_cpus(
                self.assert_matches_flavor(flavor, server_id))
            self.assertFalse(pinned & cpus,
                             f'host CPUs {pinned & cpus} are pinned twice')
            pinned |= cpus
        message = self.boot_refused(flavor_id, host=name)
        self.assertIn('No valid host', message)
        self.delete(*servers)


class ScopeTest(base.FleetTestCase):
    """The filter honours the extra specs of hpcvirt."""

    @decorators.idempotent_id('c39411e0-b0ff-44b0-bc56-206bf4c93d7c')
    def test_exclusive_cells_were_empty(self) -> None:
        """An exclusive guest gets empty cells, and is refused without them."""
        name, flavor, count = self._host_with_shared_cells()
        exclusive = self.create_flavor(plan.extend(
            flavor, {'hpcvirt:exclusive_cells': 'true'}))
        first = self.boot(self.create_flavor(flavor), host=name)
        used = {node.host_cell for node in self.topology(first['id'])}
        # The claim prefers a host cell in use without devices to an empty one
        # with devices, so an exclusive guest cannot get cells with devices.
        for _ in range(count - 1):
            server = self.boot(exclusive, host=name)
            cells = {node.host_cell for node in self.topology(server['id'])}
            self.assertFalse(cells & used, 'an exclusive guest shares a cell')
            used |= cells
        self.assertIn('No valid host',
                      self.boot_refused(exclusive, host=name))

    def _host_with_shared_cells(
            self) -> tuple[str, plan_document.FlavorSummary, int]:
        for name in CONF.hpcvirt.hosts:
            found = plan.cells_to_share(
                self.plan.flavors, self.host_topology(name), MAX_INSTANCES)
            if found:
                return name, *found
        raise self.skipException('no host of [hpcvirt]hosts has cells '
                                 'that several instances can share')

    @decorators.idempotent_id('682c28f1-6beb-4b68-a24c-a1be13a0fd9d')
    def test_socket_scope_keeps_cells_together(self) -> None:
        """A two-cell guest is refused if each socket has one free cell."""
        name, flavor = self._host_with_cells_in_sockets()
        host = self.host_topology(name)
        cell_id = self.create_flavor(flavor)
        anywhere = self.create_flavor(plan.spread(flavor, 2))
        together = self.create_flavor(plan.spread(
            flavor, 2, shape_model.NUMAScope.SOCKET))
        at = {}
        for _ in range(flavor.per_host[name]):
            server = self.boot(cell_id, host=name)
            at[self.topology(server['id'])[0].host_cell] = server['id']
        for socket in host.sockets[:2]:
            cell = next(cell for cell in host.cells
                        if cell.socket == socket and cell.id in at)
            self.delete(at.pop(cell.id))
        self.assertIn('No valid host', self.boot_refused(together, host=name))
        server = self.boot(anywhere, host=name)
        sockets = {host.by_id[node.host_cell].socket
                   for node in self.topology(server['id'])
                   if node.host_cell is not None}
        self.assertEqual(set(host.sockets[:2]), sockets)

    def _host_with_cells_in_sockets(
            self) -> tuple[str, plan_document.FlavorSummary]:
        for name in CONF.hpcvirt.hosts:
            flavor = plan.cell_of_socket(self.plan.flavors,
                                         self.host_topology(name))
            if flavor:
                return name, flavor
        raise self.skipException('no host of [hpcvirt]hosts has sockets of '
                                 'several cells')


class DeviceTest(base.FleetTestCase):
    """Boots guests whose virtual function must be local."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('pci_alias', 'topology_dir')

    @decorators.idempotent_id('7f870a49-225d-49ef-8236-fd6464b99c4b')
    def test_guest_is_on_the_cell_of_its_device(self) -> None:
        """The guest starts on a cell with a device, and on no other."""
        name, flavor, local = self._host_with_devices_on_some_cells()
        alias = f'{CONF.hpcvirt.pci_alias}:1'
        flavor_id = self.create_flavor(plan.extend(flavor, {
            'pci_passthrough:alias': alias,
            'hw:pci_numa_affinity_policy': 'required'}))
        for _ in local:
            server = self.boot(flavor_id, host=name)
            (node,) = self.topology(server['id'])
            self.assertIn(node.host_cell, local)
        # The other cells are free, and there are free devices.
        self.assertIn('No valid host', self.boot_refused(flavor_id, host=name))
        self.boot(self.create_flavor(flavor), host=name)

    def _host_with_devices_on_some_cells(
            self) -> tuple[str, plan_document.FlavorSummary, set[int]]:
        for name in CONF.hpcvirt.hosts:
            host = self.host_topology(name)
            cells = {cell.id for cell in host.cells if cell.cpus}
            local = {device.cell for device in host.devices
                     if device.total_vfs > 1 and device.cell is not None}
            flavor = plan.whole_cell(self.plan.flavors, name, len(cells))
            if flavor and local and local < cells:
                return name, flavor, local
        raise self.skipException('no host of [hpcvirt]hosts has devices on '
                                 'some of its cells only')
