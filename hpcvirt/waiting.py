# SPDX-License-Identifier: Apache-2.0

"""Wait for something to happen, with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar('T')


def poll(look: Callable[[], T], is_done: Callable[[T], bool],
         limit_s: float, pause_s: float) -> T:
    """Look again and again until the answer will do.

    :param look: looks once
    :returns: the last answer; if time ran out, one that will not do
    """
    deadline = time.monotonic() + limit_s
    while True:
        answer = look()
        if is_done(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(pause_s)


def retry(attempt: Callable[[], T],
          errors: type[Exception] | tuple[type[Exception], ...],
          limit_s: float, pause_s: float) -> T:
    """Attempt something until it succeeds.

    :param errors: what may pass by itself; any other error is raised at once
    :returns: the answer of the attempt that succeeded
    :raises Exception: the error of the last attempt, if time ran out
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return attempt()
        except errors:
            if time.monotonic() > deadline:
                raise
        time.sleep(pause_s)
