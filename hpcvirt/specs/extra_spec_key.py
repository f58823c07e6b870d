# SPDX-License-Identifier: Apache-2.0

"""The keys of extra specs, and the types of their values.

A key has a name, perhaps with places for numbers or names, and the type of its
values. For example, ``hw:numa_mem.{num}`` is a key for integers from 1, and
``hw:numa_mem.0`` is one of its names. :mod:`hpcvirt.specs.vocabulary` has the
table of all keys.
"""

import dataclasses
import enum
import functools
import re
from collections.abc import Mapping

from hpcvirt import exception

#: The words that Nova (oslo.utils) accepts as booleans, in any case.
TRUE_WORDS = frozenset({'1', 't', 'true', 'on', 'y', 'yes'})
FALSE_WORDS = frozenset({'0', 'f', 'false', 'off', 'n', 'no'})


class ValueType(enum.StrEnum):
    """The type of a value. The Compute API transfers every value as text."""

    INTEGER = 'integer'
    BOOLEAN = 'boolean'
    CHOICE = 'choice'
    TEXT = 'text'


@dataclasses.dataclass(frozen=True)
class ExtraSpecKey:
    """A row of the vocabulary.

    :ivar name: the key, with placeholders such as ``{num}``
    :ivar kind: the type of the value
    :ivar help: one sentence for an operator
    :ivar choices: the values of a CHOICE
    :ivar pattern: the regular expression that a TEXT value matches as a whole
    :ivar minimum: the smallest INTEGER; None without a limit
    :ivar maximum: the largest INTEGER; None without a limit
    :ivar parts: the regular expression of each placeholder in the name
    """

    name: str
    kind: ValueType
    help: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    parts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The part of the name before the colon, without placeholders."""
        return self.name.partition(':')[0].partition('{')[0]

    @functools.cached_property
    def name_pattern(self) -> re.Pattern[str]:
        text = re.escape(self.name)
        for part, pattern in self.parts.items():
            text = text.replace(re.escape(f'{{{part}}}'), f'(?:{pattern})')
        return re.compile(text)

    @property
    def values(self) -> str:
        """A description of the values, for messages and documentation."""
        if self.kind is ValueType.CHOICE:
            return ', '.join(self.choices)
        if self.kind is ValueType.BOOLEAN:
            return 'true, false'
        if self.kind is ValueType.INTEGER:
            low = '' if self.minimum is None else f' from {self.minimum}'
            high = '' if self.maximum is None else f' to {self.maximum}'
            return f'integer{low}{high}'
        return 'text' if self.pattern is None else self.pattern

    def matches(self, name: str) -> bool:
        return self.name_pattern.fullmatch(name) is not None

    def at(self, **parts: object) -> str:
        """Fill in the placeholders: ``NUMA_CPUS.at(num=1)``."""
        return self.name.format(**parts)

    def check(self, value: str, name: str | None = None) -> None:
        """Check the type of a value.

        :param value: the text in the flavor
        :param name: the concrete name, if the name has placeholders
        :raises InvalidInput: naming the key and its values
        """
        if not self.accepts(value):
            raise exception.InvalidInput(
                name or self.name,
                f'{value[:64]!r} is not one of its values ({self.values})')

    def accepts(self, value: str) -> bool:
        """Whether a value is of the type."""
        if self.kind is ValueType.CHOICE:
            return value in self.choices
        if self.kind is ValueType.BOOLEAN:
            return truth(value) is not None
        if self.kind is ValueType.TEXT:
            return self.pattern is None or bool(
                re.fullmatch(self.pattern, value))
        number = integer(value)
        if number is None:
            return False
        return ((self.minimum is None or number >= self.minimum)
                and (self.maximum is None or number <= self.maximum))


def integer(value: str) -> int | None:
    """Read an integer with int(), as Nova does; None if it is not one.

    ``+2``, ``1_000``, surrounding blanks and digits of any script are valid.
    """
    try:
        return int(value)
    except ValueError:
        return None


def truth(value: str) -> bool | None:
    """Read a boolean as Nova does; None if it is not one."""
    word = value.strip().lower()
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS else None


def choice(name: str, choices: tuple[str, ...],
           help_line: str) -> ExtraSpecKey:
    """Make a key whose value is one of several words."""
    return ExtraSpecKey(name, ValueType.CHOICE, help_line, choices=choices)


def flag(name: str, help_line: str) -> ExtraSpecKey:
    """Make a key whose value is a boolean."""
    return ExtraSpecKey(name, ValueType.BOOLEAN, help_line)


def count(name: str, help_line: str, minimum: int = 1,
          maximum: int | None = None) -> ExtraSpecKey:
    """Make a key whose value is an integer, at least 1 by default."""
    return ExtraSpecKey(name, ValueType.INTEGER, help_line, minimum=minimum,
                        maximum=maximum)


def text(name: str, pattern: str | None, help_line: str) -> ExtraSpecKey:
    """Make a key whose value is a text, which may have to match a pattern."""
    return ExtraSpecKey(name, ValueType.TEXT, help_line, pattern=pattern)
