# SPDX-License-Identifier: Apache-2.0

"""Read the record of a host, which nova-compute reports.

nova-scheduler reads the record of each host from the database for each
request. A digest shows whether it has changed: the time of the last change has
a resolution of one second and is too coarse. The digest is computed from the
attributes in which oslo.versionedobjects stores the fields.

Items of Nova's objects are read when they are needed (:class:`LazySequence`).
A compute host that reports malformed data, such as a NUMA cell without CPUs,
must not fail a request that other hosts can serve: it is refused, and warned
about once. The adapter raises InvalidInput for what it checks. All other
exceptions are caught as well, and logged with their traceback.
"""

import hashlib
import itertools
import marshal
import operator
import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from oslo_log import log as logging
from oslo_versionedobjects import exception as object_exception

from hpcvirt import exception
from hpcvirt import kept_text
from hpcvirt.fit import reasons

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


_PAGES = operator.attrgetter('_obj_size_kb', '_obj_total', '_obj_used',
                             '_obj_reserved')

#: This version of marshal writes no references, so that the bytes depend on
#: values only.
_VERSION = 2

#: The most CPU layouts that are remembered for a cell id, and about the most
#: cell ids. A layout that was forgotten gets another number.
MAX_LAYOUTS = 64
#: The most CPUs of a layout that is remembered, and of all together; then all
#: are forgotten. A CPU takes about 100 bytes.
MAX_CPUS_OF_A_LAYOUT = 1 << 12
MAX_CPUS = 1 << 18
_cpus = 0
_layouts: dict[int, tuple[tuple[typing.Any, int], ...]] = {}
_numbers = itertools.count()


def digest(host_state: typing.Any) -> bytes | None:
    """Compute a digest of the NUMA cells, PCI devices and ratios of a host.

    The bytes are equal only if all of these are equal.

    :returns: None if the record is malformed
    """
    try:
        stats = host_state.pci_stats
        record = marshal.dumps((
            [_read(cell) for cell in host_state.numa_topology._obj_cells],
            stats and stats.pools, host_state.cpu_allocation_ratio,
            host_state.ram_allocation_ratio), _VERSION)
    except BROKEN:
        return None
    return hashlib.blake2b(record, digest_size=16).digest()


def _read(cell: typing.Any) -> tuple[typing.Any, ...]:
    number, pinned = cell._obj_id, cell._obj_pinned_cpus
    pages, network = cell._obj_mempages, cell._obj_network_metadata
    if pinned.__class__ is not cell._obj_pcpuset.__class__:
        raise TypeError('not all are sets of CPUs')
    return (number, _number_layout(number, cell), cell._obj_socket,
            cell._obj_cpu_usage, cell._obj_memory, cell._obj_memory_usage,
            len(pages), len(pinned), *pinned,
            *itertools.chain.from_iterable(map(_PAGES, pages)),
            network._obj_tunneled, *network._obj_physnets)


def _number_layout(cell_id: int, cell: typing.Any) -> int:
    """Return a number for the CPUs of a cell, which many hosts share.

    Comparing sets takes less time than serializing them.
    """
    cpus = siblings, dedicated, shared = (
        cell._obj_siblings, cell._obj_pcpuset, cell._obj_cpuset)
    for layout, number in _layouts.get(cell_id, ()):
        if layout == cpus:
            return number
    number = next(_numbers)
    size = len(dedicated) + len(shared) + sum(map(len, siblings))
    if size > MAX_CPUS_OF_A_LAYOUT:
        return number
    # Copy the sets: the cell may be changed in place.
    layout = ([frozenset(core) for core in siblings], frozenset(dedicated),
              frozenset(shared))
    global _cpus  # noqa: PLW0603
    _cpus += size
    if len(_layouts) > MAX_LAYOUTS or _cpus > MAX_CPUS:
        _layouts.clear()
        _cpus = size
    known = _layouts.get(cell_id, ())[-MAX_LAYOUTS + 1:]
    _layouts[cell_id] = (*known, (layout, number))
    return number


LOG = logging.getLogger(__name__)

#: The most warnings that are remembered; then all are forgotten.
_MAX_WARNINGS = 4096
#: The most characters of an error that are shown.
_MAX_CHARACTERS = 300

#: Each warning, and a mark of the call that has remembered it.
_warned: dict[tuple[str, ...], object] = {}


def make_misfit(host_state: typing.Any, error: Exception) -> reasons.Misfit:
    """Return the refusal of a host; log a warning the first time.

    :param host_state: Nova's HostState
    :param error: the exception that was raised for it
    """
    checked = isinstance(error, exception.InvalidInput)
    what = str(error) if checked else f'{type(error).__name__}: {error}'
    what = what[:_MAX_CHARACTERS]
    host, node = host_state.host, host_state.nodename
    if is_first(host, node, what):
        LOG.warning('%(host)s, %(node)s reports malformed data and gets no '
                    'guest that depends on it: %(what)s',
                    {'host': host, 'node': node, 'what': what},
                    exc_info=None if checked else error)
    return reasons.Misfit(reasons.Code.MALFORMED_HOST, {'what': what})


def is_first(*what: str) -> bool:
    """Return whether there has been no such warning yet, and remember it."""
    warning = tuple([kept_text.shorten(str(text)) for text in what])
    if len(_warned) >= _MAX_WARNINGS:
        _warned.clear()
    # One step, so that only one of several threads is the first.
    mark = object()
    return _warned.setdefault(warning, mark) is mark
