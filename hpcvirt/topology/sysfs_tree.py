# SPDX-License-Identifier: Apache-2.0

"""Read the files of a sysfs, of the running machine or of a copy."""

import os
import pathlib
import socket
import stat
from collections.abc import Collection

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import printable
from hpcvirt.model import cpuset
from hpcvirt.topology import bitmap
from hpcvirt.topology import document

#: The longest file is a list of 8192 CPUs.
_MAX_BYTES = 1024 * 1024

#: The folders of the kernel's own file systems.
_OF_KERNEL = ('sys/', 'proc/')

#: Folders without ordinary files, to which a link must not lead.
_NO_FILES = ('/sys/', '/proc/', '/dev/')


class SysfsTree:
    """The files below a root, by name: ``sys/...``, ``proc/...``.

    :param root: ``/``, the root of a copy, or the ``sys`` directory of one
    :ivar is_running: whether it is the running machine
    :raises InvalidInput: if there is no sysfs
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.where = str(root)
        top = os.path.realpath(root)
        if os.path.isdir(f'{top}/devices/system/cpu'):
            self._root = os.path.dirname(top)
            self._tops = {'sys': top}
        else:
            self._root = top
            self._tops = {}
        sysfs = self._below('sys')
        if not os.path.isdir(f'{sysfs}/devices/system/cpu'):
            raise exception.InvalidInput(
                self.where, 'has no sys/devices/system/cpu in it')
        self.is_running = sysfs == '/sys'
        self._folders: dict[str, str | None] = {}

    def text(self, name: str,
             owners: Collection[int] | None = None) -> str | None:
        """Read a file without surrounding white space; None if missing.

        A link to /dev/null, as "systemctl mask" makes, is an empty file.

        :param owners: the users who may own the file; None for any
        """
        data = self.data(name, owners)
        if data is None:
            return None
        try:
            # A user can give a process a name that is not text.
            text = data.decode(errors='replace' if name.startswith('proc/')
                               else 'strict')
        except UnicodeDecodeError as exc:
            raise exception.InvalidInput(self._below(name),
                                         'is not text') from exc
        # Older kernels end their lists with a NUL.
        return text.strip(' \t\r\n\0')

    def data(self, name: str,
             owners: Collection[int] | None = None) -> bytes | None:
        """Read the bytes of a file; see :meth:`text`."""
        path = self._path(name)
        if path is None:
            return None
        if path == os.devnull:
            return b''
        return input_file.find_content(path, _MAX_BYTES, self._below(name),
                                       owners=owners)

    @property
    def is_mounted(self) -> bool:
        """Whether this is a running machine whose root is mounted here."""
        return self.is_running or all(
            os.path.ismount(self._below(name)) for name in ('proc', 'sys'))

    def _is_of_kernel(self, name: str) -> bool:
        """Whether the running kernel provides a file, whose links are safe."""
        return self.is_running and name.startswith(_OF_KERNEL)

    def beginning(self, name: str, most: int) -> str | None:
        """Read at most the first bytes of a file; None if missing."""
        path = self._path(name)
        if path is None or not os.path.lexists(path):
            return None
        return input_file.beginning(path, most, self._below(name)).decode(
            errors='replace')

    def need(self, name: str) -> str:
        """Read a file that the kernel always provides."""
        text = self.text(name)
        if text is None:
            raise exception.InvalidInput(self._below(name), 'is missing')
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
                                      self._below(as_map))
        return cpuset.parse(self.need(name), self._below(name))

    def number(self, name: str, most: int, least: int = 0) -> int:
        """Read a number that the kernel always provides."""
        return document.whole(self.need(name), self._below(name),
                              'the content', most, least)

    def names(self, name: str) -> list[str]:
        """List a directory; empty if it is missing."""
        path = self._path(name)
        try:
            return [] if path is None else sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as exc:
            raise exception.InvalidInput(
                self._below(name),
                f'cannot be listed ({exc.strerror or exc})') from exc

    def link_target(self, name: str) -> str | None:
        """Return the target of a symbolic link; None if it is none."""
        try:
            return os.readlink(self._below(name))
        except (OSError, ValueError):
            return None

    def host_name(self) -> str:
        """Return the host name; the directory name if a copy has none."""
        if self.is_running:
            return socket.gethostname()
        name = (self.text('proc/sys/kernel/hostname')
                or self.text('etc/hostname')
                or os.path.basename(self._root))
        return printable.one_line(name) or 'host'

    def small_page_kib(self) -> int | None:
        """Return the page size of the running kernel; None for a copy."""
        return os.sysconf('SC_PAGE_SIZE') // 1024 if self.is_running else None

    def _below(self, name: str) -> str:
        top, _, rest = name.partition('/')
        # The root "/" has its slash already.
        found = self._tops.get(top) or f'{self._root.rstrip("/")}/{top}'
        return f'{found}/{rest}' if rest else found

    def _path(self, name: str) -> str | None:
        """Resolve the links of a name; refuse links that leave the copy."""
        here = self._below(name)
        if self._is_of_kernel(name):
            return here
        folder, _, last = here.rpartition('/')
        if folder not in self._folders:
            self._folders[folder] = self._resolved(folder or '/', here)
        found = self._folders[folder]
        if found is None:
            return None
        path = f'{found.rstrip("/")}/{last}'
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as exc:
            raise _unreadable(here, exc) from exc
        return self._resolved(path, here) if is_link else path

    def _resolved(self, path: str, here: str) -> str | None:
        """Resolve all links of a path.

        :param here: the path to name in an error
        """
        try:
            found = os.path.realpath(path, strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as exc:
            raise _unreadable(here, exc) from exc
        if found == os.devnull:
            return found
        if not f'{found}/'.startswith(f'{self._root.rstrip("/")}/'):
            raise exception.InvalidInput(
                here, 'is a link that leads out of the copy')
        if self.is_running and found.startswith(_NO_FILES):
            raise exception.InvalidInput(
                here, f'is a link to {found}, which is not a file on a disk')
        return found


def _unreadable(where: str, exc: Exception) -> exception.InvalidInput:
    reason = getattr(exc, 'strerror', None) or exc
    return exception.InvalidInput(where, f'cannot be read ({reason})')
