# SPDX-License-Identifier: Apache-2.0

"""Find what other installed packages add to hpcvirt, by entry points.

An entry point has a group, such as ``hpcvirt.bench.parsers``, a name, and the
object that it stands for. hpcvirt's own names are not entry points of these
groups, and are looked up first: searching entry points takes long.
"""

import importlib.metadata
from typing import Any

from hpcvirt import exception


def names(group: str) -> tuple[str, ...]:
    """List the names that packages add to a group, in alphabetical order."""
    return tuple(sorted(importlib.metadata.entry_points(group=group).names))


def find(group: str, name: str) -> Any | None:
    """Load the object that a package adds under a name.

    :returns: None if no package does
    :raises InvalidInput: if several do, or if it cannot be loaded
    """
    points = [*importlib.metadata.entry_points(group=group, name=name)]
    if not points:
        return None
    where = f'entry point {name} of {group}'
    if len({point.value for point in points}) > 1:
        raise exception.InvalidInput(
            where, 'is declared several times: '
            + ', '.join(sorted(point.value for point in points)))
    try:
        return points[0].load()
    # Another package may fail in any way when it is imported.
    except Exception as exc:
        raise exception.InvalidInput(
            where, f'cannot be loaded ({type(exc).__name__}: {exc})') from exc
