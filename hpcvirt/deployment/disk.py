# SPDX-License-Identifier: Apache-2.0

"""Read and write the files of a host, or of a deployment tool.

Nothing is ever written through a symbolic link that leaves the root, and each
file that is replaced or removed is copied first.
"""

import datetime
import errno
import os
import pathlib
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt.deployment import steps as step_model
from hpcvirt.model import cpuset

_MAX_BYTES = 1024 * 1024
_NOVA = ('etc/nova/nova.conf', 'etc/nova/nova-compute.conf')
_NOVA_FOLDERS = ('etc/nova/nova.conf.d', 'etc/nova/nova-compute.conf.d')


def read_present(root: pathlib.Path, paths: Iterable[str]) -> dict[str, str]:
    """Read those of the files that are there.

    :raises InvalidInput: for one that is no file, cannot be read, or leads
        out of the root
    """
    found = {}
    for path in paths:
        place = _inside(root, path)
        if os.path.lexists(place):
            found[path] = input_file.content(
                place, _MAX_BYTES).decode(errors='replace')
    return found


def nova_files(root: pathlib.Path,
               own: str) -> tuple[dict[str, str], list[str]]:
    """Read the other files that configure nova-compute.

    :returns: path -> content, and the paths of those that cannot be read,
        as happens without root
    """
    found, unread = {}, []
    for path in (*_NOVA, *_NOVA_FOLDERS):
        try:
            paths = sorted(
                f'{path}/{name}' for name in os.listdir(root / path)
                if name.endswith('.conf')) if path in _NOVA_FOLDERS else [path]
            found.update(read_present(root, set(paths) - {own}))
        except FileNotFoundError:
            continue
        except (exception.InvalidInput, OSError):
            unread.append(path)
    return found, unread


def write(root: pathlib.Path, steps: Sequence[step_model.FileChange],
          backups: str) -> pathlib.Path | None:
    """Write the files, and keep a copy of each that is replaced.

    :param backups: the folder for copies, relative to the root
    :returns: the folder of the copies; None if nothing was there before
    :raises InvalidInput: before anything is written, for a file that hpcvirt
        did not write, and for a path that leads out of the root
    """
    steps = [step for step in steps
             if step.change is not step_model.FileStatus.SAME]
    for step in steps:
        place = _inside(root, step.file.path)
        if step.change is step_model.FileStatus.FOREIGN:
            raise exception.InvalidInput(
                str(place), 'was not written by hpcvirt; move its content to '
                'another file of yours, and it away')
        if place.is_symlink():
            raise exception.InvalidInput(
                str(place), 'is a symbolic link, which is not replaced')
        _require_folder(place.parent)
    kept = None
    if any(step.before is not None for step in steps):
        now = datetime.datetime.now(datetime.UTC)
        kept = _inside(root, f'{backups}/{now:%Y%m%dT%H%M%S.%fZ}')
    for step in steps:
        place = root / step.file.path
        if kept is not None and step.before is not None:
            _put(kept / step.file.path, place.read_bytes())
        if step.change is step_model.FileStatus.REMOVED:
            place.unlink()
        else:
            _put(place, step.file.text.encode())
    return kept


def identify(root: pathlib.Path) -> tuple[str | None, frozenset[int] | None]:
    """Find the name and the online CPUs of the host that a root belongs to.

    :returns: each None if the root does not say it, as the root of an image
        does not have /sys
    """
    def read(path: str) -> str | None:
        try:
            return input_file.content(root / path, _MAX_BYTES).decode(
                errors='replace').strip() or None
        except exception.InvalidInput:
            return None

    cpus = read('sys/devices/system/cpu/online')
    return (read('proc/sys/kernel/hostname') or read('etc/hostname'),
            None if cpus is None else cpuset.parse(cpus, str(root)))


def _inside(root: pathlib.Path, path: str) -> pathlib.Path:
    """Return the place of a path, which must not leave the root."""
    place = root / path
    top = root.resolve()
    if not place.parent.resolve().is_relative_to(top):
        raise exception.InvalidInput(
            str(place), f'leads out of {root} by a symbolic link')
    return place


def _require_folder(folder: pathlib.Path) -> None:
    """Check that a folder is there, or can be made."""
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise exception.InvalidInput(str(folder), 'is not a folder')
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES),
                              str(folder))


def _put(place: pathlib.Path, content: bytes) -> None:
    """Write a file, and the folders that it is in."""
    place.parent.mkdir(parents=True, exist_ok=True)
    output_file.replace(place, content, 0o644)
