# SPDX-License-Identifier: Apache-2.0

"""Read items from Nova's objects when they are needed."""

import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from oslo_versionedobjects import exception as object_exception

from hpcvirt import exception

_Item = typing.TypeVar('_Item')

#: What a malformed object of Nova raises when it is read.
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError,
          TypeError, ValueError, object_exception.VersionedObjectsException)


class LazySequence(Sequence[_Item]):
    """A sequence that makes each item when it is first read."""

    __slots__ = ('_items', '_make', '_source')

    def __init__(self, source: Sequence[typing.Any],
                 make: Callable[[typing.Any], _Item]) -> None:
        self._source = source
        self._make = make
        self._items: list[_Item] = []

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[_Item]:
        if len(self._items) == len(self._source):
            return iter(self._items)
        return self._made()

    def _made(self) -> Iterator[_Item]:
        items = self._items
        yield from items
        for source in self._source[len(items):]:
            try:
                item = self._make(source)
            except BROKEN as exc:
                where = f'{type(source).__name__} {len(items)}'
                raise make_error(where, exc) from exc
            items.append(item)
            yield item

    def forget(self) -> None:
        """Make the items anew when they are read again."""
        self._items = []

    @typing.overload
    def __getitem__(self, index: int) -> _Item: ...

    @typing.overload
    def __getitem__(self, index: slice) -> list[_Item]: ...

    def __getitem__(self, index: int | slice) -> _Item | list[_Item]:
        if len(self._items) < len(self._source):
            list(self)
        return self._items[index]


def make_error(where: str, error: Exception) -> exception.InvalidInput:
    """Make an error that says what is wrong with an object of Nova."""
    said = str(error).replace('_obj_', '')
    return exception.InvalidInput(where, f'{type(error).__name__}: {said}')
