# SPDX-License-Identifier: Apache-2.0

import sys
import unittest

from tests import limit
from tests.functional import base

#: Nova forbids to import it where the services use native threads.
eventlet = sys.modules.get('eventlet')


class LimitTest(unittest.TestCase):
    def test_novas_tests_have_the_limit(self):
        self.assertIs(unittest.TestCase.__call__, base.HPCNova.__call__)


class GreenletLimitTest(unittest.TestCase):
    """Tests that wait while eventlet's hub sleeps, where Nova uses it."""

    def setUp(self):
        super().setUp()
        # As the services of Nova do.
        self.addCleanup(eventlet.spawn(self.poll).kill)

    def poll(self):
        while True:
            eventlet.sleep(0.05)

    def assert_ends(self, wait, *stacks):
        """Run a test that waits.

        :param stacks: functions that must be in the stacks of its failure
        """
        class WaitingTest(unittest.TestCase):
            def runTest(self):  # noqa: N802
                wait()

        case = WaitingTest()
        result = unittest.TestResult()
        with limit.Limit(case, 0.5).running():
            case.run(result)
        text = '\n'.join(text for _, text in result.errors)
        self.assertIn(f'{case.id()} did not end within 0.5 s', text)
        self.assertRegex(text, r'(?s)greenlet of the test:\n.* in runTest\n')
        for stack in stacks:
            self.assertRegex(text, stack)
        # Others go on.
        eventlet.sleep(0)

    def test_a_test_that_waits_for_a_greenlet_ends(self):
        def never():
            eventlet.hubs.get_hub().switch()

        waiting = eventlet.spawn(never)
        self.addCleanup(waiting.kill)
        self.assert_ends(waiting.wait, r'(?s)\ngreenlet:\n.* in never\n')

    def test_a_test_that_waits_for_a_native_thread_ends(self):
        native = eventlet.patcher.original('threading')
        event = native.Event()
        self.addCleanup(event.set)

        def work():
            event.wait()

        self.assert_ends(lambda: eventlet.tpool.execute(work),
                         r'(?s)\nthread 0x[0-9a-f]+:\n.* in work\n',
                         'in tpool_trampoline\n')

    def test_a_test_that_waits_while_others_work_ends(self):
        def work():
            while True:
                sum(range(10000))
                eventlet.sleep(0)

        working = eventlet.spawn(work)
        self.addCleanup(working.kill)
        self.assert_ends(eventlet.hubs.get_hub().switch)
        self.assertFalse(working.dead)


if eventlet is None:
    del GreenletLimitTest
