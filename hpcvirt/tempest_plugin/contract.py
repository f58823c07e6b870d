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

"""Compare what a flavor asks for with the topology that the API shows."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec


@dataclasses.dataclass(frozen=True)
class Node:
    """One guest cell in the answer of ``GET /servers/{id}/topology``.

    :ivar host_cell: the host cell that backs it
    :ivar pins: guest CPU -> host CPU
    """

    host_cell: int | None
    memory_mib: int
    page_kib: int | None
    cpus: frozenset[int]
    pins: Mapping[int, int]


def nodes(answer: Mapping[str, Any]) -> tuple[Node, ...]:
    """Read the API's answer to an administrator, which shows the pins."""
    default = answer.get('pagesize_kb')
    return tuple(Node(
        host_cell=item.get('host_node'),
        memory_mib=item['memory_mb'],
        page_kib=item.get('pagesize_kb', default),
        cpus=frozenset(item.get('vcpu_set') or ()),
        pins={int(guest): host for guest, host
              in (item.get('cpu_pinning') or {}).items()},
    ) for item in answer['nodes'])


def host_cpus(nodes: Sequence[Node]) -> frozenset[int]:
    """Collect the host CPUs that an instance is pinned to."""
    return frozenset(cpu for node in nodes for cpu in node.pins.values())


def violations(flavor: Mapping[str, Any],
               nodes: Sequence[Node]) -> list[str]:
    """Compare a flavor with what its instance has.

    :param flavor: an entry of the plan
    :returns: one sentence per difference; empty if there is none
    """
    shape = codec.decode(flavor['vcpus'], flavor['ram_mib'],
                         flavor['extra_specs'])
    if len(nodes) != len(shape.cells):
        return [f'{len(nodes)} guest cells instead of {len(shape.cells)}']
    sentences = [
        f'cell {number}: {text}' for number, (cell, node)
        in enumerate(zip(shape.cells, nodes, strict=True))
        for text in _cell_violations(cell, node)]
    host_cells = [node.host_cell for node in nodes]
    if len(set(host_cells)) != len(host_cells):
        sentences.append(f'two guest cells on one host cell: {host_cells}')
    pins = [cpu for node in nodes for cpu in node.pins.values()]
    if len(set(pins)) != len(pins):
        sentences.append(f'two guest CPUs on one host CPU: {sorted(pins)}')
    return sentences


def _cell_violations(cell: shape_model.GuestCell,
                     node: Node) -> Iterator[str]:
    if len(node.cpus) != cell.cpus:
        yield f'{len(node.cpus)} CPUs instead of {cell.cpus}'
    if len(node.pins) != cell.pcpus:
        yield f'{len(node.pins)} pins instead of {cell.pcpus}'
    if node.memory_mib != cell.memory_mib:
        yield f'{node.memory_mib} MiB instead of {cell.memory_mib}'
    is_explicit = (isinstance(cell.page_kib, int)
                   and not isinstance(cell.page_kib, shape_model.PageClass))
    if is_explicit and node.page_kib != cell.page_kib:
        yield f'pages of {node.page_kib} KiB instead of {cell.page_kib}'


def split_cores(nodes: Sequence[Node], threads: int,
                cores: Sequence[frozenset[int]]) -> list[str]:
    """Compare the cores that the guest sees with those of the host.

    The API has a field ``siblings``, but Nova 34 leaves it empty: nothing
    sets ``cpu_topology`` of the cell (``nova/objects/instance_numa.py``). The
    hypervisor builds each guest core from consecutive guest CPUs.

    :param threads: threads of a guest core (``hw:cpu_threads``)
    :param cores: the SMT siblings of each core of the host
    :returns: one sentence per guest core whose threads do not share a host
        core
    """
    sentences = []
    for node in nodes:
        cpus = sorted(node.cpus)
        for first in range(0, len(cpus), threads):
            core = cpus[first:first + threads]
            pinned = {node.pins[cpu] for cpu in core if cpu in node.pins}
            if not any(pinned <= host_core for host_core in cores):
                sentences.append(
                    f'guest threads {core} are pinned to host CPUs '
                    f'{sorted(pinned)}, which do not share a core')
    return sentences
