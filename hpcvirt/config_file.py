# SPDX-License-Identifier: Apache-2.0

"""Read configuration files as oslo.config reads them, without oslo.config.

A line that begins with white space continues the value before it. Quotes
around a value are removed. If an option occurs several times, the last value
counts; a later file overrides an earlier one. All values of all files count if
the option may be repeated.
"""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

Sections = Mapping[tuple[str, str], tuple[str, ...]]


class Malformed(Exception):
    """A file that oslo.config refuses."""


def parse(text: str) -> Sections:
    """Read the content of a file.

    :returns: (group, option) -> its values in order; the names of groups are
        in lower case, but for DEFAULT
    :raises Malformed: naming the line
    """
    found: dict[tuple[str, str], list[str]] = {}
    group: str | None = None
    key: str | None = None
    for number, raw in enumerate(text.split('\n'), 1):
        line = raw.rstrip()
        if not line:
            key = None
        elif line[0] in ' \t':
            if key is None or group is None:
                raise Malformed(f'line {number} continues no value')
            found[group, key][-1] += '\n' + line.lstrip()
        elif line[0] == '[':
            match = re.fullmatch(r'\[(.+)\]', line)
            if match is None:
                raise Malformed(f'line {number} is no group')
            group, key = normalize(match[1]), None
        elif line[0] in '#;':
            key = None
        else:
            match = re.fullmatch(r'([^=:]+?)\s*[=:](.*)', line)
            if match is None:
                raise Malformed(f'line {number} is no option')
            if group is None:
                raise Malformed(f'line {number} is in no group')
            key = match[1]
            found.setdefault((group, key), []).append(_unquoted(match[2]))
    return {name: tuple(values) for name, values in found.items()}


def normalize(group: str) -> str:
    """Write the name of a group as oslo.config compares it."""
    return group if group == 'DEFAULT' else group.lower()


def merge(files: Iterable[Sections], names: Sequence[tuple[str, str]],
          ) -> tuple[str, ...]:
    """Collect the values of one option.

    :param files: a later file overrides an earlier one
    :param names: the present group and name of the option, and those that it
        had before
    """
    values: list[str] = []
    for sections in files:
        # In one file, the present name has the last word.
        for group, name in reversed(names):
            values += sections.get((normalize(group), name), ())
    return tuple(values)


def is_true(text: str) -> bool:
    """Whether the value of a switch is on."""
    return text.strip().lower() in ('true', '1', 'on', 'yes')


def _unquoted(text: str) -> str:
    value = text.strip()
    if value and value[0] == value[-1] and value[0] in '"\'':
        return value[1:-1]
    return value
