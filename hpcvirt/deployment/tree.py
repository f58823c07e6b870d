# SPDX-License-Identifier: Apache-2.0

"""The files that configure hosts, and how their text is written."""

import dataclasses
import textwrap
from collections.abc import Iterator
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


def text(about: str, *blocks: str, source: str = '') -> str:
    """Write the content of a file.

    :param about: what the file is for
    :param blocks: what follows; an empty one is left out
    :param source: the key of the document behind the advice
    """
    head = f'{MARK}\n' + ''.join(
        f'{line}\n' for line in comment(about, source))
    return '\n'.join([head, *(f'{block.rstrip()}\n' for block in blocks
                              if block.strip())])


def comment(words: str, source: str = '', prefix: str = '# ',
            ) -> Iterator[str]:
    """Wrap a comment, with the document behind it."""
    if source:
        words = f'{words} {bibliography.get(source).citation}'
    yield from textwrap.wrap(
        words, _WIDTH, initial_indent=prefix, subsequent_indent=prefix,
        break_on_hyphens=False, break_long_words=False)


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


def yaml_text(about: str, *documents: Any) -> str:
    """Write documents as the content of a file."""
    return text(about) + ''.join(
        '---\n' + yaml.dump(document, Dumper=_Dumper, sort_keys=False,
                            width=10_000)
        for document in documents)
