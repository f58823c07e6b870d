# SPDX-License-Identifier: Apache-2.0

"""Messages about the progress of a command."""

import contextlib
import sys
import time
from collections.abc import Iterator

_START = time.monotonic()


def say(text: str) -> None:
    """Print one line with the seconds since the command began."""
    print(f'{time.monotonic() - _START:7.1f}s  {text}', flush=True)


def complain(text: str) -> None:
    """Print a message on standard error."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Print the name of a step and its duration when it is done."""
    began = time.monotonic()
    yield
    say(f'{text} ({time.monotonic() - began:.1f} s)')
