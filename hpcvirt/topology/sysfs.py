# SPDX-License-Identifier: Apache-2.0

"""Read a machine from sysfs: the running machine, or a copy.

A copy is a root directory with ``sys`` in it, or that ``sys`` itself. Files
that the kernel always provides must exist; a sysfs without them is an error.

The rules of the kernel: ``online`` lists the online CPUs; ``cpulist`` of a
node lists its online CPUs; ``distance`` has one column per online node
(Documentation/ABI/stable/sysfs-devices-node). A machine without NUMA has no
nodes: it is one cell, whose memory is in ``/proc/meminfo``.
"""

import pathlib
import re
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import document
from hpcvirt.topology import pci
from hpcvirt.topology import sysfs_tree
from hpcvirt.topology import sysfs_wiring

_CPU = 'sys/devices/system/cpu'
_NODE = 'sys/devices/system/node'
_PCI = 'sys/bus/pci/devices'

#: The first CPU takes 2 KiB; thousands of CPUs may follow.
_CPUINFO_BYTES = 8192

#: The kernel's types of caches that hold data.
_DATA = ('Unified', 'Data')


def read(root: pathlib.Path) -> host_model.Host:
    """Read a machine.

    :param root: ``/``, or the root (or the ``sys``) of a copy
    :raises InvalidInput: if it is not a sysfs, or is incomplete
    """
    tree = sysfs_tree.SysfsTree(root)
    online = tree.cpus(f'{_CPU}/online')
    nodes = _nodes(tree)
    cells = list(_cells(tree, nodes, online))
    missing = online.difference(*(cell.cpus for cell in cells))
    if missing:
        raise exception.InvalidInput(
            tree.where, f'CPU {min(missing)} is online but in no node')
    devices = list(_devices(tree))
    return assemble.host(
        tree.where, tree.host_name(), cells,
        siblings=dict(_siblings(tree, online)),
        caches=dict(_caches(tree, online)),
        distances=_distances(tree, nodes),
        devices=devices, processor=_processor(tree),
        wiring=sysfs_wiring.read(tree, devices),
        address_bits=_address_bits(tree))


def _processor(tree: sysfs_tree.SysfsTree) -> str | None:
    """Return the name of the first processor; Arm has only numbers."""
    text = tree.beginning('proc/cpuinfo', _CPUINFO_BYTES) or ''
    match = re.search('^model name[ \t]*:(.*)$', text, re.MULTILINE)
    if match:
        return printable.one_line(match[1])[:255]
    numbers = re.search(
        r'^CPU implementer\s*:\s*(\w{1,9})$.*?^CPU part\s*:\s*(\w{1,9})$',
        text, re.MULTILINE | re.DOTALL)
    return (f'Arm, implementer {numbers[1]}, part {numbers[2]}' if numbers
            else None)


def _address_bits(tree: sysfs_tree.SysfsTree) -> int | None:
    """Return the width of physical addresses, which Arm does not say."""
    text = tree.beginning('proc/cpuinfo', _CPUINFO_BYTES) or ''
    match = re.search(r'^address sizes\s*:\s*([0-9]{1,3}) bits physical', text,
                      re.MULTILINE)
    return int(match[1]) if match else None


def _nodes(tree: sysfs_tree.SysfsTree) -> list[int]:
    """List the nodes that are online; none on a machine without NUMA."""
    found = [int(match[1]) for match in
             (re.fullmatch('node([0-9]{1,9})', name)
              for name in tree.names(_NODE)) if match]
    if not found:
        return []
    if tree.text(f'{_NODE}/online') is None:
        return sorted(found)
    online = tree.cpus(f'{_NODE}/online')
    missing = online.difference(found)
    if missing:
        raise exception.InvalidInput(
            f'{tree.where}: node {min(missing)}', 'is online but missing')
    return sorted(online)


def _cells(tree: sysfs_tree.SysfsTree, nodes: Sequence[int],
           online: frozenset[int]) -> Iterator[assemble.CellFacts]:
    small_kib = small_page_kib(tree, nodes)
    for node in nodes:
        here = f'{_NODE}/node{node}'
        yield _cell(
            tree, node,
            tree.cpus(f'{here}/cpulist', f'{here}/cpumap') & online,
            small_kib, f'{here}/meminfo', f'{here}/hugepages')
    if not nodes:
        yield _cell(tree, 0, online, small_kib,
                    'proc/meminfo', 'sys/kernel/mm/hugepages')


def _cell(tree: sysfs_tree.SysfsTree, number: int, cpus: frozenset[int],
          small_kib: int, meminfo: str, hugepages: str,
          ) -> assemble.CellFacts:
    memory_kib = total_kib(tree, meminfo)
    return assemble.CellFacts(
        id=number,
        sockets=frozenset(_socket(tree, cpu) for cpu in cpus),
        cpus=cpus,
        memory_kib=memory_kib,
        pages=pools(tree, hugepages, memory_kib, small_kib))


def _socket(tree: sysfs_tree.SysfsTree, cpu: int) -> int:
    # -1 means that the firmware does not number the sockets.
    return max(0, tree.number(f'{_CPU}/cpu{cpu}/topology/physical_package_id',
                              2 ** 31 - 1, least=-1))


def _siblings(tree: sysfs_tree.SysfsTree, online: frozenset[int],
              ) -> Iterator[tuple[int, frozenset[int]]]:
    existing = _existing(tree, online)
    for cpu in sorted(online):
        here = f'{_CPU}/cpu{cpu}/topology'
        # core_cpus is the name since Linux 5.3.
        new, old = f'{here}/core_cpus', f'{here}/thread_siblings'
        is_new = any(tree.text(name) is not None
                     for name in (f'{new}_list', new))
        name = new if is_new else old
        yield cpu, _online(tree, f'{name}_list', name, existing, online)


def _existing(tree: sysfs_tree.SysfsTree, online: frozenset[int],
              ) -> frozenset[int]:
    """List the CPUs that can exist, offline ones included."""
    name = f'{_CPU}/possible'
    return online if tree.text(name) is None else tree.cpus(name) | online


def _online(tree: sysfs_tree.SysfsTree, name: str, as_map: str,
            existing: frozenset[int], online: frozenset[int],
            ) -> frozenset[int]:
    """Read a list of CPUs without those that are offline."""
    cpus = tree.cpus(name, as_map)
    if not cpus <= existing:
        raise exception.InvalidInput(
            f'{tree.where}: {name}',
            f'names CPU {min(cpus - existing)}, which does not exist')
    return cpus & online


def _caches(tree: sysfs_tree.SysfsTree, online: frozenset[int],
            ) -> Iterator[tuple[int, frozenset[int]]]:
    """Find the last-level cache of each CPU, if the kernel reports one.

    That is the second level if there is no third, as on many ARM processors
    and on low-power cores.
    """
    existing = _existing(tree, online)
    for cpu in sorted(online):
        best = (0, '')
        here = f'{_CPU}/cpu{cpu}/cache'
        for name in tree.names(here):
            # The kernel omits level and type if the firmware omits them.
            if (re.fullmatch('index[0-9]+', name)
                    and tree.text(f'{here}/{name}/level') is not None
                    and tree.text(f'{here}/{name}/type') in _DATA):
                level = tree.number(f'{here}/{name}/level', 9, least=1)
                best = max(best, (level, name))
        if best[0]:
            yield cpu, _online(tree, f'{here}/{best[1]}/shared_cpu_list',
                               f'{here}/{best[1]}/shared_cpu_map',
                               existing, online)


def _distances(tree: sysfs_tree.SysfsTree, nodes: Sequence[int],
               ) -> dict[tuple[int, int], int]:
    distances = {}
    for row in nodes:
        name = f'{_NODE}/node{row}/distance'
        here = f'{tree.where}: {name}'
        words = tree.need(name).split()
        if len(words) != len(nodes):
            raise exception.InvalidInput(
                here, f'has {len(words)} columns for {len(nodes)} nodes')
        for column, word in zip(nodes, words, strict=True):
            distances[row, column] = document.whole(
                word, here, 'a distance', assemble.MAX_DISTANCE)
    return distances


def _devices(tree: sysfs_tree.SysfsTree) -> Iterator[host_model.Device]:
    for address in tree.names(_PCI):
        here = f'{_PCI}/{address}'
        # Base class, subclass and programming interface: 0x020000.
        class_code = _hexadecimal(tree, f'{here}/class', 6) >> 8
        vendor_id = f'{_hexadecimal(tree, f"{here}/vendor", 4):04x}'
        if pci.is_listed(class_code, vendor_id):
            yield host_model.Device(
                address.lower(), vendor_id,
                f'{_hexadecimal(tree, f"{here}/device", 4):04x}',
                _node_of(tree, f'{here}/numa_node'),
                _total_vfs(tree, f'{here}/sriov_totalvfs'),
                read_driver(tree, here), _vf_product(tree, here))


def _hexadecimal(tree: sysfs_tree.SysfsTree, name: str, digits: int) -> int:
    return document.hexadecimal(
        tree.need(name), f'{tree.where}: {name}', 'the content', digits)


def _node_of(tree: sysfs_tree.SysfsTree, name: str) -> int | None:
    """Read the node of a device; None if it is unknown (-1)."""
    if tree.text(name) is None:
        return None  # a kernel without NUMA
    node = tree.number(name, assemble.MAX_CELL, least=-1)
    return node if node >= 0 else None


def _total_vfs(tree: sysfs_tree.SysfsTree, name: str) -> int:
    """Read the number of VFs a function can have; 0 without SR-IOV."""
    return 0 if tree.text(name) is None else tree.number(
        name, pci.MAX_VFS)


def _vf_product(tree: sysfs_tree.SysfsTree, device: str) -> str | None:
    """Read the product id of the VFs of a function, even if none exists."""
    name = f'{device}/sriov_vf_device'
    if tree.text(name) is None:
        return None  # no SR-IOV capability
    return f'{_hexadecimal(tree, name, 4):04x}'


def read_driver(tree: sysfs_tree.SysfsTree, device: str) -> str | None:
    """Return the driver; a copy may have only uevent, not the link."""
    linked = tree.link_target(f'{device}/driver')
    if linked is not None:
        return linked.rpartition('/')[2]
    match = re.search('^DRIVER=(.+)$', tree.text(f'{device}/uevent') or '',
                      re.MULTILINE)
    return match[1] if match else None


def total_kib(tree: sysfs_tree.SysfsTree, name: str) -> int:
    """Read MemTotal of a node or of the machine, in KiB."""
    return _field(tree, name, 'MemTotal')


def pools(tree: sysfs_tree.SysfsTree, directory: str, memory_kib: int,
          small_kib: int) -> tuple[host_model.PagePool, ...]:
    """Read the page pools of a node, or of a machine without nodes.

    :param directory: the directory of ``hugepages-2048kB`` and so on, which is
        missing if the kernel has no huge pages
    :returns: all pools; all memory without huge pages counts as small pages,
        as in libvirt
    """
    huge = []
    for name in tree.names(directory):
        match = re.fullmatch('hugepages-([0-9]{1,12})kB', name)
        if match:
            huge.append(host_model.PagePool(
                int(match[1]),
                tree.number(f'{directory}/{name}/nr_hugepages', 2 ** 42)))
    rest = memory_kib - sum(pool.size_kib * pool.total for pool in huge)
    # If the rest is negative, assemble reports the contradiction.
    return (host_model.PagePool(small_kib, max(rest, 0) // small_kib), *huge)


def small_page_kib(tree: sysfs_tree.SysfsTree, nodes: Sequence[int]) -> int:
    """Determine the size of a small page, in KiB.

    The running kernel reports it. A copy has the free memory both in KiB and
    in pages; both change constantly, so their quotient is rounded to a power
    of two. Without them, huge pages of 512 MiB identify an ARM kernel with
    pages of 64 KiB; otherwise 4 KiB is assumed.
    """
    running = tree.small_page_kib()
    if running is not None:
        return running
    for node in nodes:
        here = f'{_NODE}/node{node}'
        pages = re.search('^nr_free_pages ([0-9]{1,18})$',
                          tree.text(f'{here}/vmstat') or '', re.MULTILINE)
        # A small amount could change too much between the two files.
        if pages and int(pages[1]) > 1000:
            free_kib = _field(tree, f'{here}/meminfo', 'MemFree')
            for size_kib in (4, 8, 16, 32, 64):
                if 0.8 < free_kib / int(pages[1]) / size_kib < 1.25:
                    return size_kib
    huge = tree.names('sys/kernel/mm/hugepages')
    return 64 if 'hugepages-524288kB' in huge else host_model.SMALL_PAGE_KIB


def _field(tree: sysfs_tree.SysfsTree, name: str, field: str) -> int:
    match = re.search(rf'^(?:Node +[0-9]+ )?{field}: +([0-9]{{1,18}}) kB$',
                      tree.need(name), re.MULTILINE)
    if match is None or int(match[1]) > assemble.MAX_MEMORY_KIB:
        raise exception.InvalidInput(
            f'{tree.where}: {name}', f'has no valid {field}')
    return int(match[1])
