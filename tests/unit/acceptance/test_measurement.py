# SPDX-License-Identifier: Apache-2.0

"""The time limit of a measurement, and logins between its instances."""

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.results import store
from hpcvirt.bench.run import target as targets
from tests.builders import folders
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


class Closed(places.Machine):
    """A machine whose connections are counted."""

    closed = 0

    def close(self):
        self.closed += 1


class MeasureTest(testtools.TestCase):
    def measure(self, count, joined):
        """Measure in instances; return them, and the native machines."""
        guests, natives = ([Closed(f'{name}{number}') for number
                            in range(count)] for name in 'gn')
        key = folders.make(self) / 'key'
        key.write_text('secret')
        with fixtures.MonkeyPatch(
                'hpcvirt.acceptance.measurement.execute',
                lambda plan, _store, _shown: plan):
            pairs = measurement.measure(
                list, None, joined, *([
                    targets.Target(place, place.name) for place in each]
                    for each in (guests, natives)), Display(), str(key))
        self.assertEqual([(guest.name, native.name) for guest, native
                          in zip(guests, natives, strict=True)],
                         [(pair.guest.label, pair.native.label)
                          for pair in pairs])
        return guests, natives

    def test_instances_that_a_program_spans_trust_each_other(self):
        for count, joined, keys in ((2, True, 1), (2, False, 0), (1, True, 0)):
            guests, natives = self.measure(count, joined)
            for place in (*guests, *natives):
                self.assertEqual(1, place.closed)
            for place in guests:
                self.assertEqual((['true'], b''), place.commands[0])
                self.assertEqual(keys, [
                    text for _, text in place.commands].count(b'secret'))
