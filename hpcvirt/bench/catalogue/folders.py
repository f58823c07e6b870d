# SPDX-License-Identifier: Apache-2.0

"""The folders with definitions: that of the package, and those of a site.

``$HPCVIRT_CATALOGUE`` names the folders of a site, separated by colons. The
option ``--catalogue`` of a command replaces it.
"""

import importlib.resources
import os
import pathlib
import re
from collections.abc import Sequence

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt import input_file

#: The form of the name of a benchmark.
NAME = re.compile(r'[a-z][a-z0-9]*(-[a-z0-9]+)*')
#: Real definitions have less than a hundredth of this.
MAX_BYTES = 1 << 20

_PACKAGE = importlib.resources.files('hpcvirt.bench.catalogue')

#: What --catalogue named, None if it was not given.
_chosen: tuple[str, ...] | None = None


def choose(folders: Sequence[str]) -> None:
    """Choose the folders of the site for all that follows.

    :param folders: paths; empty for those of the environment
    """
    global _chosen  # noqa: PLW0603
    _chosen = tuple(folders) or None


def list_site() -> tuple[str, ...]:
    """Return the folders of the site."""
    if _chosen is not None:
        return _chosen
    paths = os.environ.get(child_environment.CATALOGUE, '').split(os.pathsep)
    return tuple(path for path in paths if path)


def list_names(folder: str | None) -> tuple[str, ...]:
    """List the names of the definitions in a folder, in alphabetical order.

    :param folder: None for that of the package
    :raises InvalidInput: if the folder cannot be read, or a file has a name
        that no benchmark can have
    """
    if folder is None:
        files = [child.name for child in _PACKAGE.iterdir()]
    else:
        try:
            files = os.listdir(folder)
        except OSError as exc:
            raise exception.InvalidInput(
                folder, f'is no folder of benchmarks ({exc.strerror})'
            ) from exc
    names = [name.removesuffix('.yaml') for name in files
             if name.endswith('.yaml') and not name.startswith('.')
             and not name.endswith('.shared.yaml')]
    for name in names:
        if not NAME.fullmatch(name):
            raise exception.InvalidInput(
                f'{folder}/{name}.yaml',
                'is not named like a benchmark: lower case, hyphens')
    return tuple(sorted(names))


def read(folder: str | None, name: str) -> str:
    """Read a file of a folder.

    :param folder: None for that of the package
    :param name: without ``.yaml``
    :raises InvalidInput: if it cannot be read
    """
    if folder is None:
        return (_PACKAGE / f'{name}.yaml').read_text(encoding='utf-8')
    path = pathlib.Path(folder) / f'{name}.yaml'
    try:
        return input_file.content(path, MAX_BYTES).decode()
    except UnicodeDecodeError as exc:
        raise exception.InvalidInput(
            str(path), f'is not UTF-8 (byte {exc.start})') from exc


def find_shared(folder: str | None, name: str) -> str:
    """Read what definitions share; a site may use the files of the package.

    :param name: without ``.shared.yaml``
    :raises InvalidInput: if there is no such file
    """
    if not NAME.fullmatch(name):
        raise exception.InvalidInput(
            name[:64], 'is not the name of a shared definition')
    for place in dict.fromkeys((folder, None)):
        parent = _PACKAGE if place is None else pathlib.Path(place)
        if (parent / f'{name}.shared.yaml').is_file():
            return read(place, f'{name}.shared')
    raise exception.InvalidInput(
        f'{name}.shared.yaml', 'does not exist')
