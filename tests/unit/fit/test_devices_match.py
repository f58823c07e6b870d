# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import devices

VF = {'vendor_id': '15b3', 'dev_type': 'type-VF'}


class AcceptsTest(unittest.TestCase):
    """The functional tests compare the rules with Nova's."""

    def test_a_pool_has_all_tags_of_an_alternative(self):
        pool = {**VF, 'physical_network': 'Blue'}
        for expected, specs in (
                (True, [{'physical_network': 'blue'}]),
                (True, [{'vendor_id': '8086'}, {'vendor_id': '15b3'}]),
                (True, [{}]),
                (False, [{'physical_network': 'blue', 'vendor_id': '8086'}]),
                (False, [{'product_id': '101e'}]),
                (False, [])):
            self.assertEqual(expected, devices.accepts_pool(specs, pool)[0])

    def test_some_kinds_are_only_for_those_who_ask_for_them(self):
        for tags in ({'dev_type': 'type-PF'}, {'dev_type': 'vdpa'},
                     {'remote_managed': 'true'}):
            self.assertEqual((True, False), devices.accepts_pool([{}], tags))
            wanted = {tag: value.lower() for tag, value in tags.items()}
            self.assertEqual((True, True),
                             devices.accepts_pool([wanted], tags))

    def test_whether_a_device_can_migrate_is_asked_for(self):
        for wanted in ('true', 'false'):
            spec = {'live_migratable': wanted}
            self.assertTrue(devices.accepts_pool([spec], spec)[1])
            self.assertFalse(devices.accepts_pool([spec], VF)[1])
        self.assertTrue(devices.accepts_pool([{}], VF)[1])
