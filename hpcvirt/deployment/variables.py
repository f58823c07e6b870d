# SPDX-License-Identifier: Apache-2.0

"""Read variables of deployment tools in files of YAML.

The files may have templates and tags that only the tools know, so only the
lines of a variable are read as YAML. They can then be made comments, without a
change of the others.
"""

import re
import textwrap
from collections.abc import Collection
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

from hpcvirt import exception
from hpcvirt import yaml_document

_SHORT = 60


class Variable(NamedTuple):
    """A variable, and where its lines are.

    :ivar value: its text, if that is not YAML
    """

    name: str
    value: Any
    start: int
    end: int


def read(path: str, text: str, names: Collection[str],
         hosts: Collection[str] = ()) -> Iterator[Variable]:
    """Read variables that have a value.

    :param hosts: documents with nodes, none of which are these, do not count
    """
    # Deeper lines and, for a list, items belong to the key; blank lines and
    # comments do only if such a line follows.
    words = '|'.join(map(re.escape, names))
    pattern = re.compile(
        rf'(?m)^( *)(["\']?)({words})\2:(?=\s).*'
        r'(?:\n(?:[ \t]*(?:#.*)?\n)*\1(?: +|- )\S.*)*')
    start = 0
    for document in re.split(r'(?m)^(?=---)', text):
        if not hosts or _has_nodes(document, hosts):
            for match in pattern.finditer(document):
                try:
                    value = yaml_document.value(textwrap.dedent(match[0]),
                                                path)[match[3]]
                except exception.InvalidInput:
                    value = match[0].partition(':')[2].strip()
                if value is not None:
                    yield Variable(match[3], value, start + match.start(),
                                   start + match.end())
        start += len(document)


def _has_nodes(document: str, hosts: Collection[str]) -> bool:
    """Tell whether a node set may be that of hosts."""
    words = '|'.join(map(re.escape, hosts))
    return (re.search(r'(?m)^ *nodes: *$', document) is None
            or re.search(rf'(?<![\w.-])(?:{words})(?![\w-])', document)
            is not None)


def compare(wanted: Collection[Any], value: Any) -> list[str]:
    """Write a value in a few words, unless it is all that are wanted."""
    words = _join_words(value)
    if all(words == _join_words(item) or not (item or value)
           for item in wanted):
        return []
    return [words if len(words) <= _SHORT else f'{words[:_SHORT]}...']


def _join_words(value: Any) -> str:
    return ' '.join(str(value).split())
