# SPDX-License-Identifier: Apache-2.0

"""Tasks run in processes, and none of these is left behind."""

import multiprocessing
import os
import select
import signal
import time
import unittest

from hpcvirt import exception
from hpcvirt.simulate import simulation


def nothing_shown(_part):
    pass


class ProcessesTest(unittest.TestCase):

    def tearDown(self):
        self.assertEqual([], multiprocessing.active_children())
        super().tearDown()

    def test_results_are_in_the_order_of_the_tasks(self):
        def task(number):
            def run(_report):
                time.sleep(0.02 * (5 - number))
                return number, os.getpid()
            return run

        found = simulation.run([task(number) for number in range(6)],
                               nothing_shown)
        self.assertEqual([*range(6)], [number for number, _ in found])
        self.assertLessEqual(len({pid for _, pid in found}),
                             len(os.sched_getaffinity(0)))
        self.assertNotIn(os.getpid(), {pid for _, pid in found})

    def test_no_more_run_at_once_than_there_are_cpus(self):
        def task(_report):
            begin = time.monotonic()
            time.sleep(0.05)
            return begin, time.monotonic()

        spans = simulation.run([task] * 8, nothing_shown)
        self.assertLessEqual(max(
            sum(begin <= each < end for begin, end in spans)
            for each, _ in spans), len(os.sched_getaffinity(0)))

    def test_what_is_done_is_shown(self):
        def task(report):
            for number in range(200):
                time.sleep(0.005)
                report(number + 1, 200)

        shown = []
        simulation.run([task, lambda _report: None], shown.append)
        self.assertEqual(sorted(shown), shown)
        self.assertLess(4, len({*shown}))
        self.assertLessEqual(0, shown[0])
        self.assertLessEqual(shown[-1], 1)

    def test_an_error_of_a_task_is_raised_here(self):
        def wrong(_report):
            raise exception.InvalidInput('log', 'is wrong')

        def slow(_report):
            time.sleep(60)

        with self.assertRaisesRegex(exception.InvalidInput,
                                    '^log: is wrong$'):
            simulation.run([wrong, slow], nothing_shown)

    def test_a_process_that_is_killed_is_an_error(self):
        def killed(_report):
            os.kill(os.getpid(), signal.SIGKILL)

        with self.assertRaisesRegex(exception.Unreachable, 'was killed'):
            simulation.run([killed], nothing_shown)

    def test_a_process_ends_soon_after_the_first_one_was_killed(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)

        def slow(report):
            os.write(writing, b'.')
            for _ in range(6000):
                time.sleep(0.01)
                report(0, 1)

        first = multiprocessing.get_context('fork').Process(
            target=simulation.run, args=([slow], nothing_shown))
        first.start()
        os.close(writing)
        self.assertEqual(b'.', os.read(reading, 1))
        first.kill()
        first.join()
        # The pipe ends with the last process that can write to it.
        self.assertEqual(([reading], [], []),
                         select.select([reading], [], [], 30))
        self.assertEqual(b'', os.read(reading, 1))
