# SPDX-License-Identifier: Apache-2.0

"""A package that adds to hpcvirt by entry points, as if it were installed."""

import pathlib
import sys

from hpcvirt.audit import audit
from hpcvirt.bench.parsers import parser
from tests.builders import folders


def write(folder, source, entry_points, module='site_hpc'):
    """Write a module, and the metadata that its installation would write.

    :param entry_points: the content of ``entry_points.txt``
    """
    folder = pathlib.Path(folder)
    (folder / f'{module}.py').write_text(source)
    metadata = folder / f'{module}-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n')
    (metadata / 'entry_points.txt').write_text(entry_points)


def install(case, source, entry_points, module='site_hpc'):
    """Let the process of a test find such a package until the test ends."""
    folder = folders.make(case)
    write(folder, source, entry_points, module)
    sys.path.insert(0, str(folder))
    _forget()
    case.addCleanup(_forget)
    case.addCleanup(sys.modules.pop, module, None)
    case.addCleanup(sys.path.remove, str(folder))


def _forget():
    """Forget what was found among the packages."""
    audit.all_rules.cache_clear()
    parser.find_added.cache_clear()
