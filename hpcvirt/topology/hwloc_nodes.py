# SPDX-License-Identifier: Apache-2.0

"""Read the NUMA nodes of hwloc's XML: their CPUs and distances.

In version 1 NUMA nodes are parents of CPUs. Later versions attach them as
memory to the object whose CPUs are local to it, and may attach several (HBM
in addition to DRAM). The CPUs then belong to the DRAM node, as in Linux. It is
the node with the lowest number unless the file has a ``subtype``.

Versions 2 and 3 have matrices of several kinds of distances, each with the
numbers of its nodes. Version 1 has a list in the order of the nodes in the
file, scaled so that the smallest distance is 1.
"""

import dataclasses
import itertools
import math
from collections.abc import Collection
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt import exception
from hpcvirt.topology import assemble
from hpcvirt.topology import bitmap
from hpcvirt.topology import document
from hpcvirt.topology import hwloc_tree

#: Memory is attached to an object next to its CPUs, not among them.
_MEMORY = ('NUMANode', 'MemCache')


@dataclasses.dataclass(frozen=True, slots=True)
class NUMANode:
    """A NUMANode object, its local CPUs, and whether it may be used."""

    number: int
    local: frozenset[int]
    allowed: bool
    element: hwloc_tree.Element

    @property
    def rank(self) -> tuple[int, bool, int]:
        """A key: CPUs belong to the node with the lowest of their nodes."""
        subtype = self.element.get('subtype') or 'DRAM'
        return len(self.local), subtype != 'DRAM', self.number


def read(tree: hwloc_tree.HwlocTree) -> list[NUMANode]:
    """Find the NUMA nodes, and check their CPUs against the tree.

    :raises InvalidInput: if the file contradicts itself
    """
    nodes: dict[int, NUMANode] = {}
    cpus = frozenset(tree.cpus)
    for place in tree.of_type('NUMANode'):
        number = tree.number(place.element, assemble.MAX_CELL)
        if number in nodes:
            raise exception.InvalidInput(
                f'{tree.where}: NUMANode {number}', 'occurs twice')
        local = tree.members(place.element, 'cpuset', cpus) or frozenset()
        # In version 1 the CPUs are inside the node, later beside it.
        holder = next((element for element in (place.element, *place.parents)
                       if element in tree.below
                       or element.get('type') not in _MEMORY), place.element)
        inside = tree.below.get(holder, set())
        if local and local != inside:
            raise exception.InvalidInput(
                f'{tree.where}: NUMANode {number}',
                f'its cpuset and its position do not agree on CPU '
                f'{min(local ^ inside)}')
        allowed = tree.members(tree.machine, 'allowed_nodeset',
                               frozenset({number}))
        nodes[number] = NUMANode(number, local, allowed != frozenset(),
                                 place.element)
    _check_complete(tree, nodes.keys())
    return list(nodes.values())


def _check_complete(tree: hwloc_tree.HwlocTree, described: Set[int]) -> None:
    """Refuse a file that names nodes but does not describe them.

    hwloc 2 writes such files when it writes version 1 on a machine with
    several kinds of memory.
    """
    named = tree.members(tree.machine, 'nodeset',
                         frozenset(range(assemble.MAX_CELL + 1)))
    infinite = named is not None and assemble.MAX_CELL in named
    if described and named and not infinite and not named <= described:
        raise exception.InvalidInput(
            tree.where, f'names NUMA node {min(named - described)} '
            'but does not describe it')


def cell_of(tree: hwloc_tree.HwlocTree, nodes: Sequence[NUMANode],
            ) -> dict[int, int]:
    """Return the cell of each CPU.

    :raises InvalidInput: for a CPU in no node or in several
    """
    found: dict[int, int] = {}
    for cpu, place in tree.cpus.items():
        own = min((node for node in nodes if cpu in node.local),
                  key=lambda node: node.rank, default=None)
        found[cpu] = (own.number if own is not None
                      else _forbidden_node(tree, cpu, place, nodes))
    for node in nodes:
        own_cpus = {cpu for cpu in node.local if found[cpu] == node.number}
        if own_cpus and own_cpus != node.local:
            cpu = min(node.local - own_cpus)
            raise exception.InvalidInput(
                f'{tree.where}: NUMANode {node.number}',
                f'CPU {cpu} is also in NUMANode {found[cpu]}')
    return found


def _forbidden_node(tree: hwloc_tree.HwlocTree, cpu: int,
                    place: hwloc_tree.Place,
                    nodes: Sequence[NUMANode]) -> int:
    """Return the cell of a CPU that no NUMANode object covers.

    A machine without NUMANode objects is one cell. Otherwise lstopo left out
    the node because it was not allowed to use its memory, but its number is
    in the complete_nodeset of an object around the CPU.
    """
    if not nodes:
        return 0
    here = f'{tree.where}: PU {cpu}'
    for element in (place.element, *place.parents):
        text = element.get('complete_nodeset')
        if text is not None:
            number = bitmap.only_member(text, here)
            if number is not None and not any(node.number == number
                                              for node in nodes):
                return number
            break
    raise exception.InvalidInput(here, 'is in no NUMANode')


#: enum hwloc_distances_kind_e
_FROM_OS = 1
_LATENCY = 4

_Matrix = dict[tuple[int, int], int]


def read_distances(root: hwloc_tree.Element, tree: hwloc_tree.HwlocTree,
                   cells: Collection[int]) -> _Matrix:
    """Read the distances of a machine's cells.

    :returns: (from, to) -> distance; empty if any is missing
    :raises InvalidInput: if a matrix is not square or names missing nodes
    """
    nodes = [tree.number(place.element, assemble.MAX_CELL)
             for place in tree.of_type('NUMANode')]
    matrix = _from_matrices(root, tree, nodes)
    if matrix is None:
        matrix = _from_latencies(tree, nodes)
    kept = {pair: distance for pair, distance in matrix.items()
            if pair[0] in cells and pair[1] in cells}
    # The matrices lack nodes that lstopo was not allowed to use.
    complete = len(kept) == len(cells) ** 2
    return kept if complete else {}


def _from_matrices(root: hwloc_tree.Element, tree: hwloc_tree.HwlocTree,
                   nodes: Sequence[int]) -> _Matrix | None:
    best: hwloc_tree.Element | None = None
    best_kind = 0
    for element in root.iterfind('distances2'):
        if element.get('type') != 'NUMANode':
            continue
        kind = document.whole(element.get('kind'), tree.where,
                              'the kind of <distances2>', 2 ** 32)
        if not kind & _LATENCY:
            continue
        if best is None or (kind & _FROM_OS and not best_kind & _FROM_OS):
            best, best_kind = element, kind
    if best is None:
        return None
    here = f'{tree.where}: distances2'
    count = document.whole(best.get('nbobjs'), here, 'nbobjs', len(nodes))
    numbers = [_node(index, best, tree, nodes, here)
               for index in _numbers(best, 'indexes', count, here)]
    if len(set(numbers)) < count:
        raise exception.InvalidInput(here, 'names a node twice')
    values = _numbers(best, 'u64values', count ** 2, here)
    return _square(numbers, values)


def _numbers(element: hwloc_tree.Element, tag: str, count: int, where: str,
             ) -> list[int]:
    words = ' '.join(child.text or ''
                     for child in element.iterfind(tag)).split()
    _check_count(len(words), count, f'{where}: {tag}')
    return [document.whole(word, where, f'a number in <{tag}>', 2 ** 64)
            for word in words]


def _check_count(found: int, wanted: int, where: str) -> None:
    if found != wanted:
        raise exception.InvalidInput(
            where, f'has {found} numbers instead of {wanted}')


def _node(index: int, element: hwloc_tree.Element, tree: hwloc_tree.HwlocTree,
          nodes: Sequence[int], where: str) -> int:
    if element.get('indexing') != 'gp':
        found = [index] if index in nodes else []
    else:
        found = [tree.number(place.element, assemble.MAX_CELL)
                 for place in tree.of_type('NUMANode')
                 if place.element.get('gp_index') == str(index)]
    if not found:
        raise exception.InvalidInput(
            where, f'names node {index}, which does not exist')
    return found[0]


def _from_latencies(tree: hwloc_tree.HwlocTree,
                    nodes: Sequence[int]) -> _Matrix:
    places = tree.of_type('NUMANode')
    for element in tree.machine.iterfind('distances'):
        here = f'{tree.where}: distances'
        count = document.whole(element.get('nbobjs'), here, 'nbobjs', 2 ** 20)
        depth = document.whole(element.get('relative_depth'), here,
                               'relative_depth', 2 ** 20)
        if count != len(nodes) or depth != len(places[0].parents):
            continue  # distances of other objects than NUMA nodes
        base = _real(element.get('latency_base'), here)
        latencies = element.findall('latency')
        _check_count(len(latencies), count ** 2, here)
        return _square(nodes, [
            round(base * _real(latency.get('value'), here))
            for latency in latencies])
    return {}


def _real(text: str | None, where: str) -> float:
    try:
        value = float(text or '')
    except ValueError:
        value = math.nan
    if not 0 < value <= assemble.MAX_DISTANCE:
        raise exception.InvalidInput(
            where, f'{(text or "")[:40]!r} is not a distance')
    return value


def _square(nodes: Sequence[int], values: Sequence[int]) -> _Matrix:
    return dict(zip(itertools.product(nodes, nodes), values, strict=True))
