# SPDX-License-Identifier: Apache-2.0

"""The files that configure hosts, and how their text is written."""

import dataclasses
import textwrap
from collections.abc import Iterable
from typing import Any

import yaml

from hpcvirt import bibliography

#: The first line of every file, by which hpcvirt knows its own files.
MARK = '# Written by "hpcvirt host config".'

#: The last line of hpcvirt in a file that it shares with the site.
END = ('# End of what hpcvirt wrote. Put your options below, with the headers '
       'of their sections.\n')

_WIDTH = 79


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file of a host, or of a deployment tool.

    :ivar path: relative to the root of the host, or to the folder of the tool
    :ivar text: its whole content, beginning with :data:`MARK`
    :ivar activate: what makes it effective, in this order
    :ivar shared: whether the site has its own lines after :data:`END`
    """

    path: str
    text: str
    activate: tuple[str, ...] = ()
    shared: bool = False


def make_file(path: str, about: str, *blocks: str, source: str = '',
              activate: tuple[str, ...] = (), shared: bool = False) -> File:
    """Write a file.

    :param about: what the file is for
    :param blocks: what follows; an empty one is left out
    :param source: the key of the document behind the advice
    """
    head = '\n'.join((MARK, *comment(about, source)))
    return File(path, '\n'.join((
        *(f'{block.rstrip()}\n' for block in (head, *blocks)
          if block.strip()), *((END,) if shared else ()))), activate, shared)


def comment(words: str, source: str = '') -> list[str]:
    """Wrap a comment, with the document behind it."""
    if source:
        words = f'{words} {bibliography.get(source).citation}'
    return textwrap.wrap(
        words, _WIDTH, initial_indent='# ', subsequent_indent='# ',
        break_on_hyphens=False, break_long_words=False)


def explain(lines: Iterable[str], why: str, source: str = '') -> list[str]:
    """Write lines below the comment on them; nothing without a line."""
    found = list(lines)
    return [*comment(why, source), *found] if found else []


class _Dumper(yaml.SafeDumper):
    """Write text of several lines as it is, and lists below their key."""

    def increase_indent(self, flow: bool = False,
                        indentless: bool = False) -> None:
        """Indent lists, as ansible-lint wants them."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar('tag:yaml.org,2002:str', text,
                                   '|' if '\n' in text else None)


_Dumper.add_representer(str, _text)


def make_yaml_file(path: str, about: str, *documents: Any) -> File:
    """Write documents as a file."""
    return File(path, make_file(path, about).text + dump_yaml(*documents))


def dump_yaml(*documents: Any) -> str:
    """Write documents as text."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False,
                         width=10_000, explicit_start=True)
