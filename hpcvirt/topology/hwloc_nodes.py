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


"""Assign the CPUs of hwloc's XML to NUMA nodes.

In version 1 NUMA nodes are parents of CPUs. Later versions attach them as
memory to the object whose CPUs are local to it, and may attach several (HBM
in addition to DRAM). The CPUs then belong to the DRAM node, as in Linux: the
node with the lowest number unless the file has a ``subtype``.
"""

import dataclasses
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt import exception
from hpcvirt.topology import assemble
from hpcvirt.topology import bitmap
from hpcvirt.topology import hwloc_tree

#: Memory is attached to an object next to its CPUs, not among them.
_MEMORY = ('NUMANode', 'MemCache')


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A NUMANode object, its local CPUs, and whether it may be used."""

    number: int
    local: frozenset[int]
    allowed: bool
    element: hwloc_tree.Element

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The CPUs belong to the local node with the lowest rank."""
        subtype = self.element.get('subtype') or 'DRAM'
        return len(self.local), subtype != 'DRAM', self.number


def read(tree: hwloc_tree.Tree) -> list[Node]:
    """Find the NUMA nodes, and check their CPUs against the tree.

    :raises InvalidInput: if the file contradicts itself
    """
    nodes: dict[int, Node] = {}
    cpus = frozenset(tree.cpus)
    for place in tree.of_type('NUMANode'):
        number = tree.number(place.element, assemble.MAX_CELL)
        if number in nodes:
            raise exception.InvalidInput(
                f'{tree.where}: NUMANode {number}', 'occurs twice')
        local = tree.members(place.element, 'cpuset', cpus) or frozenset()
        # In version 1 the CPUs are inside; later, next to it in its parent.
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
        nodes[number] = Node(number, local, allowed != frozenset(),
                             place.element)
    _check_complete(tree, nodes.keys())
    return list(nodes.values())


def _check_complete(tree: hwloc_tree.Tree, described: Set[int]) -> None:
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


def cell_of(tree: hwloc_tree.Tree, nodes: Sequence[Node],
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


def _forbidden_node(tree: hwloc_tree.Tree, cpu: int, place: hwloc_tree.Place,
                    nodes: Sequence[Node]) -> int:
    """Return the cell of a CPU that no NUMANode object covers.

    A machine without any such object is one cell. Otherwise lstopo was not
    allowed to use the memory of the node and left it out, but the number of
    the node is still in the complete_nodeset of an object around the CPU.
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
