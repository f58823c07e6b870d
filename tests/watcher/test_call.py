# SPDX-License-Identifier: Apache-2.0

"""The command that a strategy for Watcher runs."""

import shlex
import unittest
from unittest import mock

from hpcvirt.watcher_strategy import strategy
from tests.integration import program_tests


class CallTest(program_tests.ProgramTests, unittest.TestCase):
    errors = strategy.NoRoom

    def call(self, argv, limit_s):
        # The strategy adds options, which a shell script does not need.
        made = strategy.DrainStrategy(mock.Mock(
            command=shlex.join(argv)))
        made.input_parameters = {'hosts': ['n1']}
        with mock.patch.object(strategy, 'PATIENCE_S', limit_s):
            try:
                made._read_plan()
            except strategy.NoRoom as exc:
                if 'printed no plan' not in str(exc):
                    raise
        return 0

    def bound(self, most_bytes):
        return mock.patch.object(strategy, 'MAX_PLAN_BYTES', most_bytes)

    def test_a_missing_command_is_named(self):
        with self.assertRaisesRegex(strategy.NoRoom, 'no-such-program'):
            self.call(['no-such-program'], 5)

    def test_what_it_prints_besides_a_plan_is_not_taken_for_its_error(self):
        with self.assertRaisesRegex(strategy.NoRoom, '^no database$'):
            self.call(['sh', '-c', 'echo no database >&2; exit 2'], 5)
