# SPDX-License-Identifier: Apache-2.0

"""Compare what a flavor requests with what the API and the guest show."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.execute import machine_facts
from hpcvirt.flavors import plan_document
from hpcvirt.model import cpuset
from hpcvirt.model import shape as shape_model
from hpcvirt.tempest_plugin import plan

_NODES_ONLINE = 'sys/devices/system/node/online'
_POOLS = 'sys/kernel/mm/hugepages'
_PCI = 'sys/bus/pci/devices'
_NETWORK = '0x0200'
#: Prints the hardware that a guest sees. It is one command, so that one
#: connection is enough.
GUEST_COMMAND = machine_facts.make_command(
    machine_facts.CPUS_ONLINE, _NODES_ONLINE, machine_facts.SIBLINGS,
    machine_facts.MEMORY, f'{_POOLS}/*/nr_hugepages', *(
        f'{_PCI}/*/{name}' for name in (
            'class', 'vendor', 'device', 'numa_node', 'physfn/class')))


@dataclasses.dataclass(frozen=True)
class ServerTopologyNode:
    """One guest cell in the answer of ``GET /servers/{id}/topology``.

    :ivar host_cell: the host cell that backs it
    :ivar pins: guest CPU to host CPU
    """

    host_cell: int | None
    memory_mib: int
    page_kib: int | None
    cpus: frozenset[int]
    pins: Mapping[int, int]


def nodes(answer: Mapping[str, Any]) -> tuple[ServerTopologyNode, ...]:
    """Parse the API's answer to an administrator, which includes the pins."""
    default = answer.get('pagesize_kb')
    return tuple(ServerTopologyNode(
        host_cell=item.get('host_node'),
        memory_mib=item['memory_mb'],
        page_kib=item.get('pagesize_kb', default),
        cpus=frozenset(item.get('vcpu_set') or ()),
        pins={int(guest): host for guest, host
              in (item.get('cpu_pinning') or {}).items()},
    ) for item in answer['nodes'])


def host_cpus(nodes: Sequence[ServerTopologyNode]) -> frozenset[int]:
    """Return the host CPUs that an instance is pinned to."""
    return frozenset(_list_pins(nodes))


def _list_pins(nodes: Sequence[ServerTopologyNode]) -> list[int]:
    """List the host CPU of each guest CPU."""
    pins: list[int] = []
    for node in nodes:
        pins += node.pins.values()
    return pins


def violations(flavor: plan_document.FlavorSummary,
               nodes: Sequence[ServerTopologyNode]) -> list[str]:
    """Compare a flavor with the guest cells of its instance.

    :returns: one sentence per difference
    """
    shape = plan.decode(flavor)
    if len(nodes) != len(shape.cells):
        return [f'{len(nodes)} guest cells instead of {len(shape.cells)}']
    sentences: list[str] = []
    for number, (cell, node) in enumerate(
            zip(shape.cells, nodes, strict=True)):
        sentences += [f'cell {number}: {text}'
                      for text in _cell_violations(cell, node)]
    host_cells = [node.host_cell for node in nodes]
    if len(set(host_cells)) != len(host_cells):
        sentences.append(f'two guest cells on one host cell: {host_cells}')
    pins = _list_pins(nodes)
    if len(set(pins)) != len(pins):
        sentences.append(f'two guest CPUs on one host CPU: {sorted(pins)}')
    return sentences


def _cell_violations(cell: shape_model.GuestCell,
                     node: ServerTopologyNode) -> Iterator[str]:
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


def split_cores(nodes: Sequence[ServerTopologyNode], threads: int,
                cores: Sequence[frozenset[int]]) -> list[str]:
    """Compare the cores of the guest with those of the host.

    The API has a field ``siblings``, but Nova 34 leaves it empty, because
    nothing sets ``cpu_topology`` of the cell
    (``nova/objects/instance_numa.py``). The hypervisor builds each guest core
    from consecutive guest CPUs.

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


@dataclasses.dataclass(frozen=True)
class GuestHardware:
    """The hardware that a guest sees.

    :ivar cores: the threads of each core
    :ivar memory_kib: memory that the kernel can use, which is less than the
        flavor's
    :ivar page_pools: names of the huge page pools in /sys/kernel/mm/hugepages
    :ivar network_devices: vendor, device and guest cell of each PCI network
        device; the cell is -1 if the guest does not know it
    """

    cpus: frozenset[int]
    cells: frozenset[int]
    cores: frozenset[frozenset[int]]
    memory_kib: int
    page_pools: tuple[str, ...]
    network_devices: tuple[tuple[str, str, int], ...]


def parse_guest(text: str) -> GuestHardware:
    """Parse the output of :data:`GUEST_COMMAND`.

    :raises InvalidInput: if it has another form
    """
    found = machine_facts.parse(text)
    memory_kib = words.read_whole(found.row(
        machine_facts.MEMORY, 'MemTotal').partition(' ')[0])
    cpus, cells = (cpuset.parse(found.line(name), 'guest') for name in (
        machine_facts.CPUS_ONLINE, _NODES_ONLINE))
    if not cpus or memory_kib is None:
        raise exception.InvalidInput('guest', f'unexpected output {text!r}')
    return GuestHardware(
        cpus=cpus, cells=cells,
        cores=frozenset(
            cpuset.parse(core, 'guest')
            for _, core in found.find(machine_facts.SIBLINGS)),
        memory_kib=memory_kib, page_pools=tuple(found.names(_POOLS)),
        network_devices=tuple(_find_network_devices(found)))


def _find_network_devices(found: machine_facts.MachineFacts,
                          ) -> Iterator[tuple[str, str, int]]:
    """Yield the network devices, without virtual functions of the guest."""
    for address in found.names(_PCI):
        here = f'{_PCI}/{address}'
        if (found.line(f'{here}/class').startswith(_NETWORK)
                and not found.line(f'{here}/physfn/class')):
            cell = words.read_whole(found.line(f'{here}/numa_node'))
            yield (found.line(f'{here}/vendor'), found.line(f'{here}/device'),
                   -1 if cell is None else cell)
