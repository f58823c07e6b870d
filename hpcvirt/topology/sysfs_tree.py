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

"""Read the files of a sysfs: of the running machine, or of a copy."""

import os
import pathlib
import socket

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import printable
from hpcvirt.model import cpuset
from hpcvirt.topology import bitmap
from hpcvirt.topology import document

#: The longest file is a list of 8192 CPUs.
_MAX_BYTES = 1024 * 1024


class Tree:
    """The files below a root, by name: ``sys/...``, ``proc/...``.

    :param root: ``/``, the root of a copy, or the ``sys`` directory of one
    :ivar is_running: whether it is the running machine
    :raises InvalidInput: if there is no sysfs
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.where = str(root)
        top = pathlib.Path(os.path.realpath(root))
        if (top / 'devices/system/cpu').is_dir():
            self._sys, self._proc = top, top.parent / 'proc'
            self._root = top.parent
        else:
            self._sys, self._proc = top / 'sys', top / 'proc'
            self._root = top
        if not (self._sys / 'devices/system/cpu').is_dir():
            raise exception.InvalidInput(
                self.where, 'has no sys/devices/system/cpu in it')
        self.is_running = self._sys == pathlib.Path('/sys')

    def text(self, name: str) -> str | None:
        """Read a file without surrounding white space; None if missing."""
        path = self._path(name)
        if path is None:
            return None
        here = self._where(name)
        try:
            text = input_file.content(path, _MAX_BYTES, here).decode()
        except UnicodeDecodeError as exc:
            raise exception.InvalidInput(here, 'is not text') from exc
        # Older kernels end their lists with a NUL.
        return text.strip(' \t\r\n\0')

    def beginning(self, name: str, most: int) -> str | None:
        """Read no more than the first bytes of a file; None if missing."""
        path = self._path(name)
        if path is None:
            return None
        return input_file.beginning(path, most, self._where(name)).decode(
            errors='replace')

    def need(self, name: str) -> str:
        """Read a file that the kernel always provides."""
        text = self.text(name)
        if text is None:
            raise exception.InvalidInput(self._where(name), 'is missing')
        return text

    def cpus(self, name: str, as_map: str = '') -> frozenset[int]:
        """Read a list of CPUs that the kernel always provides.

        :param as_map: the file with the same CPUs as a bitmap; some copies
            have only this file
        """
        if as_map and self.text(name) is None:
            text = self.text(as_map)
            if text is not None:
                return bitmap.members(text, range(cpuset.MAX_CPU + 1),
                                      self._where(as_map))
        return cpuset.parse(self.need(name), self._where(name))

    def number(self, name: str, most: int, least: int = 0) -> int:
        """Read a number that the kernel always provides."""
        return document.whole(self.need(name), self._where(name),
                              'the content', most, least)

    def names(self, name: str) -> list[str]:
        """List a directory; empty if it is missing."""
        path = self._path(name)
        if path is None:
            return []
        try:
            return sorted(os.listdir(path))
        except OSError as exc:
            raise exception.InvalidInput(
                self._where(name),
                f'cannot be listed ({exc.strerror or exc})') from exc

    def link_name(self, name: str) -> str | None:
        """Return the last component of the target of a symbolic link."""
        try:
            target = os.readlink(self._below(name))
        except (OSError, ValueError):
            return None
        return target.rpartition('/')[2]

    def host_name(self) -> str:
        """Return the host name; of a copy without one, the directory name."""
        if self.is_running:
            return socket.gethostname()
        name = (self.text('proc/sys/kernel/hostname')
                or self.text('etc/hostname') or self._root.name)
        return printable.one_line(name) or 'host'

    def small_page_kib(self) -> int | None:
        """Return the page size of the running kernel; None for a copy."""
        return os.sysconf('SC_PAGE_SIZE') // 1024 if self.is_running else None

    def _where(self, name: str) -> str:
        return str(self._below(name))

    def _below(self, name: str) -> pathlib.Path:
        top, _, rest = name.partition('/')
        tops = {'sys': self._sys, 'proc': self._proc}
        return tops.get(top, self._root / top) / rest

    def _path(self, name: str) -> pathlib.Path | None:
        """Resolve the links of a name; refuse links that leave the copy."""
        try:
            path = pathlib.Path(os.path.realpath(self._below(name),
                                                 strict=True))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise exception.InvalidInput(
                self._where(name),
                f'cannot be read ({exc.strerror or exc})') from exc
        if not path.is_relative_to(self._root):
            raise exception.InvalidInput(
                self._where(name), 'is a link that leads out of the copy')
        return path
