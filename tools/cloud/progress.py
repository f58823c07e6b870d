# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
