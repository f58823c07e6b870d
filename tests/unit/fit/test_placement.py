# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shapes
from tests.builders import tiny
from tests.builders import used_hosts

EMPTY = used_hosts.state(supplies.Supply((tiny.host_cell(),)))


def guest(*devices, **fields):
    """A guest of two PCPUs and 64 MiB."""
    cells = (shapes.GuestCell(2, 0, 64, 2048),)
    compiled = used_hosts.guest(shapes.Shape(
        cells, shapes.CPUPolicy.DEDICATED, devices=devices))
    return dataclasses.replace(compiled, **fields)


class CheckTest(unittest.TestCase):
    def check(self, wanted, **fields):
        found = placement.check(wanted, dataclasses.replace(EMPTY, **fields))
        return found and (found.code, found.message)

    def test_totals(self):
        self.assertIsNone(self.check(guest()))
        self.assertEqual(
            (reasons.Code.RESOURCES, 'the host has 1 PCPU free, 2 needed'),
            self.check(guest(), free=guests.Resources(1, 9, 99, 9)))
        most = len(EMPTY.supply.cells[0].dedicated)
        self.assertEqual(
            (reasons.Code.RESOURCES, (
                f'the host has {most} PCPU in all, {most + 1} '
                'needed')),
            self.check(guest(sums=guests.Resources(most + 1, 0, 64))))
        for free in (0, -3):
            self.assertEqual(
                (reasons.Code.RESOURCES, 'the host has 0 PCPU free, 2 needed'),
                self.check(guest(), free=guests.Resources(free, 9, 99, 9)))

    def test_traits(self):
        wanted = guest(required=frozenset({'A'}), forbidden=frozenset({'B'}))
        self.assertIsNone(self.check(wanted))
        self.assertIsNone(self.check(wanted, traits=frozenset({'A', 'C'})))
        self.assertEqual(
            (reasons.Code.TRAIT, 'the host lacks the trait A'),
            self.check(wanted, traits=frozenset()))
        self.assertEqual(
            (reasons.Code.FORBIDDEN_TRAIT,
             'the host has the trait B, which is forbidden'),
            self.check(wanted, traits=frozenset({'A', 'B'})))
        wanted = guest(required=frozenset('CAB'), forbidden=frozenset('YXZ'))
        self.assertEqual('the host lacks the trait B',
                         self.check(wanted, traits=frozenset('A'))[1])
        self.assertEqual('the host has the trait Y, which is forbidden',
                         self.check(wanted, traits=frozenset('ABCZY'))[1])

    def test_a_thread_policy_needs_or_forbids_the_trait_of_smt(self):
        trait = frozenset({placement.SMT_TRAIT})
        lacks = reasons.Code.TRAIT, f'the host lacks the trait {min(trait)}'
        has = (reasons.Code.FORBIDDEN_TRAIT,
               f'the host has the trait {min(trait)}, which is forbidden')
        for policy, without, with_smt in (
                (None, None, None), ('prefer', None, None),
                ('require', lacks, None), ('isolate', None, has)):
            wanted = guest()
            wanted = dataclasses.replace(wanted, shape=dataclasses.replace(
                wanted.shape, thread_policy=policy and shapes.ThreadPolicy(
                    policy)))
            self.assertIsNone(self.check(wanted))
            for fields in ({'has_smt': False}, {'traits': frozenset()}):
                self.assertEqual(without, self.check(wanted, **fields))
            # A class names traits beside those of Nova.
            for fields in ({'has_smt': True}, {'traits': trait},
                           {'has_smt': True, 'traits': frozenset()}):
                self.assertEqual(with_smt, self.check(wanted, **fields))
                self.assertEqual(with_smt is None, placement.count(
                    wanted, dataclasses.replace(EMPTY, **fields)) > 0)

    def test_a_topology_knows_the_trait_of_smt(self):
        wanted = guest(required=frozenset({placement.SMT_TRAIT}))
        self.assertIsNone(self.check(wanted, has_smt=True,
                                     traits=frozenset({'A'})))

    def test_all_traits_of_an_isolating_aggregate_must_be_required(self):
        wanted = guest(required=frozenset({'A'}))
        self.assertIsNone(self.check(wanted, kept_for=frozenset({'A'})))
        self.assertEqual(
            (reasons.Code.AGGREGATE,
             'the host is kept for flavors that require the trait B'),
            self.check(wanted, kept_for=frozenset({'A', 'C', 'B'})))

    def test_a_host_has_the_width_of_addresses_that_is_asked_for(self):
        for needed, found in ((None, 39), (46, None), (46, 46), (46, 52)):
            self.assertIsNone(self.check(
                guest(address_bits=needed), address_bits=found))
        self.assertEqual(
            (reasons.Code.ADDRESS_BITS,
             ('the host has addresses of 46 bits, and hw:maxphysaddr_bits '
              'asks for 52')),
            self.check(guest(address_bits=52), address_bits=46))

    def test_closed_hosts(self):
        self.assertIs(reasons.Code.CLOSED,
                      self.check(guest(), closed='disabled')[0])
        self.assertIs(reasons.Code.QUARANTINED, self.check(
            guest(), closed='slow', quarantined=True)[0])

    def test_resources_of_a_class_come_from_one_provider(self):
        wanted = guest(shapes.GuestDevices(None, 3, resource_class='VGPU'))
        cards = [devices.pool(None, free, resource_class='vgpu')
                 for free in (2, 2)]
        few = dataclasses.replace(EMPTY, supply=dataclasses.replace(
            EMPTY.supply, pools=tuple(cards)))
        self.assertEqual('the host has 2 VGPU free, 3 needed',
                         placement.check(wanted, few).message)
        self.assertEqual(0, placement.count(wanted, few))
        self.assertEqual('the host has 0 VGPU free, 3 needed',
                         placement.check(wanted, EMPTY).message)
        enough = dataclasses.replace(EMPTY, supply=dataclasses.replace(
            EMPTY.supply, pools=(devices.pool(None, 3, resource_class='vgpu'),
                                 )))
        self.assertIsNone(placement.check(wanted, enough))

    def test_each_request_is_compared(self):
        wanted = guest(shapes.GuestDevices('gpu', 1),
                       shapes.GuestDevices(None, 3, resource_class='VGPU'))
        self.assertEqual('the host has 0 VGPU free, 3 needed',
                         placement.check(wanted, EMPTY).message)

    def test_numbered_groups_share_the_devices_of_a_host(self):
        cards = [devices.pool(None, free, resource_class='vgpu')
                 for free in (2, 2)]
        host = dataclasses.replace(EMPTY, supply=dataclasses.replace(
            EMPTY.supply, pools=tuple(cards)))
        for name, needed, said in (
                ('VGPU', 2, None), ('VGPU', 3, None), ('VGPU', 4, None),
                ('VGPU', 5, 'the host has 4 VGPU free, 5 needed'),
                ('CUSTOM_X', 1, 'the host has 0 CUSTOM_X free, 1 needed')):
            wanted = guest(grouped=((name, needed),))
            misfit = placement.check(wanted, host)
            self.assertEqual(said, misfit and misfit.message)
            self.assertEqual(0 if said else 4 // needed,
                             placement.count(wanted, host))


class CountTest(unittest.TestCase):
    def test_the_scarcest_total_counts(self):
        for free, expected in (
                ((7, 0, 640, 0), 3), ((99, 0, 640, 0), 10),
                ((1, 0, 640, 0), 0)):
            self.assertEqual(expected, placement.count(
                guest(), dataclasses.replace(
                    EMPTY, free=guests.Resources(*free))))

    def test_a_host_takes_no_guest_that_is_larger(self):
        most = len(EMPTY.supply.cells[0].dedicated)
        for pcpus, expected in ((most, True), (most + 1, False)):
            wanted = guest(sums=guests.Resources(pcpus, 0, 64))
            self.assertEqual(expected, placement.count(wanted, EMPTY) > 0)

    def test_a_closed_host_takes_none(self):
        self.assertEqual(0, placement.count(guest(), dataclasses.replace(
            EMPTY, closed='disabled')))

    def test_requests_for_equal_devices_share_them(self):
        wanted = guest(shapes.GuestDevices('gpu', 1),
                       shapes.GuestDevices('gpu', 2))
        host = dataclasses.replace(EMPTY, supply=dataclasses.replace(
            EMPTY.supply, pools=(devices.pool(0, 4, 'gpu'),
                                 devices.pool(1, 3, 'gpu'))))
        self.assertEqual(2, placement.count(wanted, host))

    def test_each_guest_needs_a_device_of_its_own(self):
        host = dataclasses.replace(EMPTY, supply=dataclasses.replace(
            EMPTY.supply, pools=(devices.pool(0, 3, 'gpu'),
                                 devices.pool(1, 1, 'disk'))))
        nothing = shapes.GuestDevices('gpu', 0)
        for expected, wanted in (
                (3, guest(shapes.GuestDevices('gpu', 1))),
                (1, guest(nothing, shapes.GuestDevices('disk', 1)))):
            self.assertEqual(expected, placement.count(wanted, host))
