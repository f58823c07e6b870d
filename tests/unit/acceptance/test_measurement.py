# SPDX-License-Identifier: Apache-2.0

"""The time limit of a measurement, and logins between its instances."""

import testtools

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.results import store
from tests.builders import places


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
