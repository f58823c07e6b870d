# SPDX-License-Identifier: Apache-2.0

"""Describe the differences between two hosts."""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import hardware_features


@dataclasses.dataclass(frozen=True)
class HostDifference:
    """A difference between two hosts.

    :ivar subject: processor, sockets, cores, smt, cells, memory, caches,
        pages, distances, devices, slots or source
    :ivar what: a clause whose subject is the host
    """

    subject: str
    what: str


def compare_hosts(host: host_model.Host,
                  typical: host_model.Host) -> tuple[HostDifference, ...]:
    """Compare a host with an example of a class.

    Cells are compared one by one only if both hosts have the same cells.
    """
    found = list(_compare_machines(host, typical))
    subjects = {item.subject for item in found}
    if [cell.id for cell in host.cells] == [cell.id for cell in typical.cells]:
        found += _compare_cells(host, typical, bool(
            subjects & {'cores', 'smt', 'cells'}))
        if host.distances != typical.distances and (
                host.distances and typical.distances):
            found.append(HostDifference(
                'distances', 'reports other distances between its cells'))
    else:
        found += _compare_memory(
            'it', sum(hardware_features.memory(host)),
            sum(hardware_features.memory(typical)))
    found += _compare_devices(host, typical, 'cells' not in subjects)
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


def _compare_machines(host: host_model.Host,
                      typical: host_model.Host) -> Iterator[HostDifference]:
    """Compare sources, processors, and numbers of sockets, cores and cells."""
    here, there = _not_said(host), _not_said(typical)
    clauses = [f'{verb} its {_list(sorted(facts))}' for verb, facts in (
        ('does not say', here - there), ('says', there - here)) if facts]
    if clauses:
        yield HostDifference(
            'source', f'is from a source that {" but ".join(clauses)}')
    if host.processor != typical.processor and (
            host.processor and typical.processor):
        yield HostDifference('processor', f'has the processor '
                             f'{host.processor}, not {typical.processor}')
    if _say(host, typical, host_model.Unknown.SOCKETS):
        yield from _compare_numbers('sockets', 'socket', len(host.sockets),
                                    len(typical.sockets))
    yield from _compare_numbers('cores', 'core', _number_of_cores(host),
                                _number_of_cores(typical))
    mine, theirs = host.threads_per_core, typical.threads_per_core
    if mine != theirs:
        smt = ''
        if mine == 1:
            smt = ' (SMT is off)'
        elif theirs == 1:
            smt = ' (SMT is on)'
        yield HostDifference('smt', f'has {words.count_noun(mine, "thread")} '
                             f'per core, not {theirs}{smt}')
    yield from _compare_numbers_of_cells(host, typical)


def _compare_numbers(subject: str, noun: str, mine: int, theirs: int,
                     ) -> Iterator[HostDifference]:
    if mine != theirs:
        yield HostDifference(
            subject, f'has {words.count_noun(mine, noun)}, not {theirs}')


def _not_said(host: host_model.Host) -> set[str]:
    """List the facts that the source of a host does not report."""
    return ({str(fact) for fact in host.unknown}
            | ({'distances'} if not host.distances else set())
            | ({'processor'} if host.processor is None else set()))


def _compare_numbers_of_cells(
        host: host_model.Host,
        typical: host_model.Host) -> Iterator[HostDifference]:
    mine = [cell.id for cell in host.cells if cell.cpus]
    theirs = [cell.id for cell in typical.cells if cell.cpus]
    if len(mine) != len(theirs):
        sockets = len(host.sockets)
        per_socket = (f', {len(mine) / sockets:g} instead of '
                      f'{len(theirs) / sockets:g} per socket'
                      if sockets == len(typical.sockets) > 0 else '')
        cause = (' (another NPS or SNC setting)' if _number_of_cores(host)
                 == _number_of_cores(typical) else '')
        yield HostDifference(
            'cells', f'has {words.count_noun(len(mine), "cell")} with CPUs, '
            f'not {len(theirs)}{per_socket}{cause}')
    elif host.by_id.keys() != typical.by_id.keys():
        yield HostDifference('cells', f'has the cells {_list(host.by_id)}, '
                             f'not {_list(typical.by_id)}')


def _compare_cells(host: host_model.Host, typical: host_model.Host,
                   other_cpus: bool) -> Iterator[HostDifference]:
    """Compare cells.

    :param other_cpus: whether another difference explains other CPU numbers
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
                                     f'{name} has other CPU numbers')
        elif mine.llc != theirs.llc and _say(host, typical,
                                             host_model.Unknown.CACHES):
            yield HostDifference(
                'caches', f'{name} has other last-level caches: '
                f'{len(mine.llc)}, not {len(theirs.llc)}')
        yield from _compare_memory(name, mine.memory_mib, theirs.memory_mib)
        if _say(host, typical, host_model.Unknown.PAGES):
            yield from _compare_pages(name, mine, theirs)
        if (mine.socket != theirs.socket
                and len(host.sockets) == len(typical.sockets)
                and _say(host, typical, host_model.Unknown.SOCKETS)):
            yield HostDifference('sockets', f'{name} is in socket '
                                 f'{mine.socket}, not {theirs.socket}')


def _compare_memory(name: str, mine_mib: int,
                    theirs_mib: int) -> Iterator[HostDifference]:
    if hardware_features.is_close(mine_mib, theirs_mib):
        return
    missing = theirs_mib - mine_mib
    yield HostDifference(
        'memory', f'{name} has {_gib(abs(missing))} GiB '
        f'{"less" if missing > 0 else "more"} memory: {_gib(mine_mib)}, '
        f'not {_gib(theirs_mib)} GiB'
        + (' (a memory module may be missing)' if missing > 0 else ''))


def _compare_pages(name: str, mine: host_model.Cell,
                   theirs: host_model.Cell) -> Iterator[HostDifference]:
    here, there = dict(hardware_features.huge_pages(mine)), dict(
        hardware_features.huge_pages(theirs))
    for size in sorted(here.keys() | there.keys()):
        if here.get(size, 0) != there.get(size, 0):
            yield HostDifference(
                'pages', f'{name} has {here.get(size, 0)} reserved pages of '
                f'{size // 1024} MiB, not {there.get(size, 0)}')


def _compare_devices(host: host_model.Host, typical: host_model.Host,
                     same_cells: bool) -> Iterator[HostDifference]:
    mine, theirs = _by_kind(host), _by_kind(typical)
    for kind in sorted(mine.keys() | theirs.keys()):
        here = mine.get(kind, collections.Counter())
        there = theirs.get(kind, collections.Counter())
        more = here.total() - there.total()
        if more:
            yield HostDifference(
                'devices', f'has {words.count_noun(abs(more), "device")} '
                f'{_kind(kind)} {"more" if more > 0 else "less"}')
        elif same_cells and here != there:
            yield HostDifference('devices', f'has {_kind(kind)} on '
                                 f'{_places(here)}, not on {_places(there)}')


def _by_kind(host: host_model.Host) -> dict[
        hardware_features.Kind, collections.Counter[int | None]]:
    found: dict[hardware_features.Kind, collections.Counter[int | None]] = {}
    for device in hardware_features.devices(host):
        found.setdefault(hardware_features.kind(device),
                         collections.Counter())[device.cell] += 1
    return found


def _places(counts: Mapping[int | None, int]) -> str:
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


def _list(items: Iterable[object]) -> str:
    return ', '.join(map(str, items))
