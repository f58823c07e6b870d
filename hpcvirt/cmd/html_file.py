# SPDX-License-Identifier: Apache-2.0

"""Write a page that a command makes."""

import os
import pathlib

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file


def check(path: str, title: str) -> None:
    """Check that nothing but such a page would be replaced.

    A command that takes long asks before it begins.

    :raises InvalidInput: if the file is something else
    """
    target = pathlib.Path(path)
    mark = f'<title>{title}</title>'
    try:
        if os.path.lexists(target) and mark.encode() not in (
                input_file.beginning(target, 4096)):
            raise exception.InvalidInput(
                path, 'exists and is no report; it is left as it is')
        target.parent.stat()
    except OSError as exc:
        raise exception.InvalidInput(path, exc.strerror or str(exc)) from exc


def write(path: str, content: str, title: str) -> None:
    """Write a page in one step; replace nothing but such a page.

    :param title: of the page
    :raises InvalidInput: if the file cannot be written, or is something else
    """
    check(path, title)
    try:
        output_file.replace(pathlib.Path(path), content.encode(), 0o644)
    except OSError as exc:
        raise exception.InvalidInput(path, exc.strerror or str(exc)) from exc
