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

"""Where results are kept, and who may write there."""

import os
import stat

from hpcvirt import exception

#: The database, in the directory of raw outputs.
DATABASE = 'bench.sqlite'


def default_directory() -> str:
    """The directory of raw outputs, by the XDG base directory rules."""
    home = os.environ.get('XDG_DATA_HOME') or os.path.expanduser(
        '~/.local/share')
    return os.path.join(home, 'hpcvirt')


def make_directory(path: str) -> None:
    """Make a directory that only its owner can enter, if it is missing.

    :raises InvalidInput: if it cannot be made, or if another user than root
        owns it, or if everybody may write to it
    """
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        status = os.stat(path)
    except (OSError, ValueError) as exc:
        what = getattr(exc, 'strerror', None) or str(exc)
        raise exception.InvalidInput(path, what) from exc
    if status.st_uid not in (0, os.geteuid()):
        raise exception.InvalidInput(
            path, f'belongs to another user ({status.st_uid}); give a '
            'directory of your own')
    if status.st_mode & stat.S_IWOTH:
        raise exception.InvalidInput(
            path, 'is a directory that everybody may write to; give one of '
            'your own')
