# SPDX-License-Identifier: Apache-2.0

"""Read the result of Ironic's inspection of a machine, as JSON.

The file is the output of ``openstack baremetal node inventory save`` (a
mapping with ``inventory`` and ``plugin_data``), of ``openstack baremetal
introspection data save`` of ironic-inspector (the same values in one mapping),
or one that kayobe saved with either. ironic-python-agent collects the values
on the machine, before it has an operating system:

* ``numa_topology``, of the collector ``numa-topology``: memory, cores and
  network interfaces of each cell (``numa_inspector.py``). It is required.
* ``pci_devices``, of the collector ``pci-devices``. Without it only the
  network adapters of the inventory are known.

Neither has sockets, caches, page pools, distances, or VFs: the Host declares
that these are unknown. If the inventory counts one socket, all cells are in
it.
"""

import dataclasses
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import ironic_devices
from hpcvirt.topology import ironic_records as records

#: The facts that neither a collector nor the inventory reports.
_NEVER_SAID = frozenset({host_model.Unknown.CACHES, host_model.Unknown.PAGES,
                         host_model.Unknown.VFS})

#: x86 processors have two threads per core; only the Xeon Phi has four.
_X86_THREADS = 2


_Number = Annotated[int, serialization.whole(0, 2 ** 53)]
_Cell = Annotated[int, serialization.whole(0, assemble.MAX_CELL)]
_CPU = Annotated[int, serialization.whole(0, cpuset.MAX_CPU)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Memory:
    """The memory of a cell.

    :ivar size_kb: MemTotal of the cell, in KiB
    """

    numa_node: _Cell
    size_kb: _Number


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Core:
    """A core of a cell.

    :ivar cpu: the kernel's core_id, which is not a CPU
    """

    cpu: Annotated[int, serialization.whole(-1, 2 ** 31)]
    numa_node: _Cell
    thread_siblings: tuple[_CPU, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Processor:
    """The processors of the inventory; versions of the agent differ."""

    count: _Number | None = None
    socket_count: _Number | None = None
    architecture: str | None = None
    model_name: str | None = None


def read(data: bytes, where: str, stem: str) -> host_model.Host:
    """Read a machine.

    :param data: the file's content
    :param where: the file's name, for errors
    :param stem: the name of the host, because the inventory has the name of
        the agent's RAM disk
    :raises InvalidInput: if it is not the result of an inspection, the
        topology is missing, or it describes a machine that cannot exist
    """
    plain = serialization.json_value(data, where)
    inventory = records.mapping(plain, 'inventory', where)
    # ironic-inspector saves the results of collectors beside the inventory.
    collected = records.mapping(plain, 'plugin_data', where) or plain
    if collected.get('numa_topology') is None:
        raise exception.InvalidInput(
            where, 'has no numa_topology: add numa-topology to the collectors '
            'of ironic-python-agent (the kernel parameter '
            'ipa-inspection-collectors=default,pci-devices,numa-topology, or '
            "kayobe's ipa_collectors_extra) and inspect the machine again")
    topology = records.mapping(collected, 'numa_topology', where)
    here = f'{where}: numa_topology'
    memory = records.read(_Memory, topology, 'ram', here)
    cores = records.read(_Core, topology, 'cpus', here)
    plain_cpu = inventory.get('cpu')
    processor = records.one(_Processor, {} if plain_cpu is None else plain_cpu,
                            f'{where}: inventory.cpu')
    _check_cores(cores, processor, len({core.numa_node for core in cores}),
                 here)
    one_socket = processor.socket_count == 1
    unknown = _NEVER_SAID if one_socket else (
        _NEVER_SAID | {host_model.Unknown.SOCKETS})
    if collected.get('pci_devices') is None:
        unknown |= {host_model.Unknown.DEVICES}
    siblings: dict[int, frozenset[int]] = {}
    for core in cores:
        threads = core.thread_siblings
        siblings.update(dict.fromkeys(threads, frozenset(threads)))
    return assemble.host(
        where, stem or 'host', _cells(memory, cores, one_socket, here),
        siblings=siblings, caches={}, distances={},
        devices=ironic_devices.read(inventory, collected, topology, where),
        unknown=unknown, processor=processor.model_name)


def _check_cores(cores: tuple[_Core, ...], processor: _Processor,
                 cells: int, where: str) -> None:
    """Refuse cores that the collector may have merged.

    The collector merges the CPUs of a cell with the same core_id into one
    core, although a core_id is unique only within a socket.
    """
    most = max((len(set(core.thread_siblings)) for core in cores), default=0)
    is_x86 = processor.architecture in ('x86_64', 'i686')
    is_phi = 'Phi' in (processor.model_name or '')
    if (processor.socket_count or 0) > cells or (
            is_x86 and not is_phi and most > _X86_THREADS):
        raise exception.InvalidInput(
            where, 'a cell has the cores of several sockets, which the '
            'collector numa-topology does not distinguish; read the machine '
            'from sysfs')
    cpus: set[int] = set()
    for core in cores:
        twice = cpus.intersection(core.thread_siblings)
        if twice:
            raise exception.InvalidInput(
                f'{where}.cpus', f'CPU {min(twice)} is in several cores')
        cpus.update(core.thread_siblings)
    if processor.count and processor.count != len(cpus):
        raise exception.InvalidInput(
            f'{where}.cpus', f'has {len(cpus)} CPUs, but the inventory has '
            f'{processor.count}')


def _cells(memory: tuple[_Memory, ...], cores: tuple[_Core, ...],
           one_socket: bool, where: str) -> list[assemble.CellFacts]:
    cpus: dict[int, set[int]] = {entry.numa_node: set() for entry in memory}
    for core in cores:
        if core.numa_node not in cpus:
            raise exception.InvalidInput(
                f'{where}.ram', f'has no memory of cell {core.numa_node}, '
                'which has CPUs')
        cpus[core.numa_node].update(core.thread_siblings)
    return [assemble.CellFacts(
        id=entry.numa_node,
        sockets=frozenset({0} if one_socket and cpus[entry.numa_node]
                          else ()),
        cpus=frozenset(cpus[entry.numa_node]), memory_kib=entry.size_kb,
        pages=assemble.add_small_pages(entry.size_kb, (),
                                       host_model.SMALL_PAGE_KIB))
            for entry in memory]
