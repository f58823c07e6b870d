# SPDX-License-Identifier: Apache-2.0

"""Instances that are started for a measurement, with a key of ssh-keygen."""

import os
import pathlib
import subprocess

import testtools

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from tests.builders import folders


class Instances:
    """Instances that are only counted."""

    def __init__(self):
        self.started = self.cleared = 0

    def start(self, public_key):
        assert public_key.startswith('ecdsa-sha2-')
        self.started += 1
        return ['a', 'b']

    def clear(self):
        self.cleared += 1


class StartTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.data = str(folders.make(self))
        self.key_file = os.path.join(self.data, 's4-2x1.key')
        self.instances, self.complaints = Instances(), []

    def measure(self, error=None):
        with measurement.start(self.instances.start, self.instances.clear,
                               self.key_file, self.complaints.append) as ids:
            self.assertEqual(['a', 'b'], ids)
            self.assertEqual(1, len(self.keys()))
            if error is not None:
                raise error

    def keys(self):
        return sorted(pathlib.Path(self.data).iterdir())

    def test_the_instances_are_started_and_removed(self):
        self.measure()
        # Once before the first key, and at the end.
        self.assertEqual((1, 2), (self.instances.started,
                                  self.instances.cleared))
        self.assertEqual([], self.keys())

    def test_they_are_removed_whatever_ends_the_measurement(self):
        for error in (exception.Unreachable('gone'), KeyboardInterrupt()):
            before = self.instances.cleared
            self.assertRaises(type(error), self.measure, error)
            self.assertEqual(before + 2, self.instances.cleared)
            self.assertEqual([], self.keys())

    def test_a_key_that_is_left_finds_the_instances_again(self):
        measurement.read_public_key(self.key_file, lambda: None)
        self.measure()
        self.assertEqual(1, self.instances.cleared)

    def test_what_cannot_be_removed_is_said_and_the_key_stays(self):
        def fail():
            raise exception.Unreachable('no Nova')
        measurement.read_public_key(self.key_file, lambda: None)
        self.instances.clear = fail
        self.measure()
        self.assertIn('no Nova', self.complaints[0])
        self.assertEqual(1, len(self.keys()))

    def test_the_key_is_the_one_in_the_file(self):
        first = measurement.read_public_key(self.key_file, lambda: None)
        again = measurement.read_public_key(self.key_file, self.fail)
        self.assertEqual(first, again)
        self.assertEqual(2, len(first.split(' ')))
        self.assertEqual(0o600, os.stat(self.key_file).st_mode & 0o777)
        printed = subprocess.run(
            ['ssh-keygen', '-y', '-f', self.key_file], check=True,
            capture_output=True, text=True).stdout
        self.assertEqual(first, printed.strip())

    def test_a_file_that_is_no_key_is_one_line(self):
        path = pathlib.Path(self.key_file)
        path.write_text('no key')
        path.chmod(0o600)
        for name, reason in ((self.key_file, 'Load key'),
                             (f'{self.data}/no/such', 'No such file')):
            error = self.assertRaises(
                exception.Unreachable, measurement.read_public_key, name,
                lambda: None)
            self.assertIn(reason, str(error))
            self.assertNotIn('\n', str(error))
