# SPDX-License-Identifier: Apache-2.0

"""Take back the files that ``hpcvirt host config`` wrote.

Only files that begin with the mark of hpcvirt are removed. A file that is
shared with the site keeps the site's part.
"""

import os
import pathlib
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps as step_model
from hpcvirt.deployment import tree

#: Every file of a host that hpcvirt may write.
WRITTEN = tuple(dict.fromkeys([
    host_files.SYSCTL, host_files.COMMAND_LINE, host_files.MODULES,
    *host_files.TUNED, host_files.NOVA_CONF, *host_files.OPTIONAL,
    *host_files.SERVICES]))
#: What makes the removal of a file of a host effective, in this order. All
#: other files need a reboot only.
_ACTIVATE = {
    **dict.fromkeys(host_files.TUNED, ('tuned-adm profile virtual-host',)),
    host_files.COMMAND_LINE: ('update-grub',),
    host_files.NOVA_CONF: ('restart nova-compute',),
    host_files.PROVIDER: ('restart nova-compute',),
}
#: What the user must know before nova-compute starts again.
NOTE = (
    'Before nova-compute starts again, set [compute]cpu_dedicated_set and the '
    'other options that instances of this host use in your own nova.conf; '
    'traits and inventories of hpcvirt.yaml stay in Placement.')


def find_steps(present: Mapping[str, str],
               ) -> tuple[step_model.FileChange, ...]:
    """Find what to remove.

    :param present: path -> content of the files that are there
    """
    steps = []
    for path, text in present.items():
        if not text.startswith(tree.MARK):
            continue
        own, rest = step_model.split_shared(text)
        kept = rest.lstrip('\n') if own.endswith(tree.END) else ''
        activate = (*_ACTIVATE.get(path, ()), 'reboot')
        status = step_model.FileStatus.REMOVED
        if kept.strip():
            status = step_model.FileStatus.CHANGED
        steps.append(step_model.FileChange(
            tree.File(path, kept, activate), text, status))
    return tuple(steps)


def list_marked(folder: pathlib.Path, but: str) -> dict[str, str]:
    """Read the files below the folder of a tool that hpcvirt wrote.

    Links are not followed.

    :param but: a folder that is left out, relative to the folder
    :raises InvalidInput: for a file that cannot be read
    """
    found = {}
    for place, folders, names in os.walk(folder):
        here = pathlib.Path(place)
        folders[:] = sorted(name for name in folders
                            if here / name != folder / but)
        for name in sorted(names):
            path = here / name
            if path.is_symlink() or not path.is_file():
                continue
            text = _read_marked(path)
            if text is not None:
                found[str(path.relative_to(folder))] = text
    return found


def _read_marked(path: pathlib.Path) -> str | None:
    """Read a file; None if it does not begin with the mark of hpcvirt."""
    mark = tree.MARK.encode()
    try:
        with path.open('rb') as stream:
            if stream.read(len(mark)) != mark:
                return None
            return (mark + stream.read()).decode(errors='replace')
    except OSError as exc:
        raise exception.InvalidInput(
            str(path), f'cannot be read ({exc.strerror})') from exc
