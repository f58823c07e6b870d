# SPDX-License-Identifier: Apache-2.0

"""Read a log that is a table: CSV, or the output of MariaDB's client."""

import csv
import datetime
import re
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.simulate.read import log as logs

#: Texts for missing values.
_MISSING = frozenset({'', 'NULL', 'null', 'None', 'nan', '\\N'})
_ESCAPES = {'\\\\': '\\', '\\n': '\n', '\\t': '\t', '\\0': '\0'}


def columns(first: str) -> tuple[str, ...]:
    """Return the names of the columns, in lower case, from the first line."""
    return tuple(name.strip('" ').lower()
                 for name in first.split(_delimiter(first)))


class Table:
    """The rows of a table.

    :ivar names: the names of its columns
    """

    def __init__(self, log: logs.Log,
                 names: Sequence[str] | None = None) -> None:
        """Begin to read.

        :param names: the names of the columns of a table without a header
        """
        self._log = log
        self._has_header = names is None
        self.names = tuple(names or columns(log.first))

    def fault(self, what: str) -> exception.InvalidInput:
        """Return the exception for the row that was read last."""
        return self._log.fault(what)

    def rows(self, *wanted: str) -> Iterator[tuple[str, ...]]:
        """Yield some columns of each row; '' for a missing value.

        :param wanted: names of columns, in lower case
        :raises InvalidInput: with the line that is wrong
        """
        places = [self.names.index(name) if name in self.names else -1
                  for name in wanted]
        rows = self._rows()
        try:
            if self._has_header:
                next(rows, None)
            for row in rows:
                if not row:
                    continue
                if len(row) != len(self.names):
                    raise self.fault(
                        f'has {len(row)} columns instead of '
                        f'{len(self.names)}')
                yield tuple('' if place < 0 or row[place] in _MISSING
                            else row[place] for place in places)
        except csv.Error as exc:
            raise self.fault(f'cannot be read as CSV ({exc})') from exc

    def number(self, text: str, name: str, most: float,
               least: float = 0) -> float:
        """Parse a number.

        :raises InvalidInput: with the line and the column that is wrong
        """
        try:
            value = float(text)
        except ValueError:
            value = float('nan')
        if not least <= value < most:
            raise self.fault(
                f'{name} must be a number from {least:g} to less than '
                f'{most:.0e}, not {text[:40]!r}')
        return value

    def whole(self, text: str, name: str, most: int, least: int = 0) -> int:
        """Parse a whole number; see :meth:`number`."""
        value = self.number(text, name, most, least)
        if not value.is_integer():
            raise self.fault(f'{name} must be a whole number, not '
                             f'{text[:40]!r}')
        return int(value)

    def time(self, text: str, name: str) -> float:
        """Parse a time, in UTC unless it has a zone, or a number of seconds.

        :returns: seconds
        :raises InvalidInput: with the line and the column that is wrong
        """
        if re.fullmatch(r'[0-9]+(\.[0-9]*)?', text):
            return self.number(text, name, logs.MAX_SECONDS)
        try:
            value = datetime.datetime.fromisoformat(text.strip())
        except ValueError as exc:
            raise self.fault(
                f'{name} must be a time such as 2026-11-23 08:30:00, or '
                f'seconds, not {text[:40]!r}') from exc
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.UTC)
        return value.timestamp()

    def _rows(self) -> Iterator[list[str]]:
        lines = (line for line in self._log if line.strip())
        delimiter = _delimiter(self._log.first)
        if delimiter == '\t':
            # The client of MariaDB uses escapes instead of quotes.
            return (
                [re.sub(r'\\[\\nt0]', lambda found: _ESCAPES[found[0]], value)
                 if '\\' in value and value not in _MISSING else value
                 for value in line.rstrip('\r\n').split('\t')]
                for line in lines)
        return csv.reader(lines, delimiter=delimiter, strict=True)


def _delimiter(first: str) -> str:
    return max(',;\t', key=first.count)
