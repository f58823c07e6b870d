# SPDX-License-Identifier: Apache-2.0

"""The pages of the documentation."""

import pathlib

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
