# SPDX-License-Identifier: Apache-2.0

"""The directive ``packages``: what packages do, from their docstrings.

::

    .. packages:: Fit
       :names: model specs fit
"""

import ast
import pathlib
from typing import ClassVar

from docutils import nodes
from docutils import statemachine
from docutils.parsers import rst
from sphinx import application

PACKAGE = pathlib.Path(__file__).parents[2] / 'hpcvirt'


class Packages(rst.Directive):
    """Write a table of the packages of a subject."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {'names': str.split}

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText for the packages and have it parsed."""
        lines = [f'.. list-table:: {self.arguments[0]}',
                 '   :header-rows: 1', '   :widths: 18 82', '',
                 '   * - Package', '     - What it does']
        for name in self.options['names']:
            file = PACKAGE / name / '__init__.py'
            text = ast.get_docstring(ast.parse(file.read_text()))
            if text is None:
                raise self.error(f'{file} has no docstring')
            lines += [f'   * - ``{name.rpartition("/")[2]}``',
                      f'     - {" ".join(text.split())}']
        parent = nodes.Element()
        parent.document = self.state.document
        self.state.nested_parse(
            statemachine.StringList(lines, source='packages'),
            self.content_offset, parent)
        return parent.children


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('packages', Packages)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
