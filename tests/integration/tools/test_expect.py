# SPDX-License-Identifier: Apache-2.0


"""The Nova that is tested is the one that an environment is named for."""

import configparser
import os
import pathlib
import re
import subprocess
import sys
import unittest

from tests.builders import folders

ROOT = pathlib.Path(__file__).parents[3]


class ExpectTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = folders.make(self)

    def install(self, place: str, version: str | None,
                package: bool = True) -> str:
        folder = self.folder / place
        (folder / 'nowa').mkdir(parents=True)
        if package:
            (folder / 'nowa' / '__init__.py').touch()
        if version is not None:
            information = folder / f'nowa-{version}.dist-info'
            information.mkdir()
            (information / 'METADATA').write_text(
                f'Metadata-Version: 2.1\nName: nowa\nVersion: {version}\n')
        return str(folder)

    def expect(self, *path: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, ROOT / 'tools/expect.py', 'nowa', '34'],
            capture_output=True, text=True, check=False,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(path)})
        return done.returncode, done.stdout

    def test_the_expected_version_passes_and_is_printed(self) -> None:
        place = self.install('site', '34.0.1')
        self.assertEqual(
            (0, f'nowa 34.0.1, imported from {place}/nowa\n'),
            self.expect(place))

    def test_another_version_fails(self) -> None:
        for version in ('33.0.2', '3.4', '340.0', '35.0.0'):
            status, out = self.expect(self.install(version, version))
            self.assertEqual(1, status)
            self.assertIn('must have nowa 34', out)

    def test_a_distribution_that_is_missing_or_there_twice_fails(self) -> None:
        self.assertIn('installed 0 times', self.expect()[1])
        status, out = self.expect(self.install('a', '34.0.0'),
                                  self.install('b', '33.0.0'))
        self.assertEqual(1, status)
        self.assertIn('installed 2 times', out)

    def test_a_package_that_hides_the_installed_one_fails(self) -> None:
        site = self.install('site', '34.0.0')
        hidden = self.install('clone', None)
        status, out = self.expect(hidden, site)
        self.assertEqual(1, status)
        self.assertIn(f'imported from elsewhere than {site}', out)

    def test_metadata_without_a_package_fail(self) -> None:
        self.assertEqual(1, self.expect(
            self.install('site', '34.0.0', package=False))[0])


class LockstepTest(unittest.TestCase):
    def test_each_file_of_constraints_has_the_nova_of_its_name(self) -> None:
        files = sorted(ROOT.glob('constraints/nova*.txt'))
        self.assertEqual(['nova32', 'nova33', 'nova34'],
                         [path.stem for path in files])
        for path in files:
            with self.subTest(path.name):
                pins = re.findall('^nova==([0-9]+)[.]', path.read_text(),
                                  re.MULTILINE)
                self.assertEqual([path.stem.removeprefix('nova')], pins)

    def test_each_pin_has_the_hashes_of_its_files(self) -> None:
        form = re.compile(r'[\w.-]+==\S+ (; .+ )?'
                          r'( *--hash=sha256:[0-9a-f]{64})+')
        for path in sorted(ROOT.glob('constraints/*.txt')):
            pins = path.read_text().replace(' \\\n', ' ').splitlines()
            self.assertGreater(len(pins), 1)
            for pin in pins:
                self.assertTrue(form.fullmatch(pin), f'{path}: {pin[:80]}')

    def test_tox_has_one_version(self) -> None:
        versions = re.findall(r'^tox==(\S+)', ''.join(
            (ROOT / 'constraints' / name).read_text()
            for name in ('tox.txt', 'nova34.txt')), re.MULTILINE)
        self.assertEqual(2, len(versions))
        self.assertEqual(1, len(set(versions)))

    def test_environments_with_nova_check_which_they_have(self) -> None:
        tox = configparser.ConfigParser(interpolation=None)
        tox.read(ROOT / 'tox.ini')
        name = ('testenv:{functional,periodic}{,-nova32,-nova33},'
                'functional-{py312,py313,py314}')
        commands = tox[name]['commands'].split('\n')
        dependencies = tox[name]['deps']
        self.assertIn('!nova32-!nova33: python tools/expect.py nova 34',
                      commands)
        for release in ('32', '33'):
            self.assertIn(f'nova{release}: -cconstraints/nova{release}.txt',
                          dependencies)
            self.assertIn(f'nova{release}: python tools/expect.py nova '
                          f'{release}', commands)
