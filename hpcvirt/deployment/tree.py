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

"""The files that configure hosts."""

import dataclasses
import textwrap
from collections.abc import Iterator

from hpcvirt import bibliography

#: The first line of every file, by which hpcvirt knows its own files.
MARK = '# Written by "hpcvirt host config".'

_WIDTH = 79


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file of a host, or of a deployment tool.

    :ivar path: relative to the root of the host, or to the folder of the tool
    :ivar text: its whole content, beginning with :data:`MARK`
    :ivar activate: what makes it effective, in this order
    """

    path: str
    text: str
    activate: tuple[str, ...] = ()


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
