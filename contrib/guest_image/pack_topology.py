#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Pack hpcvirt-guest-topology into one file for guest images.

The argument is the file to write. It needs Python 3.9 in the guest.
"""

import pathlib
import sys
import tempfile
import zipapp

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / 'hpcvirt/instance_topology'
#: The modules of the package that run in a guest.
MODULES = ('functions.py', 'places.py', 'writers.py')


def pack(target):
    """Write the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inner = folder / 'hpcvirt/instance_topology'
        inner.mkdir(parents=True)
        for empty in (inner, inner.parent):
            (empty / '__init__.py').touch()
        for module in MODULES:
            (inner / module).write_bytes((PACKAGE / module).read_bytes())
        (folder / '__main__.py').write_bytes(
            (HERE / 'topology/__main__.py').read_bytes())
        zipapp.create_archive(folder, target, '/usr/bin/env python3')
    target.chmod(0o755)


if __name__ == '__main__':
    pack(pathlib.Path(sys.argv[1]))
