# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import re
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import changes
from hpcvirt.fleet import make_room
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from hpcvirt.specs import codec
from tests.builders import fleets
from tests.builders import hosts
from tests.builders import set_hosts


def fits(guest, host_list):
    return any(not isinstance(
        admission.predict(guest, host.state), reasons.Misfit)
        for host in host_list)


def asked(flavor, **specs):
    """Compile a flavor with other extra specs or vCPUs."""
    vcpus = specs.pop('vcpus', flavor.vcpus)
    ram_mib = specs.pop('ram_mib', flavor.ram_mib)
    rest = {key: value for key, value in flavor.extra_specs.items()
            if not key.startswith(('hw:cpu_sockets', 'hw:cpu_cores',
                                   'hw:cpu_threads', 'hw:cpu_max'))}
    return guests.compile_shape(codec.decode(vcpus, ram_mib,
                                             {**rest, **specs}),
                                vcpus, ram_mib)


def less_memory(flavor, number, cells):
    """Take whole pages of 2 MiB from each guest cell."""
    left = flavor.vcpus - number
    return flavor.ram_mib // cells * left // flavor.vcpus // 2 * 2 * cells


class ChangesTest(unittest.TestCase):
    def refused(self, seed, rounds):
        """Yield flavors that fit on no host of a random fleet."""
        dice = random.Random(seed)
        for _ in range(rounds):
            fleet, flavors = fleets.a_fleet(dice, 2)
            for flavor in (*flavors, *(dataclasses.replace(
                    flavor, ram_mib=flavor.vcpus * 16)
                    for flavor in flavors)):
                if not fits(compiled_flavor.make(flavor), fleet.hosts):
                    yield fleet.hosts, flavor

    def test_every_change_is_the_smallest_with_which_the_flavor_fits(self):
        kinds = set()
        for host_list, flavor in self.refused(31, 30):
            guest = compiled_flavor.make(flavor)
            found = [change.what for change
                     in changes.nearest(guest, host_list)]
            cells, per_cell = len(guest.shape.cells), guest.shape.cells[0]
            for what in found:
                kinds.add(re.sub(r'\d+|[a-z]\d+', '', what))
            fewer = next((number for number in range(
                cells, flavor.vcpus, cells) if fits(asked(
                    flavor, vcpus=flavor.vcpus - number), host_list)), None)
            shown = [what for what in found if what.endswith(' fewer')]
            self.assertEqual([] if fewer is None else [
                f'{fewer} CPU{"s" * (fewer > 1)} fewer'], shown)
            less = next((number for number in range(
                cells, flavor.vcpus, cells) if fits(asked(
                    flavor, vcpus=flavor.vcpus - number,
                    ram_mib=less_memory(flavor, number, cells)),
                    host_list)), None)
            self.assertEqual(
                fewer is None and less is not None, any(
                    what.startswith(f'{less} CPU') and 'less memory' in what
                    for what in found))
            for number in range(1, 6):
                whole = not (flavor.vcpus % number or flavor.ram_mib % number)
                if number != cells and whole and fits(asked(
                        flavor, **{'hw:numa_nodes': str(number)}), host_list):
                    self.assertTrue(any('guest cell' in what
                                        for what in found))
            for size in (4, 2048, 1 << 20):
                self.assertEqual(
                    size != per_cell.page_kib and fits(asked(
                        flavor, **{'hw:mem_page_size': str(size)}),
                        host_list), f'pages of {size} KiB' in found)
            plan = make_room.search(guest, host_list, 2)
            self.assertEqual(plan is not None,
                             any('moves from' in what for what in found))
        self.assertLessEqual(
            {' CPUs fewer', ' guest cells instead of ', ' moves from  to ',
             ' CPUs fewer and less memory in proportion'}, kinds)

    def test_pages_of_a_cell_are_those_that_are_missing(self):
        host = hosts.build(cells=2, cores=4, mib=4096)
        document, _ = fleets.plan_of([host])
        pages = document['host_config']['host']['pages']
        pages['0'] = {'4': 400000, '2048': 90}
        pages['1'] = {'4': 400000, '2048': 80}
        (found,) = fleets.fleet_of([host], document).hosts
        flavor = fleets.flavor(2, 200)
        self.assertIn(
            '10 more pages of 2048 KiB on cell 0 of host (then it fits on '
            'host, cell 0)', [*map(str, changes.nearest(
                compiled_flavor.make(flavor), (found,)))])

    def test_cells_in_another_order_avoid_a_defect(self):
        host = hosts.build(cells=3, cores=4, mib=8192)
        document, _ = fleets.plan_of([host])
        document['host_config']['host']['pages'] = {
            str(cell): {'4': 400000, '2048': huge}
            for cell, huge in enumerate((256, 2048, 1024))}
        (found,) = fleets.fleet_of([host], document).hosts
        found = fleets.changed(found, (
            cell._replace(free=frozenset(sorted(cell.free)[:free]))
            for cell, free in zip(found.state.supply.cells, (2, 4, 2),
                                  strict=True)))
        flavor = fleets.flavor(6, 6144, {
            'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-1',
            'hw:numa_mem.0': '2048', 'hw:numa_cpus.1': '2-5',
            'hw:numa_mem.1': '4096'})
        guest = compiled_flavor.make(flavor)
        misfit = admission.predict(guest, found.state)
        self.assertIs(reasons.Code.CLAIM_REFUSES, misfit.code)
        by_words = {change.what: change for change
                    in changes.nearest(guest, (found,))}
        first = by_words['the largest guest cells first']
        self.assertEqual([4, 2], [cell.pcpus for cell
                                  in first.guest.shape.cells])
        self.assertEqual((1, 2), first.cells)

    def test_no_change_asks_for_a_flavor_that_cannot_be(self):
        host = hosts.build(cells=3, cores=1, mib=4096)
        document, _ = fleets.plan_of([host])
        (found,) = fleets.fleet_of([host], document).hosts
        flavor = fleets.flavor(6, 6)
        for change in changes.nearest(compiled_flavor.make(flavor), (found,)):
            self.assertTrue(all(
                cell.memory_mib for cell in change.guest.shape.cells),
                change)

    def test_no_change_gives_a_host_what_it_lacks(self):
        (host,) = fleets.a_fleet(random.Random(5), 1)[0].hosts[:1]
        host = dataclasses.replace(host, state=dataclasses.replace(
            host.state, traits=frozenset({'CUSTOM_A'}), address_bits=46,
            free=host.state.free._replace(disk_gib=10)))
        for fields in ({'required': frozenset({'CUSTOM_B'})},
                       {'forbidden': frozenset({'CUSTOM_A'})},
                       {'address_bits': 52}, {'grouped': (('VGPU', 1),)},
                       {'disk_gib': 20}):
            guest = asked(flavor_model.Flavor('f', 2, 64, 0, {}), **{
                'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'})
            disk = fields.pop('disk_gib', 0)
            guest = dataclasses.replace(
                guest, sums=guest.sums._replace(disk_gib=disk), **fields)
            self.assertFalse(fits(guest, (host,)))
            self.assertEqual((), changes.nearest(guest, (host,)))

    def test_devices_need_not_form_a_set(self):
        one = set_hosts.FLAVORS[0]
        host = set_hosts.with_instances('h', (one, 'gpu1'), (one, 'gpu6'))
        (change,) = changes.nearest(set_hosts.GUESTS['gpu4'], (host,))
        self.assertEqual('PCI devices that form no set (then it fits on h, '
                         'cell 0)', str(change))

    def test_policies_are_relaxed(self):
        host = hosts.build(cells=2, cores=4, threads=2, mib=4096, vfs={1: 2})
        document, _ = fleets.plan_of([host], dataclasses.replace(
            fleets.SMALL, devices=(hosts.VFS,)))
        (found,) = fleets.fleet_of([host], document).hosts
        (alias,) = document['host_config']['host']['pci_alias']
        for specs, what in (
                ({'hw:cpu_thread_policy': 'isolate'},
                 'the thread policy prefer instead of isolate'),
                ({'hw:numa_nodes': '2', 'hpcvirt:numa_scope': 'socket'},
                 'cells of several sockets'),
                ({'hw:emulator_threads_policy': 'isolate'},
                 'emulator threads that are not isolated')):
            flavor = fleets.flavor(8, 1024, specs)
            self.assertIn(what, [change.what for change in changes.nearest(
                compiled_flavor.make(flavor), (found,))])
        fleet, guest = fleets.with_devices()
        self.assertIn('a moves cold from h0 to h1', [
            change.what for change in changes.nearest(guest, fleet.hosts)])
        busy = fleets.changed(found, (
            cell if cell.id == 0 else cell._replace(free=frozenset())
            for cell in found.state.supply.cells))
        flavor = fleets.flavor(2, 64, {
            'pci_passthrough:alias': f'{alias["name"]}:1',
            'hw:pci_numa_affinity_policy':
                shape.PCIAffinity.REQUIRED.value})
        self.assertIn('the affinity policy preferred for its devices',
                      [change.what for change in changes.nearest(
                          compiled_flavor.make(flavor), (busy,))])
