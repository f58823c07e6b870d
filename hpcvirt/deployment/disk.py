# SPDX-License-Identifier: Apache-2.0

"""Read and write the files of a host, or of a deployment tool.

:mod:`hpcvirt.rooted_files` does so, safely where others own the folders. This
module compares, and refuses what hpcvirt did not write.
"""

import contextlib
import pathlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import rooted_files
from hpcvirt.deployment import steps as step_model
from hpcvirt.model import cpuset


def read_present(root: pathlib.Path, paths: Iterable[str]) -> dict[str, str]:
    """Read those of the files that are there.

    :raises InvalidInput: for one that is no file, cannot be read, or leads
        out of the root
    """
    with _refusing():
        return rooted_files.read_present(str(root), paths)


def read_matching(root: pathlib.Path, patterns: Iterable[str],
                  ) -> tuple[dict[str, str], list[str]]:
    """Read the files that match patterns; links are followed.

    :param patterns: paths whose last parts may be patterns
    :returns: path -> content, and the patterns of those that cannot be read,
        as happens without root
    """
    found: dict[str, str] = {}
    unread: list[str] = []
    with contextlib.closing(rooted_files.Folders(str(root))) as folders:
        for pattern in patterns:
            try:
                for path in folders.list_files(pattern):
                    if present := folders.read(path, follow=True):
                        found[path] = rooted_files.decode(present[0])
            except (rooted_files.FileRefused, OSError):
                unread.append(pattern)
    return found, unread


def write(root: pathlib.Path, steps: Sequence[step_model.FileChange],
          backups: str) -> pathlib.Path | None:
    """Write the files, see :func:`hpcvirt.rooted_files.write`.

    :param backups: the folder for copies, relative to the root
    :returns: the folder of the copies; None if nothing was there before
    :raises InvalidInput: before anything is written, for a file that hpcvirt
        did not write or that has changed since it was compared, and for a
        path that leads out of the root
    """
    changes = []
    with _refusing():
        for step in steps:
            path = step.file.path
            if step.change is step_model.FileStatus.FOREIGN:
                raise rooted_files.refuse_foreign(str(root / path))
            if step.change is not step_model.FileStatus.SAME:
                is_removed = step.change is step_model.FileStatus.REMOVED
                changes.append(rooted_files.FileEdit(
                    path, step.before, None if is_removed else step.file.text))
        kept = rooted_files.write(str(root), changes, backups)
    return None if kept is None else root / kept


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Raise what is refused as an error of hpcvirt."""
    try:
        yield
    except rooted_files.FileRefused as exc:
        raise exception.InvalidInput(exc.where, exc.what) from exc


def identify(root: pathlib.Path) -> tuple[str | None, frozenset[int] | None]:
    """Find the name and the online CPUs of the host that a root belongs to.

    :returns: each None if the root does not say it, as the root of an image
        does not have /sys
    """
    def read(path: str) -> str | None:
        with contextlib.suppress(exception.InvalidInput):
            return rooted_files.decode(input_file.content(
                root / path, rooted_files.MAX_BYTES)).strip() or None
        return None

    cpus = read('sys/devices/system/cpu/online')
    return (read('proc/sys/kernel/hostname') or read('etc/hostname'),
            None if cpus is None else cpuset.parse(cpus, str(root)))
