# SPDX-License-Identifier: Apache-2.0

"""The patches of contrib/nova, applied to a copy of the installed Nova."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import nova
import nova.conf
from nova.pci import request

from tests.functional import patch_probes

ROOT = pathlib.Path(__file__).parents[2]
PATCHES = sorted((ROOT / 'contrib/nova').glob('*.patch'))
IN_README = (ROOT / 'contrib/nova/README.rst').read_text().split('``')
INSTALLED = pathlib.Path(nova.__file__).parent
#: Its package chooses Nova's threads. The folder where it runs has a Nova too.
PROBES = ('-P', '-m', 'tests.functional.patch_probes')
#: tests/system/emulated_host/wiring.py boots a guest from it.
GUEST = ROOT / 'tests/data/guests/expander-buses.xml'
NAMES = ('cell_ids', 'move_policy', 'pci_copies', 'topologies_read',
         'topologies_kept', 'moves_in_placement', 'fewer_devices',
         'dependents', 'device_cells')


def patched_files(patch):
    """The files of Nova that a patch changes."""
    return [line.removeprefix('+++ b/nova/').rstrip()
            for line in patch.read_text().splitlines()
            if line.startswith('+++ b/nova/')]


class PatchesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.patched = pathlib.Path(directory.name)
        make_patched(cls.patched)

    def see(self, probe):
        """What a probe sees of the installed Nova and of the patched one."""
        return [seen[probe] for seen in self.run_probes()]

    @classmethod
    @functools.cache
    def run_probes(cls):
        """Run all probes, because importing Nova takes longest.

        The installed Nova is in this process already.
        """
        nova.conf.CONF([], project='nova', default_config_files=[])
        # Other tests have other aliases.
        request.get_alias_from_config.cache_clear()
        try:
            installed = {name: getattr(patch_probes, name)()
                         for name in NAMES}
        finally:
            nova.conf.CONF.reset()
            request.get_alias_from_config.cache_clear()
        answer = json.loads(cls.run_python(cls.patched, *PROBES, *NAMES))
        if answer['nova'] != str(cls.patched / 'nova/__init__.py'):
            raise AssertionError(f'{answer["nova"]} is not the patched one')
        return json.loads(json.dumps(installed)), answer['seen']

    @classmethod
    def run_python(cls, path, *arguments):
        run = subprocess.run(
            (sys.executable, '-W', 'ignore', *arguments), text=True,
            capture_output=True, cwd=cls.patched, check=False,
            env={**os.environ, 'PYTHONPATH': f'{path}{os.pathsep}{ROOT}'})
        if run.returncode:
            raise AssertionError(run.stderr)
        return run.stdout

    def test_each_patch_has_a_message_for_novas_reviewers(self):
        self.assertEqual(9, len(PATCHES))
        for number, patch in enumerate(PATCHES, 1):
            header = patch.read_text().partition('\n---\n')[0].splitlines()
            with self.subTest(patch.name):
                subject = header[3].removeprefix('Subject: ')
                self.assertTrue(subject.startswith(f'[PATCH {number}/9] '))
                self.assertLessEqual(len(subject), 50 + len('[PATCH 1/9] '))
                self.assertLessEqual(max(map(len, header[4:])), 72)
                self.assertTrue(header[-1].startswith('Signed-off-by: '))
                for part in ('Steps: ', 'Expected: ', 'Actual: ',
                             'Releases: 2025.2 '):
                    self.assertTrue(any(line.startswith(part)
                                        for line in header), part)
                self.assertIn(patch.name, IN_README)

    def test_periodic_a_rescheduled_guest_is_never_left_unpinned(self):
        # Two of its seven dedicated vCPUs are pinned; it does not fit at all.
        self.assertEqual([2, None], self.see('cell_ids'))

    def test_a_move_keeps_the_affinity_policy(self):
        refused = {'': False, 'legacy': False, 'required': False}
        self.assertEqual(
            [{**refused, 'preferred': False, 'socket': False},
             {**refused, 'preferred': True, 'socket': True}],
            self.see('move_policy'))

    def test_a_move_takes_the_device_that_placement_has_allocated(self):
        self.assertEqual([[0], [1]], self.see('moves_in_placement'))

    def test_no_guest_gets_fewer_devices_than_it_requests(self):
        policies = ('required', 'legacy', 'preferred', 'socket')
        self.assertEqual([dict.fromkeys(policies, 1),
                          dict.fromkeys(policies)], self.see('fewer_devices'))

    def test_a_card_is_not_taken_whole_and_in_part(self):
        # Two of the three devices of the card are lost, or one.
        self.assertEqual([[[True, 1], [True, 2]], [[False, 3], [False, 3]]],
                         self.see('dependents'))

    def test_devices_are_on_the_expander_bus_of_their_cell(self):
        installed, patched = self.see('device_cells')
        self.assertNotIn('pcie-expander-bus', installed)
        self.assertEqual(GUEST.read_text(), patched)

    def test_devices_are_checked_without_a_copy_of_the_topology(self):
        installed, patched = self.see('pci_copies')
        self.assertEqual(16, installed.pop('copies'))
        self.assertEqual(0, patched.pop('copies'))
        self.assertTrue(patched['unchanged'])
        self.assertEqual(installed, patched)

    def test_topologies_are_read_when_a_filter_asks(self):
        installed, patched = self.see('topologies_read')
        self.assertEqual([(10, 10), (10, 10)], reads(installed))
        self.assertEqual([(0, 10), (0, 10)], reads(patched))
        self.assertEqual(['host0', 'host1', 'host4', 'host5', 'host8',
                          'host9'], patched['dedicated']['passed'])
        for kind in ('shared', 'dedicated'):
            self.assertEqual(installed[kind]['passed'],
                             patched[kind]['passed'])

    def test_topologies_are_read_when_they_change(self):
        installed, patched = self.see('topologies_kept')
        self.assertEqual([10, 10, 10, 10], installed['counts'])
        self.assertEqual([10, 0, 1, 0], patched['counts'])
        self.assertEqual(installed['passed'], patched['passed'])

    def test_periodic_novas_own_tests_pass(self):
        self.run_python(
            self.patched, '-m', 'testtools.run',
            'nova.tests.unit.objects.test_instance_numa',
            'nova.tests.unit.scheduler.test_host_manager')


def reads(seen):
    """Topologies deserialized before and after the filter."""
    return [(seen[kind]['before'], seen[kind]['after'])
            for kind in ('shared', 'dedicated')]


def make_patched(directory, patches=PATCHES):
    """Make a copy of the installed Nova with some patches."""
    for patch in patches:
        for path in patched_files(patch):
            copy_file(path, directory / 'nova')
    for patch in patches:
        # Fails unless every hunk fits; none may be fuzzy.
        subprocess.run(
            ('git', 'apply', '--whitespace=error-all', patch),
            cwd=directory, check=True,
            env={**os.environ, 'GIT_CEILING_DIRECTORIES': str(directory)})


def copy_file(path, patched):
    """Copy a file of Nova; link everything that is beside it."""
    source, target = INSTALLED, patched
    for part in pathlib.PurePath(path).parts:
        target.mkdir(exist_ok=True)
        for each in source.iterdir():
            if not (target / each.name).exists():
                (target / each.name).symlink_to(each)
        source, target = source / part, target / part
        if target.is_symlink():
            target.unlink()
    if not target.exists():
        shutil.copy(source, target)
