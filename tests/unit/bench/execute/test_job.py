# SPDX-License-Identifier: Apache-2.0

"""The end of a job, whatever its machine says of it."""

import unittest

from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job


class Machine:
    """Says that a job is done, and how it ended."""

    name = 'a guest'

    def __init__(self, answer):
        self.answer = answer

    def run(self, _argv, _stdin=b'', _timeout_s=executor.SHORT_S):
        return executor.Completed(0, b'done ' + self.answer.encode(), b'')


class EndTest(unittest.TestCase):
    def poll(self, answer):
        return job.Job(Machine(answer), '/var/tmp/job').poll()

    def test_an_end_has_a_status_and_a_time(self):
        self.assertEqual(job.Ended(3, 2.25), self.poll('3 100.25 102.5'))
        # The clock was set back.
        self.assertEqual(job.Ended(3, 0.0), self.poll('3 100.25 90.0'))

    def test_a_time_that_is_none_is_unknown(self):
        for word in ('', '9' * 400, '1e999', 'nan', 'inf', '²', '-1'):
            self.assertEqual(job.Ended(3, None), self.poll(f'3 1.0 {word}'))
            self.assertEqual(job.Ended(3, None), self.poll(f'3 {word} 2.0'))

    def test_a_job_without_a_status_is_lost(self):
        for word in ('9' * 400, '9' * 5000, '²', '-1', '1.0'):
            self.assertIs(job.JobState.LOST, self.poll(f'{word} 1.0 2.0'),
                          word[:9])
