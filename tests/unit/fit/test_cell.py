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

"""One guest cell against one host cell."""

import unittest

from hpcvirt.fit import cell
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests.unit.fit import builders

REQUIRE = shape.ThreadPolicy.REQUIRE
ISOLATE = shape.ThreadPolicy.ISOLATE
PREFER = shape.ThreadPolicy.PREFER


class CellTestCase(unittest.TestCase):

    def assert_fits(self, guest, host, **ratios):
        self.assertIsNone(cell.obstacle(guest, host, **ratios))

    def assert_misfit(self, message, guest, host, **ratios):
        misfit = cell.obstacle(guest, host, **ratios)
        self.assertIsInstance(misfit, reasons.Misfit)
        self.assertEqual(message, misfit.message)


class DedicatedCPUsTest(CellTestCase):

    def test_exactly_enough_free_pcpus_are_enough(self):
        self.assert_fits(builders.guest_cell(3), builders.host_cell(taken=5))

    def test_a_refusal_names_the_cell_and_its_free_pcpus(self):
        self.assert_misfit('cell 1 has 3 of the 8 free PCPUs needed',
                           builders.guest_cell(8),
                           builders.host_cell(1, taken=5))

    def test_a_cell_that_is_too_small_is_not_refused_as_in_use(self):
        self.assert_misfit('cell 0 has 8 of the 9 PCPUs needed',
                           builders.guest_cell(9), builders.host_cell())

    def test_isolated_emulator_threads_need_one_more_pcpu(self):
        guest = builders.guest_cell(4, emulator_pcpus=1)
        self.assert_fits(guest, builders.host_cell(taken=3))
        self.assert_misfit('cell 0 has 4 of the 5 free PCPUs needed', guest,
                           builders.host_cell(taken=4))

    def test_pcpus_outside_of_any_core_are_not_counted(self):
        host = builders.host_cell(siblings=(frozenset({0, 1}),))
        self.assert_misfit('cell 0 has 2 of the 3 free PCPUs needed',
                           builders.guest_cell(3), host)

    def test_a_cell_without_cores_takes_no_pins(self):
        self.assert_misfit('cell 0 has no cores', builders.guest_cell(1),
                           builders.host_cell(siblings=()))

    def test_emulator_threads_are_isolated_only_with_pinned_vcpus(self):
        guest = builders.guest_cell(0, policy=builders.MIXED, vcpus=2,
                                    emulator_pcpus=1)
        host = builders.host_cell(shared=frozenset({60, 61}))
        self.assert_misfit(
            'cell 0 has no PCPU for isolated emulator threads, because the '
            'guest cell has no dedicated vCPUs', guest, host, cpu_ratio=2.0)

    def test_a_guest_cell_without_vcpus_fits_nowhere(self):
        self.assert_misfit('a guest cell has no vCPUs',
                           builders.guest_cell(0), builders.host_cell())


class ThreadPolicyTest(CellTestCase):

    def test_prefer_takes_single_threads(self):
        # Every core has one thread left.
        host = builders.host_cell(threads=2, free=frozenset({0, 2, 4, 6}))
        self.assert_fits(builders.guest_cell(4, threads=PREFER), host)

    def test_require_needs_free_siblings(self):
        host = builders.host_cell(threads=2, free=frozenset({0, 2, 4, 6, 7}))
        self.assert_fits(builders.guest_cell(2, threads=REQUIRE), host)
        self.assert_misfit(
            'cell 0 has room on free SMT siblings for 2 of the 3 vCPUs',
            builders.guest_cell(3, threads=REQUIRE), host)

    def test_require_may_leave_the_last_of_an_odd_number_alone(self):
        host = builders.host_cell(threads=2, free=frozenset({0, 1, 2, 3}))
        self.assert_fits(builders.guest_cell(3, threads=REQUIRE), host)

    def test_require_may_use_part_of_wider_cores(self):
        # Two cores of four threads with three and two free: four vCPUs can
        # go in pairs, five cannot.
        host = builders.host_cell(threads=4,
                                  free=frozenset({0, 1, 2, 4, 5}))
        self.assert_fits(builders.guest_cell(4, threads=REQUIRE), host)
        self.assert_misfit(
            'cell 0 has room on free SMT siblings for 4 of the 5 vCPUs',
            builders.guest_cell(5, threads=REQUIRE), host)

    def test_require_needs_smt(self):
        self.assert_misfit(
            'cell 0 has no SMT siblings, but the thread policy is require',
            builders.guest_cell(1, threads=REQUIRE), builders.host_cell())

    def test_isolate_is_plain_pinning_without_smt(self):
        self.assert_fits(builders.guest_cell(8, threads=ISOLATE),
                         builders.host_cell())

    def test_isolate_is_refused_where_smt_is_dedicated(self):
        self.assert_misfit(
            'cell 0 has SMT siblings, but the thread policy is isolate and '
            'the host sets cpu_dedicated_set',
            builders.guest_cell(1, threads=ISOLATE),
            builders.host_cell(threads=2))

    def test_isolate_takes_whole_cores_of_a_legacy_host(self):
        host = builders.host_cell(threads=2, taken=1,
                                  shared=frozenset(range(8)))
        self.assert_fits(builders.guest_cell(3, threads=ISOLATE), host)
        self.assert_misfit(
            'cell 0 has 3 of the 4 whole free cores needed',
            builders.guest_cell(4, threads=ISOLATE), host)

    def test_isolated_emulator_threads_take_a_whole_core_too(self):
        host = builders.host_cell(threads=2, taken=1,
                                  shared=frozenset(range(8)))
        self.assert_fits(
            builders.guest_cell(2, threads=ISOLATE, emulator_pcpus=1), host)
        self.assert_misfit(
            'cell 0 has 3 of the 4 whole free cores needed',
            builders.guest_cell(3, threads=ISOLATE, emulator_pcpus=1), host)

    def test_nothing_can_be_isolated_in_a_cell_of_shared_vcpus(self):
        self.assert_misfit(
            'a guest cell has no dedicated vCPUs, but the thread policy is '
            'isolate',
            builders.guest_cell(0, policy=builders.MIXED, vcpus=1,
                                threads=ISOLATE),
            builders.host_cell(shared=frozenset({60})))


class SharedCPUsTest(CellTestCase):

    def guest(self, vcpus, **fields):
        return builders.guest_cell(0, policy=builders.SHARED, vcpus=vcpus,
                                   page_kib=None, **fields)

    def host(self, **fields):
        return builders.host_cell(shared=frozenset({60, 61, 62, 63}),
                                  **fields)

    def test_a_guest_does_not_overcommit_against_itself(self):
        self.assert_fits(self.guest(4), self.host(), cpu_ratio=8.0)
        self.assert_misfit('cell 0 has 4 of the 5 shared CPUs needed',
                           self.guest(5), self.host(), cpu_ratio=8.0)

    def test_the_cpu_ratio_limits_all_guests_together(self):
        host = self.host(cpu_usage=5)
        self.assert_fits(self.guest(1), host, cpu_ratio=1.5)
        self.assert_misfit(
            'cell 0 would have 7 shared vCPUs, over its limit of 6',
            self.guest(2), host, cpu_ratio=1.5)

    def test_the_ram_ratio_limits_all_guests_together(self):
        host = self.host(memory_used_mib=16384)
        self.assert_fits(self.guest(1, memory_mib=8192), host, ram_ratio=1.5)
        self.assert_misfit(
            'cell 0 would have 24832 MiB in use, over its limit of 24576 MiB',
            self.guest(1, memory_mib=8448), host, ram_ratio=1.5)

    def test_a_mixed_guest_needs_both_kinds(self):
        guest = builders.guest_cell(2, policy=builders.MIXED, vcpus=2)
        self.assert_fits(guest, self.host(taken=6))
        self.assert_misfit('cell 0 has 1 of the 2 free PCPUs needed', guest,
                           self.host(taken=7))
        self.assert_misfit('cell 0 has 0 of the 2 shared CPUs needed', guest,
                           builders.host_cell())


class MemoryTest(CellTestCase):

    def test_pages_of_the_size_must_be_free(self):
        host = builders.host_cell(pages=(
            builders.pages(4, 1 << 20),
            builders.pages(2048, 1000, used=400, reserved=100)))
        self.assert_fits(builders.guest_cell(memory_mib=1000), host)
        self.assert_misfit(
            'cell 0 has 500 of the 501 free pages of 2048 KiB needed',
            builders.guest_cell(memory_mib=1002), host)

    def test_memory_must_be_whole_pages(self):
        self.assert_misfit(
            '1001 MiB is not a multiple of the page size of 2048 KiB on '
            'cell 0',
            builders.guest_cell(memory_mib=1001), builders.host_cell())

    def test_a_size_that_the_cell_does_not_have(self):
        self.assert_misfit(
            'cell 0 has no pages of 1048576 KiB',
            builders.guest_cell(page_kib=builders.GIANT_KIB),
            builders.host_cell())

    def test_a_pinned_guest_without_page_size_needs_free_small_pages(self):
        host = builders.host_cell(pages=(
            builders.pages(4, 1 << 18, used=1 << 17),))
        guest = builders.guest_cell(page_kib=None, memory_mib=512)
        self.assert_fits(guest, host)
        self.assert_misfit(
            'cell 0 has 131072 of the 132096 free pages of 4 KiB needed',
            builders.guest_cell(page_kib=None, memory_mib=516), host)

    def test_a_shared_guest_without_page_size_may_overcommit(self):
        host = builders.host_cell(
            shared=frozenset({60}),
            pages=(builders.pages(4, 1 << 18, used=1 << 18),))
        self.assert_fits(
            builders.guest_cell(0, vcpus=1, policy=builders.SHARED,
                                page_kib=None), host)

    def test_a_host_without_pages_is_judged_by_its_memory(self):
        host = builders.host_cell(pages=(), memory_mib=2048,
                                  memory_used_mib=1024)
        self.assert_fits(builders.guest_cell(page_kib=None), host)
        self.assert_misfit(
            'cell 0 has 1024 of the 1025 MiB of free memory needed',
            builders.guest_cell(page_kib=None, memory_mib=1025), host)

    def test_a_shared_guest_on_a_host_without_pages(self):
        host = builders.host_cell(pages=(), memory_mib=2048,
                                  memory_used_mib=1024,
                                  shared=frozenset({60}))
        guest = builders.guest_cell(0, vcpus=1, policy=builders.SHARED,
                                    page_kib=None, memory_mib=2049)
        self.assert_misfit('cell 0 has 2048 of the 2049 MiB of memory needed',
                           guest, host, ram_ratio=2.0)


class PageClassTest(CellTestCase):

    def host(self, small=1 << 20, huge=1024, giant=2):
        return builders.host_cell(pages=(
            builders.pages(4, small), builders.pages(2048, huge),
            builders.pages(builders.GIANT_KIB, giant)))

    def size(self, page_class, memory_mib, host):
        return cell.page_size(
            builders.guest_cell(page_kib=page_class, memory_mib=memory_mib),
            host)

    def test_large_is_the_largest_size_with_room(self):
        large = shape.PageClass.LARGE
        self.assertEqual(builders.GIANT_KIB,
                         self.size(large, 2048, self.host()))
        self.assertEqual(2048, self.size(large, 1536, self.host()))
        self.assertEqual(2048, self.size(large, 2048, self.host(giant=1)))

    def test_large_is_never_the_smallest_size(self):
        self.assertIsNone(self.size(shape.PageClass.LARGE, 2048,
                                    self.host(huge=0, giant=0)))
        self.assert_misfit(
            'cell 0 has no page size of class large with 2048 MiB free',
            builders.guest_cell(page_kib=shape.PageClass.LARGE,
                                memory_mib=2048),
            self.host(huge=0, giant=0))

    def test_any_falls_back_to_the_smallest_size(self):
        self.assertEqual(4, self.size(shape.PageClass.ANY, 2048,
                                      self.host(huge=0, giant=0)))

    def test_small_is_the_smallest_size(self):
        self.assertEqual(4, self.size(shape.PageClass.SMALL, 2048,
                                      self.host()))
        self.assertIsNone(self.size(shape.PageClass.SMALL, 2048,
                                    self.host(small=100)))

    def test_a_guest_that_does_not_ask_gets_no_size(self):
        self.assertIsNone(self.size(None, 1024, self.host()))
