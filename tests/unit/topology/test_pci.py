# SPDX-License-Identifier: Apache-2.0

"""Check the wiring of devices."""

import dataclasses
import random
import time
import unittest

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import pci
from tests.builders import refusals

A, B, C = '0000:41:00.0', '0000:42:00.0', '10000:01:00.0'
DEVICES = tuple(host_model.Device(address, '10de', '2330', 0)
                for address in (A, B, C))
ROOT = wiring.Bridge('0000:00:01.0')


def check(wired: wiring.Wiring) -> wiring.Wiring:
    return pci.check_wiring('box', wired, DEVICES)


class CheckWiringTest(unittest.TestCase):
    def refused(self, pattern: str, wired: wiring.Wiring) -> None:
        said = refusals.message(self, check, wired)
        self.assertRegex(said, f'^box: wiring: .*{pattern}')
        self.assertTrue(said.isprintable())

    def test_each_device_has_an_attachment(self) -> None:
        self.assertEqual(
            tuple(map(wiring.Attachment, (A, B, C))),
            check(wiring.Wiring()).attachments)

    def test_parts_are_sorted_by_number(self) -> None:
        wired = wiring.Wiring(
            (wiring.Bridge('10000:00:01.0'), ROOT),
            (wiring.Attachment(C, '10000:00:01.0'),
             wiring.Attachment(A, ROOT.address)),
            (wiring.DeviceLink(wiring.LinkKind.NVLINK, (B, C)),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, (A, C))),
            (wiring.FabricPartition(10, (A, B)),
             wiring.FabricPartition(9, (C,))))
        found = check(wired)
        self.assertEqual([ROOT.address, '10000:00:01.0'],
                         [each.address for each in found.bridges])
        self.assertEqual([A, B, C],
                         [each.address for each in found.attachments])
        self.assertEqual([(A, C), (B, C)],
                         [each.ends for each in found.links])
        self.assertEqual([9, 10], [each.number
                                   for each in found.partitions or ()])

    def test_bridges_without_devices_are_left_out(self) -> None:
        self.assertEqual((), check(wiring.Wiring((ROOT,))).bridges)

    def test_contradictions_are_refused(self) -> None:
        attachment = wiring.Attachment(A)
        link = wiring.DeviceLink(wiring.LinkKind.XGMI, (A, B))
        for pattern, parts in {
            "'x' is not a PCI address": {'bridges': (wiring.Bridge('x'),)},
            "0000:41:00.0 is below '0000:00:02.0', which is not a": {
                'bridges': (ROOT,), 'attachments': (
                    wiring.Attachment(A, '0000:00:02.0'),)},
            "is below '.x1b.2J', which": {'attachments': (
                wiring.Attachment(A, '\x1b[2J'),)},
            f'{ROOT.address} occurs twice': {'bridges': (ROOT, ROOT)},
            f'{A} occurs twice': {'attachments': (attachment, attachment)},
            f'{A} occurs twice.*': {
                'bridges': (wiring.Bridge(A),), 'attachments': (
                    attachment,)},
            "'0000:43:00.0' is not a device": {'attachments': (
                wiring.Attachment('0000:43:00.0'),)},
            f'the xGMI of {A} and {B} occurs twice': {'links': (link, link)},
            "'x' is not a device": {'links': (
                dataclasses.replace(link, ends=(A, 'x')),)},
            'a link has 1 ends': {'links': (
                dataclasses.replace(link, ends=(A,)),)},
            'in ascending order': {'links': (
                dataclasses.replace(link, ends=(B, A)),)},
            'each once': {'links': (
                dataclasses.replace(link, ends=(A, A)),)},
            'partition 3 occurs twice': {'partitions': (
                wiring.FabricPartition(3, (A,)),
                wiring.FabricPartition(3, (B,)))},
            "'' are not the devices": {'partitions': (
                wiring.FabricPartition(3, ()),)},
            '-1 is not within 0 to': {'partitions': (
                wiring.FabricPartition(-1, (A,)),)},
            '-5 is not within 0': {'attachments': (
                wiring.Attachment(A, None, wiring.PCIeLink(2.5, -5)),)},
            '10000000000.0 is not within': {'attachments': (
                wiring.Attachment(A, nvlinks=(1e10,)),)},
            'nan is not within': {'attachments': (
                wiring.Attachment(A, nvlinks=(float('nan'),)),)},
        }.items():
            with self.subTest(pattern):
                self.refused(pattern, wiring.Wiring(**parts))

    def test_loops_and_towers_are_refused(self) -> None:
        for above in ((1, 0), (0,), (1, 2, 0), (*range(1, 40), None)):
            names = [f'0000:{number:02x}:00.0' for number in range(len(above))]
            bridges = tuple(
                wiring.Bridge(name, None if place is None else names[place])
                for name, place in zip(names, above, strict=True))
            self.refused('is below itself or below more than 32',
                         wiring.Wiring(bridges))

    def test_any_bridges_are_sound_or_refused(self) -> None:
        sound = 0
        for seed in range(500):
            dice = random.Random(seed)
            names = [f'0000:00:0{number}.0' for number in range(6)]
            wired = wiring.Wiring(
                tuple(wiring.Bridge(name, dice.choice((None, *names)))
                      for name in names[:dice.randrange(1, 7)]),
                (wiring.Attachment(A, dice.choice((None, *names))),))
            try:
                found = check(wired)
            except exception.InvalidInput:
                continue
            sound += 1
            for each in found.attachments:
                self.assertLessEqual(len(found.path(each)), 6)
        self.assertGreater(sound, 10)

    def test_many_bridges_take_no_time(self) -> None:
        begin = time.monotonic()
        names = [f'{number:08x}:00:00.0' for number in range(30_000)]
        bridges = tuple(wiring.Bridge(name, names[number - 1]
                                      if number % 30 else None)
                        for number, name in enumerate(names))
        check(wiring.Wiring(bridges))
        self.assertLess(time.monotonic() - begin, 10)


class IsListedTest(unittest.TestCase):
    def test_network_accelerators_and_nvme_are_listed(self) -> None:
        for class_code in (0x0200, 0x0207, 0x0280, 0x0c06, 0x1200, 0x0302,
                           0x0380, 0x0b40, 0x0108):
            self.assertTrue(pci.is_listed(class_code, '8086'), hex(class_code))

    def test_consoles_disks_and_bridges_are_not(self) -> None:
        for class_code in (0x0000, 0x0002, 0x0100, 0x0104, 0x0106, 0x0107,
                           0x0300, 0x0600, 0x0604, 0x0880, 0x0c03, 0x1080,
                           0x2000, 0xff00):
            self.assertFalse(pci.is_listed(class_code, '8086'),
                             hex(class_code))

    def test_display_controllers_of_gpu_vendors_are_no_consoles(self) -> None:
        for vendor_id, listed in (('10de', True), ('1002', True),
                                  ('1a03', False), ('102b', False)):
            self.assertIs(listed, pci.is_listed(0x0300, vendor_id))
            self.assertFalse(pci.is_listed(0x0604, vendor_id))


class CheckedTest(unittest.TestCase):
    DEVICE = host_model.Device('0000:41:00.0', '8086', '1572', 0, 64, 'i40e')

    def test_devices_are_sorted_by_the_numbers_of_their_addresses(
            self) -> None:
        addresses = ['10000:01:00.0', 'ffff:01:00.0', '0000:41:02.0',
                     '0000:41:00.1', '0000:41:00.0']
        devices = pci.check_devices('box', {0}, [
            dataclasses.replace(self.DEVICE, address=address)
            for address in addresses])
        self.assertEqual(addresses[::-1],
                         [device.address for device in devices])

    def test_impossible_devices_are_refused_by_name(self) -> None:
        for pattern, fields in {
            "^box: '41:00.0' is not a PCI address": {'address': '41:00.0'},
            "'0x8086' is not a PCI id": {'vendor_id': '0x8086'},
            "'157' is not a PCI id": {'product_id': '157'},
            'device 0000:41:00.0: is on cell 1, which does not exist': {
                'cell': 1},
            '65536 VFs are not within 0 to 65535': {'total_vfs': 65536},
            '-1 VFs are not': {'total_vfs': -1},
            "'a b' is not the name of a driver": {'driver': 'a b'},
        }.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                pci.check_devices('box', {0}, [
                    dataclasses.replace(self.DEVICE, **fields)])

    def test_a_device_must_not_occur_twice(self) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, 'occurs twice'):
            pci.check_devices('box', {0}, [self.DEVICE, self.DEVICE])
