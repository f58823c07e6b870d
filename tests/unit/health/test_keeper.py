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

"""What the service does to a cloud, and when it tries again."""

import unittest

from benchmarks import host_frames
from hpcvirt import exception
from hpcvirt.health import keeper
from hpcvirt.health import signature


class Cloud:
    """Notes what it is asked for, unless it is down."""

    def __init__(self):
        self.down = False
        self.calls = []

    def hold(self, host, hold):
        self.calls.append((host, hold))
        if self.down:
            raise exception.Unreachable('it is down')

    def release(self, host, holder):
        self.calls.append((host, holder))
        if self.down:
            raise exception.Unreachable('it is down')


class KeeperTest(unittest.TestCase):

    def setUp(self):
        self.cloud, self.now = Cloud(), 0.0
        self.keeper = keeper.Keeper('n1', lambda: self.cloud, 'me@here', 60.0,
                                    lambda: self.now)
        self.state = signature.State()

    def pass_time(self, minutes, rates):
        lines = []
        for frame in host_frames.frames_of([rates] * minutes,
                                           self.state.last):
            self.now += 60
            self.state, _ = signature.follow(self.state, frame)
            self.state, line = self.keeper.settle(self.state, 'then')
            lines += [line] if line else []
        return lines

    def test_a_slow_host_is_held_once_and_released_once(self):
        self.pass_time(30, host_frames.SHOOTDOWNS)
        ((host, hold),) = self.cloud.calls
        self.assertEqual(('n1', 'watch', 'then', 'me@here'),
                         (host, hold.holder, hold.since, hold.by))
        self.assertIn('system time 40%', hold.reason)
        self.pass_time(99, {})
        self.assertEqual([('n1', 'watch')], self.cloud.calls[1:])

    def test_what_failed_is_tried_again_ever_later_until_it_is_done(self):
        self.cloud.down = True
        lines = self.pass_time(180, host_frames.SHOOTDOWNS)
        self.assertIn('quarantine failed, next attempt in 60 s: it is down',
                      lines[0])
        self.assertIn('next attempt in 900 s', lines[-1])
        self.assertEqual(15, len(lines))
        self.assertEqual(15, self.keeper.failures)
        self.assertIsNone(self.state.held)
        self.cloud.down = False
        self.assertEqual(['quarantine is done'],
                         self.pass_time(20, host_frames.SHOOTDOWNS))
        self.assertTrue(self.state.held)

    def test_an_outage_that_outlasts_the_signature_harms_nothing(self):
        self.pass_time(20, host_frames.SHOOTDOWNS)
        self.cloud.down = True
        self.pass_time(60, {})
        self.assertTrue(self.state.held)
        self.cloud.down = False
        self.assertEqual(['release from quarantine is done'],
                         self.pass_time(20, {}))
        self.assertIs(False, self.state.held)

    def test_a_long_reason_is_cut(self):
        self.pass_time(130, {
            'system': 0.5, 'interrupts': 9e3, 'shootdowns': 9e3,
            'steal': 0.2, 'errors': 9.0,
            'throttles': 200.0, 'strangers': 0.5, 'iowait': 0.3,
            'swapped': 900.0})
        self.assertTrue(all(len(hold.reason) <= 150
                            for _, hold in self.cloud.calls))
