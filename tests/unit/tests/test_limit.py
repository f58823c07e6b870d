# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import threading
import time
import unittest
import unittest.mock
from typing import Any

import testtools

from tests import limit


def wait_for_ever() -> None:
    threading.Event().wait()


class LimitTest(unittest.TestCase):
    """Tests that wait in the main thread and in another."""

    def end(self, case: unittest.TestCase) -> str:
        """Run a test within half a second, and return its errors."""
        self.enterContext(unittest.mock.patch.object(limit, 'PAUSE_S', 2))
        result = unittest.TestResult()
        with limit.Limit(case, 0.5).running():
            case.run(result)
        self.assertEqual(1, result.testsRun)
        self.assertFalse(result.wasSuccessful())
        return '\n'.join(text for _, text in result.errors)

    def assert_named(self, case: unittest.TestCase, text: str) -> None:
        self.assertIn(f'{case.id()} did not end within 0.5 s', text)
        self.assertRegex(text, r'(?s)main thread:\n.*in wait_for_ever\n')

    def test_a_test_that_waits_for_a_thread_fails_with_all_stacks(
            self) -> None:
        done = threading.Event()
        self.addCleanup(done.set)

        def work_for_ever() -> None:
            done.wait()

        class WaitingTest(unittest.TestCase):
            def runTest(self) -> None:  # noqa: N802
                thread = threading.Thread(target=work_for_ever, daemon=True)
                thread.start()
                wait_for_ever()

        case = WaitingTest()
        text = self.end(case)
        self.assert_named(case, text)
        self.assertRegex(text, r'(?s)\nthread 0x[0-9a-f]+:\n.*'
                               r'in work_for_ever\n')

    def test_a_cleanup_that_waits_ends_too(self) -> None:
        class WaitingTest(testtools.TestCase):
            def runTest(self) -> None:  # noqa: N802
                self.addCleanup(ended.append, True)
                self.addCleanup(wait_for_ever)
                wait_for_ever()

        ended: list[bool] = []
        case = WaitingTest('runTest')
        with contextlib.redirect_stderr(io.StringIO()):
            text = self.end(case)
        self.assert_named(case, text)
        self.assertEqual([True], ended)

    def test_a_test_that_hides_the_error_fails(self) -> None:
        def hide(_: object) -> None:
            with contextlib.suppress(Exception):
                wait_for_ever()

        for base in (unittest.TestCase, testtools.TestCase):
            with self.subTest(base=base):
                case = type('HidingTest', (base,), {'runTest': hide})(
                    'runTest')
                self.assert_named(case, self.end(case))
                case = type('HidingTest', (base,), {
                    'tearDown': hide, 'runTest': lambda _: None})('runTest')
                self.assert_named(case, self.end(case))

    def test_stacks_that_take_long_to_show_are_shown_once(self) -> None:
        show = limit._show_stacks
        shown = []

        def show_slowly(*args: Any) -> str:
            shown.append(args)
            time.sleep(3)
            return show(*args)

        class WaitingTest(unittest.TestCase):
            def runTest(self) -> None:  # noqa: N802
                wait_for_ever()

        case = WaitingTest()
        with unittest.mock.patch.object(limit, '_show_stacks', show_slowly):
            self.assert_named(case, self.end(case))
        self.assertEqual(1, len(shown))

    def test_a_test_in_time_is_not_interrupted(self) -> None:
        class QuickTest(unittest.TestCase):
            def runTest(self) -> None:  # noqa: N802
                pass

        result = unittest.TestResult()
        case = QuickTest()
        with limit.Limit(case, 60).running():
            case.run(result)
        self.assertTrue(result.wasSuccessful())
