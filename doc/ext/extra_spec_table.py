# SPDX-License-Identifier: Apache-2.0

"""The directive ``extra-specs``: the vocabulary as a table.

::

    .. extra-specs:: hw pci_passthrough

The argument names the namespaces to show. With the option ``others`` it
shows the keys that hpcvirt knows and ignores.
"""

import types
from collections.abc import Iterable
from collections.abc import Iterator

import written
from docutils.parsers import rst
from sphinx import application

from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import vocabulary


class ExtraSpecs(written.WrittenDirective):
    """Turn rows of the vocabulary into a table."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = types.MappingProxyType({'others': rst.directives.flag})

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the rows."""
        namespaces = self.arguments[0].split()
        rows = [row for row in vocabulary.KEYS
                if row.namespace in namespaces
                and (row in vocabulary.INTERPRETED)
                == ('others' not in self.options)]
        if not rows:
            raise self.error(f'no extra specs in {self.arguments[0]}')
        return table(rows)


def table(rows: list[extra_spec_key.ExtraSpecKey]) -> Iterator[str]:
    """Yield the lines of a table, one row for each key."""
    yield from ('.. list-table::', '   :header-rows: 1',
                '   :widths: 32 28 40', '', '   * - Key', '     - Values',
                '     - Meaning')
    for row in rows:
        yield from (f'   * - ``{row.name}``', f'     - {values(row)}',
                    f'     - {row.help}')
    yield ''


def values(row: extra_spec_key.ExtraSpecKey) -> str:
    """Write the values of a key: words and patterns as they are typed."""
    if row.kind is extra_spec_key.ValueType.CHOICE:
        return ', '.join(f'``{word}``' for word in row.choices)
    if row.kind is extra_spec_key.ValueType.BOOLEAN:
        return '``true``, ``false``'
    if row.pattern:
        return f'text of the form ``{row.pattern}``'
    return row.values


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('extra-specs', ExtraSpecs)
    return {'parallel_read_safe': True}
