# SPDX-License-Identifier: Apache-2.0

"""Standard output and error of all commands."""

import contextlib
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import TextIO

from hpcvirt import exception
from hpcvirt import printable


def width() -> int | None:
    """Return the columns of the terminal, or of the variable COLUMNS.

    :returns: None for a pipe or a file, which take lines of any length
    """
    if os.environ.get('COLUMNS') or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


#: What is coloured, and the code of the colour: green, yellow and red.
_COLOURS = (
    (re.compile(r'\bPASS\b'), 32),
    (re.compile(r'\b(INCONCLUSIVE|WARNING)\b'), 33),
    (re.compile(r'\b(FAIL|INVALID|ERROR)\b|\bfits on 0 of \d+ hosts?\b'), 31),
)
#: What a command says that has only printed its steps.
NOT_APPLIED = 'Nothing was changed; use --apply to do it.'
#: The warnings that the command has printed.
_warned: set[str] = set()


class Unwritable(exception.Unreachable):
    """Standard output cannot be written."""


class ReaderLeft(Unwritable):
    """The reader of standard output, such as head or less, has ended."""


class Output:
    """A stream that escapes control characters, except newlines.

    Text of unknown origin is escaped where it becomes part of a line; this
    stream catches what was forgotten.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_colours = False

    def begin_colours(self) -> None:
        """Colour verdicts, findings and refusals from now on.

        Only a terminal gets colours, and none if NO_COLOR is set
        [https://no-color.org].
        """
        self._has_colours = (
            self._stream.isatty() and not os.environ.get('NO_COLOR')
            and os.environ.get('TERM') != 'dumb')

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of the stream."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text.

        :raises Unwritable: if it cannot be written
        """
        try:
            shown = printable.escape(text, '\n')
            if self._has_colours:
                shown = _colour(shown)
            return self._stream.write(shown)
        except UnicodeEncodeError as exc:
            lacking = exc.object[exc.start]
            raise Unwritable(
                f'standard output: its encoding {exc.encoding} lacks '
                f'{lacking!a}; set PYTHONIOENCODING=utf-8') from exc
        except OSError as exc:
            raise _unwritable(exc) from exc

    def writelines(self, lines: Iterable[str]) -> None:
        """Write a list of texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write the buffer.

        :raises Unwritable: if it cannot be written
        """
        try:
            self._stream.flush()
        except OSError as exc:
            raise _unwritable(exc) from exc


def _colour(text: str) -> str:
    """Add the control sequences of a terminal to words with a meaning."""
    for pattern, code in _COLOURS:
        text = pattern.sub(rf'\033[{code}m\g<0>\033[0m', text)
    return text


def _unwritable(exc: OSError) -> Unwritable:
    kind = ReaderLeft if isinstance(exc, BrokenPipeError) else Unwritable
    return kind(f'standard output cannot be written ({exc.strerror or exc})')


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Replace standard output by :class:`Output`, and flush it at the end.

    :raises Unwritable: if standard output is closed or cannot be written
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


def run_safely(act: Callable[[], int], prog: str, *, debug: bool) -> int:
    """Run a command, and report any error in one line.

    :param prog: name of the program, with which the line begins
    :param debug: whether to print a traceback, too
    :returns: the exit status
    """
    if isinstance(sys.stdout, Output):
        # The caller reports the errors.
        return act()
    _warned.clear()
    try:
        with printable_output():
            return act()
    except ReaderLeft:
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as exc:  # noqa: BLE001
        # This is the outermost handler of a command.
        if debug:
            complain(traceback.format_exc().rstrip())
        complain(f'{prog}: {_describe(exc)}')
        return 2


def _describe(exc: Exception) -> str:
    if isinstance(exc, exception.HpcvirtError):
        return str(exc)
    if isinstance(exc, OSError):
        return printable.one_line(
            f'{exc.filename or "this machine"}: {exc.strerror or exc}')
    return printable.one_line(
        f'internal error: {type(exc).__name__}: {exc}; please report it with '
        'the output of "hpcvirt --debug"')


def complain(text: str) -> None:
    """Print text on standard error, without passwords, if it is writable."""
    try:
        print(printable.escape(printable.hide_passwords(text), '\n'),
              file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error, once per command.

    A command may read a fleet repeatedly, or a plan from two files.
    """
    if text not in _warned:
        _warned.add(text)
        complain(text)


def _discard(stream: TextIO) -> None:
    """Discard the buffer, since Python flushes it again when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
