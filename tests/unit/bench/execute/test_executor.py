# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.execute import executor


class Place:
    """Raises the errors, one for each command, then answers."""

    name = 'ssh://n17'

    def __init__(self, *errors):
        self._errors = list(errors)
        self.commands = []

    def run(self, argv, stdin=b'', timeout_s=executor.SHORT_S):
        self.commands.append((list(argv), stdin, timeout_s))
        if self._errors:
            raise self._errors.pop(0)
        return executor.Completed(0, b'done', b'')


class RetryingExecutorTest(unittest.TestCase):
    """What is repeated at a place that does not answer, and what is not."""

    def setUp(self):
        self.enterContext(mock.patch.object(executor, 'PAUSE_S', 0.01))

    def test_a_command_is_repeated_as_it_was(self):
        place = Place(*[exception.ConnectionLost('no route')] * 2)
        done = executor.RetryingExecutor(place).run(['cat'], b'x', 7)
        self.assertEqual(b'done', done.stdout)
        self.assertEqual([(['cat'], b'x', 7)] * 3, place.commands)

    def test_what_would_be_no_better_the_next_time_is_run_once(self):
        for error in (exception.TimedOut('too slow'),
                      exception.NotInstalled('no cat'),
                      exception.Unreachable('the host key differs'),
                      exception.InvalidInput('x', 'is bad')):
            place = Place(error)
            with self.assertRaises(type(error)):
                executor.RetryingExecutor(place).run(['cat'])
            self.assertEqual(1, len(place.commands))

    def test_patience_ends(self):
        place = Place(*[exception.ConnectionLost('no route')] * 1000)
        with self.assertRaisesRegex(exception.ConnectionLost, 'no route'):
            executor.RetryingExecutor(place, 0.05).run(['cat'])
        self.assertLess(len(place.commands), 1000)

    def test_the_name_is_that_of_the_place(self):
        self.assertEqual('ssh://n17', executor.RetryingExecutor(Place()).name)
