# SPDX-License-Identifier: Apache-2.0

"""Compare what a flavor requests with what the API and the guest show."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.flavors import plan_document
from hpcvirt.model import cpuset
from hpcvirt.model import shape as shape_model
from hpcvirt.tempest_plugin import plan

#: Prints the hardware that a guest sees. It is one command, so that one
#: connection is enough, and needs only sysfs and the programs of BusyBox.
GUEST_COMMAND = ('cat /sys/devices/system/cpu/online; '
                 'cat /sys/devices/system/node/online; '
                 'for c in /sys/devices/system/cpu/cpu[0-9]*; do '
                 'cat $c/topology/thread_siblings_list; done | sort -u | '
                 "tr '\\n' ' '; echo; "
                 "awk '/^MemTotal:/{print $2}' /proc/meminfo; "
                 "ls /sys/kernel/mm/hugepages | tr '\\n' ' '; echo; "
                 'for d in /sys/bus/pci/devices/*; do [ -e "$d/physfn" ] || '
                 'case "$(cat "$d/class")" in 0x0200*) '
                 'echo "$(cat "$d/vendor"):$(cat "$d/device"):'
                 '$(cat "$d/numa_node")";; esac; done | '
                 "tr '\\n' ' '; echo")


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
    return frozenset(cpu for node in nodes for cpu in node.pins.values())


def violations(flavor: plan_document.FlavorSummary,
               nodes: Sequence[ServerTopologyNode]) -> list[str]:
    """Compare a flavor with the guest cells of its instance.

    :returns: one sentence per difference
    """
    shape = plan.decode(flavor)
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
    lines = text.splitlines()
    try:
        cpus, cells, cores, memory, pools, devices = lines[:6]
        return GuestHardware(
            cpus=cpuset.parse(cpus, 'guest'),
            cells=cpuset.parse(cells, 'guest'),
            cores=frozenset(cpuset.parse(core, 'guest')
                            for core in cores.split()),
            memory_kib=int(memory),
            page_pools=tuple(pools.split()),
            network_devices=tuple(_device(item)
                                  for item in devices.split()))
    except ValueError as exc:
        raise exception.InvalidInput(
            'guest', f'unexpected output {text!r}') from exc


def _device(text: str) -> tuple[str, str, int]:
    vendor, device, cell = text.split(':')
    return vendor, device, int(cell)
