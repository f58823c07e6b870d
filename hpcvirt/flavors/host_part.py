# SPDX-License-Identifier: Apache-2.0

"""The part of a host that an operator gives to guests.

By default a plan divides the whole host. If the host runs other services as
well, as in DevStack, the operator names the CPUs and the pages of each cell
that guests may have. The plan divides these; the host keeps everything else.
"""

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import shape

_PAGES = re.compile(
    r'(?:(?P<cell>[0-9]{1,5}):)?(?P<size>[1-9][0-9]{0,5} ?[KMG](?:i?B)?)'
    r'(?::(?:(?P<count>[0-9]{1,10})|(?P<percent>[0-9]{1,3})%))?',
    re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class CellPages:
    """The pages that guests get from a cell.

    :ivar cell: the host cell; None for every cell in which guests have CPUs
    :ivar count: the number of pages
    :ivar percent: the share of the cell's memory, instead of a number; if
        both are None, guests get the pages that the host has reserved now
    """

    cell: int | None
    size_kib: int
    count: int | None = None
    percent: int | None = None

    def count_on(self, cell: host_model.Cell) -> int:
        """Count the pages of a cell that guests get."""
        if self.percent is not None:
            return cell.memory_mib * 1024 * self.percent // (
                100 * self.size_kib)
        if self.count is not None:
            return self.count
        pool = cell.pool(self.size_kib)
        return pool.total if pool else 0


@dataclasses.dataclass(frozen=True, slots=True)
class HostPart:
    """A part of a host.

    :ivar cpus: the CPUs that guests may have; None for all
    :ivar pages: the pages that guests may have; empty for as many as the
        profile leaves
    """

    cpus: frozenset[int] | None = None
    pages: tuple[CellPages, ...] = ()

    @property
    def page_kib(self) -> int | None:
        """The size of the pages; None if the part names no pages."""
        return self.pages[0].size_kib if self.pages else None

    def has(self, cell: host_model.Cell) -> bool:
        """Tell whether guests may have CPUs of a cell."""
        return bool(cell.cpus) and (
            self.cpus is None or not self.cpus.isdisjoint(cell.cpus))

    def cores(self, cell: host_model.Cell) -> list[frozenset[int]]:
        """List the cores of a cell that guests may have."""
        return [core for core in cell.siblings
                if self.cpus is None or core <= self.cpus]

    def memory_kib(self, cell: host_model.Cell) -> int | None:
        """Return a cell's memory for guests; None if no pages are named."""
        if not self.pages:
            return None
        item = next((item for item in self.pages if item.cell == cell.id),
                    next((item for item in self.pages if item.cell is None),
                         None))
        return item.count_on(cell) * item.size_kib if item else 0


WHOLE = HostPart()


def pages(text: str, where: str = '--pages') -> CellPages:
    """Read ``[CELL:]SIZE[:COUNT]``, such as ``2M``, ``0:1G:4``, ``4K:50%``.

    :raises InvalidInput: if the text has another form
    """
    match = _PAGES.fullmatch(text)
    percent = int(match['percent'] or 0) if match else 0
    if match is None or percent > 100:
        raise exception.InvalidInput(
            where, f'{text[:64]!r} is not [CELL:]SIZE[:COUNT], for example '
            '2M, 2M:1024, 0:1G:4 or 4K:50%')
    return CellPages(
        int(match['cell']) if match['cell'] else None,
        profiles.page_size(match['size']),
        int(match['count']) if match['count'] else None,
        percent if match['percent'] else None)


def build(cpus: str | None, items: Iterable[str]) -> HostPart:
    """Read the part that ``--cpus`` and ``--pages`` describe.

    :raises InvalidInput: naming the option at fault
    """
    chosen = None if cpus is None else cpuset.parse(cpus, '--cpus')
    if chosen is not None and not chosen:
        raise exception.InvalidInput('--cpus', 'names no CPU')
    given = tuple(pages(item) for item in items)
    if len({item.size_kib for item in given}) > 1:
        raise exception.InvalidInput(
            '--pages', 'names several page sizes; all guests of a plan have '
            'pages of one size')
    counts = collections.Counter(item.cell for item in given)
    for cell, count in counts.items():
        if count > 1:
            raise exception.InvalidInput(
                '--pages', 'is given twice for '
                + ('every cell' if cell is None else f'cell {cell}'))
    return HostPart(chosen, given)


def choices(profile: profiles.Profile, part: HostPart) -> profiles.Profile:
    """Adapt a profile to a part of a host.

    If the operator names the CPUs of guests, the host keeps the others, and
    no further cores unless the profile gives their number.
    """
    if part.cpus is None or profile.shared_cores_per_cell is not None:
        return profile
    emulator = profile.emulator_threads
    return dataclasses.replace(
        profile, shared_cores_per_cell=0, emulator_threads=None
        if emulator is shape.EmulatorThreads.SHARE else emulator)


def check(host: host_model.Host, part: HostPart) -> None:
    """Check that a host has the CPUs and pages of a part.

    :raises InvalidInput: naming the host and what it lacks
    """
    for fault in _find_faults(host, part):
        raise exception.InvalidInput(host.name, fault)


def _find_faults(host: host_model.Host, part: HostPart) -> Iterator[str]:
    cpus = host.cpus if part.cpus is None else part.cpus
    if cpus - host.cpus:
        yield (f'has no CPU {cpuset.render(cpus - host.cpus)}, which --cpus '
               'names')
    cores = itertools.chain.from_iterable(cell.siblings for cell in host.cells)
    for core in cores:
        if core & cpus and core - cpus:
            yield (f'--cpus names CPU {cpuset.render(core & cpus)} but not '
                   f'its SMT sibling {cpuset.render(core - cpus)}; guests get '
                   'whole cores')
    for item in part.pages:
        if item.cell is not None and item.cell not in host.by_id:
            yield f'has no cell {item.cell}, which --pages names'
        elif item.cell is not None and not part.has(host.by_id[item.cell]):
            yield f'--pages names cell {item.cell}, where guests have no CPUs'
    amounts = [(cell, part.memory_kib(cell) or 0) for cell in host.cells
               if part.has(cell)]
    for cell, memory_kib in amounts:
        if memory_kib > cell.memory_mib * 1024:
            yield (f'--pages takes {memory_kib // 1024} MiB of cell {cell.id},'
                   f' which has {cell.memory_mib} MiB')
    if part.pages and not any(memory_kib for _, memory_kib in amounts):
        yield ('has reserved no pages of the size that --pages names; give '
               'their number as SIZE:COUNT')
