# SPDX-License-Identifier: Apache-2.0

"""Read and write files below a root, where other users may own folders.

Folders are opened once and used by their descriptors, so that nobody can
exchange one for a link meanwhile. A link to a folder is followed if nobody
else can change it and it stays in the root; a link to a file is not followed.
Each file that is replaced or removed is copied first, and each is written in
one step.

``hpcvirt host config --apply`` uses this module, and so does the module
``hpcvirt.hpc.host_files`` of Ansible, which takes it to the hosts. It
therefore needs only Python 3.8, and nothing of hpcvirt.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import fnmatch
import os
import shutil
import stat
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence

#: The largest file that is read.
MAX_BYTES = 1024 * 1024

#: The most links on the way to a folder.
_MAX_LINKS = 8

#: The folder of backups that are not complete.
_DRAFT_FOLDER = '.hpcvirt-draft'

_DRAFT = '.hpcvirt-'
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISLNK, 'a symbolic link'),
    (stat.S_ISDIR, 'a directory'),
    (stat.S_ISFIFO, 'a FIFO'),
    (stat.S_ISSOCK, 'a socket'),
    (stat.S_ISCHR, 'a character device'),
    (stat.S_ISBLK, 'a block device'),
)


class FileRefused(Exception):
    """A file or folder that is not read or written.

    :ivar where: its path
    :ivar what: why, in one sentence without a full stop
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f'{where}: {what}')
        self.where = where
        self.what = what


class FileEdit(typing.NamedTuple):
    """What happens to a file.

    :ivar path: relative to the root
    :ivar before: the content that it must have; None if there must be none
    :ivar after: its new content, None to remove it
    """

    path: str
    before: str | None
    after: str | None


def refuse_foreign(where: str) -> FileRefused:
    """Return the refusal of a file that somebody else has written."""
    return FileRefused(where, 'was not written by hpcvirt; move its content '
                       'to another file of yours, and remove it')


def decode(content: bytes) -> str:
    """Decode the content of a file, whatever it is."""
    return content.decode(errors='replace')


def describe_kind(mode: int) -> str | None:
    """Say what something is that is no regular file; None for one."""
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            return kind
    return None


def _require_file(status: os.stat_result, where: str) -> None:
    kind = describe_kind(status.st_mode)
    if kind is not None:
        raise FileRefused(where, f'is {kind}, not a file')


def read_present(root: str, paths: Iterable[str]) -> dict[str, str]:
    """Read those of the files that are there.

    :raises FileRefused: for one that is no file, cannot be read, or leads
        out of the root
    """
    if not os.path.lexists(root):
        return {}
    with contextlib.closing(Folders(root)) as folders:
        found = {}
        for path in paths:
            present = folders.read(path)
            if present is not None:
                found[path] = decode(present[0])
        return found


def write(root: str, changes: Sequence[FileEdit], backups: str) -> str | None:
    """Write the files, and keep a copy of each that is replaced.

    A new file can be read by everybody, whatever the umask; another keeps its
    mode and its owner. Only the caller can read the copies.

    :param backups: the folder for copies, relative to the root
    :returns: the folder of the copies, relative to the root; None if nothing
        was there before
    :raises FileRefused: before anything is written, for a file that has
        changed since it was compared, and for a path that leads out of the
        root
    """
    with contextlib.ExitStack() as stack:
        # New folders have the modes that they are made with.
        stack.callback(os.umask, os.umask(0o022))
        folders = stack.enter_context(contextlib.closing(Folders(root)))
        before = {}
        for change in changes:
            folders.require_writable(os.path.dirname(change.path))
            present = folders.read(change.path)
            if (None if present is None
                    else decode(present[0])) != change.before:
                raise FileRefused(
                    os.path.join(root, change.path),
                    'has changed since it was compared; run the command again')
            if present is not None:
                before[change.path] = present
        kept = _back_up(folders, before, backups) if before else None
        for change in changes:
            folder, name = folders.place(change.path, 0o755)
            if change.after is None:
                os.unlink(name, dir_fd=folder)
                continue
            mode, owner = 0o644, None
            if change.path in before:
                status = before[change.path][1]
                mode = stat.S_IMODE(status.st_mode)
                owner = status.st_uid, status.st_gid
            replace_in(folder, name, change.after.encode(), mode, owner)
        return kept


def find_backup_time(root: str, path: str, backups: str) -> int | None:
    """Find when a file was last copied before it was replaced or removed.

    :returns: seconds since the epoch; None if there is no copy
    """
    with contextlib.closing(Folders(root)) as folders:
        for name in sorted(folders.list_files(f'{backups}/*', True),
                           reverse=True):
            present = folders.read(os.path.join(name, path))
            if present is not None:
                return int(present[1].st_mtime)
    return None


def _back_up(folders: Folders,
             files: dict[str, tuple[bytes, os.stat_result]],
             backups: str) -> str:
    """Write copies, all or none; return their folder."""
    folders.place(backups, 0o755)
    top, _draft = folders.place(f'{backups}/{_DRAFT_FOLDER}', 0o700)
    # What a run that was killed has left.
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(f'/proc/self/fd/{top}/{_DRAFT_FOLDER}')
    for path, (content, _status) in files.items():
        folder, name = folders.place(
            f'{backups}/{_DRAFT_FOLDER}/{path}', 0o700)
        replace_in(folder, name, content)
    now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017
    kept = f'{now:%Y%m%dT%H%M%S.%fZ}'
    os.rename(_DRAFT_FOLDER, kept, src_dir_fd=top, dst_dir_fd=top)
    return f'{backups}/{kept}'


def replace_in(folder: int, name: str, content: bytes, mode: int = 0o600,
               owner: tuple[int, int] | None = None) -> None:
    """Write a file of a folder in one step, or replace it.

    Readers see the former content or this one. It is on the disk when this
    returns. Drafts of runs that were killed are removed; a lock tells them
    from those of runs that still write.

    :param folder: the descriptor of the folder
    :param mode: the permissions of the file, whatever the umask
    :param owner: the user and the group of the file; None for the caller
    :raises OSError: if that fails; what was there before is kept
    """
    _remove_left_over(folder)
    draft, handle = _make_draft(folder)
    try:
        with os.fdopen(handle, 'wb') as stream:
            stream.write(content)
            stream.flush()
            if owner is not None:
                os.fchown(handle, *owner)
            os.fchmod(handle, mode)
            os.fsync(handle)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise


def _make_draft(folder: int) -> tuple[str, int]:
    while True:
        draft = _DRAFT + os.urandom(8).hex()
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _FLAGS,
                         0o600, dir_fd=folder)
        # A file system without locks keeps its drafts.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return draft, handle
        # Another run took it for left over, before it was locked.
        os.close(handle)


def _remove_left_over(folder: int) -> None:
    for name in os.listdir(folder):
        if not name.startswith(_DRAFT):
            continue
        # What is locked, or of another user, is left to its writer.
        with contextlib.suppress(OSError):
            handle = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


class Folders:
    """The folders below a root, each opened once and kept open."""

    _FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

    def __init__(self, root: str) -> None:
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
        where = os.path.join(self._root, path)
        try:
            # Check before opening: opening a FIFO can block, and opening a
            # device (a watchdog, a tape) has effects.
            _require_file(os.stat(name, dir_fd=folder, follow_symlinks=follow),
                          where)
            handle = os.open(
                name, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK
                | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
            with os.fdopen(handle, 'rb') as stream:
                status = os.fstat(handle)
                _require_file(status, where)
                content = stream.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
            reason = getattr(exc, 'strerror', None) or exc
            raise FileRefused(where, f'cannot be read ({reason})') from exc
        if len(content) > MAX_BYTES:
            raise FileRefused(
                where, f'is larger than {MAX_BYTES // 1024} KiB, the most '
                'that is read')
        return content, status

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
                                    os.path.join(self._root, parent))
        return folder, name

    def require_writable(self, path: str) -> None:
        """Check that a folder can be written, or made.

        :raises PermissionError: if it cannot
        """
        while (folder := self._find(path)) is None:
            path = os.path.dirname(path)
        if not os.access('.', os.W_OK | os.X_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES),
                                  os.path.join(self._root, path))

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
        place = os.path.join(self._root, path)
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
                raise FileRefused(place, 'is not a folder') from exc
            return self._find(target, mode, links + 1)
        except OSError as exc:
            raise FileRefused(
                place, f'cannot be opened ({exc.strerror})') from exc
        self._open[path] = folder
        return folder

    def _follow(self, above: int, parent: str, name: str) -> str | None:
        """Return the path below the root that a link leads to.

        :returns: None if it is no link
        """
        place = os.path.join(self._root, parent, name)
        try:
            target = os.readlink(name, dir_fd=above)
        except OSError:
            return None
        status = os.fstat(above)
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise FileRefused(
                place, 'is a symbolic link that others can change')
        found = os.path.relpath(
            os.path.join(os.readlink(f'/proc/self/fd/{above}'), target),
            os.path.realpath(self._root))
        if found.split('/')[0] == '..':
            raise FileRefused(
                place, f'leads out of {self._root} by a symbolic link')
        return found
