# SPDX-License-Identifier: Apache-2.0

"""The pages of the documentation."""

import pathlib
import textwrap
import unittest

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / 'doc' / 'source'


def path(name: str) -> pathlib.Path:
    """Return the path of a page.

    :param name: its folder and name, as ``admin/filter``
    """
    return SOURCE / f'{name}.rst'


def read(*names: str) -> str:
    """Return the text of pages, in the order of their names."""
    return '\n'.join(path(name).read_text() for name in names)


def check_shown(test: unittest.TestCase, name: str, text: str) -> None:
    """Check that a page has a block with a text, or say what to put there."""
    block = textwrap.indent(text, '   ')
    if block not in read(name):
        test.fail(f'{path(name).relative_to(ROOT)} does not show:\n{block}')
