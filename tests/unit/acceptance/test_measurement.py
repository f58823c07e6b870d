# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.model import record

RESULT = record.Result(())


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


class Store:
    def result(self, _):
        return RESULT


class Bench(measurement.Measurement):
    """Measures nothing, or fails."""

    error = None

    def run(self, guests, natives, *_):
        self.measured.append((guests, natives))
        if self.error is not None:
            raise self.error
        return 'entry'


class Progress:
    def __getattr__(self, name):
        return lambda *_: None


class CaseRunTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.data = self.useFixture(fixtures.TempDir()).path
        self.instances, self.complaints = Instances(), []
        Bench.measured, Bench.error = [], None

    def measure(self):
        return measurement.CaseRun(
            's4-2x1', self.instances, Bench(None, Store()), self.data,
            lambda server_id, _: f'guest {server_id}',
            lambda: ['native', 'native'],
            self.complaints.append).measure(Progress())

    def keys(self):
        return list(pathlib.Path(self.data).glob('*.key'))

    def test_the_instances_are_measured_and_removed(self):
        self.assertIs(RESULT, self.measure())
        self.assertEqual([(['guest a', 'guest b'], ['native', 'native'])],
                         Bench.measured)
        # Once before the first key, and at the end.
        self.assertEqual((1, 2), (self.instances.started,
                                  self.instances.cleared))
        self.assertEqual([], self.keys())

    def test_they_are_removed_whatever_ends_the_measurement(self):
        for error in (exception.Unreachable('gone'), KeyboardInterrupt()):
            Bench.error = error
            before = self.instances.cleared
            self.assertRaises(type(error), self.measure)
            self.assertEqual(before + 2, self.instances.cleared)
            self.assertEqual([], self.keys())

    def test_a_key_that_is_left_finds_the_instances_again(self):
        measurement.read_public_key(os.path.join(self.data, 's4-2x1.key'),
                                    lambda: None)
        self.measure()
        self.assertEqual(1, self.instances.cleared)

    def test_what_cannot_be_removed_is_said_and_the_key_stays(self):
        def fail():
            raise exception.Unreachable('no Nova')
        measurement.read_public_key(os.path.join(self.data, 's4-2x1.key'),
                                    lambda: None)
        self.instances.clear = fail
        self.measure()
        self.assertIn('no Nova', self.complaints[0])
        self.assertEqual(1, len(self.keys()))
