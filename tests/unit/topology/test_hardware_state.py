# SPDX-License-Identifier: Apache-2.0

"""PCIe links, errors of memory and throttling, as an audit and a watcher see.

Both see the same: the audit of a host finds what its watcher scores.
"""

import pathlib
import unittest

from hpcvirt.audit import fact
from hpcvirt.audit.reading import host
from hpcvirt.health import sampler
from hpcvirt.health.signature import Quantity
from hpcvirt.topology import hardware_state
from tests.builders import audited
from tests.builders import sysfs_files

CARD = 'sys/devices/pci0000:00/0000:41:00.0'
PORT = 'sys/bus/pci/devices/0000:00:02.0'
THROTTLE = f'{audited.CPU}/cpu0/thermal_throttle'
MC = f'{audited.EDAC}/mc1'

CLASSES = {'network': '0x020000', 'gpu': '0x030200', 'accelerator': '0x120000'}


class LinkTest(unittest.TestCase):
    def read(self, card, port=(16, 16.0), kind='network', **change):
        """Read a card: (lanes, speed), and what it can have of both."""
        lanes, speed, most, fastest = card
        files = {
            'x/0000:40:01.0/class': '0x060400',
            'x/0000:40:01.0/secondary_bus_number': '65',
            'x/0000:40:01.0/max_link_width': str(port[0]),
            'x/0000:40:01.0/max_link_speed': f'{port[1]} GT/s PCIe',
            'x/0000:41:00.0/class': CLASSES.get(kind, kind),
            'x/0000:41:00.0/current_link_width': str(lanes),
            'x/0000:41:00.0/current_link_speed': f'{speed} GT/s PCIe',
            'x/0000:41:00.0/max_link_width': str(most),
            'x/0000:41:00.0/max_link_speed': f'{fastest} GT/s'}
        files = {name.replace('x', 'sys/bus/pci/devices', 1): text
                 for name, text in files.items()}
        return list(hardware_state.read_links(
            lambda name: change.get(name.rpartition('/')[2], files.get(name)),
            lambda _: sorted({each.split('/')[4] for each in files})))

    def test_a_link_is_compared_with_what_both_ends_can(self):
        for card, port, lacks in (
                ((16, 16.0, 16, 16.0), (16, 16.0), (0, 0)),
                ((8, 16.0, 16, 16.0), (16, 16.0), (0, 0.5)),
                ((16, 8.0, 16, 16.0), (16, 16.0), (0.5, 0)),
                ((4, 8.0, 16, 32.0), (16, 16.0), (0.5, 0.75)),
                # The slot has 8 lanes of the third generation.
                ((8, 8.0, 16, 16.0), (8, 8.0), (0, 0)),
                ((16, 16.0, 8, 8.0), (16, 16.0), (0, 0))):
            link, = self.read(card, port)
            self.assertEqual(lacks, link.lacks, card)

    def test_a_device_that_pauses_may_lower_its_speed(self):
        for kind in ('gpu', 'accelerator'):
            for card, lacks in (((16, 2.5, 16, 16.0), (0, 0)),
                                ((1, 2.5, 16, 16.0), (0, 0)),
                                ((16, 8.0, 16, 16.0), (0, 0)),
                                ((8, 8.0, 16, 16.0), (0, 0.5)),
                                ((8, 2.5, 16, 2.5), (0, 0.5))):
                link, = self.read(card, kind=kind)
                self.assertEqual(lacks, link.lacks, card)

    def test_what_is_not_known_is_left_out(self):
        card = (8, 16.0, 16, 16.0)
        for change in ({'class': '0x010000'}, {'class': None},
                       {'class': '0x0c0330'}, {'secondary_bus_number': None},
                       {'secondary_bus_number': '66'},
                       {'max_link_speed': 'Unknown'},
                       # A link that is down, and a virtual function.
                       {'current_link_width': '0'},
                       {'current_link_speed': 'Unknown'}):
            self.assertEqual([], self.read(card, **change), change)


class SameStateTest(unittest.TestCase):
    """An audit and a watcher look at the same host."""

    def read(self, change):
        root = pathlib.Path(sysfs_files.scratch(self), 'host')
        sysfs_files.lay_out(audited.tree() | change, root)
        values = sampler.HostSampler(root).take().values
        hardware = host.read(root).hardware
        return hardware, {
            quantity.value: {unit: value for unit, value in units.items()
                             if value}
            for quantity, units in values.items() if quantity in (
                Quantity.THROTTLED_S, Quantity.CORRECTED_ERRORS,
                Quantity.UNCORRECTED_ERRORS, Quantity.LINK_LOSS)}

    def test_both_see_what_is_wrong(self):
        hardware, values = self.read({
            f'{CARD}/current_link_width': '4',
            f'{CARD}/current_link_speed': '8.0 GT/s PCIe',
            f'{MC}/ce_count': '7', f'{MC}/ue_count': '2',
            f'{THROTTLE}/package_throttle_total_time_ms': '9500'})
        self.assertEqual(9, hardware.throttled)
        self.assertEqual([(0, 0), (7, 2)], [
            (item.corrected, item.uncorrected)
            for item in hardware.controllers])
        self.assertEqual({(8.0, 4)}, {
            link.now for link in hardware.links if any(link.lacks)})
        self.assertEqual({
            'throttled_s': {'cpu0-package': 9.5},
            'corrected_errors': {'mc1': 7}, 'uncorrected_errors': {'mc1': 2},
            'link_loss': {'0000:41:00.0': 0.875}}, values)

    def test_neither_blames_a_gpu_that_is_idle(self):
        hardware, values = self.read({
            f'{CARD}/class': '0x030200', f'{CARD}/vendor': '0x1002',
            f'{CARD}/current_link_width': '1',
            f'{CARD}/current_link_speed': '2.5 GT/s PCIe'})
        self.assertEqual({'03'}, {link.kind for link in hardware.links
                                  if link.now == (2.5, 1)})
        self.assertEqual({}, values['link_loss'])

    def test_what_is_no_number_is_not_known(self):
        hardware, values = self.read({
            f'{MC}/ce_count': 'x', f'{CARD}/current_link_width': 'x',
            **{f'{THROTTLE}/{part}_throttle_{what}': '-'
               for part in ('core', 'package')
               for what in ('count', 'total_time_ms')}})
        self.assertIsInstance(audited.values(hardware)['controllers'],
                              fact.UnknownFact)
        self.assertIsNone(hardware.throttled)
        self.assertNotIn('throttled_s', values)
        self.assertEqual({}, values['corrected_errors'])
