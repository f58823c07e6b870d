# SPDX-License-Identifier: Apache-2.0

"""A limit for each test, so that no test hangs.

A test that takes longer than ``OS_TEST_TIMEOUT`` seconds fails; its failure
shows the stacks of all threads and greenlets. What has not ended 120 s later
ends with the process, which then writes the stacks of its threads: a cleanup
that waits too, a wait outside of Python, the import of a module, the end of
the process.

The package of the tests installs the limit for the tests of all classes, and
tools/run_tests.py sets the variable. Without it there is no limit, so that a
debugger can wait.
"""

import contextlib
import faulthandler
import functools
import gc
import os
import signal
import sys
import traceback
import types
import unittest
from collections.abc import Iterator
from typing import Any

#: How long a test that was interrupted may take to clean up.
GRACE_S = 120.0
#: What goes on waiting is interrupted again after this time.
PAUSE_S = 30.0


class TookTooLongError(Exception):
    """A test has not ended within its limit."""


class Limit:
    """The time that a test may take.

    The main thread handles the signal that ends it between two bytecodes,
    also while it waits for a lock, or for the next event of eventlet.
    """

    def __init__(self, case: unittest.TestCase, limit_s: float) -> None:
        self._case = case
        self._says = f'{case.id()} did not end within {limit_s:g} s'
        self._limit_s = limit_s
        self._greenlet = _current_greenlet()
        self._is_running = False
        self._is_over = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Interrupt what takes too long."""
        before = signal.signal(signal.SIGALRM, self._expire)
        self._is_running = True
        left = signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._is_running = False
            signal.signal(signal.SIGALRM, before)
            signal.setitimer(signal.ITIMER_REAL, *left)

    def _expire(self, number: int,  # noqa: ARG002
                frame: types.FrameType | None) -> None:
        error = TookTooLongError(self._says)
        stacks = f'{self._says}\n\n{_show_stacks(frame, self._greenlet)}'
        if not self._is_over:
            # Fails the test even if an except clause catches the error.
            self._case.addCleanup(_fail, stacks)
        elif sys.__stderr__:
            # The test may never end, and its failure never be reported.
            print(stacks, file=sys.__stderr__, flush=True)
        self._is_over = True
        # Not before: the handler, which may take long, would interrupt itself.
        signal.setitimer(signal.ITIMER_REAL, PAUSE_S)
        current = _current_greenlet()
        if current is self._greenlet or self._greenlet is None:
            raise error
        # The test waits while another greenlet runs, most often the hub.
        hub = sys.modules['eventlet.hubs'].get_hub()
        if current is hub.greenlet:
            # It sleeps on afterwards, until its next timer is due.
            self._greenlet.throw(error)
        else:
            hub.schedule_call_global(0, self._throw, error)

    def _throw(self, error: TookTooLongError) -> None:
        if self._is_running and self._greenlet is not None:
            self._greenlet.throw(error)


def install() -> None:
    """Limit the time of each test of this process."""
    # Nova's base class would read it too, and take the signal for itself.
    limit_s = float(os.environ.pop('OS_TEST_TIMEOUT', '0'))
    if not limit_s:
        return
    # Tests redirect the standard error.
    errors = os.fdopen(os.dup(sys.stderr.fileno()), 'w')
    running: list[unittest.TestCase] = []
    call = unittest.TestCase.__call__

    def end_process_later() -> None:
        faulthandler.dump_traceback_later(
            limit_s + GRACE_S, exit=True, file=errors)

    @functools.wraps(call)
    def call_within_limit(case: unittest.TestCase, *args: Any,
                          **kwargs: Any) -> Any:
        if running:
            # A test runs others, within its own limit.
            return call(case, *args, **kwargs)
        running.append(case)
        end_process_later()
        try:
            with Limit(case, limit_s).running():
                return call(case, *args, **kwargs)
        finally:
            running.clear()

    unittest.TestCase.__call__ = (  # type: ignore[method-assign]
        call_within_limit)
    end_process_later()


def _fail(stacks: str) -> None:
    raise TookTooLongError(stacks)


def _show_stacks(main: types.FrameType | None, test: Any) -> str:
    """Return the stacks of all threads and greenlets, equal ones once.

    The names of threads are missing: they are behind a lock, which may be
    what the test waits for.

    :param main: what the main thread, which calls this, was doing
    :param test: the greenlet of the test
    """
    names: dict[str, list[str]] = {}

    def add(name: str, frame: types.FrameType | None) -> None:
        stack = ''.join(traceback.format_stack(frame))
        names.setdefault(stack, []).append(name)

    for number, frame in sys._current_frames().items():
        if frame is sys._getframe():
            add('main thread', main)
        else:
            add(f'thread {number:#x}', frame)
    greenlet = sys.modules.get('greenlet')
    # testing.nova freezes objects, which are not listed otherwise.
    gc.unfreeze()
    for each in gc.get_objects() if greenlet else ():
        # Proxies pretend to be instances.
        if issubclass(type(each), greenlet.greenlet) and each.gr_frame:
            add('greenlet of the test' if each is test else 'greenlet',
                each.gr_frame)
    return '\n'.join(f'{", ".join(who)}:\n{stack}'
                     for stack, who in names.items())


def _current_greenlet() -> Any:
    greenlet = sys.modules.get('greenlet')
    return greenlet.getcurrent() if greenlet else None
