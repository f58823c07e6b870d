# SPDX-License-Identifier: Apache-2.0

"""Load the templates of self-contained pages."""

import importlib.resources
import re

import jinja2
import markupsafe

from hpcvirt import printable


def environment(*packages: str) -> jinja2.Environment:
    """Return an environment that escapes text.

    :param packages: packages with templates, besides the shared ones
    """
    folders = [importlib.resources.files(package)
               for package in (*packages, 'hpcvirt.page')]

    def load(name: str) -> str | None:
        for folder in folders:
            if (folder / name).is_file():
                return (folder / name).read_text(encoding='utf-8')
        return None

    found = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, finalize=_printable,
        loader=jinja2.FunctionLoader(load))
    found.filters['breakable'] = _breakable
    return found


def _printable(value: object) -> object:
    """Escape characters that reorder or hide text in a browser."""
    if isinstance(value, str) and not isinstance(value, markupsafe.Markup):
        return printable.escape(value)
    return value


def _breakable(name: str) -> markupsafe.Markup:
    """Allow line breaks in a name after punctuation such as dots."""
    escaped = str(markupsafe.escape(printable.escape(name)))
    return markupsafe.Markup(  # noqa: S704
        re.sub(r'([-+._@/])', r'\1<wbr>', escaped))
