# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import unittest

from hpcvirt.instance_topology import description
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from tests.builders import machines
from tests.builders import wired

CELLS = [description.InstanceCell(1, (frozenset((0, 1)),)),
         description.InstanceCell(0, (frozenset((2, 3)),))]
NIC = '0000:1a:00.0'
NVME = '0000:01:00.0'


def describe(*addresses, host=None, cells=CELLS):
    return description.describe(
        host or wired.host(), cells,
        [description.HeldDevice(address) for address in addresses])


def nested():
    """Make a host with a switch below a switch: its GPUs are a, b; c; d."""
    bridges = [wiring.Bridge('0000:00:01.0')]
    attached = []
    for up, above, ports in (
            ('0000:01:00.0', '0000:00:01.0', 3),
            ('0000:10:00.0', '0000:02:00.0', 2)):
        bridges.append(wiring.Bridge(up, above))
        bridges += [wiring.Bridge(
            f'0000:{int(up[5:7], 16) + 1:02x}:{port:02x}.0', up)
            for port in range(ports)]
    for address, above in (('a', '0000:11:00.0'), ('b', '0000:11:01.0'),
                           ('c', '0000:02:01.0'), ('d', '0000:02:02.0')):
        attached.append(wiring.Attachment(f'0000:{address * 2}:00.0', above))
    return machines.of_cells(
        machines.cell(0, (0,)),
        devices=tuple(host_model.Device(each.address, '10de', '2330', 0)
                      for each in attached),
        wired=wiring.Wiring(tuple(bridges), tuple(attached)))


class DescribeTest(unittest.TestCase):
    def test_numbers_of_the_host_are_not_in_it(self):
        made = describe(*wired.GPUS, NIC)
        self.assertNotRegex(json.dumps(made), '0000:|box|host')
        self.assertEqual([1, 1, 0, 0, 1], [
            device['cell'] for device in made['devices']])
        self.assertEqual([0, 0, 1, 1, 0], [
            device['switch'] for device in made['devices']])
        self.assertEqual([[[0, 1]], [[2, 3]]], made['cells'])
        self.assertEqual([], made['notes'])

    def test_links_are_those_among_the_devices(self):
        self.assertEqual([{'ends': [0, 1], 'kind': 'NVLink', 'count': 6}],
                         describe(*wired.GPUS[1:3])['links'])

    def test_a_switch_above_one_device_is_not_shown(self):
        made = describe(wired.GPUS[0], wired.GPUS[2])
        self.assertEqual([], made['switches'])
        self.assertEqual({None}, {each['switch'] for each in made['devices']})

    def test_ports_of_an_unknown_kind_alternate(self):
        bridges = tuple(dataclasses.replace(each, kind=None)
                        for each in wired.host().wiring.bridges)
        host = dataclasses.replace(wired.host(), wiring=dataclasses.replace(
            wired.host().wiring, bridges=bridges))
        self.assertEqual(describe(*wired.GPUS),
                         describe(*wired.GPUS, host=host))

    def test_switches_below_switches_are_kept_apart(self):
        a, b, c, d = (f'0000:{each * 2}:00.0' for each in 'abcd')
        made = describe(a, b, c, d, host=nested())
        self.assertEqual([None, 0],
                         [each['above'] for each in made['switches']])
        self.assertEqual([1, 1, 0, 0],
                         [each['switch'] for each in made['devices']])
        for held, switches in (((a, b), [0, 0]), ((a, c), [0, 0]),
                               ((a, c, d), [0, 0, 0])):
            made = describe(*held, host=nested())
            self.assertEqual(1, len(made['switches']))
            self.assertEqual(switches,
                             [each['switch'] for each in made['devices']])

    def test_the_slower_end_of_a_link_counts(self):
        made = describe(NVME)
        self.assertEqual((16.0, 4), (made['devices'][0]['speed_gts'],
                                     made['devices'][0]['lanes']))

    def test_a_device_off_the_cells_of_the_guest_has_no_cell(self):
        unknown = description.InstanceCell(None, ())
        for cells in ([CELLS[0], unknown], [unknown, unknown],
                      [CELLS[1], CELLS[1]]):
            made = describe(NVME, cells=cells)
            self.assertIsNone(made['devices'][0]['cell'])
            self.assertEqual(['1 of the devices are on no certain cell'],
                             made['notes'])

    def test_the_only_cell_of_a_guest_has_all_devices(self):
        for cells in (CELLS[:1], [description.InstanceCell(None, ())]):
            self.assertEqual(0, describe(
                NVME, cells=cells)['devices'][0]['cell'])

    def test_what_is_unknown_is_said(self):
        made = describe(*wired.GPUS, '0000:ee:00.0', host=dataclasses.replace(
            wired.host(), wiring=None))
        self.assertEqual(
            ['the topology of the host lacks 1 of the devices',
             'the wiring of the host is unknown',
             'the links between devices are unknown'], made['notes'])
        self.assertIsNone(made['links'])
        self.assertEqual(4, len(made['devices']))

    def test_a_card_with_virtual_functions_may_be_several_products(self):
        self.assertEqual([], describe(NIC)['devices'][0]['products'])
        host = wired.host()
        host = dataclasses.replace(host, devices=tuple(
            dataclasses.replace(each, vf_product_id='101e')
            if each.total_vfs else each for each in host.devices))
        self.assertEqual(['101e', '1021'], describe(
            NIC, host=host)['devices'][0]['products'])
