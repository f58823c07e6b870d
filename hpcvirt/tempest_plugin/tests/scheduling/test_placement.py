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

"""Where instances go, and where they are refused."""

from tempest.lib import decorators

from hpcvirt.model import shape
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import fleet
from hpcvirt.tempest_plugin import plan

CONF = fleet.CONF

#: Instances that one test creates at most.
MANY = 8


class TilingTest(fleet.FleetTestCase):
    """The plan says how many instances a host holds; it holds exactly so."""

    @decorators.idempotent_id('13821b07-7cfe-40df-8c3b-cc993c42ab6d')
    def test_host_is_filled_exactly(self) -> None:
        """All planned instances start without overlap, one more does not."""
        tried = 0
        for name in CONF.hpcvirt.hosts:
            flavor = plan.tiling(self.plan['flavors'], name, MANY)
            if flavor is None:
                continue
            with self.subTest(host=name, flavor=flavor['name']):
                self._fill(name, flavor)
                tried += 1
        if not tried:
            self.skipTest('no host of [hpcvirt]hosts holds a flavor of '
                          f'[hpcvirt]plan_file 2 to {MANY} times')

    def _fill(self, name: str, flavor: plan.Flavor) -> None:
        flavor_id = self.create_flavor(flavor)
        wanted = flavor['per_host'][name]
        servers = [self.boot(flavor_id, wait=False, host=name)['id']
                   for _ in range(wanted)]
        taken: set[int] = set()
        for server_id in servers:
            self.active(server_id)
            cpus = contract.host_cpus(self.assert_kept(flavor, server_id))
            self.assertFalse(taken & cpus,
                             f'host CPUs {taken & cpus} are given twice')
            taken |= cpus
        message = self.refused(flavor_id, host=name)
        self.assertIn('No valid host', message)
        self.delete(*servers)


class ScopeTest(fleet.FleetTestCase):
    """The extra specs of hpcvirt's own."""

    @decorators.idempotent_id('c39411e0-b0ff-44b0-bc56-206bf4c93d7c')
    def test_exclusive_cells_are_empty_ones(self) -> None:
        """An exclusive guest shares no cell, and is refused if it must."""
        name, flavor, cells = self._host_with_part_of_a_cell()
        alone = self.create_flavor(plan.extended(
            flavor, {'hpcvirt:exclusive_cells': 'true'}))
        first = self.boot(self.create_flavor(flavor), host=name)
        used = {node.host_cell for node in self.topology(first['id'])}
        # The claim gives cells with devices to guests without devices last
        # of all, after cells that others use: those are not to be had.
        for _ in range(cells - 1):
            server = self.boot(alone, host=name)
            mine = {node.host_cell for node in self.topology(server['id'])}
            self.assertFalse(mine & used, 'a used cell was given as empty')
            used |= mine
        self.assertIn('No valid host', self.refused(alone, host=name))

    def _host_with_part_of_a_cell(self) -> tuple[str, plan.Flavor, int]:
        for name in CONF.hpcvirt.hosts:
            host = self.machine(name)
            occupied = {device.cell for device in host.devices}
            plain = [cell for cell in host.cells
                     if cell.cpus and cell.id not in occupied]
            flavor = plan.smallest(self.plan['flavors'], name)
            if (flavor and 2 <= len(plain) <= MANY
                    and flavor['per_host'][name] > len(host.cells)):
                return name, flavor, len(plain)
        raise self.skipException('no host of [hpcvirt]hosts has cells that '
                                 'several instances share')

    @decorators.idempotent_id('682c28f1-6beb-4b68-a24c-a1be13a0fd9d')
    def test_package_scope_keeps_cells_together(self) -> None:
        """One free cell in each package is no place for a two-cell guest."""
        name, flavor = self._host_with_cells_in_packages()
        host = self.machine(name)
        cell_id = self.create_flavor(flavor)
        anywhere = self.create_flavor(plan.spread(flavor, 2))
        together = self.create_flavor(plan.spread(
            flavor, 2, shape.NUMAScope.PACKAGE))
        at = {}
        for _ in range(flavor['per_host'][name]):
            server = self.boot(cell_id, host=name)
            at[self.topology(server['id'])[0].host_cell] = server['id']
        for package in host.packages[:2]:
            cell = next(cell for cell in host.cells
                        if cell.package == package and cell.id in at)
            self.delete(at.pop(cell.id))
        self.assertIn('No valid host', self.refused(together, host=name))
        server = self.boot(anywhere, host=name)
        packages = {host.by_id[node.host_cell].package
                    for node in self.topology(server['id'])
                    if node.host_cell is not None}
        self.assertEqual(set(host.packages[:2]), packages)

    def _host_with_cells_in_packages(self) -> tuple[str, plan.Flavor]:
        for name in CONF.hpcvirt.hosts:
            host = self.machine(name)
            cells = [cell for cell in host.cells if cell.cpus]
            flavor = plan.whole_cell(self.plan['flavors'], name, len(cells))
            if (flavor and len(host.packages) >= 2
                    and len(cells) >= 2 * len(host.packages)):
                return name, flavor
        raise self.skipException('no host of [hpcvirt]hosts has packages of '
                                 'several cells')


class DeviceTest(fleet.FleetTestCase):
    """Guests with a virtual function that must be local."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('pci_alias', 'topology_dir')

    @decorators.idempotent_id('7f870a49-225d-49ef-8236-fd6464b99c4b')
    def test_guest_sits_beside_its_device(self) -> None:
        """It starts on the device's cell, and nowhere else."""
        name, flavor, local = self._host_with_devices_on_some_cells()
        alias = f'{CONF.hpcvirt.pci_alias}:1'
        flavor_id = self.create_flavor(plan.extended(flavor, {
            'pci_passthrough:alias': alias,
            'hw:pci_numa_affinity_policy': 'required'}))
        for _ in local:
            server = self.boot(flavor_id, host=name)
            (node,) = self.topology(server['id'])
            self.assertIn(node.host_cell, local)
        # The other cells are free, and there are more devices.
        self.assertIn('No valid host', self.refused(flavor_id, host=name))
        self.boot(self.create_flavor(flavor), host=name)

    def _host_with_devices_on_some_cells(
            self) -> tuple[str, plan.Flavor, set[int]]:
        for name in CONF.hpcvirt.hosts:
            host = self.machine(name)
            cells = {cell.id for cell in host.cells if cell.cpus}
            local = {device.cell for device in host.devices
                     if device.total_vfs > 1 and device.cell is not None}
            flavor = plan.whole_cell(self.plan['flavors'], name, len(cells))
            if flavor and local and local < cells:
                return name, flavor, local
        raise self.skipException('no host of [hpcvirt]hosts has devices on '
                                 'some of its cells only')
