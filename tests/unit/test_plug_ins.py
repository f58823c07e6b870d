# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt import plug_ins
from tests.builders import packages
from tests.builders import refusals

GROUP = 'hpcvirt.test'


class TestPlugIns(testtools.TestCase):
    def test_what_packages_add_is_found_by_its_name(self):
        packages.install(self, 'THING = 3\n',
                         f'[{GROUP}]\nb = site_hpc:THING\na = site_hpc\n')
        self.assertEqual(('a', 'b'), plug_ins.names(GROUP))
        self.assertEqual(3, plug_ins.find(GROUP, 'b'))
        self.assertEqual(3, plug_ins.find(GROUP, 'a').THING)

    def test_nobody_has_to_add_anything(self):
        self.assertEqual((), plug_ins.names(GROUP))
        self.assertIsNone(plug_ins.find(GROUP, 'a'))

    def test_a_package_that_fails_is_refused_with_the_reason(self):
        packages.install(self, 'raise RuntimeError("no licence")\n',
                         f'[{GROUP}]\na = site_hpc\nb = site_hpc:NONE\n')
        self.assertIn(
            'entry point a of hpcvirt.test: cannot be loaded (RuntimeError: '
            'no licence)', refusals.message(self, plug_ins.find, GROUP, 'a'))

    def test_two_packages_with_one_name_are_refused(self):
        packages.install(self, 'X = 1\n', f'[{GROUP}]\na = one_hpc:X\n',
                         'one_hpc')
        packages.install(self, 'X = 2\n', f'[{GROUP}]\na = two_hpc:X\n',
                         'two_hpc')
        self.assertIn('declared several times: one_hpc:X, two_hpc:X',
                      refusals.message(self, plug_ins.find, GROUP, 'a'))
