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

"""The distances between NUMA nodes in hwloc's XML.

Versions 2 and 3 have one or more matrices, of several kinds, each with the
numbers of its nodes. Version 1 has a list in the order of the nodes in the
file, scaled so that the smallest distance is 1.
"""

import itertools
import math
from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.topology import assemble
from hpcvirt.topology import document
from hpcvirt.topology import hwloc_tree

#: enum hwloc_distances_kind_e
_FROM_OS = 1
_LATENCY = 4

_Matrix = dict[tuple[int, int], int]


def read(root: hwloc_tree.Element, tree: hwloc_tree.Tree,
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
    # Nodes that lstopo was not allowed to use are in no matrix. Incomplete
    # distances are left out.
    complete = len(kept) == len(cells) ** 2
    return kept if complete else {}


def _from_matrices(root: hwloc_tree.Element, tree: hwloc_tree.Tree,
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


def _node(index: int, element: hwloc_tree.Element, tree: hwloc_tree.Tree,
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


def _from_latencies(tree: hwloc_tree.Tree, nodes: Sequence[int]) -> _Matrix:
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
