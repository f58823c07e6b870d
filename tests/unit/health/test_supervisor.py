# SPDX-License-Identifier: Apache-2.0

"""The one actor, and its brake."""

import errno
import os
import pathlib
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.health import signature
from hpcvirt.health import supervision
from hpcvirt.health import supervisor
from tests.builders import folders

NAMES = tuple(f'n{number}' for number in range(20))


def full_disk():
    """Let no file be written meanwhile."""
    return mock.patch('os.fsync', autospec=True, side_effect=OSError(
        errno.ENOSPC, os.strerror(errno.ENOSPC)))


class Cloud:
    """Notes what it is asked for, unless it is down."""

    def __init__(self):
        self.down = set()
        self.calls = []

    def change(self, host, hold):
        self.calls.append((host, hold))
        if host in self.down:
            raise exception.Unreachable('it is down')


class SupervisorTest(unittest.TestCase):
    def setUp(self):
        self.path = folders.make(self) / 'state'
        self.cloud, self.lines, self.scores = Cloud(), [], {}
        self.now, self.fails = 0.0, False

    def make(self, applies=True):
        return supervisor.Supervisor(
            {'cpu': NAMES}, self.read, self.cloud.change if applies else None,
            str(self.path), 0.1, 5, self.lines.append)

    def read(self, _):
        if self.fails:
            raise exception.Unreachable('no answer')
        return {name: {'cpu-shootdowns': signature.SignScore(
            self.scores.get(name, 0.0), 'cpu1')} for name in NAMES}

    def run_for(self, found, minutes, step=15):
        done = True
        for _ in range(0, minutes, step):
            self.now += 60.0 * step
            done = found.step(self.now)
        return done

    def learn(self, applies=True):
        """Go on after three days of learning."""
        self.now = supervision.LEARN_S
        found = self.make(applies)
        found.record = supervision.FleetRecord(time=self.now, hosts={
            name: supervision.HostRecord(since=0.0) for name in NAMES})
        self.run_for(found, 15)
        return found

    def test_a_slow_host_is_held_and_released(self):
        found = self.learn()
        self.scores = {'n3': 2.0}
        self.assertTrue(self.run_for(found, 90))
        self.scores = {}
        self.assertTrue(self.run_for(found, 90))
        (host, hold), release = self.cloud.calls
        self.assertEqual(('n3', 'watch', '1970-01-04T00:30:00Z'), (
            host, hold.holder, hold.since))
        self.assertTrue(hold.by.startswith('hpcvirt-supervise@'))
        self.assertEqual('cpu-shootdowns on cpu1 at 2.0 times its limit',
                         hold.reason)
        self.assertEqual(('n3', None), release)
        self.assertIn('1970-01-04T00:30:00Z n3: quarantine is done',
                      self.lines)

    def test_without_apply_the_decision_is_only_printed(self):
        found = self.learn(applies=False)
        self.scores = {'n3': 2.0}
        self.assertTrue(self.run_for(found, 90))
        self.assertEqual([], self.cloud.calls)
        self.assertIn('n3: cpu-shootdowns on cpu1', self.lines[-1])

    def test_the_state_outlives_the_program(self):
        self.learn()
        self.scores = {'n3': 2.0}
        self.run_for(self.make(), 15)
        self.run_for(self.make(), 15)
        self.assertEqual(1, len(self.cloud.calls))

    def test_what_the_cloud_does_not_take_is_tried_again(self):
        found = self.learn()
        self.scores, self.cloud.down = {'n3': 2.0}, {'n3'}
        self.assertFalse(self.run_for(found, 15))
        self.assertIn('n3: quarantine failed, and is tried again: it is down',
                      self.lines[-1])
        # One host that fails does not delay another.
        self.scores['n4'] = 2.0
        self.assertFalse(self.run_for(found, 15))
        self.assertEqual([('n4', 'quarantine is done')], self.list_done())
        self.cloud.down = set()
        self.assertTrue(self.run_for(found, 15))
        self.assertIn(('n3', 'quarantine is done'), self.list_done())

    def list_done(self):
        """List the hosts that the supervisor says it has changed."""
        found = []
        for line in self.lines:
            words = line.split(' ', 1)[1].split(': ')
            if words[-1].endswith('is done'):
                found.append((words[0], words[1]))
        return found

    def test_a_host_that_the_cloud_may_have_taken_is_released(self):
        found = self.learn()
        self.scores, self.cloud.down = {'n3': 2.0}, {'n3'}
        self.run_for(found, 90)
        self.scores = {}
        self.assertFalse(self.run_for(found, 90))
        self.cloud.down, self.cloud.calls = set(), []
        self.assertTrue(self.run_for(found, 90))
        self.assertEqual([('n3', None)], self.cloud.calls)

    def test_the_state_says_what_is_changed_before_the_cloud_is(self):
        found = self.learn()
        self.scores = {'n3': 2.0}

        def kill(host, hold):
            self.cloud.calls.append((host, hold))
            raise KeyboardInterrupt

        found.change = kill
        self.assertRaises(KeyboardInterrupt, self.run_for, found, 15)
        # The next one counts the host that the killed one may have held ...
        found = self.make()
        self.assertEqual(1, len(found.record.holds))
        self.assertTrue(found.record.hosts['n3'].held)
        # ... makes sure that it is held, and releases it in the end.
        self.assertTrue(self.run_for(found, 15))
        self.assertEqual(1, len(found.record.holds))
        self.scores = {}
        self.run_for(found, 90)
        self.assertEqual(['n3'] * 3, [host for host, _ in self.cloud.calls])
        self.assertIsNone(self.cloud.calls[-1][1])

    def test_nothing_is_changed_while_the_state_cannot_be_written(self):
        found = self.learn()
        self.scores = {'n3': 2.0}
        with full_disk():
            self.assertFalse(self.run_for(found, 90))
        self.assertEqual([], self.cloud.calls)
        self.assertIn('state: cannot be written (No space left on device); '
                      'it is tried again', self.lines[-1])
        self.assertTrue(self.run_for(found, 15))
        self.assertEqual(['n3'], [host for host, _ in self.cloud.calls])

    def test_a_brake_that_cannot_be_written_holds(self):
        found = self.learn()
        self.scores = {'n1': 2.0, 'n2': 2.0, 'n3': 2.0}
        with full_disk():
            self.assertFalse(self.run_for(found, 15))
        # Nothing looks slow any more, but nobody has found the cause.
        self.scores = {}
        self.assertFalse(self.run_for(found, 90))
        self.assertEqual([], self.cloud.calls)
        self.assertIn('3 more look slow',
                      pathlib.Path(found.brake).read_text())
        self.assertEqual(1, sum(' stopped: ' in line
                                for line in self.lines))

    def test_beyond_its_limits_it_stops_until_a_person_goes_on(self):
        found = self.learn()
        self.scores = {'n1': 2.0}
        self.run_for(found, 15)
        self.scores = {'n1': 2.0, 'n2': 2.0, 'n3': 2.0}
        self.assertFalse(self.run_for(found, 15))
        self.assertIn('stopped: 1 hosts of the class cpu are in quarantine, '
                      '2 more look slow', self.lines[-1])
        # Nothing is released either, whatever program runs.
        self.scores = {}
        found = self.make()
        self.assertFalse(self.run_for(found, 90))
        self.assertEqual(1, len(self.cloud.calls))
        brake = pathlib.Path(found.brake)
        self.assertIn('remove', brake.read_text())
        brake.unlink()
        self.assertTrue(self.run_for(found, 15))
        self.assertEqual(('n1', None), self.cloud.calls[-1])

    def test_an_update_of_all_hosts_closes_nothing(self):
        found = self.learn()
        self.scores = dict.fromkeys(NAMES, 3.0)
        self.assertTrue(self.run_for(found, 1440))
        self.assertEqual([], self.cloud.calls)
        self.assertIn('cpu: cpu-shootdowns is common now, so it is not the '
                      'fault of one host', self.lines[-1])

    def test_an_update_of_one_host_after_the_other_closes_few(self):
        found = self.learn()
        for number in range(len(NAMES)):
            self.scores[f'n{number}'] = 3.0
            self.run_for(found, 60)
        self.assertEqual(2, sum(host.held for host
                                in found.record.hosts.values()))
        self.assertTrue([line for line in self.lines if 'stopped' in line])

    def test_readings_that_fail_are_one_line(self):
        found = self.learn()
        self.fails = True
        self.assertFalse(found.step(self.now))
        self.assertEqual('no answer', self.lines[-1])

    def test_a_state_of_another_form_is_refused(self):
        for text in ('{', '{}', '{"schema_version": 2}',
                     '{"schema_version": 1, "hosts": {"n1": 3}}'):
            self.path.write_text(text)
            with self.assertRaises(exception.InvalidInput):
                self.make()

    def test_the_state_that_is_written_is_read(self):
        found = self.learn()
        self.scores = {'n3': 2.0, 'n4': 0.9}
        self.run_for(found, 30)
        self.assertEqual(found.record, self.make().record)
        self.assertIsInstance(found.record, supervision.FleetRecord)
