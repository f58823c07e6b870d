# SPDX-License-Identifier: Apache-2.0

"""Fail unless Python imports the expected major version of a distribution.

Usage: ``expect.py DISTRIBUTION MAJOR``. The distribution has a package of its
name. Constraints can make pip choose an older Nova silently, and a directory
on ``PYTHONPATH`` can hide the installed package while its metadata remain
visible.
"""

import importlib.util
import pathlib
import sys
from collections.abc import Iterator
from importlib import metadata


def main(distribution: str, major: str) -> int:
    """Print what is imported, and what is wrong with it."""
    found = list(metadata.distributions(name=distribution))
    spec = importlib.util.find_spec(distribution)
    origin = pathlib.Path((spec and spec.origin) or 'nowhere')
    for one in found:
        print(f'{distribution} {one.version}, imported from {origin.parent}')
    faults = list(_faults(found, origin, distribution, major))
    for fault in faults:
        print(fault)
    return int(bool(faults))


def _faults(found: list[metadata.Distribution], origin: pathlib.Path,
            name: str, major: str) -> Iterator[str]:
    if len(found) != 1:
        yield f'{name} is installed {len(found)} times'
    for one in found:
        if one.version.partition('.')[0] != major:
            yield f'this environment must have {name} {major}'
        expected = pathlib.Path(str(one.locate_file(f'{name}/__init__.py')))
        if not origin.exists() or not expected.exists() or (
                not origin.samefile(expected)):
            yield f'{name} is imported from elsewhere than {expected.parent}'


if __name__ == '__main__':
    # Do not import from the directory of this file.
    del sys.path[0]
    sys.exit(main(*sys.argv[1:]))
