# SPDX-License-Identifier: Apache-2.0

"""Write the HTML page of a command."""

import os
import pathlib

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file


def check(path: str, title: str) -> None:
    """Check that a file is missing, or is a page with the same title.

    A command that takes long checks it before it begins.

    :raises InvalidInput: if the file is something else
    """
    target = pathlib.Path(path)
    mark = f'<title>{title}</title>'
    try:
        if os.path.lexists(target) and mark.encode() not in (
                input_file.beginning(target, 4096)):
            raise exception.InvalidInput(
                path, 'exists and is not a report; choose another file')
        target.parent.stat()
    except OSError as exc:
        raise exception.InvalidInput(path, exc.strerror or str(exc)) from exc


def write(path: str, content: str, title: str) -> None:
    """Write a page atomically; replace only a page with the same title.

    :raises InvalidInput: if the file cannot be written, or is something else
    """
    check(path, title)
    output_file.write(path, content.encode())
