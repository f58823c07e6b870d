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
