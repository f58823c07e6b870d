# SPDX-License-Identifier: Apache-2.0

"""Show the progress of replays on a terminal."""

import contextlib
import sys
from collections.abc import Callable
from collections.abc import Iterator


@contextlib.contextmanager
def show_percent() -> Iterator[Callable[[float], None]]:
    """Show the percentage of what is done, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _part: None
        return
    try:
        yield lambda part: print(f'\r{part:4.0%} ', end='', file=sys.stderr,
                                 flush=True)
    finally:
        print('\r      \r', end='', file=sys.stderr, flush=True)
