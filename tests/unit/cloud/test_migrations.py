# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.cloud import migrations
from hpcvirt.fleet import moving


class CarryOutAllTest(unittest.TestCase):
    """A cloud whose moves fail or not, as the test says."""

    def carry_out(self, *outcomes, may_begin=lambda: True):
        """Carry out moves a, b and c; returns what was made and told."""
        told = []
        with mock.patch.object(migrations.Migrator, 'carry_out',
                               autospec=True, side_effect=outcomes):
            made = migrations.Migrator(None).carry_out_all(
                [moving.Move(each, 'n1', 'n2', (0,)) for each in 'abc'],
                may_begin, told.append)
        self.assertEqual(made, told)
        return [(each.move.id, each.failure) for each in made]

    def test_the_first_move_that_fails_is_the_last(self):
        self.assertEqual([('a', None), ('b', 'it is locked')],
                         self.carry_out(None, 'it is locked', None))

    def test_an_instance_that_is_gone_is_a_failure(self):
        self.assertEqual([('a', 'gone')], self.carry_out(
            exception.Unreachable('gone'), None, None))

    def test_no_move_begins_after_the_end(self):
        left = [True, True, False]
        self.assertEqual([('a', None), ('b', None)], self.carry_out(
            None, None, None, may_begin=lambda: left.pop(0)))
