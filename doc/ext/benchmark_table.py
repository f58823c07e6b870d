# SPDX-License-Identifier: Apache-2.0

"""The directive ``benchmarks``: the catalogue of benchmarks as a table.

::

    .. benchmarks::
"""

from collections.abc import Iterable
from collections.abc import Iterator

import written
from sphinx import application

from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions

_SOURCES = {
    definitions.Source.APT: 'Debian',
    definitions.Source.PYPI: 'PyPI',
    definitions.Source.SOURCE: 'source code',
    definitions.Source.USER: 'you supply it',
}


class Benchmarks(written.WrittenDirective):
    """Turn the catalogue into a table."""

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the definitions."""
        return table()


def table() -> Iterator[str]:
    """Yield the lines of a table, one row for each definition."""
    yield from ('.. list-table::', '   :header-rows: 1',
                '   :widths: 20 50 30', '', '   * - Name',
                '     - What it measures', '     - Where to get it')
    for definition in catalogue.all_definitions():
        yield from (f'   * - ``{definition.name}``',
                    f'     - {definition.summary}',
                    f'     - {"; ".join(map(origin, definition.obtain))}')
    yield ''


def origin(installation: definitions.Installation) -> str:
    """Name where a program comes from, and its packages."""
    packages = [f'``{package}``' for package in installation.packages]
    return ' '.join([_SOURCES[installation.by], ', '.join(packages)]).strip()


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('benchmarks', Benchmarks)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
