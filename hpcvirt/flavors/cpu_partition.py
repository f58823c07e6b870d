# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Whose are the CPUs of a host: the guests', the emulators', the host's.

A guest gets whole cores, so that no two guests share one: a core is given
with all its SMT siblings (``smt: use``), or with one thread while its
siblings stay idle (``smt: leave``).
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.flavors import notice
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model

Core = frozenset[int]


@dataclasses.dataclass(frozen=True, slots=True)
class CellShare:
    """What guests get of one cell.

    :ivar id: the host cell
    :ivar package: its package
    :ivar cores: the dedicated CPUs of each core
    :ivar llc: number of these cores under each last-level cache
    :ivar shared: CPUs for emulator threads and shared guests
    """

    id: int
    package: int | None
    cores: tuple[Core, ...]
    llc: tuple[int, ...]
    shared: frozenset[int] = frozenset()

    @property
    def dedicated(self) -> frozenset[int]:
        return frozenset().union(*self.cores)


@dataclasses.dataclass(frozen=True, slots=True)
class Division:
    """The division of a host's CPUs.

    :ivar threads: dedicated CPUs of each core
    :ivar cells: the cells from which guests get cores
    """

    host: host_model.Host
    threads: int
    cells: tuple[CellShare, ...]
    notices: tuple[notice.Notice, ...] = ()

    @property
    def dedicated(self) -> frozenset[int]:
        return frozenset().union(*(cell.dedicated for cell in self.cells))

    @property
    def shared(self) -> frozenset[int]:
        return frozenset().union(*(cell.shared for cell in self.cells))


def divide(host: host_model.Host, profile: profiles.Profile) -> Division:
    """Divide the CPUs of a host.

    Cells without CPUs or without memory give nothing, and say so. Where
    cores have different numbers of threads (a sibling is offline, or the
    machine mixes kinds of cores) the guests get the cores of the kind with
    the most CPUs, so that a guest's cores are alike.
    """
    notices = list(_unusable(host))
    usable = [cell for cell in host.cells if cell.cpus and cell.memory_mib]
    threads = (1 if profile.smt is profiles.SMT.LEAVE
               else _usual_threads(usable))
    cells, without = [], []
    odd: set[int] = set()
    for cell in usable:
        share, left = _share(cell, threads, profile)
        odd |= left
        if share.cores:
            cells.append(share)
        else:
            without.append(cell.id)
    if without:
        notices.append(notice.Notice(
            notice.Code.CELL_NOT_USED,
            f'{cells_in_words(without)} no core left for guests',
            (host.name,)))
    if odd:
        notices.append(notice.Notice(
            notice.Code.IRREGULAR_CORES,
            f'CPUs {cpuset.render(odd)} are left to the host, because '
            f'their cores do not have {threads} threads as the others do',
            (host.name,)))
    if profile.smt is profiles.SMT.LEAVE and host.threads_per_core > 1:
        notices.append(notice.Notice(
            notice.Code.SIBLINGS_IDLE,
            'the SMT siblings of dedicated CPUs stay idle; nothing else may '
            'be put on them', (host.name,)))
    return Division(host, threads, tuple(cells), tuple(notices))


def _unusable(host: host_model.Host) -> Iterator[notice.Notice]:
    """Say which cells have nothing for guests."""
    without_cpus = [cell for cell in host.cells if not cell.cpus]
    if without_cpus:
        memory_mib = sum(cell.memory_mib for cell in without_cpus)
        yield notice.Notice(
            notice.Code.CELL_WITHOUT_CPUS,
            f'{cells_in_words(c.id for c in without_cpus)} {memory_mib} MiB '
            'and no CPUs; Nova places no pinned guest there, so the memory '
            'stays with the host', (host.name,))
    without_memory = [cell for cell in host.cells
                      if cell.cpus and not cell.memory_mib]
    if without_memory:
        cpus = frozenset[int]().union(*(c.cpus for c in without_memory))
        yield notice.Notice(
            notice.Code.CELL_WITHOUT_MEMORY,
            f'{cells_in_words(c.id for c in without_memory)} no memory; the '
            f'CPUs {cpuset.render(cpus)} are not dedicated, because no guest '
            'fits there', (host.name,))


def cells_in_words(ids: Iterable[int]) -> str:
    """Begin a sentence: ``cell 3 has``, ``cells 3-5,8 have``."""
    numbers = sorted(ids)
    plural = len(numbers) > 1
    return (f'cell{"s" if plural else ""} {cpuset.render(numbers)} '
            f'{"have" if plural else "has"}')


def _usual_threads(cells: Sequence[host_model.Cell]) -> int:
    """The threads of the kind of core that has the most CPUs."""
    cpus: collections.Counter[int] = collections.Counter()
    for cell in cells:
        for core in cell.siblings:
            cpus[len(core)] += len(core)
    return max(cpus, key=lambda threads: (cpus[threads], threads), default=1)


def _share(cell: host_model.Cell, threads: int, profile: profiles.Profile,
           ) -> tuple[CellShare, set[int]]:
    """Share out one cell; also the CPUs of cores that are not alike."""
    alike = [core for core in cell.siblings if len(core) >= threads]
    odd = {cpu for core in cell.siblings if len(core) < threads
           for cpu in core}
    queue = _by_cache_in_turn(alike, cell.llc)
    kept = profile.housekeeping_cores_per_cell
    given_away = kept + profile.shared_cores_per_cell
    shared = frozenset().union(*queue[kept:given_away])
    dedicated = sorted(queue[given_away:], key=min)
    cores = tuple(frozenset(sorted(core)[:threads]) for core in dedicated)
    llc = [sum(not core.isdisjoint(cache) for core in cores)
           for cache in cell.llc]
    return CellShare(cell.id, cell.package, cores,
                     tuple(count for count in llc if count), shared), odd


def _by_cache_in_turn(cores: Sequence[Core],
                      caches: Sequence[frozenset[int]]) -> list[Core]:
    """Order cores so that each cache in turn gives its lowest one.

    What is taken from the front for the host then leaves the caches with
    equal numbers of cores wherever that is possible.
    """
    rank = {}
    for cache in caches:
        inside = sorted((core for core in cores
                         if not core.isdisjoint(cache)), key=min)
        rank.update({core: turn for turn, core in enumerate(inside)})
    return sorted(cores, key=lambda core: (rank[core], min(core)))
