# SPDX-License-Identifier: Apache-2.0

"""Read configuration files with the parser of oslo.config.

If an option occurs several times, the last value counts; a later file
overrides an earlier one. All values of all files count if the option may be
repeated.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import iniparser

Sections = Mapping[tuple[str, str], tuple[str, ...]]


class Malformed(Exception):
    """A file that oslo.config refuses."""


class _Parser(iniparser.BaseParser):
    """Collects the values of options.

    :ivar found: (group, option) -> its values in order
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list[str]] = {}
        self._group: str | None = None

    def new_section(self, section: str) -> None:
        self._group = normalize(section)

    def assignment(self, key: str, value: list[str]) -> None:
        if self._group is None:
            raise self.parse_exc('no section before this line', self.lineno,
                                 key)
        self.found.setdefault((self._group, key), []).append('\n'.join(value))


def parse(text: str) -> Sections:
    """Read the content of a file.

    :returns: (group, option) -> its values in order; the names of groups are
        in lower case, but for DEFAULT
    :raises Malformed: naming the line
    """
    parser = _Parser()
    try:
        parser.parse(text.split('\n'))
    except iniparser.ParseError as exc:
        raise Malformed(f'line {exc.lineno}: {exc.msg}') from exc
    return {name: tuple(values) for name, values in parser.found.items()}


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
