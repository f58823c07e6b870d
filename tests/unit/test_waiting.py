# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Attempts until a deadline, on a clock that only the pauses move."""

import unittest
from unittest import mock

from hpcvirt import waiting


class Clock:

    def __init__(self):
        self.now = 100.0
        self.pauses = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


class AttemptsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        patch = mock.patch.object(waiting, 'time', self.clock)
        patch.start()
        self.addCleanup(patch.stop)

    def moments(self, *limits, each_takes_s=0.0):
        moments = []
        for _ in waiting.attempts(*limits):
            moments.append(self.clock.now - 100)
            self.clock.now += each_takes_s
        return moments

    def test_first_attempt_comes_at_once_and_the_last_at_the_deadline(self):
        self.assertEqual([0, 0.5, 1, 1.25], self.moments(1.25))

    def test_pauses_are_as_long_as_asked_for(self):
        self.assertEqual([0, 2, 4, 5], self.moments(5, 2))

    def test_no_attempt_follows_one_that_ran_past_the_deadline(self):
        self.assertEqual([0, 4], self.moments(6, 1, each_takes_s=3))

    def test_without_time_there_is_one_attempt(self):
        self.assertEqual([0], self.moments(0))

    def test_success_ends_the_wait(self):
        for _ in waiting.attempts(60, 7):
            break
        self.assertEqual([], self.clock.pauses)
