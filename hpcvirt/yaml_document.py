# SPDX-License-Identifier: Apache-2.0

"""Read YAML of unknown origin.

What YAML can do to its reader is refused: a few hundred bytes of aliases
stand for millions of values (and PyYAML takes a minute to merge them), a key
that occurs twice hides a value, and a number of base 60 of some megabytes
takes hours.
"""

import re
from collections.abc import Callable
from typing import Any
from typing import TypeVar

import yaml

from hpcvirt import exception

T = TypeVar('T')

#: The values that all aliases of a document may stand for.
MAX_ALIASED = 10_000

_SURROGATE = re.compile('[\ud800-\udfff]')

#: PyYAML quotes what it does not know, whatever its length.
_MESSAGE = 400


class _Loader(yaml.SafeLoader):
    """A YAML loader with a budget for aliases."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        #: The values that a node stands for, itself included.
        self._sizes: dict[yaml.Node, int] = {}
        self._aliased = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Read one value; count it before anything is expanded."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        node: Any = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            if node not in self._sizes:
                raise yaml.composer.ComposerError(
                    None, None, 'an alias stands for a value that contains '
                    'it', mark)
            self._aliased += self._sizes[node]
            if self._aliased > MAX_ALIASED:
                raise yaml.composer.ComposerError(
                    None, None, f'aliases stand for more than {MAX_ALIASED} '
                    'values', mark)
        elif isinstance(node, yaml.ScalarNode):
            self._sizes[node] = 1
        else:
            size = 1
            for item in node.value:
                # An element of a list is a node, one of a mapping two.
                parts = item if isinstance(item, tuple) else (item,)
                for part in parts:
                    size += self._sizes[part]
            self._sizes[node] = size
        return node

    def construct_mapping(self, node: yaml.MappingNode,
                          deep: bool = False) -> dict[Any, Any]:
        """Read a mapping, with scalar keys that occur once."""
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, 'a key is a list or a mapping',
                    key_node.start_mark)
            key = (key_node.tag, key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key {key[1][:64]!r} occurs twice',
                    key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> Any:
        """Read text, in which JSON may have escaped halves of characters."""
        text = super().construct_scalar(node)
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode('utf-16', 'surrogatepass').decode('utf-16')
        except UnicodeDecodeError as exc:
            raise yaml.constructor.ConstructorError(
                None, None, 'text is no Unicode (an unpaired surrogate)',
                node.start_mark) from exc

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Read a number, which YAML 1.1 allows to be of base 60."""
        if ':' in self.construct_scalar(node):
            raise yaml.constructor.ConstructorError(
                None, None, f'{node.value[:64]!r} is a number of base 60; '
                'quote it if it is text', node.start_mark)
        number: int | float = (
            self.construct_yaml_int(node) if node.tag.endswith(':int')
            else self.construct_yaml_float(node))
        return number


for _tag in ('tag:yaml.org,2002:int', 'tag:yaml.org,2002:float'):
    _Loader.add_constructor(_tag, _Loader.construct_number)


class _TagLoader(_Loader):
    """A loader for documents with tags that only other programs know."""


_TagLoader.add_constructor(
    None, lambda _loader, _node: None)  # type: ignore[arg-type]


def value(text: str, where: str) -> Any:
    """Read the value of a YAML document.

    :param where: the file, for the error
    :raises InvalidInput: if it is not one document of YAML
    """
    return _load(lambda: yaml.load(text, _Loader), where)  # noqa: S506


def values(text: str, where: str) -> list[Any]:
    """Read the values of all documents in a file of another program.

    A value with a tag that is unknown here is None.

    :raises InvalidInput: if the file is not YAML
    """
    return _load(lambda: list(yaml.load_all(text, _TagLoader)), where)


def _load(read: Callable[[], T], where: str) -> T:
    try:
        return read()
    except RecursionError as exc:
        raise exception.InvalidInput(where, 'is nested too deeply') from exc
    except (yaml.YAMLError, ValueError) as exc:
        # ValueError: a date such as 2026-99-99.
        raise exception.InvalidInput(
            where, f'is not YAML ({str(exc)[:_MESSAGE]})') from exc
    except (TypeError, ArithmeticError, LookupError, AttributeError) as exc:
        raise exception.InvalidInput(
            where, 'is not YAML (a value does not agree with its tag, such '
            'as !!bool)') from exc
