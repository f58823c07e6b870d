# SPDX-License-Identifier: Apache-2.0

"""Compare the terminal sessions in documents with real output.

A literal block of a page shows commands after ``$``, which may continue after
a backslash, and their output below. A line ``...`` stands for any lines.
"""

import pathlib
import re
import textwrap
from collections.abc import Iterator

_BLOCK = re.compile(r'::(?: console)?\n\n((?:[ ]+.*\n|\n)+)')
_COMMAND = re.compile(r'^\$ (.*)$', re.MULTILINE)
_CONTINUED = re.compile(r' \\\n +')
_ANY = re.compile(r'^\.\.\.$', re.MULTILINE)


def commands(page: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield each command on a page, and the output that it shows."""
    for block in _BLOCK.findall(page.read_text()):
        joined = _CONTINUED.sub(' ', textwrap.dedent(block))
        _, *parts = _COMMAND.split(joined)
        yield from zip(parts[::2], parts[1::2], strict=True)


def is_printed(shown: str, output: str) -> bool:
    """Whether a page shows an output, except for lines ``...``."""
    pattern = r'[\s\S]*'.join(re.escape(part.strip('\n'))
                              for part in _ANY.split(shown))
    return re.search(pattern, output) is not None
