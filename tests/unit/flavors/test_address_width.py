# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import re
import unittest

from hpcvirt.flavors import address_width
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import warning
from hpcvirt.model import wiring
from tests.builders import hosts
from tests.builders import plans

#: An H100 NVL: 94 GiB of memory in a BAR of 128 GiB, and two small BARs.
H100 = (16, 131072, 32)
TIB = 2 ** 40 >> 20


def find_lowest_end(memory_mib, devices):
    """Try all orders of the devices, whose small BARs come first."""
    ends = []
    for order in itertools.permutations(devices):
        at = memory_mib + 2048
        for bars in order:
            for size in sorted(bars):
                at = -(-at // size) * size + size
        ends.append(at)
    return min(ends)


class EndTest(unittest.TestCase):
    def test_guests_of_a_public_report_saw_these_gpus(self):
        # blog.rackspacecloud.com, 2025-12-03: of four GPUs, guests of 40 bits
        # saw 3 with 256 GiB of memory, 2 with 512 and 1 with 768.
        for gib, seen in ((256, 3), (512, 2), (768, 1)):
            for gpus in range(1, 5):
                end = address_width.find_end_mib(gib * 1024, [H100] * gpus)
                self.assertEqual(gpus <= seen, end <= TIB, (gib, gpus))

    def test_guests_of_other_public_reports(self):
        # The numbers are those of tests/data/public-cases.csv.
        for case, gib, devices, amd, fits in (
                # Blackwell cards of 128 GiB: three fit, the fourth does not.
                ('W3', 256, [(131072, 64)] * 3, False, True),
                ('W3', 256, [(131072, 64)] * 8, False, False),
                ('W4', 1900, (), False, False),
                # Memory next to 1 TiB, and as much on AMD.
                ('W5', 985, (), False, True), ('W5', 985, (), True, False)):
            end = address_width.find_end_mib(gib * 1024, devices, amd)
            self.assertEqual(fits, end <= TIB, case)

    def test_no_order_of_devices_needs_less(self):
        dice = random.Random(11)
        for _ in range(300):
            devices = [dice.choice([H100, (65536,), (16, 32768), (512, 1024)])
                       for _ in range(dice.randint(1, 4))]
            memory_mib = dice.randrange(1, 700) * 1024
            found = address_width.find_end_mib(memory_mib, devices)
            lowest = max(find_lowest_end(memory_mib, devices),
                         memory_mib + 34 * 1024)
            self.assertLessEqual(lowest, found)
            if len(set(devices)) == 1:
                self.assertEqual(lowest, found, (memory_mib, devices))


class WarningTest(unittest.TestCase):
    def plan(self, mib, bars, kind=device_choice.DeviceKind.WHOLE, bits=None,
             **choices):
        host = hosts.build(mib=mib, gpus={0: 2, 1: 2})
        host = dataclasses.replace(host, address_bits=bits)
        host = dataclasses.replace(host, wiring=wiring.Wiring(
            attachments=tuple(wiring.Attachment(device.address, bars_mib=bars)
                              for device in host.devices)))
        return plans.plan(host, devices=(device_choice.Devices(
            kind, None, alias='gpu', vendor_id='10de', product_id='20b0'),),
            **choices)

    def find(self, found):
        return {name: item.what for item in found.warnings
                if item.code is warning.WarningCode.ADDRESS_WIDTH
                for name in item.subjects}

    def test_only_flavors_that_need_more_are_named(self):
        found = self.find(self.plan(384 * 1024, H100))
        large = [row.flavor.name
                 for row in self.plan(384 * 1024, H100).flavors
                 if sum(each.count for each in row.guest.devices) > 2]
        self.assertEqual(large, list(found))
        self.assertIn('up to 1664 GiB', found[large[-1]])
        self.assertIn('gives it 1024 GiB', found[large[0]])

    def test_a_topology_without_bars_has_the_memory_alone(self):
        self.assertEqual({}, self.find(self.plan(384 * 1024, ())))
        found = self.plan(763 * 1024, ())
        self.assertEqual(
            [row.flavor.name for row in found.flavors
             if row.flavor.ram_mib > 990 * 1024], list(self.find(found)))

    def test_a_profile_with_the_width_is_not_warned_about(self):
        mode = 'hw:maxphysaddr_mode'
        self.assertEqual({}, self.find(self.plan(
            384 * 1024, H100, extra_specs={mode: 'passthrough'})))
        bits = {mode: 'emulate', 'hw:maxphysaddr_bits': '42'}
        self.assertEqual({}, self.find(self.plan(
            384 * 1024, H100, extra_specs=bits)))
        bits['hw:maxphysaddr_bits'] = '39'
        self.assertIn('hw:maxphysaddr_bits=39 it has 512 GiB', ''.join(
            self.find(self.plan(384 * 1024, H100,
                                extra_specs=bits)).values()))

    def test_the_addresses_of_a_host_are_not_exceeded(self):
        mode = {'hw:maxphysaddr_mode': 'passthrough'}
        for bits, more in ((None, set()), (41, set()), (40, {1664, 1280})):
            found = self.find(self.plan(384 * 1024, H100, bits=bits,
                                        extra_specs=mode))
            ends = set()
            for what in found.values():
                end = re.search(r'up to ([0-9]+) GiB, and those of host end '
                                r'at 1024 GiB \(40 bits\); give it less', what)
                ends.add(int(end[1]))
            self.assertEqual(more, ends)

    def test_arm_has_other_rules(self):
        arm = dataclasses.replace(hosts.build(mib=763 * 1024),
                                  processor='Arm, implementer 0x41, part 0xd4')
        for host in (hosts.build(mib=763 * 1024, small_kib=64), arm):
            self.assertEqual({}, self.find(plans.plan(host)))
            mode = {'hw:maxphysaddr_mode': 'passthrough'}
            for what in self.find(plans.plan(
                    host, extra_specs=mode)).values():
                self.assertIn('it sets no width on Arm', what)

    def test_what_libvirt_refuses_is_said_of_each_flavor(self):
        mode, bits = 'hw:maxphysaddr_mode', 'hw:maxphysaddr_bits'
        for specs in ({mode: 'emulate'}, {mode: 'passthrough', bits: '46'}):
            found = self.plan(384 * 1024, H100, extra_specs=specs)
            self.assertEqual([row.flavor.name for row in found.flavors],
                             list(self.find(found)))
            self.assertIn('libvirt refuses each guest: the mode',
                          next(iter(self.find(found).values())))

    def test_the_warning_has_the_width_that_is_enough(self):
        found = self.find(self.plan(384 * 1024, H100))
        self.assertIn('emulate and hw:maxphysaddr_bits: 41',
                      list(found.values())[-1])
        few = {'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': '39'}
        for what in self.find(self.plan(384 * 1024, H100,
                                        extra_specs=few)).values():
            self.assertRegex(what, 'in extra_specs of the profile, '
                             'set hw:maxphysaddr_bits: 4[01]$')

    def test_memory_of_amd_is_behind_its_hole(self):
        for processor, flagged in (('AMD EPYC 9654', True), ('Intel', False)):
            host = dataclasses.replace(
                hosts.build(mib=495 * 1024), processor=processor)
            found = self.find(plans.plan(host))
            largest = max(row.flavor.ram_mib
                          for row in plans.plan(host).flavors)
            self.assertTrue(979 * 1024 <= largest <= 990 * 1024, largest)
            self.assertEqual(flagged, bool(found), processor)
