# SPDX-License-Identifier: Apache-2.0

"""Quiet hours, in which no instance is moved."""

import argparse
import unittest
from unittest import mock

from hpcvirt.cmd.fleet import make_room


class QuietTest(unittest.TestCase):
    def is_quiet(self, now, *parts):
        with mock.patch('time.strftime', autospec=True, return_value=now):
            return make_room.is_quiet(argparse.Namespace(quiet_hours=parts))

    def test_the_end_may_be_of_the_next_day(self):
        for now, by_day, by_night in (
                ('07:59', False, False), ('08:00', True, False),
                ('17:59', True, False), ('18:00', False, False),
                ('22:00', False, True), ('00:00', False, True),
                ('05:59', False, True), ('06:00', False, False)):
            self.assertEqual(
                (by_day, by_night, by_day or by_night), (
                    self.is_quiet(now, '08:00-18:00'),
                    self.is_quiet(now, '22:00-06:00'),
                    self.is_quiet(now, '08:00-18:00', '22:00-06:00')), now)

    def test_no_part_of_the_day_is_quiet_by_itself(self):
        self.assertFalse(self.is_quiet('00:00'))
