# SPDX-License-Identifier: Apache-2.0

"""Instances that are started for a measurement."""

import os
import pathlib

import testtools

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.results import store
from tests.builders import folders
from tests.builders import places


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
        return list(pathlib.Path(self.data).glob('*.key'))

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


class Display:
    """A display that remembers what it was told."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *words: self.calls.append((name, *words))


class TimeLimitTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.shown, self.looks = Display(), []

    def limit(self, *deadline):
        return measurement.TimeLimit(self.shown, *deadline)

    def test_the_display_is_told_everything(self):
        limit = self.limit()
        entry = store.Entry('r1', 'plan', 'now', None)
        limit.opened(entry, True)
        limit.sample_started('run', 'due', 1, 2)
        limit.tick(5.0)
        self.assertEqual([('opened', entry, True),
                          ('sample_started', 'run', 'due', 1, 2),
                          ('tick', 5.0)], self.shown.calls)
        self.assertEqual('r1', limit.result)

    def test_nothing_goes_on_after_the_deadline(self):
        limit = self.limit(0.0, lambda: self.looks.append('look'))
        self.assertRaises(measurement.TimeUp, limit.tick, 5.0)
        self.assertRaises(measurement.TimeUp, limit.sample_started, 'run',
                          'due', 1, 2)
        self.assertEqual(([], []), (self.shown.calls, self.looks))

    def test_the_host_is_looked_at_while_a_sample_runs(self):
        limit = self.limit(float('inf'), lambda: self.looks.append('look'))
        limit.tick(5.0)
        self.assertEqual(['look'], self.looks)


class LetLogInTest(testtools.TestCase):
    def test_an_instance_gets_the_key_and_trusts_the_others(self):
        place = places.Machine('a')
        measurement.let_log_in(place, 'secret')
        (key, text), (config, options) = place.commands
        self.assertEqual(('.ssh/hpcvirt', b'secret'), (key[-1], text))
        self.assertEqual('.ssh/config', config[-1])
        self.assertIn(b'IdentityFile ~/.ssh/hpcvirt\n', options)
        # Nobody else may read the key.
        self.assertIn('umask 077', key[2])

    def test_a_key_that_cannot_be_written_is_an_error(self):
        place = places.Machine('a', status=1, stderr=b'disk full')
        self.assertRaisesRegex(exception.Unreachable, 'a: disk full',
                               measurement.let_log_in, place, 'secret')
