# SPDX-License-Identifier: Apache-2.0

"""Read and write the files of a host, or of a deployment tool.

Folders are opened once and used by their descriptors, so that nobody can
exchange one for a link meanwhile. A link to a folder is followed if nobody
else can change it and it stays in the root; a link to a file is not followed.
Each file that is replaced or removed is copied first.
"""

import contextlib
import datetime
import errno
import fnmatch
import os
import pathlib
import shutil
import stat
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt.deployment import steps as step_model
from hpcvirt.model import cpuset

_MAX_BYTES = 1024 * 1024

#: The most links on the way to a folder.
_MAX_LINKS = 8

#: The folder of backups that are not complete.
_DRAFT = '.hpcvirt-draft'


def read_present(root: pathlib.Path, paths: Iterable[str]) -> dict[str, str]:
    """Read those of the files that are there.

    :raises InvalidInput: for one that is no file, cannot be read, or leads
        out of the root
    """
    if not os.path.lexists(root):
        return {}
    with contextlib.closing(_Folders(root)) as folders:
        return {path: _decode(present[0]) for path in paths
                if (present := folders.read(path))}


def read_matching(root: pathlib.Path, patterns: Iterable[str],
                  ) -> tuple[dict[str, str], list[str]]:
    """Read the files that match patterns; links are followed.

    :param patterns: paths whose last parts may be patterns
    :returns: path -> content, and the patterns of those that cannot be read,
        as happens without root
    """
    found: dict[str, str] = {}
    unread: list[str] = []
    with contextlib.closing(_Folders(root)) as folders:
        for pattern in patterns:
            try:
                for path in folders.list_files(pattern):
                    if present := folders.read(path, follow=True):
                        found[path] = _decode(present[0])
            except (exception.InvalidInput, OSError):
                unread.append(pattern)
    return found, unread


def write(root: pathlib.Path, steps: Sequence[step_model.FileChange],
          backups: str) -> pathlib.Path | None:
    """Write the files, and keep a copy of each that is replaced.

    A new file can be read by everybody, whatever the umask; another keeps its
    mode and its owner. Only the caller can read the copies.

    :param backups: the folder for copies, relative to the root
    :returns: the folder of the copies; None if nothing was there before
    :raises InvalidInput: before anything is written, for a file that hpcvirt
        did not write or that has changed since it was compared, and for a
        path that leads out of the root
    """
    steps = [step for step in steps
             if step.change is not step_model.FileStatus.SAME]
    with contextlib.ExitStack() as stack:
        # New folders have the modes that they are made with.
        stack.callback(os.umask, os.umask(0o022))
        folders = stack.enter_context(contextlib.closing(_Folders(root)))
        before = {}
        for step in steps:
            path = step.file.path
            if step.change is step_model.FileStatus.FOREIGN:
                raise exception.InvalidInput(
                    str(root / path), 'was not written by hpcvirt; move its '
                    'content to another file of yours, and remove it')
            folders.require_writable(os.path.dirname(path))
            present = folders.read(path)
            if (present and _decode(present[0])) != step.before:
                raise exception.InvalidInput(
                    str(root / path),
                    'has changed since it was compared; run the command again')
            if present:
                before[path] = present
        kept = _back_up(folders, before, backups) if before else None
        for step in steps:
            folder, name = folders.place(step.file.path, 0o755)
            if step.change is step_model.FileStatus.REMOVED:
                os.unlink(name, dir_fd=folder)
                continue
            content, mode, owner = step.file.text.encode(), 0o644, None
            if step.file.path in before:
                _, status = before[step.file.path]
                mode = stat.S_IMODE(status.st_mode)
                owner = status.st_uid, status.st_gid
            output_file.replace_in(folder, name, content, mode, owner)
    return None if kept is None else root / kept


def _back_up(folders: '_Folders',
             files: dict[str, tuple[bytes, os.stat_result]],
             backups: str) -> str:
    """Write copies, all or none; return their folder."""
    folders.place(backups, 0o755)
    top, _ = folders.place(f'{backups}/{_DRAFT}', 0o700)
    # What a run that was killed has left.
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(_DRAFT, dir_fd=top)
    for path, (content, _) in files.items():
        output_file.replace_in(
            *folders.place(f'{backups}/{_DRAFT}/{path}', 0o700), content)
    kept = f'{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S.%fZ}'
    os.rename(_DRAFT, kept, src_dir_fd=top, dst_dir_fd=top)
    return f'{backups}/{kept}'


def identify(root: pathlib.Path) -> tuple[str | None, frozenset[int] | None]:
    """Find the name and the online CPUs of the host that a root belongs to.

    :returns: each None if the root does not say it, as the root of an image
        does not have /sys
    """
    def read(path: str) -> str | None:
        with contextlib.suppress(exception.InvalidInput):
            return _decode(input_file.content(
                root / path, _MAX_BYTES)).strip() or None
        return None

    cpus = read('sys/devices/system/cpu/online')
    return (read('proc/sys/kernel/hostname') or read('etc/hostname'),
            None if cpus is None else cpuset.parse(cpus, str(root)))


def _decode(content: bytes) -> str:
    return content.decode(errors='replace')


class _Folders:
    """The folders below a root, each opened once and kept open."""

    _FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._open = {'': os.open(root, self._FLAGS)}

    def close(self) -> None:
        """Close all of them."""
        for folder in self._open.values():
            os.close(folder)

    def read(self, path: str, follow: bool = False,
             ) -> tuple[bytes, os.stat_result] | None:
        """Read a file; return its content and status, None if missing.

        :param follow: whether the file may be a link
        """
        parent, name = os.path.split(path)
        folder = self._find(parent)
        if folder is None:
            return None
        where = str(self._root / path)
        try:
            with input_file.open_file(name, where, folder=folder,
                                      follow=follow) as stream:
                return (input_file.read_whole(stream, _MAX_BYTES, where),
                        os.fstat(stream.fileno()))
        except exception.InvalidInput as exc:
            if isinstance(exc.__cause__, FileNotFoundError):
                return None
            raise

    def list_files(self, pattern: str, folders: bool = False) -> list[str]:
        """List what matches; nothing without the folder.

        :param folders: whether folders are listed, instead of files
        """
        path, names = os.path.split(pattern)
        found = []
        for parent in (self.list_files(path, True) if '*' in path else [path]):
            folder = self._find(parent)
            if folder is not None and '*' not in names:
                found.append(os.path.join(parent, names))
            elif folder is not None:
                with os.scandir(folder) as entries:
                    found += sorted(
                        os.path.join(parent, entry.name) for entry in entries
                        if fnmatch.fnmatch(entry.name, names)
                        and entry.is_dir() is folders)
        return found

    def place(self, path: str, mode: int) -> tuple[int, str]:
        """Return the folder that a file is in, and its name there.

        :param mode: of the folders that have to be made
        """
        parent, name = os.path.split(path)
        folder = self._find(parent, mode)
        if folder is None:  # removed again meanwhile
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT),
                                    str(self._root / parent))
        return folder, name

    def require_writable(self, path: str) -> None:
        """Check that a folder can be written, or made.

        :raises PermissionError: if it cannot
        """
        while (folder := self._find(path)) is None:
            path = os.path.dirname(path)
        if not os.access('.', os.W_OK | os.X_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES),
                                  str(self._root / path))

    def _find(self, path: str, mode: int | None = None,
              links: int = 0) -> int | None:
        """Open a folder.

        :param mode: None if it is not made where it is missing
        :param links: how many have led here
        """
        path = '' if path == '.' else path
        if path in self._open:
            return self._open[path]
        parent, name = os.path.split(path)
        above = self._find(parent, mode, links)
        if above is None:
            return None
        place = self._root / path
        try:
            if mode is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=above)
            folder = os.open(name, self._FLAGS | os.O_NOFOLLOW, dir_fd=above)
        except FileNotFoundError:
            return None
        except NotADirectoryError as exc:
            target = self._follow(above, parent, name)
            if target is None or links > _MAX_LINKS:
                raise exception.InvalidInput(
                    str(place), 'is not a folder') from exc
            return self._find(target, mode, links + 1)
        except OSError as exc:
            raise exception.InvalidInput(
                str(place), f'cannot be opened ({exc.strerror})') from exc
        self._open[path] = folder
        return folder

    def _follow(self, above: int, parent: str, name: str) -> str | None:
        """Return the path below the root that a link leads to.

        :returns: None if it is no link
        """
        place = self._root / parent / name
        try:
            target = os.readlink(name, dir_fd=above)
        except OSError:
            return None
        status = os.fstat(above)
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise exception.InvalidInput(
                str(place), 'is a symbolic link that others can change')
        found = os.path.relpath(
            os.path.join(os.readlink(f'/proc/self/fd/{above}'), target),
            os.path.realpath(self._root))
        if found.split('/')[0] == '..':
            raise exception.InvalidInput(
                str(place), f'leads out of {self._root} by a symbolic link')
        return found
