# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import scheduler_keys


class ReadTest(unittest.TestCase):
    """The extra specs that nova-scheduler reads."""

    def test_values_are_read(self):
        specs = {'hpcvirt:numa_scope': 'socket',
                 'hpcvirt:exclusive_cells': 'Yes',
                 'hpcvirt:device_set': 'gpu4'}
        self.assertIs(shape.NUMAScope.SOCKET, scheduler_keys.numa_scope(specs))
        self.assertIs(True, scheduler_keys.exclusive_cells(specs))
        self.assertEqual('gpu4', scheduler_keys.device_set(specs))

    def test_other_flavors_have_the_defaults(self):
        self.assertIs(shape.NUMAScope.HOST, scheduler_keys.numa_scope({}))
        self.assertIs(False, scheduler_keys.exclusive_cells({}))
        self.assertIsNone(scheduler_keys.device_set({}))

    def test_a_wrong_value_names_its_key(self):
        for read, key, value in (
                (scheduler_keys.numa_scope, 'hpcvirt:numa_scope', 'rack'),
                (scheduler_keys.exclusive_cells, 'hpcvirt:exclusive_cells',
                 'perhaps'),
                (scheduler_keys.device_set, 'hpcvirt:device_set',
                 'four GPUs')):
            with (self.subTest(key=key),
                  self.assertRaisesRegex(exception.InvalidInput, key)):
                read({key: value})
