# SPDX-License-Identifier: Apache-2.0

"""Read hwloc's XML, versions 1 to 3: the output of ``lstopo --of xml``.

Every object of the machine is an ``<object>`` element inside its parent.
CPUs that are offline or that lstopo was not allowed to use are left out. So
are nodes without CPUs whose memory it was not allowed to use. hwloc reports
neither drivers nor SR-IOV capabilities, and no page sizes since version 3. Of
wiring it reports the bridges and the GB/s of their links.
"""

import re
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import assemble
from hpcvirt.topology import document
from hpcvirt.topology import hwloc_nodes
from hpcvirt.topology import hwloc_tree
from hpcvirt.topology import pci

_IO = ('Bridge', 'PCIDev', 'OSDev', 'Misc')

#: Version 1 has Socket up to hwloc 1.10.
_SOCKETS = ('Package', 'Socket')

_CACHE = re.compile('L([1-5])Cache')

#: ``0200 [8086:1572] [8086:0001] 02``: class, vendor, device, ...
_PCI_TYPE = re.compile(
    r'([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]')


def read(root: hwloc_tree.Element, where: str, name: str) -> host_model.Host:
    """Read a machine.

    :param root: the element ``<topology>``
    :param where: the file's name, for errors
    :param name: the name of the host if the file has none
    :raises InvalidInput: if the XML is not a complete description
    """
    machine = root.find('object')
    if root.tag != 'topology' or machine is None:
        raise exception.InvalidInput(
            where, f'the root element is <{root.tag[:40]}>, '
            'not a <topology> with an <object>')
    tree = hwloc_tree.HwlocTree(machine, where)
    nodes = hwloc_nodes.read(tree)
    cell_of = hwloc_nodes.cell_of(tree, nodes)
    cells = list(_cells(tree, nodes, cell_of))
    devices = list(_devices(tree, cell_of))
    return assemble.host(
        where, _host_name(root, machine) or name, cells,
        siblings=_groups(tree, _core),
        caches=_groups(tree, _last_level_cache),
        distances=hwloc_nodes.read_distances(
            root, tree, [cell.id for cell in cells]),
        devices=[device for _, device in devices],
        wiring=_wiring(tree, [place for place, _ in devices]))


def _host_name(root: hwloc_tree.Element, machine: hwloc_tree.Element,
               ) -> str | None:
    for info in (*machine.iterfind('info'), *root.iterfind('info')):
        if info.get('name') == 'HostName':
            return info.get('value') or None
    return None


def _cells(tree: hwloc_tree.HwlocTree, nodes: Sequence[hwloc_nodes.NUMANode],
           cell_of: Mapping[int, int]) -> Iterator[assemble.CellFacts]:
    cpus_of: dict[int, set[int]] = {}
    for cpu, number in cell_of.items():
        cpus_of.setdefault(number, set()).add(cpu)
    for node in nodes:
        if node.allowed or node.number in cpus_of:
            yield _cell(tree, node.number,
                        node.element if node.allowed else None,
                        cpus_of.get(node.number, set()))
    for number in sorted(cpus_of.keys() - {node.number for node in nodes}):
        yield _cell(tree, number, None if nodes else tree.machine,
                    cpus_of[number])


def _cell(tree: hwloc_tree.HwlocTree, number: int,
          memory: hwloc_tree.Element | None, cpus: set[int],
          ) -> assemble.CellFacts:
    """Describe a cell.

    :param memory: the object with its memory; None if lstopo was not allowed
        to use it
    """
    here = f'{tree.where}: NUMANode {number}'
    memory_kib = 0
    pools = []
    if memory is not None:
        memory_kib = document.whole(
            memory.get('local_memory', '0'), here, 'local_memory',
            assemble.MAX_MEMORY_KIB * 1024) // 1024
        pools = [_pool(element, here)
                 for element in memory.iterfind('page_type')]
    return assemble.CellFacts(
        id=number,
        sockets=frozenset(_socket(tree, cpu) for cpu in cpus),
        cpus=frozenset(cpus),
        memory_kib=memory_kib,
        pages=assemble.add_small_pages(memory_kib, pools,
                                       host_model.SMALL_PAGE_KIB))


def _pool(element: hwloc_tree.Element, where: str) -> host_model.PagePool:
    size = document.whole(element.get('size'), where,
                          'the size of a <page_type>', 2 ** 50, least=1024)
    count = document.whole(element.get('count'), where,
                           'the count of a <page_type>', 2 ** 50)
    if size % 1024:
        raise exception.InvalidInput(
            where, f'{size} bytes is not a page size')
    return host_model.PagePool(size // 1024, count)


def _socket(tree: hwloc_tree.HwlocTree, cpu: int) -> int:
    """Return the socket of a CPU; 0 if sockets have no numbers."""
    socket = tree.cpus[cpu].nearest(*_SOCKETS)
    if socket is None or socket.get('os_index') is None:
        return 0
    return tree.number(socket, 2 ** 31 - 1)


def _groups(tree: hwloc_tree.HwlocTree,
            shared: Callable[[hwloc_tree.Place], hwloc_tree.Element | None],
            ) -> dict[int, frozenset[int]]:
    """Group the CPUs by an object that contains them."""
    groups: dict[hwloc_tree.Element, frozenset[int]] = {}
    group_of = {}
    for cpu, place in tree.cpus.items():
        element = shared(place)
        if element is not None:
            if element not in groups:
                groups[element] = frozenset(tree.below.get(element, {cpu}))
            group_of[cpu] = groups[element]
    return group_of


def _core(place: hwloc_tree.Place) -> hwloc_tree.Element:
    """Return the core of a PU, or the PU itself.

    lstopo leaves out cores that have only one PU.
    """
    core = place.nearest('Core')
    return place.element if core is None else core


def _last_level_cache(place: hwloc_tree.Place) -> hwloc_tree.Element | None:
    """Return the cache of the highest level that holds data."""
    levels = [(_level(parent), parent) for parent in place.parents]
    level, cache = max(levels, key=lambda pair: pair[0],
                       default=(0, place.element))
    return cache if level else None


def _level(element: hwloc_tree.Element) -> int:
    """Return the level of a data or unified cache; 0 for other objects."""
    kind = element.get('type', '')
    if kind == 'Cache':  # version 1: the level is another attribute
        level = element.get('depth', '')
        data = element.get('cache_type') != '2'
        return int(level) if data and level in '12345' and level else 0
    match = _CACHE.fullmatch(kind)
    return int(match[1]) if match else 0


def _devices(tree: hwloc_tree.HwlocTree, cell_of: Mapping[int, int],
             ) -> Iterator[tuple[hwloc_tree.Place, host_model.Device]]:
    for place in tree.of_type('PCIDev'):
        address = _address(place.element)
        here = f'{tree.where}: PCIDev {address[:40]}'
        match = _PCI_TYPE.match(place.element.get('pci_type', ''))
        if match is None:
            raise exception.InvalidInput(
                here, 'has no pci_type with class, vendor and device')
        if pci.is_listed(int(match[1], 16), match[2].lower()):
            yield place, host_model.Device(
                address, match[2].lower(), match[3].lower(),
                _local_cell(tree, place, cell_of))


def _local_cell(tree: hwloc_tree.HwlocTree, place: hwloc_tree.Place,
                cell_of: Mapping[int, int]) -> int | None:
    """Return the cell whose CPUs are local to a device, if there is one."""
    holder = next((parent for parent in place.parents
                   if parent.get('type') not in _IO), tree.machine)
    cells = {cell_of[cpu] for cpu in tree.below.get(holder, ())}
    return min(cells) if len(cells) == 1 else None


def _address(element: hwloc_tree.Element) -> str:
    return element.get('pci_busid', '').lower()


def _wiring(tree: hwloc_tree.HwlocTree,
            devices: Sequence[hwloc_tree.Place]) -> wiring.Wiring | None:
    """Read the bridges above devices; None if lstopo left bridges out."""
    if any(place.nearest('Bridge') is None for place in devices):
        return None
    gpus = [place for place in devices
            if place.element.get('pci_type', '')[:2] in ('03', '12')]
    unknown = [*[wiring.UnknownWiring.IOMMU_GROUPS] * bool(devices),
               *[wiring.UnknownWiring.DEVICE_LINKS] * (len(gpus) > 1)]
    return wiring.Wiring(
        # A host bridge has no address: a root bus is below it.
        bridges=tuple(wiring.Bridge(
            _address(place.element), _above(place), link=_link(place))
            for place in tree.of_type('Bridge') if _address(place.element)),
        attachments=tuple(wiring.Attachment(
            _address(place.element), _above(place), _link(place))
            for place in devices), unknown=frozenset(unknown))


def _above(place: hwloc_tree.Place) -> str | None:
    bridge = place.nearest('Bridge')
    return None if bridge is None else _address(bridge) or None


def _link(place: hwloc_tree.Place) -> wiring.PCIeLink | None:
    """Read the GB/s of a link; None if hwloc writes 0, or no number."""
    text = place.element.get('pci_link_speed', '')
    known = re.fullmatch(r'[0-9]{1,6}(\.[0-9]{1,9})?', text) and float(text)
    return wiring.PCIeLink(gb_per_s=known) if known else None
