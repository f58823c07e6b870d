# SPDX-License-Identifier: Apache-2.0

"""The result of a parser, and the functions that parsers share.

The functions read numbers as C and Fortran programs print them. Fortran writes
exponents with D, omits the letter if the exponent has three digits
(``1.0-102``), and fills a field with asterisks if a number does not fit. C
prints nan, inf and the content of uninitialized memory.
"""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

from hpcvirt import words
from hpcvirt.bench.parsers import text as texts


class InvalidOutput(Exception):
    """The output is not valid.

    :func:`hpcvirt.bench.parsers.parser.parse` turns the exception into the
    reason of an outcome.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Missing(InvalidOutput):
    """The output is incomplete; another line may say why."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """An output that passed the program's own checks.

    :ivar metrics: name to value
    :ivar parameters: parameters that the program printed, by the keys of
        ``--expect``
    :ivar exit_status: exit status of a program that writes this output
    :ivar ending: why the exit status is not 0
    :ivar units: name of a metric, without a message size, to the unit that
        the output prints; it must be that of the definition
    """

    metrics: Mapping[str, float]
    parameters: Mapping[str, str]
    exit_status: int = 0
    ending: str = ''
    remarks: tuple[str, ...] = ()
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)


def require(condition: object, reason: str,
            kind: type[InvalidOutput] = InvalidOutput) -> None:
    """Refuse an output unless a condition holds.

    :param kind: :class:`Missing` if another line may say why
    :raises InvalidOutput: with the reason
    """
    if not condition:
        raise kind(reason)


def find(pattern: re.Pattern[str], text: str, reason: str) -> re.Match[str]:
    """Find a line that every complete output has.

    :raises Missing: if there is no such line
    """
    match = pattern.search(text)
    if match is None:
        raise Missing(reason)
    return match


def refuse(text: str, *troubles: re.Pattern[str], prefix: str = '') -> None:
    """Refuse an output with a line that says that the run failed.

    :raises InvalidOutput: with the first group of the match, or all of it
    """
    for trouble in troubles:
        match = trouble.search(text)
        if match is not None:
            raise InvalidOutput(
                prefix + texts.quote(match[trouble.groups and 1]))


def check_single(text: str, *once: re.Pattern[str],
                 reason: str = 'several runs in one file') -> None:
    """Refuse an output that repeats a line which a run prints once.

    :raises InvalidOutput: with the reason
    """
    for pattern in once:
        require(len(pattern.findall(text)) < 2, reason)


def line(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches from the beginning of a line."""
    return re.compile('^' + pattern, re.MULTILINE)


#: The limits of a figure of merit, in any unit. A smaller number is
#: uninitialized memory (6.95e-313), a larger one a counter that overflowed.
SMALLEST = 1e-30
LARGEST = 1e30

_NUMBER = re.compile(
    r'(?P<mantissa>[+-]?(?:\d+\.?\d*|\.\d+))'
    r'(?:[eEdD](?P<exponent>[+-]?\d{1,4})|(?P<bare>[+-]\d{2,4}))?',
    re.ASCII)
#: int() refuses numbers of more than 4,300 digits.
_MAX_DIGITS = 4000
_ASTERISKS = re.compile(r'\*+')


def real(word: str, what: str) -> float:
    """Read a finite number of any sign.

    :param what: the name of the number, for the reason
    :raises InvalidOutput: if the word is not a finite number
    """
    match = _NUMBER.fullmatch(word)
    if match is None:
        if _ASTERISKS.fullmatch(word):
            raise InvalidOutput(
                f'{what} is {word[:12]}: the number did not fit its field')
        raise InvalidOutput(
            f'{what} is {word[:40]!r}, which is not a number')
    exponent = match['exponent'] or match['bare'] or '0'
    value = float(f'{match["mantissa"]}e{exponent}')
    if not math.isfinite(value):
        raise InvalidOutput(
            f'{what} is {word[:40]}, which is not finite')
    return value


def figure(word: str, what: str) -> float:
    """Read a figure of merit: finite, above 0 and of a plausible size.

    :raises InvalidOutput: otherwise
    """
    value = real(word, what)
    require(value > 0, f'{what} is {word[:40]}, which is not above 0')
    require(SMALLEST <= value <= LARGEST,
            f'{what} is {word[:40]}: not a measurement, but uninitialized '
            'memory or a counter that overflowed')
    return value


def find_figure(pattern: re.Pattern[str], text: str, what: str) -> float:
    """Read the figure of merit on a line that a complete output has once.

    :param pattern: its first group is the figure
    :raises InvalidOutput: if there is no such line, or several
    """
    found = find(pattern, text,
                 f'no complete line "{what}": the output is not complete')
    check_single(text, pattern)
    return figure(found[1], what)


def whole(word: str, what: str) -> int:
    """Read a whole number of at least 0 and at most 18 digits.

    :raises InvalidOutput: otherwise
    """
    number = words.read_whole(word)
    if number is None:
        raise InvalidOutput(f'{what} is {texts.quote(word[:40])!r}, which is '
                            'not a whole number of at most 18 digits')
    return number


def find_parameters(text: str,
                    **patterns: re.Pattern[str]) -> dict[str, str]:
    """Return the first group that each pattern finds in a text, by name."""
    found = {name: pattern.search(text) for name, pattern in patterns.items()}
    return {name: next(filter(None, match.groups()))
            for name, match in found.items() if match}


#: The remark on a table without an end marker, which may be truncated.
NO_END = ('the output has no end marker; only --expect max_size can show that '
          'it is complete')


def check_columns(rows: Iterable[str], what: str) -> None:
    """Refuse rows that do not end in the same column.

    Columns of fixed width make all rows equally long; a row that lost digits
    is shorter.

    :raises InvalidOutput: if a row is longer or shorter than another
    """
    require(len({len(row.rstrip()) for row in rows}) < 2,
            f'a row of {what} is broken: the columns do not align')


def check_ascending(sizes: Sequence[int]) -> None:
    """Refuse a table that was printed twice or is out of order.

    :raises InvalidOutput: if the sizes do not rise from row to row
    """
    for before, size in itertools.pairwise(sizes):
        require(size > before,
                f'{size} bytes follow {before} bytes: several tables in one '
                'file, or rows out of order')


def read_sizes(words: Iterable[str]) -> list[int]:
    """Read the sizes of a table in which each is twice the previous one.

    After 0 comes 1.

    :raises InvalidOutput: if a size is missing or out of order
    """
    sizes = [whole(word, 'the message size') for word in words]
    check_ascending(sizes)
    for before, size in itertools.pairwise(sizes):
        require(size == (2 * before or 1), 'no row for '
                f'{2 * before or 1} bytes: {size} follow {before}')
    return sizes


def check_begin(sizes: Sequence[int], expect: Mapping[str, str]) -> None:
    """Refuse a table without its first rows.

    :raises InvalidOutput: if it begins above 1 byte and ``expect`` has no
        ``min_size``
    """
    require(sizes[0] <= 1 or 'min_size' in expect,
            f'the table begins at {sizes[0]} bytes: rows are missing, unless '
            f'this is the smallest size (--expect min_size={sizes[0]})')


def check_ends(sizes: Sequence[int], expect: Mapping[str, str], smallest: int,
               largest: int) -> tuple[str, ...]:
    """Check that a table begins and ends as the program does by default.

    By default the program measures several sizes, so a single one must have
    been requested.

    :param smallest: where the table begins at the latest
    :param largest: where it ends at the earliest
    :returns: a remark on a single size
    :raises InvalidOutput: if rows are missing, unless ``expect`` has
        ``min_size`` or ``max_size``
    """
    if len(sizes) == 1 and sizes[0] > 1 and 'min_size' not in expect:
        remark = (f'only {sizes[0]} bytes were measured; the output does not '
                  'say whether more were requested (--expect min_size)')
        return (remark,)
    require('max_size' in expect or sizes[-1] >= largest,
            f'the table ends at {sizes[-1]} bytes: rows are missing, unless '
            f'this is the largest size (--expect max_size={sizes[-1]})')
    if len(sizes) > 1 and sizes[0] > smallest:
        check_begin(sizes, expect)
    return ()


def describe_sizes(sizes: Sequence[int]) -> dict[str, str]:
    """Return the parameters of a table over these sizes."""
    return {'min_size': str(sizes[0]), 'max_size': str(sizes[-1]),
            'rows': str(len(sizes))}


def load_document(text: str) -> dict[str, Any] | None:
    """Read a JSON object; None if the text is something else.

    :raises InvalidOutput: for invalid JSON, or one with NaN or infinity, or
        text that cannot be encoded
    """
    stripped = text.strip()
    if not stripped.startswith('{'):
        return None
    try:
        document = json.loads(stripped, parse_constant=_refuse,
                              parse_int=_read_integer)
        if r'\ud' in stripped.lower():
            # An unpaired surrogate could not be stored.
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:
        raise Missing(f'not a complete JSON document: {exc}') from exc
    return document if isinstance(document, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise InvalidOutput(f'the document contains {constant}')


def _read_integer(word: str) -> int:
    # The others are refused where they are used, by their names.
    require(len(word) <= _MAX_DIGITS,
            f'the document contains a number of {len(word)} digits')
    return int(word)


def inner(document: object, *path: str) -> object:
    """Return the value at a path of keys, None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def score(value: object, what: str) -> float:
    """Check that a value of a document is a plausible number.

    :raises InvalidOutput: otherwise
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOutput(
            f'{what} is {value!r:.60}, which is not a number')
    require(SMALLEST <= value <= LARGEST,
            f'{what} is {value!r:.60}, which is not above 0 or not a '
            'measurement')
    return float(value)
