# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests.builders import tiny

LOST_AFFINITY = reasons.Defect.LOST_AFFINITY


def move(wanted, defect=LOST_AFFINITY, limited=True, page_kib=None, **claimed):
    """A move whose claim starts from a guest that differs in some fields."""
    return move_check.MoveClaim(wanted, dataclasses.replace(wanted, **claimed),
                                defect, limited, page_kib)


def near(*affinities):
    return tuple(tiny.request(affinity=affinity) for affinity in affinities)


class AffinityTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        # Cell 0 has the devices.
        self.full = tiny.host(8, 0, pools=tiny.gpus(2))
        self.roomy = tiny.host(0, 0, pools=tiny.gpus(2))

    def test_a_claim_that_is_stricter_than_the_guest_refuses_it(self):
        wanted = tiny.guest(4, requests=near('preferred'))
        moved = move(wanted, requests=near('legacy'))
        self.assertIsNone(move_check.check(moved, self.roomy))
        self.assertEqual(
            'a move ignores the affinity policy of the flavor '
            "(Nova's defect I): the claim would refuse it: "
            'no cells with room satisfy the affinity policy of the PCI '
            'devices (devices on cell 0)',
            move_check.check(moved, self.full).message.partition(': cell')[0])

    def test_a_claim_that_is_laxer_than_the_guest_must_place_it_well(self):
        wanted = tiny.guest(4, requests=near('required'))
        moved = move(wanted, requests=near('preferred'))
        self.assertIsNone(move_check.check(moved, self.roomy))
        misfit = move_check.check(moved, self.full)
        self.assertEqual(
            'a move ignores the affinity policy of the flavor '
            "(Nova's defect I): the claim would use cell 1, "
            'without the affinity to PCI devices or networks that the '
            'guest requests', misfit.message)

    def test_a_host_without_room_is_not_said_to_be_a_defect(self):
        wanted = tiny.guest(4, requests=near('preferred'))
        moved = move(wanted, requests=near('legacy'))
        misfit = move_check.check(moved, tiny.host(8, 8, pools=tiny.gpus(2)))
        self.assertNotIn('defect', misfit.details)


    def test_a_guest_without_cells_needs_its_devices_anywhere(self):
        wanted = tiny.guest(requests=near('required'))
        moved = move(wanted, requests=near('preferred'))
        self.assertIsNone(move_check.check(moved, self.full))
        misfit = move_check.check(moved, tiny.host(0))
        self.assertIs(reasons.Code.DEVICES, misfit.code)

    def test_a_device_of_the_socket_is_near_enough(self):
        wanted = tiny.guest(4, requests=near('socket'))
        moved = move(wanted, reasons.Defect.LOST_LIMITS, limited=False)
        self.assertIsNone(move_check.check(moved, self.full))

    def test_a_preferred_device_may_be_far_after_the_move(self):
        # The claim is laxer, and takes the device of another cell.
        wanted = tiny.guest(4, requests=near('preferred'))
        moved = move(wanted, requests=near('socket'))
        self.assertIsNone(move_check.check(moved, self.full))


class FormerHostTest(unittest.TestCase):
    def test_pages_of_the_former_host_are_required(self):
        wanted = dataclasses.replace(tiny.guest(4), cells=(
            tiny.guest_cell(page_kib=shape.PageClass.LARGE),))
        moved = move(wanted, reasons.Defect.FORMER_HOST, cells=(
            tiny.guest_cell(page_kib=tiny.GIANT_KIB),))
        misfit = move_check.check(moved, tiny.host(0, 0))
        self.assertIn('an unshelve starts from what the guest had',
                      misfit.message)

    def test_numbers_of_the_former_host_decide(self):
        wanted = tiny.guest(2, 4)
        host = tiny.host(0, 6, 6)
        moved = move(wanted, reasons.Defect.FORMER_HOST)
        self.assertIsNone(move_check.check(moved, host))
        misfit = move_check.check(
            move(wanted, reasons.Defect.FORMER_HOST, numbers=(2, 0)), host)
        self.assertIn('an unshelve starts from what the guest had',
                      misfit.message)


class LiveMigrationTest(unittest.TestCase):
    def test_pages_must_keep_their_size(self):
        cells = (tiny.guest_cell(page_kib=shape.PageClass.LARGE),)
        wanted = dataclasses.replace(tiny.guest(4), cells=cells)
        moved = move(wanted, page_kib=tiny.GIANT_KIB)
        self.assertIn('choose 2048 KiB, but the guest has pages of 1048576',
                      move_check.check(moved, tiny.host(0)).message)

    def test_a_claim_without_limits_must_keep_to_them(self):
        cells = (tiny.guest_cell(pcpus=0, vcpus=2, policy=tiny.SHARED),)
        wanted = dataclasses.replace(tiny.guest(4), cells=cells)
        cpus = frozenset(range(8))
        small, large = (
            tiny.host_cell(number, shared=frozenset(range(count)),
                           siblings=tuple({cpu} for cpu in cpus),
                           cpu_usage=count // 2)
            for number, count in enumerate((2, 6)))
        host = dataclasses.replace(tiny.host(), cells=(small, large))
        self.assertIsNone(move_check.check(move(wanted), host))
        self.assertIn('a live migration ignores allocation ratios',
                      move_check.check(move(wanted, limited=False),
                                       host).message)

    def test_a_claim_without_limits_must_keep_to_networks(self):
        wanted = tiny.guest(4, physnets=frozenset({'hpc0'}))
        host = tiny.host(0, 2)
        host = dataclasses.replace(host, cells=(
            host.cells[0], host.cells[1]._replace(
                physnets=frozenset({'hpc0'}))))
        self.assertIsNone(move_check.check(move(wanted), host))
        self.assertIn('cell 0, without the affinity', move_check.check(
            move(wanted, limited=False), host).message)


SIZES = (2048, 2048)


class RetryCheckTest(unittest.TestCase):
    def check(self, guest, host, sizes=SIZES):
        return move_check.check_retry(guest, host, [sizes])

    def test_guests_that_any_claim_serves_well_do_not_matter(self):
        self.assertFalse(move_check.needs_retry_check(tiny.guest(4, 4)))
        self.assertFalse(move_check.needs_retry_check(tiny.guest(4)))
        self.assertTrue(move_check.needs_retry_check(tiny.guest(4, 2)))
        self.assertFalse(move_check.needs_retry_check(tiny.guest(
            4, 4, requests=(tiny.request(),))))

    def test_unequal_cells_can_be_confused(self):
        guest, host = tiny.guest(2, 4), tiny.host(0, 6, 6)
        self.assertIsNone(claim.check(guest, host))
        misfit = self.check(guest, host)
        self.assertEqual(
            "wrong if the build fails on another host (Nova's defect H): the "
            'claim on the compute host would place guest cell 1 on cell 0 '
            'with CPUs or memory that are not free there '
            "(Nova's defect A)", misfit.message)
        self.assertEqual(claim.find_defect(dataclasses.replace(
            guest, numbers=(-1, -1)), host), misfit.causes[0])

    def test_equal_cells_and_empty_hosts_are_safe(self):
        self.assertIsNone(self.check(tiny.guest(4, 4), tiny.host(8, 0, 2)))
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(0, 0, 0)))

    def test_a_claim_that_refuses_the_guest_is_harmless(self):
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(8, 8, 8)))
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(0)))

    def test_page_sizes_are_those_of_the_other_host(self):
        guest = dataclasses.replace(tiny.guest(2, 2), cells=(
            tiny.guest_cell(2, page_kib=shape.PageClass.LARGE),) * 2)
        self.assertEqual(SIZES, move_check.predict_pages(
            guest, tiny.host(0, 0)))
        self.assertIsNone(move_check.predict_pages(guest, tiny.host(8, 8)))
        self.assertIsNone(self.check(guest, tiny.host(0, 0)))
        giant = (tiny.GIANT_KIB,) * 2
        self.assertIsNone(self.check(guest, tiny.host(0, 0), giant))
