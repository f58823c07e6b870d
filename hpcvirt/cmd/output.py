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

"""Standard output, as every verb writes to it."""

import contextlib
import os
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import TextIO

from hpcvirt import exception
from hpcvirt import printable


class Unwritable(exception.Unreachable):
    """Standard output cannot be written."""


class ReaderLeft(Unwritable):
    """Nobody reads standard output any more: head or less has ended."""


class Output:
    """A stream that writes nothing a terminal would obey.

    Text of unknown origin is made printable where it enters a line; this is
    the net below. Newlines and tabs stay.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text.

        :raises Unwritable: if it cannot be written
        """
        try:
            return self._stream.write(printable.escaped(text, '\n\t'))
        except UnicodeEncodeError as exc:
            lacking = exc.object[exc.start]
            raise Unwritable(
                f'standard output: its encoding {exc.encoding} lacks '
                f'{lacking!a}; set PYTHONIOENCODING=utf-8') from exc
        except OSError as exc:
            raise _unwritable(exc) from exc

    def writelines(self, lines: Iterable[str]) -> None:
        """Write text piece by piece."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is waiting.

        :raises Unwritable: if it cannot be written
        """
        try:
            self._stream.flush()
        except OSError as exc:
            raise _unwritable(exc) from exc


def _unwritable(exc: OSError) -> Unwritable:
    kind = ReaderLeft if isinstance(exc, BrokenPipeError) else Unwritable
    return kind(f'standard output cannot be written ({exc.strerror or exc})')


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Let everything that is printed be printable, and be written.

    :raises Unwritable: if standard output is closed, or cannot be written
    """
    stream = sys.stdout
    if stream is None:
        raise Unwritable('standard output is closed')
    try:
        with contextlib.redirect_stdout(Output(stream)):
            try:
                yield
            finally:
                sys.stdout.flush()
    except Unwritable:
        _discard(stream)
        raise


def complain(text: str) -> None:
    """Print text on standard error, if that can be written."""
    try:
        print(printable.escaped(printable.without_passwords(text), '\n'),
              file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let what is waiting go nowhere.

    Python flushes a stream again when it ends, which would fail again.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
