# SPDX-License-Identifier: Apache-2.0

"""Write a file in one step: its readers see the former content or this one."""

import os
import pathlib
import tempfile


def replace(path: pathlib.Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file, or replace it; it is on the disk when this returns.

    :param path: the file, in a folder that exists
    :param mode: the permissions of the file
    :raises OSError: if that fails; what was there before is kept
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix='.hpcvirt-')
    try:
        with os.fdopen(handle, 'wb') as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
