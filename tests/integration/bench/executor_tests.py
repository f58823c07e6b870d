# SPDX-License-Identifier: Apache-2.0

"""What holds for this machine, for one behind ssh and for a node of Slurm."""

from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from tests.integration import program_tests


class ExecutorTests(program_tests.ProgramTests):
    """Tests of a place where programs run.

    :ivar place: the executor
    """

    def call(self, argv, limit_s):
        return self.place.run(argv, b'', limit_s).status

    def bound(self, most_bytes):
        return mock.patch.object(executor, 'MAX_OUTPUT_BYTES', most_bytes)

    def test_status_output_and_errors_come_back(self):
        done = self.place.run(['sh', '-c', 'cat; echo err >&2; exit 3'], b'in')
        self.assertEqual((3, b'in', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_a_program_that_does_not_end_times_out(self):
        self.assertRaisesRegex(exception.TimedOut, 'within 0.5 s',
                               self.place.run, ['sleep', '5'], b'', 0.5)

    def test_large_input_and_output_pass(self):
        data = bytes(range(256)) * 4096
        self.assertEqual(data, self.place.run(['cat'], data).stdout)

    def test_the_place_of_a_flood_is_named(self):
        with (self.bound(2 ** 20), self.assertRaisesRegex(
                exception.Unreachable,
                f'^{self.place.name}: sh printed more than 1 MiB')):
            self.place.run(['sh', '-c', 'exec yes'])
