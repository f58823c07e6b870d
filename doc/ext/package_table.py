# SPDX-License-Identifier: Apache-2.0

"""The directive ``packages``: what packages do, from their docstrings.

::

    .. packages:: Fit
       :names: model specs fit
"""

import ast
import pathlib
from collections.abc import Iterable
from typing import ClassVar

import written
from sphinx import application

PACKAGE = pathlib.Path(__file__).parents[2] / 'hpcvirt'


class Packages(written.WrittenDirective):
    """Write a table of the packages of a subject."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {'names': str.split}

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the packages."""
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
        return lines


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('packages', Packages)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
