# SPDX-License-Identifier: Apache-2.0

"""Find everything for which Nova refuses a flavor, not only the first.

Nova stops at the first value that it refuses. To go on, a value is put in its
place that Nova accepts. A mistake can make other values wrong: a misspelled
``hw:cpu_policy`` makes a thread policy look as if no CPUs were dedicated. Of
several corrections, the one counts that leaves the fewest other mistakes.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.specs import scheduler_keys
from hpcvirt.specs import vocabulary

#: Extra specs whose meaning depends on each other.
_GROUPS = (
    (vocabulary.CPU_POLICY, vocabulary.CPU_THREAD_POLICY,
     vocabulary.CPU_DEDICATED_MASK, vocabulary.EMULATOR_THREADS_POLICY,
     vocabulary.CPU_REALTIME, vocabulary.CPU_REALTIME_MASK,
     vocabulary.RESOURCES, vocabulary.TRAIT),
    (vocabulary.NUMA_NODES, vocabulary.NUMA_CPUS, vocabulary.NUMA_MEM),
    (scheduler_keys.MEM_PAGE_SIZE, vocabulary.LOCKED_MEMORY),
    (vocabulary.PCI_ALIAS, vocabulary.PCI_NUMA_AFFINITY_POLICY,
     scheduler_keys.DEVICE_SET),
    (vocabulary.CPU_SOCKETS, vocabulary.CPU_CORES, vocabulary.CPU_THREADS,
     vocabulary.CPU_MAX_SOCKETS, vocabulary.CPU_MAX_CORES,
     vocabulary.CPU_MAX_THREADS),
)
_CELLS = _GROUPS[1]

#: What is said of all cells together.
_SUMS = (codec.ALL_CPUS, codec.ALL_MEMORY)

Specs = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """What Nova refuses in a flavor.

    :ivar refusals: one for each mistake, in the order in which Nova would
        find them
    :ivar specs: the extra specs with these corrected
    :ivar corrected: the keys that are corrected
    :ivar guest: the guest with these extra specs; None if no correction makes
        one
    """

    refusals: tuple[exception.InvalidInput, ...]
    specs: Specs
    corrected: frozenset[str]
    guest: shape.Shape | None


def find(vcpus: int, ram_mib: int, specs: Specs) -> Mistakes:
    """Find all mistakes of a flavor that Nova would refuse."""
    return _find(vcpus, ram_mib, specs, frozenset())


def is_affected(name: str, corrected: frozenset[str]) -> bool:
    """Whether what is said of a key may follow from corrections."""
    if name in corrected:
        return True
    group = _group_of(name)
    return bool(group) and any(_group_of(item) == group for item in corrected)


def _group_of(name: str) -> tuple[object, ...]:
    for group in _GROUPS:
        if any(row.matches(name) for row in group):
            return group
    # A cell without whole pages is told of the memory of the flavor.
    return _CELLS if name == 'ram' else ()


def _are_cells(where: str) -> bool:
    return _group_of(where) == _CELLS or where in _SUMS


def _find(vcpus: int, ram_mib: int, specs: Specs,
          seen: frozenset[str]) -> Mistakes:
    """Find the mistakes that are left.

    :param seen: the keys that have been corrected; Nova has refused the
        correction if it finds a mistake in one of these
    """
    try:
        guest = codec.decode(vcpus, ram_mib, specs)
    except exception.InvalidInput as exc:
        refused = exc
    else:
        return Mistakes((), specs, frozenset(), guest)
    best = None
    if refused.where not in seen:
        for changed in _corrections(refused.where, vcpus, ram_mib, specs):
            rest = _find(vcpus, ram_mib, {**_without(specs, changed),
                                          **_only_text(changed)},
                         seen | {refused.where})
            rest = dataclasses.replace(
                rest, corrected=rest.corrected | changed.keys())
            if best is None or _badness(rest) < _badness(best):
                best = rest
            if rest.guest is not None and _are_cells(refused.where):
                # The next correction takes all cells away, and with them
                # their other mistakes.
                break
    if best is None:
        return Mistakes((refused,), specs, frozenset(), None)
    return dataclasses.replace(best, refusals=(refused, *best.refusals))


def _badness(found: Mistakes) -> tuple[bool, int]:
    """Sort corrections by what they leave wrong."""
    return found.guest is None, len(found.refusals)


def _without(specs: Specs, changed: Mapping[str, str | None]) -> Specs:
    return {name: text for name, text in specs.items() if name not in changed}


def _only_text(changed: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in changed.items() if text is not None}


def _corrections(where: str, vcpus: int, ram_mib: int,
                 specs: Specs) -> Iterator[dict[str, str | None]]:
    """Yield what may be put in the place of a mistake, the likeliest first.

    Each is keys with their values; None removes a key.
    """
    policy = vocabulary.CPU_POLICY
    emulator = vocabulary.EMULATOR_THREADS_POLICY
    if where in (policy.name, emulator.name):
        row = policy if where == policy.name else emulator
        likely = words.find_nearest(specs.get(where, ''), row.choices)
        if likely is not None:
            yield {where: likely}
        for choice in row.choices:
            yield {where: choice}
    elif where == scheduler_keys.MEM_PAGE_SIZE.name:
        yield {where: 'small'}
    elif where in (vocabulary.CPU_DEDICATED_MASK.name,
                   vocabulary.CPU_REALTIME_MASK.name):
        yield {where: '0'}
    elif vocabulary.PCPU_RESOURCE.match(where):
        yield {where: None, policy.name: shape.CPUPolicy.DEDICATED.value}
    elif _are_cells(where):
        yield from _cell_corrections(where, vcpus, ram_mib, specs)
        return
    if where == vocabulary.CPU_REALTIME_MASK.name:
        yield {where: None, vocabulary.CPU_REALTIME.name: None}
    if where in specs:
        yield {where: None}


def _cell_corrections(where: str, vcpus: int, ram_mib: int,
                      specs: Specs) -> Iterator[dict[str, str | None]]:
    """Yield what may be put in the place of the guest cells.

    Only the number of cells, their CPUs or their memory is corrected first,
    so that mistakes of the others are found as well.
    """
    cpus = [name for name in specs if vocabulary.NUMA_CPUS.matches(name)]
    memory = [name for name in specs if vocabulary.NUMA_MEM.matches(name)]
    nodes = vocabulary.NUMA_NODES.name
    if where == nodes and cpus and len(cpus) == len(memory):
        yield {nodes: str(len(cpus))}
    if where == _SUMS[0] or vocabulary.NUMA_CPUS.matches(where):
        others = len(cpus) - 1
        if 0 <= others < vcpus:
            yield {name: f'0-{vcpus - others - 1}' if number == 0
                   else str(vcpus - others + number - 1)
                   for number, name in enumerate(cpus)}
    if where == _SUMS[1] or vocabulary.NUMA_MEM.matches(where):
        others = len(memory) - 1
        if 0 <= others < ram_mib:
            yield {name: str(ram_mib - others) if number == 0 else '1'
                   for number, name in enumerate(memory)}
    yield dict.fromkeys((nodes, *cpus, *memory))
