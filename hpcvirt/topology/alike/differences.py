# SPDX-License-Identifier: Apache-2.0

"""Put the differences between two hosts into words."""

import collections
import dataclasses
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import hardware_features


@dataclasses.dataclass(frozen=True)
class HostDifference:
    """One thing that differs.

    :ivar subject: what: processor, sockets, cores, smt, cells, memory,
        caches, pages, distances, devices, slots or source
    :ivar what: a clause whose subject is the host
    """

    subject: str
    what: str


def compare_hosts(host: host_model.Host,
                  typical: host_model.Host) -> tuple[HostDifference, ...]:
    """Compare a host with one of a larger class.

    Cells are compared one by one only if both hosts have the same ones.
    """
    found = [HostDifference(subject, what) for subject, compare in (
        ('source', _source), ('processor', _processor),
        ('sockets', _sockets), ('cores', _cores), ('smt', _smt),
        ('cells', _cells)) for what in compare(host, typical)]
    if [cell.id for cell in host.cells] == [cell.id for cell in typical.cells]:
        subjects = {item.subject for item in found}
        found += _cell_by_cell(host, typical, bool(
            subjects & {'cores', 'smt', 'cells'}))
        if host.distances != typical.distances and (
                host.distances and typical.distances):
            found.append(HostDifference(
                'distances', 'reports other distances between its cells'))
    else:
        found += [HostDifference('memory', what) for what in _memory(
            'it', sum(hardware_features.memory(host)),
            sum(hardware_features.memory(typical)))]
    same_cells = not any(item.subject == 'cells' for item in found)
    found += [HostDifference('devices', what)
              for what in _devices(host, typical, same_cells)]
    return tuple(found)


def compare_slots(host: host_model.Host,
                  typical: host_model.Host) -> tuple[HostDifference, ...]:
    """Compare the addresses of the devices of two hosts of a class."""
    there = hardware_features.slots(typical)
    return tuple(
        HostDifference('slots', f'has {_kind(kind)} at {_list(mine)}, not at '
                       f'{_list(there[kind, cell])}')
        for (kind, cell), addresses in sorted(
            hardware_features.slots(host).items(), key=str)
        if (mine := addresses) != there.get((kind, cell), mine))


def _source(host: host_model.Host,
            typical: host_model.Host) -> Iterator[str]:
    mine, theirs = _not_said(host), _not_said(typical)
    clauses = [f'{verb} its {_list(sorted(facts))}' for verb, facts in (
        ('does not say', mine - theirs), ('says', theirs - mine)) if facts]
    if clauses:
        yield f'is from a source that {" but ".join(clauses)}'


def _not_said(host: host_model.Host) -> set[str]:
    """List what is unknown."""
    return ({str(fact) for fact in host.unknown}
            | ({'distances'} if not host.distances else set())
            | ({'processor'} if host.processor is None else set()))


def _processor(host: host_model.Host,
               typical: host_model.Host) -> Iterator[str]:
    if host.processor != typical.processor and (
            host.processor and typical.processor):
        yield f'has the processor {host.processor}, not {typical.processor}'


def _sockets(host: host_model.Host,
              typical: host_model.Host) -> Iterator[str]:
    if _say(host, typical, host_model.Unknown.SOCKETS) and len(
            host.sockets) != len(typical.sockets):
        yield (f'has {words.count_noun(len(host.sockets), "socket")}, not '
               f'{len(typical.sockets)}')


def _cores(host: host_model.Host, typical: host_model.Host) -> Iterator[str]:
    mine, theirs = _number_of_cores(host), _number_of_cores(typical)
    if mine != theirs:
        yield f'has {words.count_noun(mine, "core")}, not {theirs}'


def _smt(host: host_model.Host, typical: host_model.Host) -> Iterator[str]:
    mine, theirs = host.threads_per_core, typical.threads_per_core
    if mine == theirs:
        return
    parts = (' (SMT is off)' if mine == 1 else
             ' (SMT is on)' if theirs == 1 else '')
    yield (f'has {words.count_noun(mine, "thread")} per core, not '
           f'{theirs}{parts}')


def _cells(host: host_model.Host, typical: host_model.Host) -> Iterator[str]:
    mine = [cell.id for cell in host.cells if cell.cpus]
    theirs = [cell.id for cell in typical.cells if cell.cpus]
    if len(mine) != len(theirs):
        sockets = len(host.sockets)
        per_socket = (f', {len(mine) / sockets:g} instead of '
                       f'{len(theirs) / sockets:g} per socket'
                       if sockets == len(typical.sockets) > 0 else '')
        cause = (' (another NPS or SNC setting)' if _number_of_cores(host)
                 == _number_of_cores(typical) else '')
        yield (f'has {words.count_noun(len(mine), "cell")} with CPUs, not '
               f'{len(theirs)}{per_socket}{cause}')
    elif [cell.id for cell in host.cells] != [cell.id
                                              for cell in typical.cells]:
        yield (f'has the cells {_list([cell.id for cell in host.cells])}, not '
               f'{_list([cell.id for cell in typical.cells])}')


def _cell_by_cell(host: host_model.Host, typical: host_model.Host,
                  other_cpus: bool) -> Iterator[HostDifference]:
    """Compare cells.

    :param other_cpus: the number of CPUs is known to differ
    """
    for mine, theirs in zip(host.cells, typical.cells, strict=True):
        name = f'cell {mine.id}'
        if len(mine.siblings) != len(theirs.siblings):
            yield HostDifference(
                'cores', f'{name} has '
                f'{words.count_noun(len(mine.siblings), "core")}, '
                f'not {len(theirs.siblings)}')
        elif (mine.cpus, mine.siblings) != (theirs.cpus, theirs.siblings):
            if not other_cpus:
                yield HostDifference('cores',
                                     f'{name} has CPUs of other numbers')
        elif mine.llc != theirs.llc and _say(host, typical,
                                             host_model.Unknown.CACHES):
            yield HostDifference(
                'caches', f'{name} has other last-level caches: '
                f'{len(mine.llc)}, not {len(theirs.llc)}')
        for what in _memory(name, mine.memory_mib, theirs.memory_mib):
            yield HostDifference('memory', what)
        if _say(host, typical, host_model.Unknown.PAGES):
            yield from _pages(name, mine, theirs)
        if (mine.socket != theirs.socket
                and len(host.sockets) == len(typical.sockets)
                and _say(host, typical, host_model.Unknown.SOCKETS)):
            yield HostDifference('sockets', f'{name} is in socket '
                                 f'{mine.socket}, not {theirs.socket}')


def _memory(name: str, mine_mib: int, theirs_mib: int) -> Iterator[str]:
    if hardware_features.is_close(mine_mib, theirs_mib):
        return
    missing = theirs_mib - mine_mib
    yield (f'{name} has {_gib(abs(missing))} GiB '
           f'{"less" if missing > 0 else "more"} memory: {_gib(mine_mib)}, '
           f'not {_gib(theirs_mib)} GiB'
           + (' (a memory module may be missing)' if missing > 0 else ''))


def _pages(name: str, mine: host_model.Cell,
           theirs: host_model.Cell) -> Iterator[HostDifference]:
    here, there = dict(hardware_features.huge_pages(mine)), dict(
        hardware_features.huge_pages(theirs))
    for size in sorted(here.keys() | there.keys()):
        if here.get(size, 0) != there.get(size, 0):
            yield HostDifference(
                'pages', f'{name} has {here.get(size, 0)} reserved pages of '
                f'{size // 1024} MiB, not {there.get(size, 0)}')


def _devices(host: host_model.Host, typical: host_model.Host,
             same_cells: bool) -> Iterator[str]:
    mine, theirs = hardware_features.slots(host), hardware_features.slots(
        typical)
    kinds = sorted({kind for kind, _ in (*mine, *theirs)})
    for kind in kinds:
        here = _by_cell(mine, kind)
        there = _by_cell(theirs, kind)
        more = sum(here.values()) - sum(there.values())
        if more:
            yield (f'has {words.count_noun(abs(more), "device")} '
                   f'{_kind(kind)} {"more" if more > 0 else "less"}')
        elif same_cells and here != there:
            yield (f'has {_kind(kind)} on {_places(here)}, not on '
                   f'{_places(there)}')


def _by_cell(slots: hardware_features.Slots,
             kind: hardware_features.Kind) -> dict[int | None, int]:
    counts: collections.Counter[int | None] = collections.Counter()
    for (other, cell), addresses in slots.items():
        if other == kind:
            counts[cell] += len(addresses)
    return dict(counts)


def _places(counts: dict[int | None, int]) -> str:
    return ' and '.join(
        ('no cell' if cell is None else f'cell {cell}')
        + (f' ({number})' if len(counts) > 1 else '')
        for cell, number in sorted(counts.items(), key=str))


def _say(host: host_model.Host, typical: host_model.Host,
         fact: host_model.Unknown) -> bool:
    return fact not in host.unknown | typical.unknown


def _number_of_cores(host: host_model.Host) -> int:
    return sum(len(cell.siblings) for cell in host.cells)


def _kind(kind: hardware_features.Kind) -> str:
    vendor, product, vfs = kind
    return f'{vendor}:{product}' + (f' with {vfs} VFs' if vfs else '')


def _gib(mib: int) -> str:
    return f'{mib / 1024:.1f}'.removesuffix('.0')


def _list(items: Sequence[object]) -> str:
    return ', '.join(map(str, items))
