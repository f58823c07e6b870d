# SPDX-License-Identifier: Apache-2.0

"""A guest against a host."""

import itertools
import unittest

from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import host
from hpcvirt.model import shape
from tests.builders import tiny
from tests.builders import used_hosts


def fit(guest, cells, pools=()):
    """Place a shape on a host in its current state."""
    return engine.place(demands.compile_shape(guest),
                        supplies.Supply(tuple(cells), pools))


class PlaceTest(unittest.TestCase):
    def assert_placed(self, cells, guest, supply, **arguments):
        placed = engine.place(guest, supply, **arguments)
        self.assertIsInstance(placed, demands.CellAssignment, placed)
        self.assertEqual(cells, placed.cells)
        self.assertIsNone(engine.check(guest, supply, **arguments))

    def assert_misfit(self, code, message, guest, supply):
        misfit = engine.place(guest, supply)
        self.assertIsInstance(misfit, reasons.Misfit, misfit)
        self.assertEqual((code, message), (misfit.code, misfit.message))
        self.assertEqual(misfit, engine.check(guest, supply))


class EqualCellsTest(PlaceTest):
    def test_the_emptiest_cells_come_first(self):
        self.assert_placed((2, 0), tiny.guest(4, 4), tiny.host(2, 3, 0))

    def test_the_fullest_cells_come_first_when_packing(self):
        self.assert_placed((1, 0), tiny.guest(4, 4),
                           tiny.host(2, 3, 0, packing=True))

    def test_cells_stay_in_order_where_all_are_needed(self):
        self.assert_placed((0, 1, 2), tiny.guest(4, 4, 4), tiny.host(2, 3, 0))

    def test_a_misfit_says_what_cells_without_room_lack(self):
        self.assert_misfit(
            reasons.Code.TOO_FEW_CELLS,
            'the host has room on 1 of the 2 cells needed: '
            'cell 0 has 5 of the 6 free PCPUs needed; '
            'cell 1 has 4 of the 6 free PCPUs needed',
            tiny.guest(6, 6), tiny.host(3, 4, 0))

    def test_a_host_with_too_few_cells(self):
        self.assert_misfit(reasons.Code.HOST_CELLS,
                           'the host has 1 of the 2 cells needed',
                           tiny.guest(1, 1), tiny.host(0))

    def test_a_long_list_of_causes_is_shortened(self):
        misfit = engine.place(tiny.guest(8), tiny.host(*[1] * 10))
        self.assertIn('cell 7 has 7 of the 8 free', misfit.message)
        self.assertNotIn('cell 8', misfit.message)
        self.assertTrue(misfit.message.endswith('; and 2 more'))

    def test_a_guest_without_cells_fits_everywhere(self):
        self.assert_placed((), tiny.guest(), tiny.host(8))


class UnequalCellsTest(PlaceTest):
    def test_a_large_guest_cell_gets_the_cell_that_has_room(self):
        # Counting alone would put the small guest cell on cell 0.
        self.assert_placed((1, 0), tiny.guest(2, 8), tiny.host(0, 4))

    def test_guest_cells_that_contend_are_named(self):
        self.assert_misfit(
            reasons.Code.CELLS_CONTENDED,
            'the host has room for guest cells 1, 2 on 1 of the 2 cells '
            'needed: '
            'cell 1 has 4 of the 8 free PCPUs needed; '
            'cell 2 has 4 of the 8 free PCPUs needed',
            tiny.guest(2, 8, 8), tiny.host(0, 4, 4))

    def test_a_guest_cell_that_fits_on_no_cell_is_named(self):
        self.assert_misfit(
            reasons.Code.NO_CELL_FOR,
            'no cell has room for guest cell 1: '
            'cell 0 has 7 of the 8 free PCPUs needed; '
            'cell 1 has 4 of the 8 free PCPUs needed',
            tiny.guest(2, 8), tiny.host(1, 4))

    def test_isolated_emulator_threads_make_guest_cell_0_larger(self):
        cells = [tiny.guest_cell(4, emulator_pcpus=1), tiny.guest_cell(4)]
        guest = tiny.guest()
        guest = type(guest)(tuple(cells))
        self.assertFalse(guest.uniform)
        self.assert_placed((1, 0), guest, tiny.host(4, 3))


class DeviceTest(PlaceTest):
    def test_a_required_device_decides_the_cell(self):
        self.assert_placed(
            (1,), tiny.guest(4, requests=(tiny.request(),)),
            tiny.host(0, 2, 0, pools=tiny.gpus(0, 1, 0)))

    def test_one_cell_with_the_device_is_enough(self):
        self.assert_placed(
            (1, 0), tiny.guest(4, 4, requests=(tiny.request(),)),
            tiny.host(0, 2, 1, pools=tiny.gpus(0, 1, 0)))

    def test_two_devices_on_two_cells(self):
        requests = tiny.request('gpu'), tiny.request('nic')
        pools = tiny.gpus(0, 1) + tiny.gpus(0, 0, 0, 1, alias='nic')
        self.assert_placed(
            (1, 3), tiny.guest(4, 4, requests=requests),
            tiny.host(0, 1, 0, 2, pools=pools))

    def test_a_busy_cell_with_the_device_is_the_reason(self):
        self.assert_misfit(
            reasons.Code.DEVICE_AFFINITY,
            'no cells with room satisfy the affinity policy of the PCI '
            'devices (devices on cell 1): '
            'cell 1 has 2 of the 4 free PCPUs needed',
            tiny.guest(4, requests=(tiny.request(),)),
            tiny.host(0, 6, 7, pools=tiny.gpus(0, 1)))

    def test_too_few_devices_are_counted(self):
        self.assert_misfit(
            reasons.Code.DEVICES,
            'the host has 3 of the 4 free PCI devices that request gpu needs',
            tiny.guest(4, requests=(tiny.request(count=4),)),
            tiny.host(0, 0, pools=tiny.gpus(2, 1)))

    def test_devices_that_nova_does_not_track_are_not_checked(self):
        self.assert_placed(
            (0,), tiny.guest(4, requests=(tiny.request(),)),
            tiny.host(0, 0, pools=None))

    def test_a_preferred_device_may_be_elsewhere(self):
        self.assert_placed(
            (0,), tiny.guest(
                4, requests=(tiny.request(affinity='preferred'),)),
            tiny.host(0, 8, pools=tiny.gpus(0, 1)))

    def test_devices_spread_over_more_cells_than_the_guest_has(self):
        requests = tuple(tiny.request(alias) for alias in 'abc')
        pools = tuple(itertools.chain(*(
            tiny.gpus(*[0] * number, 1, alias=alias)
            for number, alias in enumerate('abc'))))
        self.assert_misfit(
            reasons.Code.DEVICE_AFFINITY,
            'no cells with room satisfy the affinity policy of the PCI '
            'devices (devices on cells 0, 1, 2)',
            tiny.guest(4, 4, requests=requests),
            tiny.host(0, 0, 0, pools=pools))


class NetworkTest(PlaceTest):
    def host(self, *physnets):
        cells = tuple(
            tiny.host_cell(number, taken=number,
                           physnets=frozenset(physnets[number]))
            for number in range(len(physnets)))
        return type(tiny.host())(cells)

    def test_a_guest_goes_to_the_cell_of_its_network(self):
        self.assert_placed(
            (2,), tiny.guest(4, physnets=frozenset({'a'})),
            self.host('', 'b', 'a'))

    def test_a_network_without_affinity_sets_no_condition(self):
        self.assert_placed(
            (0,), tiny.guest(4, physnets=frozenset({'c'})),
            self.host('', 'b', 'a'))

    def test_a_network_on_a_busy_cell_is_the_reason(self):
        self.assert_misfit(
            reasons.Code.NETWORK_AFFINITY,
            'no cells with room have affinity to physical network a '
            '(affinity to cell 2): cell 2 has 6 of the 7 free PCPUs needed',
            tiny.guest(7, physnets=frozenset({'a'})),
            self.host('', 'b', 'a'))

    def test_networks_on_two_cells_cannot_serve_one_guest_cell(self):
        self.assert_misfit(
            reasons.Code.NETWORK_AFFINITY,
            'no cells with room have affinity to physical network a and '
            'physical network b (affinity to cells 1, 2)',
            tiny.guest(4, physnets=frozenset({'a', 'b'})),
            self.host('', 'b', 'a'))


class ScopeTest(PlaceTest):
    def test_a_placement_outside_of_the_scope_is_a_misfit(self):
        self.assert_misfit(
            reasons.Code.SCOPE_SOCKET,
            'Nova would use cells 1, 2 of sockets 0, 1, but '
            'hpcvirt:numa_scope asks for one socket',
            tiny.guest(4, 4, numa_scope=shape.NUMAScope.SOCKET),
            tiny.host(1, 0, 0, 1))


class FitTest(unittest.TestCase):
    """The entry point for Shapes and Hosts."""

    HOST = host.Host('machine', cells=tuple(
        host.Cell(
            id=number, socket=number,
            cpus=frozenset(range(number * 8, number * 8 + 8)),
            siblings=tuple(frozenset({cpu, cpu + 1}) for cpu in
                           range(number * 8, number * 8 + 8, 2)),
            llc=(), memory_mib=8192,
            pages=(host.PagePool(4, 1 << 20), host.PagePool(2048, 2048)))
        for number in range(2)))

    def usage(self, pinned=0):
        return [used_hosts.cell(
            cell, sorted(cell.cpus)[2:], sorted(cell.cpus)[:2],
            sorted(cell.cpus)[2:2 + pinned], {2048: (pinned * 128, 64)})
            for cell in self.HOST.cells]

    def shape(self, pcpus, **fields):
        return shape.Shape(
            cells=(shape.GuestCell(pcpus, 0, pcpus * 256, 2048),) * 2,
            cpu_policy=shape.CPUPolicy.DEDICATED, **fields)

    def test_a_shape_fits_on_an_empty_host(self):
        self.assertEqual(
            demands.CellAssignment((0, 1), (2048, 2048)),
            fit(self.shape(6), self.usage()))

    def test_shared_and_pinned_cpus_are_not_free(self):
        misfit = fit(self.shape(5), self.usage(2))
        self.assertEqual('no cell has room: '
                         'cell 0 has 4 of the 5 free PCPUs needed; '
                         'cell 1 has 4 of the 5 free PCPUs needed',
                         misfit.message)

    def test_reserved_pages_are_not_free(self):
        large = shape.Shape((shape.GuestCell(2, 0, 4000, 2048),),
                            shape.CPUPolicy.DEDICATED)
        self.assertEqual(
            'cell 0 has 1984 of the 2000 free pages of 2048 KiB needed',
            fit(large, self.usage()).causes[0].message)

    def test_isolated_emulator_threads_need_a_pcpu_for_guest_cell_0(self):
        isolated = self.shape(6, emulator_threads=(
            shape.EmulatorThreads.ISOLATE))
        misfit = fit(isolated, self.usage())
        self.assertIn('cell 0 has 6 of the 7 PCPUs needed', misfit.message)

    def test_devices_are_matched_by_alias_and_physical_network(self):
        wanted = self.shape(2, devices=(
            shape.GuestDevices('gpu', affinity=shape.PCIAffinity.REQUIRED),
            shape.GuestDevices(None, physnet='HPC')))
        pools = (*tiny.gpus(1), tiny.devices.pool(1, 1, physnet='hpc'))
        self.assertIsInstance(
            fit(wanted, self.usage(), pools),
            demands.CellAssignment)
        self.assertEqual(
            reasons.Code.DEVICES,
            fit(wanted, self.usage(), pools[:1]).code)

    def test_packing_changes_the_cell_that_is_chosen(self):
        uneven = (self.usage()[0], self.usage(2)[1])
        small = shape.Shape((shape.GuestCell(2, 0, 512, 2048),),
                            shape.CPUPolicy.DEDICATED)
        self.assertEqual(
            [(0,), (1,)],
            [engine.place(demands.compile_shape(small), supplies.Supply(
                uneven, packing=packing)).cells for packing in (False, True)])
