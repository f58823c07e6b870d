# SPDX-License-Identifier: Apache-2.0

"""The pages show how to install hpcvirt, and what exists on no index."""

import re
import unittest

from tests import shown
from tests.builders import folders
from tests.system import install

#: A requirement that pip would look for on an index.
FROM_INDEX = re.compile(r'pip install (?:-\S+ )*hpcvirt\b(?!\[)')


class InstallTest(unittest.TestCase):
    def test_pages_install_and_plan_flavors(self):
        front, guide = (list(install.commands(install.ROOT / page))
                        for page in install.PAGES)
        self.assertIn('pip install .', front)
        self.assertIn(' pip wheel ', guide[0])
        self.assertIn('/pip install dist/hpcvirt-*.whl', guide[2])
        self.assertIn('[bench]', guide[-2])
        for found in front, guide:
            self.assertTrue(found[-1].endswith('hpcvirt flavor plan /'))

    def test_page_that_plans_no_flavors_is_refused(self):
        page = folders.make(self) / 'page'
        page.write_text('Text::\n\n    $ pip install .\n')
        with self.assertRaisesRegex(ValueError, 'shows no command'):
            list(install.commands(page))

    def test_no_page_installs_from_an_index(self):
        for page in shown.PAGES:
            self.assertNotRegex(page.read_text(), FROM_INDEX, page.name)

    def test_the_wheel_of_the_clone_needs_no_hash(self):
        for name in ('nova34.txt', 'tox.txt'):
            constraints = install.ROOT / 'constraints' / name
            copy = install.without_hashes(constraints, folders.make(self))
            self.assertEqual(
                [line.removesuffix('\\').rstrip() for line in
                 constraints.read_text().splitlines() if '==' in line],
                copy.read_text().splitlines())
