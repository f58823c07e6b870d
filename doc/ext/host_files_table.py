# SPDX-License-Identifier: Apache-2.0

"""The directive ``host-files``: the files that ``hpcvirt host config`` writes.

They are those of a host whose guests get virtual functions and need a trait,
so that no file is missing.
"""

import pathlib
import re
from collections.abc import Iterable

import written
from sphinx import application

from hpcvirt import bibliography
from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.topology import collection

SHIPPED = pathlib.Path(__file__).parents[2] / 'etc' / 'hpcvirt'
DEVICES = {'devices': [{'per_instance': 1, 'affinity': 'preferred',
                        'vendor_id': '8086', 'product_id': '10ed',
                        'vfs_per_device': 4}],
           'extra_specs': {'trait:CUSTOM_HPC': 'required'}}


class HostFiles(written.WrittenDirective):
    """Write a table of the files, their purpose and what comes after."""

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the files."""
        lines = ['.. list-table::', '   :header-rows: 1',
                 '   :widths: 35 45 20', '', '   * - File',
                 '     - Purpose', '     - Effective after']
        for file in list_files():
            after = ', '.join(f'``{command}``' for command in file.activate)
            lines += [f'   * - ``/{file.path}``',
                      f'     - {describe(file.text)}', f'     - {after}']
        return lines


def list_files() -> tuple[tree.File, ...]:
    """List the files of the sample machine."""
    path = SHIPPED / 'topologies' / 'hs06-2s-16c.json'
    host = collection.read_source(str(path))
    plan = planner.plan([host], profiles.build(DEVICES, 'profile'))
    return host_files.files(plan.hosts[0], plan)


def describe(text: str) -> str:
    """Return the comment at the beginning of a file, with its citation."""
    _, *lines = text.splitlines()
    words = []
    for line in lines:
        if not line.startswith('# '):
            break
        words.append(line.removeprefix('# '))
    found = ' '.join(words)
    for document in bibliography.DOCUMENTS:
        found = found.replace(document.citation, f':cite:`{document.key}`')
    return re.sub(r'\*', r'\\*', found)


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('host-files', HostFiles)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
