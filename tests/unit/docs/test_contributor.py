# SPDX-License-Identifier: Apache-2.0

"""The contributor guide and the threat model say what is there."""

import configparser
import re
import unittest

from tests import pages

ROOT = pages.ROOT
GUIDE = pages.read('contributor/where-to-change', 'contributor/layout',
                   'contributor/style', 'contributor/add')
#: The packages whose docstrings are in the tables.
PACKAGES = frozenset(
    name for names in re.findall(r'^   :names: ([\w/\s]+?)\n\n', GUIDE,
                                 re.MULTILINE) for name in names.split())
#: The first cells of the rows of the tables.
ROWS = frozenset(re.findall(r'^   \* - ``([\w/]+)``$', GUIDE, re.MULTILINE))


def names(folder):
    """The packages and modules in a folder, without those for Python."""
    return {path.stem for path in folder.iterdir()
            if not path.name.startswith(('_', '.'))
            and (path.suffix == '.py' or any(path.glob('*.py')))}


def layers(section):
    """The layers of a contract, as the guide shows them."""
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg')
    lines = config[f'importlinter:contract:{section}']['layers'].split('\n')
    return ''.join(
        '    ' + ' | '.join(name for name in line.split(' | ')
                            if not name.startswith('(')) + '\n'
        for line in lines if line)


class ContributorGuideTest(unittest.TestCase):
    def test_the_layers_are_those_that_are_checked(self):
        for section in ('layers', 'bench'):
            self.assertIn(f'::\n\n{layers(section)}\n', GUIDE)

    def test_every_package_is_described(self):
        for folder, prefix in ((ROOT / 'hpcvirt', ''),
                               (ROOT / 'hpcvirt' / 'bench', 'bench/')):
            for name in names(folder):
                if (folder / name).is_dir():
                    self.assertIn(prefix + name, PACKAGES)
                else:
                    self.assertIn(f'``{name}``', GUIDE)

    def test_what_is_described_exists(self):
        for name in ROWS:
            self.assertTrue((ROOT / name).is_dir(), name)
        for name in PACKAGES:
            self.assertTrue((ROOT / 'hpcvirt' / name).is_dir(), name)

    def test_files_that_are_named_exist(self):
        named = set(re.findall(
            '``((?:hpcvirt|tests|tools|doc|etc)/[A-Za-z_./]+)``', GUIDE))
        self.assertGreater(len(named), 15)
        for name in named:
            if not re.search('NAME|SOURCE|ID', name):
                self.assertTrue((ROOT / name).exists(), name)


class ThreatModelTest(unittest.TestCase):
    def test_each_row_names_tests_that_exist(self):
        text = (ROOT / 'SECURITY.rst').read_text()
        _, *rows = text.partition('list-table::')[2].split('   * - ')[1:]
        self.assertGreater(len(rows), 10)
        for row in rows:
            named = re.findall(r'``((?:unit|functional|integration)/[^`]*)``',
                               row)
            self.assertTrue(named, row)
            for name in named:
                self.assertTrue((ROOT / 'tests' / name).exists(), name)
