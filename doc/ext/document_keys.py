# SPDX-License-Identifier: Apache-2.0

"""The directive ``document-keys``: the keys of a document, from its class.

::

    .. document-keys:: hpcvirt.tune.experiment.Limits

lists the fields of the dataclass as its docstring explains them with
``:ivar NAME: text``. A field without an explanation is an error, except those
of the option ``:without:``, which no file has.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterable
from typing import ClassVar

import written
from sphinx import application

#: As documents are cited in docstrings.
_CITED = re.compile(
    r'\[([A-Z][A-Za-z]+(?:-[A-Za-z]+)*-(?:\d{4}|[A-Z][a-z]+))\]')
_IVAR = re.compile(r'^:ivar (\w+): (.*?)(?=^:|\Z)', re.MULTILINE | re.DOTALL)


class DocumentKeys(written.WrittenDirective):
    """Write a definition list of the fields of a dataclass."""

    required_arguments = 1
    option_spec: ClassVar = {'without': str.split}

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the fields."""
        module, _, name = self.arguments[0].rpartition('.')
        kind = getattr(importlib.import_module(module), name)
        explained = dict(_IVAR.findall(inspect.getdoc(kind) or ''))
        lines: list[str] = []
        for field in dataclasses.fields(kind):
            if field.name in self.options.get('without', ()):
                continue
            if field.name not in explained:
                raise self.error(f'{name} does not explain {field.name}')
            words = _CITED.sub(
                r':cite:`\1`', ' '.join(explained[field.name].split()))
            key = field.metadata.get('key', field.name)
            lines += [f'``{key}``', f'  {words[0].upper()}{words[1:]}.']
        return lines


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('document-keys', DocumentKeys)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
