# SPDX-License-Identifier: Apache-2.0

"""Write the sysfs of a captured or invented machine to a directory.

A machine is a dict: path -> content; ``Link`` as content makes a symbolic
link.
"""

import os
import pathlib
import tempfile
import unittest

from hpcvirt.topology import capture

MACHINES = pathlib.Path(__file__).parents[1] / 'data' / 'machines'
HOSTS = MACHINES.with_name('hosts')

#: The list of a copy that has everything.
WHOLE = {capture.LIST: ''.join(f'{top}/**\n' for top in (
    'dev', 'etc', 'proc', 'sys', 'usr', 'var'))}


class Link(str):
    """The target of a symbolic link."""

    __slots__ = ()


def captured(machine: str) -> dict[str, str]:
    """Read the sysfs.txt of a machine; README.rst describes its format."""
    return _parse((MACHINES / machine / 'sysfs.txt').read_text())


def emulated(host: str) -> dict[str, str]:
    """Read the /proc, /sys and /etc of a machine in tests/data/hosts."""
    return _parse((HOSTS / f'{host}.txt').read_text())


def guest(name: str) -> dict[str, str]:
    """Read the PCI functions of a guest in tests/data/guests."""
    return _parse((MACHINES.with_name('guests') / f'{name}.txt').read_text())


def _parse(text: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for line in text.split('\n')[:-1]:
        path, arrow, target = line.partition(' -> ')
        if arrow:
            files[path] = Link(target)
            continue
        path, _, content = line.partition(' = ')
        files[path.removesuffix(' =')] = content.replace('\\n', '\n')
    return files


def lay_out(files: dict[str, str], root: str | pathlib.Path) -> None:
    for name, content in files.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content)
        else:
            path.write_text(content + '\n')


def scratch(case: unittest.TestCase) -> str:
    """Create a directory for one test, in memory if possible.

    A sysfs has hundreds of small files, which are slow on a busy disk.
    """
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    directory = tempfile.TemporaryDirectory(dir=memory)
    case.addCleanup(directory.cleanup)
    return directory.name
