# SPDX-License-Identifier: Apache-2.0

"""Waiting, on a clock that only the pauses move."""

import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import waiting


class WaitingTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        patch = mock.patch.object(waiting, 'time', self)
        patch.start()
        self.addCleanup(patch.stop)
        self.looks = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def look(self):
        self.looks.append(self.now)
        return self.now

    def attempt(self):
        if self.look() < 6:
            raise exception.Unreachable(f'not at {self.now:g}')
        return 'done'

    def test_answer_that_will_do_ends_the_wait(self):
        self.assertEqual(4, waiting.poll(
            self.look, lambda now: now > 3, 60, 2))
        self.assertEqual([0, 2, 4], self.looks)

    def test_first_answer_may_do(self):
        self.assertEqual(0, waiting.poll(self.look, lambda _: True, 60, 2))
        self.assertEqual(0, self.now)

    def test_last_answer_is_given_when_time_runs_out(self):
        self.assertEqual(6, waiting.poll(self.look, lambda _: False, 5, 2))
        self.assertEqual([0, 2, 4, 6], self.looks)

    def test_attempt_is_repeated_until_it_succeeds(self):
        self.assertEqual('done', waiting.retry(
            self.attempt, exception.Unreachable, 60, 3))
        self.assertEqual([0, 3, 6], self.looks)

    def test_error_of_the_last_attempt_is_raised_when_time_runs_out(self):
        with self.assertRaisesRegex(exception.Unreachable, 'not at 4'):
            waiting.retry(self.attempt, exception.Unreachable, 3, 2)

    def test_other_errors_are_raised_at_once(self):
        with self.assertRaisesRegex(exception.Unreachable, 'not at 0'):
            waiting.retry(self.attempt, exception.InvalidInput, 60, 2)
