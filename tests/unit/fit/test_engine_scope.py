# SPDX-License-Identifier: Apache-2.0

"""hpcvirt's own extra specs against the cells of a placement."""

import unittest

from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests.builders import tiny

SOCKET = shape.NUMAScope.SOCKET


class ScopeCheckTestCase(unittest.TestCase):
    def enforce(self, supply, cells, **fields):
        guest = tiny.guest(*[4] * len(cells), **fields)
        return engine.enforce_scope(guest, supply,
                                    demands.CellAssignment(cells))

    def assert_accepted(self, supply, cells, **fields):
        self.assertEqual(demands.CellAssignment(cells),
                         self.enforce(supply, cells, **fields))

    def assert_refused(self, code, message, supply, cells, **fields):
        misfit = self.enforce(supply, cells, **fields)
        self.assertIsInstance(misfit, reasons.Misfit)
        self.assertEqual((code, message), (misfit.code, misfit.message))


class SocketTest(ScopeCheckTestCase):
    """Sockets of two cells each."""

    def test_only_cells_of_one_socket_are_accepted(self):
        supply = tiny.host(0, 0, 0, 0)
        for first in range(4):
            for second in set(range(4)) - {first}:
                accepted = self.enforce(supply, (first, second),
                                        numa_scope=SOCKET)
                self.assertEqual(
                    first // 2 == second // 2,
                    isinstance(accepted, demands.CellAssignment))

    def test_cells_of_one_socket_need_not_be_empty(self):
        self.assert_accepted(tiny.host(1, 1), (0, 1), numa_scope=SOCKET)

    def test_a_refusal_names_cells_and_sockets(self):
        self.assert_refused(
            reasons.Code.SCOPE_SOCKET,
            'Nova would use cells 1, 2 of sockets 0, 1, but '
            'hpcvirt:numa_scope asks for one socket',
            tiny.host(0, 0, 0, 0), (2, 1), numa_scope=SOCKET)

    def test_the_scope_host_accepts_any_cells(self):
        self.assert_accepted(tiny.host(0, 0, 0, 0), (2, 1))

    def test_a_single_cell_is_accepted_even_if_its_socket_is_unknown(self):
        supply = type(tiny.host())((tiny.host_cell(socket=None),))
        self.assert_accepted(supply, (0,), numa_scope=SOCKET)

    def test_several_cells_with_an_unknown_socket_are_refused(self):
        supply = type(tiny.host())((
            tiny.host_cell(0), tiny.host_cell(1, socket=None)))
        self.assert_refused(
            reasons.Code.SOCKET_UNKNOWN,
            'the socket of cell 1 is unknown, but hpcvirt:numa_scope asks '
            'for one socket', supply, (0, 1), numa_scope=SOCKET)


class ExclusiveCellsTest(ScopeCheckTestCase):
    def assert_occupied(self, what, **fields):
        supply = type(tiny.host())((tiny.host_cell(**fields),))
        self.assert_refused(
            reasons.Code.CELL_OCCUPIED,
            f'Nova would use cell 0, which has {what} in use, but '
            'hpcvirt:exclusive_cells asks for empty cells',
            supply, (0,), exclusive_cells=True)
        self.assert_accepted(supply, (0,))

    def test_empty_cells_are_accepted_next_to_cells_in_use(self):
        self.assert_accepted(tiny.host(1, 0), (1,), exclusive_cells=True)

    def test_pinned_cpus_occupy_a_cell(self):
        self.assert_occupied('1 PCPU', taken=1)
        self.assert_occupied('2 PCPUs', taken=2)

    def test_memory_and_shared_vcpus_occupy_a_cell(self):
        self.assert_occupied(
            '2 shared vCPUs, 1024 MiB', cpu_usage=2, memory_used_mib=512,
            pages=(tiny.pages(2048, 4096, used=512),))

    def test_each_cell_must_be_empty(self):
        self.assert_refused(
            reasons.Code.CELL_OCCUPIED,
            'Nova would use cell 1, which has 1 PCPU in use, but '
            'hpcvirt:exclusive_cells asks for empty cells',
            tiny.host(0, 1), (0, 1), exclusive_cells=True)

    def test_pages_reserved_for_the_host_do_not(self):
        supply = type(tiny.host())((tiny.host_cell(
            pages=(tiny.pages(2048, 4096, reserved=512),)),))
        self.assert_accepted(supply, (0,), exclusive_cells=True)
