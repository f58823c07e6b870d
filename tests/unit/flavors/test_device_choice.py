# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import profile

GPU = {'kind': 'whole', 'alias': 'gpu', 'vendor_id': '10de',
       'product_id': '20b0'}
SETS = {**GPU, 'sets': 'link', 'sizes': [4, 2]}
NIC = {'kind': 'vf', 'near': 'same switch', 'vendor_id': '15b3',
       'product_id': '101e', 'alias': 'ib'}
ONE, TWO, THREE = (f'0000:{number:02x}:00.0' for number in (1, 2, 3))

OR_LISTS = ('devices[0].sets: must be one of link, partition, switch, or a '
            'list of lists of different addresses')
OVERLAP = ('devices.sets: lists of one length must not overlap, because a '
           'device has one place in the sets of a size, but '
           f'{TWO} is in two lists of 2')
PORTS = ('devices[1].ports: must be alias in sets: Placement, which chooses '
         'the set, does not know devices with a physical_network')


def build(*entries):
    return profile.build({'devices': list(entries)}, 'p.yaml').devices


class SetsTest(unittest.TestCase):
    def test_entries_become_what_the_program_uses(self):
        first, second = build(SETS, {**NIC, 'per_instance': 'share'})
        self.assertEqual(
            (device_choice.SetRule.LINK, (2, 4), device_choice.Nearness.SWITCH,
             None), (first.sets, first.sizes, second.near,
                     second.per_instance))
        self.assertTrue(first.allows(2))
        self.assertFalse(first.allows(1))

    def test_lists_have_their_sizes(self):
        (found,) = build({**GPU, 'sets': [[TWO, ONE], [THREE]]})
        self.assertEqual((((ONE, TWO), (THREE,)), (1, 2)),
                         (found.sets, found.sizes))

    def test_what_contradicts_itself_is_refused_in_one_line(self):
        for message, *entries in (
                ('devices.sizes: must be different numbers up to 16',
                 {**GPU, 'sets': 'link'}),
                ('devices.sizes: must be different',
                 {**SETS, 'sizes': [2, 2]}),
                ('devices.sizes[0]: must be a whole number from 1 to 16',
                 {**SETS, 'sizes': [17]}),
                (OR_LISTS,
                 {**GPU, 'sets': 'nvlink'}),
                ('devices[0].sets: must be one of', {**GPU, 'sets': []}),
                ('devices[0].sets: must be one of',
                 {**GPU, 'sets': [[ONE, ONE]]}),
                ('devices[0].sets: must be one of',
                 {**GPU, 'sets': [[[ONE]]]}),
                ('devices.sizes: is the length of each list in sets',
                 {**GPU, 'sets': [[ONE]], 'sizes': [1]}),
                (OVERLAP,
                 {**GPU, 'sets': [[ONE, TWO], [TWO, THREE]]}),
                ('devices.sizes: needs sets', {**GPU, 'sizes': [2]}),
                ('devices.per_instance: is not for the first entry of sets',
                 {**SETS, 'per_instance': 1}),
                ('devices.near: is not for the first entry of sets',
                 {**SETS, 'near': 'any'}),
                ('devices.alias: must have at most 29 letters',
                 {**SETS, 'alias': 'g' * 30}),
                ('devices.alias: must have at most', {**SETS, 'alias': 'g.1'}),
                ('devices.sets: is not a key of devices of the kind vf',
                 {**NIC, 'sets': 'link'}),
                ('devices[1].near: is required (same switch, same cell, any)',
                 SETS, {**NIC, 'near': None}),
                ('devices[1].affinity: is that of the first entry',
                 SETS, {**NIC, 'affinity': 'required'}),
                ('devices[1].sizes: is that of the first entry', SETS,
                 {**GPU, 'alias': 'b', 'product_id': '20b1', 'sizes': [1],
                  'near': 'any'}),
                ('devices[1].alias: has the alias or the product of another',
                 SETS, {**GPU, 'alias': 'other', 'near': 'any'}),
                ('devices[1].kind: vGPUs cannot be part of a set', SETS, {
                    'kind': 'vgpu', 'vendor_id': '10de', 'product_id': '20b5',
                    'mdev_type': 'a', 'vgpus_per_device': 4}),
                (PORTS, SETS,
                 {**NIC, 'ports': 'neutron', 'physical_network': 'ib'})):
            with self.subTest(message), self.assertRaises(
                    exception.InvalidInput) as raised:
                build(*entries)
            text = str(raised.exception)
            self.assertIn(message.replace('devices.sizes[', 'devices[0].sizes['
                                          ), text)
            self.assertNotIn('\n', text)
