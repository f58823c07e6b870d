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

"""hpcvirt's own extra specs against the cells of a placement."""

import unittest

from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.fit import scope_check
from hpcvirt.model import shape
from tests.unit.fit import builders

PACKAGE = shape.NUMAScope.PACKAGE


class ScopeCheckTestCase(unittest.TestCase):

    def enforce(self, supply, cells, **fields):
        guest = builders.guest(*[4] * len(cells), **fields)
        return scope_check.enforce(guest, supply,
                                   placement.Placement(cells))

    def assert_accepted(self, supply, cells, **fields):
        self.assertEqual(placement.Placement(cells),
                         self.enforce(supply, cells, **fields))

    def assert_refused(self, code, message, supply, cells, **fields):
        misfit = self.enforce(supply, cells, **fields)
        self.assertIsInstance(misfit, reasons.Misfit)
        self.assertEqual((code, message), (misfit.code, misfit.message))


class PackageTest(ScopeCheckTestCase):
    """Packages of two cells each."""

    def test_only_cells_of_one_package_are_accepted(self):
        supply = builders.host(0, 0, 0, 0)
        for first in range(4):
            for second in set(range(4)) - {first}:
                accepted = self.enforce(supply, (first, second),
                                        numa_scope=PACKAGE)
                self.assertEqual(
                    first // 2 == second // 2,
                    isinstance(accepted, placement.Placement))

    def test_a_refusal_names_cells_and_packages(self):
        self.assert_refused(
            reasons.Code.SCOPE_PACKAGE,
            'Nova would use cells 1, 2 of packages 0, 1, but '
            'hpcvirt:numa_scope asks for one package',
            builders.host(0, 0, 0, 0), (2, 1), numa_scope=PACKAGE)

    def test_the_scope_host_accepts_any_cells(self):
        self.assert_accepted(builders.host(0, 0, 0, 0), (2, 1))

    def test_a_single_cell_is_accepted_even_if_its_package_is_unknown(self):
        supply = type(builders.host())((builders.host_cell(package=None),))
        self.assert_accepted(supply, (0,), numa_scope=PACKAGE)

    def test_several_cells_with_an_unknown_package_are_refused(self):
        supply = type(builders.host())((
            builders.host_cell(0), builders.host_cell(1, package=None)))
        self.assert_refused(
            reasons.Code.PACKAGE_UNKNOWN,
            'the package of cell 1 is unknown, but hpcvirt:numa_scope asks '
            'for one package', supply, (0, 1), numa_scope=PACKAGE)


class ExclusiveCellsTest(ScopeCheckTestCase):

    def assert_occupied(self, what, **fields):
        supply = type(builders.host())((builders.host_cell(**fields),))
        self.assert_refused(
            reasons.Code.CELL_OCCUPIED,
            f'Nova would use cell 0, which has {what} in use, but '
            'hpcvirt:exclusive_cells asks for empty cells',
            supply, (0,), exclusive_cells=True)
        self.assert_accepted(supply, (0,))

    def test_empty_cells_are_accepted_next_to_cells_in_use(self):
        self.assert_accepted(builders.host(1, 0), (1,), exclusive_cells=True)

    def test_pinned_cpus_occupy_a_cell(self):
        self.assert_occupied('1 PCPU', taken=1)
        self.assert_occupied('2 PCPUs', taken=2)

    def test_memory_and_shared_vcpus_occupy_a_cell(self):
        self.assert_occupied(
            '2 shared vCPUs, 1024 MiB', cpu_usage=2, memory_used_mib=512,
            pages=(builders.pages(2048, 4096, used=512),))

    def test_pages_reserved_for_the_host_do_not(self):
        supply = type(builders.host())((builders.host_cell(
            pages=(builders.pages(2048, 4096, reserved=512),)),))
        self.assert_accepted(supply, (0,), exclusive_cells=True)
