# SPDX-License-Identifier: Apache-2.0

"""PCI requests against pools."""

import itertools
import random
import unittest

from hpcvirt.fit import devices
from hpcvirt.model import shape
from tests.builders import pci

request = pci.request
pool = pci.pool
SOCKETS = pci.SOCKETS


class AllocatorTest(unittest.TestCase):
    def left(self, requests, pools, cells, sockets=SOCKETS, providers=()):
        allocator = devices.Allocator(requests, pools, sockets, providers)
        return allocator.allocate(cells)

    def assert_served(self, left, *arguments, **more):
        self.assertEqual(left, self.left(*arguments, **more))

    def assert_refused(self, *arguments, **more):
        self.assertIsNone(self.left(*arguments, **more))


class MatchingTest(AllocatorTest):
    def test_all_tags_of_the_request_must_be_there(self):
        pools = [pool(0, 1, vendor_id='8086', product_id='1515'),
                 pool(0, 1, vendor_id='8086', product_id='1528')]
        self.assert_served([1, 0], [request(product_id='1528')], pools, {0})
        self.assert_refused([request(vendor_id='10de')], pools, {0})

    def test_the_case_of_the_tags_of_a_pool_is_ignored(self):
        self.assert_served([0], [request(physical_network='hpc')],
                           [pool(0, 1, physical_network='HPC')], {0})

    def test_a_request_can_require_the_absence_of_a_tag(self):
        self.assert_served([0], [request(physical_network=None)],
                           [pool(0, 1)], {0})

    def test_one_of_several_alternatives_is_enough(self):
        either = devices.DeviceRequest(({'product_id': 'a'},
                                        {'product_id': 'b'}))
        self.assert_served([0], [either], [pool(0, 1, product_id='b')], {0})

    def test_physical_functions_are_given_only_on_request(self):
        pools = [pool(0, 1, dev_type='type-PF')]
        self.assert_refused([request()], pools, {0})
        self.assert_served([0], [request(dev_type='type-pf')], pools, {0})

    def test_vdpa_devices_are_given_only_on_request(self):
        pools = [pool(0, 1, dev_type='vdpa')]
        self.assert_refused([request()], pools, {0})
        self.assert_served([0], [request(dev_type='vdpa')], pools, {0})

    def test_remotely_managed_devices_are_given_only_on_request(self):
        pools = [pool(0, 1, remote_managed='True')]
        self.assert_refused([request()], pools, {0})
        self.assert_served([0], [request(remote_managed='true')], pools, {0})

    def test_live_migratable_devices_are_given_only_on_request(self):
        pools = [pool(0, 1, live_migratable='true')]
        self.assert_served([0], [request(live_migratable='true')], pools, {0})
        self.assert_refused([request(live_migratable='false')], pools, {0})
        self.assert_served([0], [request()], pools, {0})


    def test_what_a_request_remembers_of_pools_is_bounded(self):
        request = devices.DeviceRequest(({'alias gpu': True},))
        for number in range(1000):
            pool = devices.Pool(0, 1, {'alias gpu': f'{number}',
                                       'dev_type': 'x' * number * 2})
            self.assertEqual((False, True), request.accepts(pool))
            self.assertEqual((False, True), request.accepts(pool))
        self.assertLessEqual(len(request._known), devices.MAX_KINDS)
        self.assertLess(max(len(kind[0] or '') for kind in request._known),
                        1025)


class ProvidersTest(AllocatorTest):
    def test_a_pool_that_is_empty_is_none_of_its_provider(self):
        pools = [pool(0, 1, 'x', kind='a'), pool(0, 1, 'x', kind='b')]
        self.assert_served([0, 0], [request(kind='a'), request(kind='b')],
                           pools, {0}, providers=[[], ['x']])
        # Nova cannot tell two pools of a provider apart.
        self.assert_refused([request(kind='b')], pools, {0},
                            providers=[['x']])


class AffinityTest(AllocatorTest):
    def test_required_needs_a_cell_of_the_guest(self):
        wanted = [request(affinity='required')]
        self.assert_served([0], wanted, [pool(1, 1)], {0, 1})
        self.assert_refused(wanted, [pool(1, 1)], {0})
        self.assert_refused(wanted, [pool(None, 1)], {0})

    def test_socket_needs_a_socket_of_the_guest(self):
        wanted = [request(affinity='socket')]
        self.assert_served([0], wanted, [pool(1, 1)], {0})
        self.assert_refused(wanted, [pool(2, 1)], {0})
        self.assert_refused(wanted, [pool(None, 1)], {0})

    def test_socket_needs_the_sockets_of_all_cells(self):
        wanted = [request(affinity='socket')]
        sockets = {**SOCKETS, 3: None}
        self.assert_refused(wanted, [pool(1, 1)], {0}, sockets=sockets)
        self.assert_served([0], wanted, [pool(0, 1)], {0}, sockets=sockets)

    def test_legacy_also_takes_devices_of_unknown_cells(self):
        wanted = [request(affinity='legacy')]
        self.assert_served([0], wanted, [pool(None, 1)], {0})
        self.assert_refused(wanted, [pool(1, 1)], {0})

    def test_preferred_takes_devices_of_any_cell(self):
        wanted = [request(affinity='preferred')]
        self.assert_served([0], wanted, [pool(1, 1)], {0})

    def test_preferred_takes_the_nearest_first(self):
        wanted = [request(3, affinity='preferred')]
        self.assert_served([1, 0, 0], wanted,
                           [pool(1, 2), pool(0, 1), pool(None, 1)], {0})

    def test_enough_devices_nearby_exclude_the_others(self):
        # The only device on cell 0 is a physical function. Nova keeps to
        # cell 0, then filters it out: devices elsewhere do not help.
        self.assert_refused(
            [request(affinity='preferred')],
            [pool(0, 1, dev_type='type-PF'), pool(1, 4)], {0})


    def test_enough_devices_of_unknown_cells_exclude_those_of_others(self):
        self.assert_refused(
            [request(affinity='preferred')],
            [pool(None, 1, dev_type='type-PF'), pool(1, 4)], {0})


class OnePoolTest(AllocatorTest):
    def test_the_first_pool_with_enough_gives_them_all(self):
        wanted = devices.request(shape.GuestDevices(
            None, 2, resource_class='VGPU'))
        for free, left in (((1, 3, 2), [1, 1, 2]), ((2, 3, 2), [0, 3, 2]),
                           ((1, 1, 1), None)):
            pools = [devices.pool(None, count, resource_class='VGPU')
                     for count in free]
            self.assertEqual(left, self.left([wanted], pools, None))


class SeveralRequestsTest(AllocatorTest):
    def test_devices_of_one_request_are_not_left_for_the_next(self):
        self.assert_refused([request(2), request(2)], [pool(0, 3)], {0})
        self.assert_served([0], [request(2), request(1)], [pool(0, 3)], {0})

    def test_pools_are_emptied_in_their_order(self):
        self.assert_served([0, 1, 2], [request(3)],
                           [pool(0, 2), pool(0, 2), pool(0, 2)], {0})

    def test_a_request_does_not_spare_devices_for_the_next(self):
        # Both could be served if the first took the second pool.
        pools = [pool(0, 1, kind='a', speed='fast'), pool(0, 1, kind='a')]
        self.assert_refused([request(kind='a'), request(speed='fast')],
                            pools, {0})


class PlacementTest(AllocatorTest):
    def test_devices_come_from_the_provider_allocated(self):
        self.assert_served(
            [2, 1], [request()], [pool(0, 2, 'x'), pool(0, 2, 'y')], {0},
            providers=[['y']])

    def test_a_provider_allocated_twice_gives_two_devices(self):
        pools = [pool(0, 2, 'x'), pool(0, 2, 'y')]
        self.assert_served([0, 2], [request(2)], pools, {0},
                           providers=[['x', 'x']])
        self.assert_served([1, 1], [request(2)], pools, {0},
                           providers=[['x', 'y']])

    def test_a_provider_on_another_cell_is_refused(self):
        self.assert_refused(
            [request()], [pool(0, 2, 'x'), pool(1, 2, 'y')], {0},
            providers=[['y']])

    def test_pools_unknown_to_placement_are_not_used(self):
        self.assert_refused([request()], [pool(0, 2)], {0}, providers=[['x']])

    def test_one_provider_in_two_pools_is_refused(self):
        self.assert_refused([request()], [pool(0, 1, 'x'), pool(0, 1, 'x')],
                            {0}, providers=[['x']])

    def test_requests_without_allocation_use_any_provider(self):
        self.assert_served([0, 0], [request(), request()],
                           [pool(0, 1, 'x'), pool(0, 1, 'y')], {0},
                           providers=[['y'], []])


class DecidingCellsTest(unittest.TestCase):
    def allocator(self, affinity):
        return devices.Allocator(
            [request(affinity=affinity, kind='gpu')],
            [pool(1, 1, kind='gpu'), pool(2, 1, kind='nic'),
             pool(None, 1, kind='gpu')], SOCKETS)

    def test_cells_of_devices_that_match_decide(self):
        self.assertEqual({1}, self.allocator('required').deciding)

    def test_with_socket_affinity_their_whole_socket_decides(self):
        self.assertEqual({0, 1}, self.allocator('socket').deciding)

    def test_a_shortage_counts_the_devices_that_could_be_used(self):
        allocator = devices.Allocator(
            [request(3)], [pool(0, 2), pool(1, 9, dev_type='type-PF')], {})
        wanted, free = allocator.shortage()
        self.assertEqual((3, 2), (wanted.count, free))

    def test_no_shortage_where_the_whole_host_suffices(self):
        allocator = devices.Allocator([request(3)],
                                      [pool(0, 2), pool(1, 1)], {})
        self.assertIsNone(allocator.shortage())

    def test_devices_that_match_are_free_whatever_their_kind(self):
        self.assertEqual([1, 2], devices.free_devices(
            request(kind='a'), [
                pool(0, 1, kind='a', dev_type='type-PF'),
                pool(0, 4, kind='b'), pool(0, 2, kind='a')]))

    def test_cells_of_later_requests_are_needed_too(self):
        allocator = devices.Allocator(
            [request(affinity='preferred'), request(kind='a')],
            [pool(0, 1), pool(1, 1, kind='a')], {})
        self.assertEqual({1}, allocator.needed)

    def test_a_class_without_any_pool_has_no_device_free(self):
        wanted = devices.request(shape.GuestDevices(
            None, 1, resource_class='VGPU'))
        self.assertEqual((wanted, 0),
                         devices.Allocator([wanted], [], {}).shortage())


class CountingTest(unittest.TestCase):
    """Cells that are counted, against all sets of cells."""

    CELLS = range(4)

    def draw(self, dice):
        """Draw the requests and the pools of a guest, and what serves it.

        :returns: the allocator, and the sets of cells that have its devices
        """
        affinity = dice.choice(('required', 'legacy', 'socket'))
        requests = [request(dice.choice((1, 2, 3, 5)), affinity, kind=kind)
                    for kind in 'ab'[:dice.choice((1, 1, 2))]]
        pools = [pool(dice.choice((*self.CELLS, *self.CELLS, None)),
                      dice.choice((0, 1, 2, 3)), f'provider {number}',
                      kind=dice.choice('aab'))
                 for number in range(dice.randint(1, 6))]
        allocator = devices.Allocator(
            requests, pools, SOCKETS if affinity == 'socket' else {})
        sets = [cells for size in range(1, len(self.CELLS) + 1)
                for cells in itertools.combinations(self.CELLS, size)]
        return requests, allocator, [
            set(cells) for cells in sets
            if allocator.allocate(cells) is not None]

    def test_a_cell_is_needed_if_no_set_without_it_serves(self):
        dice = random.Random(1)
        seen = set()
        for _ in range(400):
            requests, allocator, serving = self.draw(dice)
            if not serving:
                continue
            truth = set.intersection(*serving)
            exact = {'legacy'}
            if all(pool.cell is not None for pool in allocator._pools):
                exact.add('required')
            with self.subTest(requests=requests, pools=allocator._pools):
                self.assertLessEqual(allocator.needed, truth)
                # Devices of no cell are counted although they may not serve.
                if len(requests) == 1 and requests[0].affinity in exact:
                    self.assertEqual(truth, allocator.needed)
            seen.add(len(allocator.needed))
        self.assertLessEqual({0, 1, 2, 3}, seen)

    def test_what_counting_rules_out_no_set_of_cells_serves(self):
        dice = random.Random(2)
        ruled_out = exact = 0
        for _ in range(1500):
            requests, allocator, serving = self.draw(dice)
            cells = set(dice.sample(self.CELLS, dice.randint(0, 4)))
            taken = set(dice.sample(self.CELLS, dice.choice((0, 0, 1, 2))))
            most = dice.randint(max(len(taken), 1), 4)
            truth = not any(
                taken <= each <= cells | taken and len(each) <= most
                for each in serving)
            answer = allocator.ruled_out(cells, most, taken)
            with self.subTest(requests=requests, pools=allocator._pools,
                              cells=cells, most=most, taken=taken):
                self.assertLessEqual(answer, truth)
                if len(requests) == 1 and requests[0].affinity == 'required':
                    self.assertEqual(truth, answer)
                    exact += answer
            ruled_out += answer
        self.assertGreater(exact, 100)
        self.assertGreater(ruled_out, exact)

    def test_requests_for_the_same_devices_add_up(self):
        wanted = [request(2, kind='a'), request(2, kind='a')]
        for free, answer in ((3, True), (4, False)):
            pools = [pool(0, free, 'x', kind='a')]
            self.assertIs(answer, devices.Allocator(
                wanted, pools, {}).ruled_out([0], 1))
        # The claim may take fewer than Placement has allocated.
        allocated = devices.Allocator(
            wanted, [pool(0, 3, 'x', kind='a')], {},
            (('x', 'x'), ('x', 'x')))
        self.assertFalse(allocated.ruled_out([0], 1))
