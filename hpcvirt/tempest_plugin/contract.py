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

"""What a flavor promises, and what the API says an instance got."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt.model import shape
from hpcvirt.specs import codec


@dataclasses.dataclass(frozen=True)
class Node:
    """One guest cell in the answer of ``GET /servers/{id}/topology``.

    :ivar host_cell: the host cell that it lies on
    :ivar pins: guest CPU -> host CPU
    """

    host_cell: int | None
    memory_mib: int
    page_kib: int | None
    cpus: frozenset[int]
    pins: Mapping[int, int]


def nodes(answer: Mapping[str, Any]) -> tuple[Node, ...]:
    """Read the answer of the API (an administrator's, with pins)."""
    default = answer.get('pagesize_kb')
    return tuple(Node(
        host_cell=item.get('host_node'),
        memory_mib=item['memory_mb'],
        page_kib=item.get('pagesize_kb', default),
        cpus=frozenset(item.get('vcpu_set') or ()),
        pins={int(guest): host for guest, host
              in (item.get('cpu_pinning') or {}).items()},
    ) for item in answer['nodes'])


def host_cpus(found: Sequence[Node]) -> frozenset[int]:
    """Collect the host CPUs that an instance is pinned to."""
    return frozenset(cpu for node in found for cpu in node.pins.values())


def broken(flavor: Mapping[str, Any], found: Sequence[Node]) -> list[str]:
    """Compare a flavor with what its instance got.

    :param flavor: an entry of the plan
    :returns: one sentence per broken promise; empty if all are kept
    """
    wanted = codec.decode(flavor['vcpus'], flavor['ram_mib'],
                          flavor['extra_specs'])
    if len(found) != len(wanted.cells):
        return [f'{len(found)} guest cells instead of {len(wanted.cells)}']
    faults = []
    for number, (cell, node) in enumerate(zip(wanted.cells, found,
                                              strict=True)):
        faults += [f'cell {number}: {text}' for text in _cell(cell, node)]
    hosts = [node.host_cell for node in found]
    if len(set(hosts)) != len(hosts):
        faults.append(f'two guest cells on one host cell: {hosts}')
    pins = [cpu for node in found for cpu in node.pins.values()]
    if len(set(pins)) != len(pins):
        faults.append(f'two guest CPUs on one host CPU: {sorted(pins)}')
    return faults


def _cell(wanted: shape.GuestCell, node: Node) -> list[str]:
    faults = []
    if len(node.cpus) != wanted.cpus:
        faults.append(f'{len(node.cpus)} CPUs instead of {wanted.cpus}')
    if len(node.pins) != wanted.pcpus:
        faults.append(f'{len(node.pins)} pins instead of {wanted.pcpus}')
    if node.memory_mib != wanted.memory_mib:
        faults.append(f'{node.memory_mib} MiB instead of '
                      f'{wanted.memory_mib}')
    explicit = (isinstance(wanted.page_kib, int)
                and not isinstance(wanted.page_kib, shape.PageClass))
    if explicit and node.page_kib != wanted.page_kib:
        faults.append(f'pages of {node.page_kib} KiB instead of '
                      f'{wanted.page_kib}')
    return faults


def split_cores(found: Sequence[Node], threads: int,
                cores: Sequence[frozenset[int]]) -> list[str]:
    """Compare the cores that the guest sees with the host's.

    The API has a field ``siblings``, but Nova 34 leaves it empty: nothing
    sets the cell's ``cpu_topology`` (``nova/objects/instance_numa.py``). The
    hypervisor makes threads of one core of consecutive CPUs.

    :param threads: threads of a guest core (``hw:cpu_threads``)
    :param cores: the SMT siblings of each core of the host
    :returns: one sentence per guest core that lies on no single host core
    """
    faults = []
    for node in found:
        cpus = sorted(node.cpus)
        for first in range(0, len(cpus), threads):
            core = cpus[first:first + threads]
            placed = {node.pins[cpu] for cpu in core if cpu in node.pins}
            if not any(placed <= host for host in cores):
                faults.append(f'guest threads {core} on host CPUs '
                              f'{sorted(placed)}, which share no core')
    return faults
