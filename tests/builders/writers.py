# SPDX-License-Identifier: Apache-2.0

"""Write a machine as Linux, libvirt and both versions of hwloc would.

Every writer takes a Host whose memory is all in pages, and additional CPUs
that are offline. What the readers do not use is left out.
"""

from collections.abc import Iterable
from xml.etree import ElementTree

from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import tool_output
from tests.builders import machines
from tests.builders import sysfs_files

_CPU = 'sys/devices/system/cpu'
_NODE = 'sys/devices/system/node'
_KIB = 1024


def sysfs(host: host_model.Host, offline: Iterable[int] = (),
          names_offline: bool = False) -> dict[str, str]:
    """Write the files of a sysfs.

    :param names_offline: the kernel names offline CPUs among siblings
    """
    files = {
        f'{_CPU}/online': cpuset.render(host.cpus),
        f'{_CPU}/possible': cpuset.render({*host.cpus, *offline}),
        f'{_NODE}/online': cpuset.render(cell.id for cell in host.cells),
    }
    for cell in host.cells:
        files |= _sysfs_node(host, cell)
        for core in cell.siblings:
            extra = set(offline) if names_offline else set()
            for cpu in core:
                files |= _sysfs_cpu(cell, cpu, core | extra)
    for device in host.devices:
        files |= _sysfs_device(host, device)
    return files | _sysfs_wiring(host)


def _sysfs_node(host: host_model.Host,
                cell: host_model.Cell) -> dict[str, str]:
    here = f'{_NODE}/node{cell.id}'
    total = machines.memory_kib(cell.pages)
    free = cell.pages[0].total // 2
    files = {
        f'{here}/cpulist': cpuset.render(cell.cpus),
        f'{here}/meminfo': (
            f'Node {cell.id} MemTotal:     {total} kB\n'
            f'Node {cell.id} MemFree:      '
            f'{free * cell.pages[0].size_kib + 40} kB'),
        f'{here}/vmstat': f'nr_free_pages {free}',
        f'{here}/distance': ' '.join(
            str(distance) for distance in
            (host.distances[host.cells.index(cell)] if host.distances
             else ['10'] * len(host.cells))),
    }
    for pool in cell.pages[1:]:
        files[f'{here}/hugepages/hugepages-{pool.size_kib}kB/nr_hugepages'] \
            = str(pool.total)
    return files


def _sysfs_cpu(cell: host_model.Cell, cpu: int, core: Iterable[int],
               ) -> dict[str, str]:
    here = f'{_CPU}/cpu{cpu}'
    llc = next(cache for cache in cell.llc if cpu in cache)
    files = {
        f'{here}/topology/core_cpus_list': cpuset.render(core),
        f'{here}/topology/physical_package_id': str(cell.socket),
    }
    caches = ((1, 'Data', [cpu]), (1, 'Instruction', [cpu]),
              (2, 'Unified', [cpu]), (3, 'Unified', llc))
    for index, (level, kind, cpus) in enumerate(caches):
        cache = f'{here}/cache/index{index}'
        files[f'{cache}/level'] = str(level)
        files[f'{cache}/type'] = kind
        files[f'{cache}/shared_cpu_list'] = cpuset.render(cpus)
    return files


def _sysfs_folder(host: host_model.Host,
                  place: wiring.Bridge | wiring.Attachment) -> str:
    """Name the folder of a bridge or device below ``sys``."""
    path = host.wiring.path(place) if host.wiring else ()
    return '/'.join(('devices/pci0000:00', *(
        each.address for each in (*path, place))))


def _attachment(host: host_model.Host, address: str) -> wiring.Attachment:
    return next((each for each in (host.wiring or wiring.Wiring()).attachments
                 if each.address == address), wiring.Attachment(address))


def _sysfs_wiring(host: host_model.Host) -> dict[str, str]:
    """Write the links, the IOMMU groups, and what lspci said of bridges."""
    files: dict[str, str] = {}
    lspci = []
    if host.wiring is None:
        return files
    for place in (*host.wiring.bridges, *host.wiring.attachments):
        here = _sysfs_folder(host, place)
        if place.link:
            link = place.link
            files |= {
                f'sys/{here}/current_link_speed':
                    f'{link.speed_gts} GT/s PCIe',
                f'sys/{here}/max_link_speed': f'{link.most_speed_gts} GT/s',
                f'sys/{here}/current_link_width': f'{link.lanes}',
                f'sys/{here}/max_link_width': f'{link.most_lanes}'}
        if isinstance(place, wiring.Bridge):
            files[f'sys/bus/pci/devices/{place.address}'] = sysfs_files.Link(
                f'../../../{here}')
            files[f'sys/{here}/class'] = '0x060400'
            files[f'sys/{here}/vendor'] = '0x8086'
            if place.kind and place.acs is not None:
                lspci += [*lspci_of(place), '']
        elif place.iommu_group is not None:
            files['sys/kernel/iommu_groups/'
                  f'{place.iommu_group}/devices/{place.address}/x'] = ''
    return files | ({f'{tool_output.FOLDER}/lspci': '\n'.join(lspci)}
                    if lspci else {})


def lspci_of(bridge: wiring.Bridge) -> list[str]:
    """Write lines that lspci -Dvvv prints of a bridge."""
    kind = {wiring.PortKind.ROOT: 'Root Port (Slot+)',
            wiring.PortKind.UPSTREAM: 'Upstream Port',
            wiring.PortKind.DOWNSTREAM: 'Downstream Port (Slot-)',
            wiring.PortKind.BRIDGE: 'PCI-Express to PCI/PCI-X Bridge',
            None: ''}[bridge.kind]
    controls = ' '.join(f'{name}{"+" if name in (bridge.acs or ()) else "-"}'
                        for name in wiring.ACS_CONTROLS)
    return [f'{bridge.address} PCI bridge: Vendor Device (rev 01)',
            f'\tCapabilities: [68] Express (v2) {kind}, MSI 00',
            *([f'\t\tACSCtl:\t{controls}'] if bridge.acs else [])]


def _sysfs_device(host: host_model.Host,
                  device: host_model.Device) -> dict[str, str]:
    folder = _sysfs_folder(host, _attachment(host, device.address))
    there = f'sys/{folder}'
    files = {
        f'sys/bus/pci/devices/{device.address}':
            sysfs_files.Link(f'../../../{folder}'),
        f'{there}/class': '0x020000',
        f'{there}/vendor': f'0x{device.vendor_id}',
        f'{there}/device': f'0x{device.product_id}',
        f'{there}/numa_node': str(-1 if device.cell is None
                                  else device.cell),
    }
    if device.total_vfs:
        files[f'{there}/sriov_totalvfs'] = str(device.total_vfs)
    if device.vf_product_id:
        files[f'{there}/sriov_vf_device'] = device.vf_product_id
    if device.driver:
        depth = there.count('/')
        files[f'{there}/driver'] = sysfs_files.Link(
            f'{"../" * depth}bus/pci/drivers/{device.driver}')
    return files


def libvirt(host: host_model.Host, offline: Iterable[int] = ()) -> bytes:
    """Write libvirt's capabilities; offline CPUs have only a number."""
    root = ElementTree.Element('capabilities')
    top = ElementTree.SubElement(root, 'host')
    cells = _sub(_sub(top, 'topology'), 'cells', num=len(host.cells))
    for row, cell in enumerate(host.cells):
        element = _sub(cells, 'cell', id=cell.id)
        memory_kib = machines.memory_kib(cell.pages)
        if memory_kib:
            _sub(element, 'memory', unit='KiB').text = str(memory_kib)
        for pool in cell.pages:
            _sub(element, 'pages', unit='KiB',
                 size=pool.size_kib).text = str(pool.total)
        if host.distances:
            distances = _sub(element, 'distances')
            for other, value in zip(host.cells, host.distances[row],
                                    strict=True):
                _sub(distances, 'sibling', id=other.id, value=value)
        cpus = _sub(element, 'cpus', num=len(cell.cpus))
        for number, core in enumerate(cell.siblings):
            for cpu in sorted(core):
                _sub(cpus, 'cpu', id=cpu, socket_id=cell.socket, die_id=0,
                     core_id=number, siblings=cpuset.render(core))
        if cell.cpus:
            for cpu in offline:
                _sub(cpus, 'cpu', id=cpu)
                offline = ()
    cache = _sub(top, 'cache')
    for cell in host.cells:
        for number, cpus_of_cache in enumerate(cell.llc):
            _sub(cache, 'bank', id=number, level=3, type='both', size=16,
                 unit='MiB', cpus=cpuset.render(cpus_of_cache))
    return ElementTree.tostring(root)


def hwloc(host: host_model.Host, offline: Iterable[int] = (),
          version: int = 2, show_offline: bool = False) -> bytes:
    """Write hwloc's XML.

    :param show_offline: write PUs that are offline, as for a whole system
    """
    doctype = {1: 'hwloc.dtd', 2: 'hwloc2.dtd'}[version]
    root = ElementTree.Element('topology')
    if version > 1:
        root.set('version', '2.0')
    every = {*host.cpus, *offline}
    shown = every if show_offline else host.cpus
    machine = _object(root, 'Machine', shown, [c.id for c in host.cells],
                      os_index=0, complete_cpuset=bitmap(every),
                      allowed_cpuset=bitmap(host.cpus))
    for socket in host.sockets:
        cells = [cell for cell in host.cells
                 if cell.socket == socket and cell.cpus]
        holder = _object(machine, {1: 'Socket', 2: 'Package'}[version],
                         {cpu for cell in cells for cpu in cell.cpus},
                         [cell.id for cell in cells], os_index=socket)
        for cell in cells:
            _hwloc_cell(holder, cell, version)
            for device in host.devices:
                if device.cell == cell.id:
                    _hwloc_device(holder[-1], host, device)
    for cell in (cell for cell in host.cells if not cell.cpus):
        _node(machine, cell, shown if version > 1 else ())
    for device in (each for each in host.devices if each.cell is None):
        _hwloc_device(machine, host, device)
    for cpu in offline if show_offline else ():
        _object(machine, 'PU', {cpu}, (), os_index=cpu)
    if version == 2:
        _hwloc_distances(root, host)
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology '
            f'SYSTEM "{doctype}">\n').encode() + ElementTree.tostring(root)


def _hwloc_cell(holder: ElementTree.Element, cell: host_model.Cell,
                version: int) -> None:
    if version == 1:
        inside = _node(holder, cell, cell.cpus)
    else:
        inside = _object(holder, 'Group', cell.cpus, [cell.id], kind=1001)
        _node(inside, cell, cell.cpus)
    for cache in cell.llc:
        kind = {1: 'Cache', 2: 'L3Cache'}[version]
        llc = _object(inside, kind, cache, [cell.id], depth=3, cache_type=0)
        for core in cell.siblings:
            if core <= cache:
                own = _object(llc, 'Core', core, [cell.id], os_index=0)
                for cpu in sorted(core):
                    _object(own, 'PU', {cpu}, [cell.id], os_index=cpu)


def _node(holder: ElementTree.Element, cell: host_model.Cell,
          cpus: Iterable[int]) -> ElementTree.Element:
    # A memory-only node may have the lowest number of the nodes of some
    # CPUs: hwloc then writes what kind it is.
    subtype = {} if cell.cpus else {'subtype': 'HBM'}
    element = _object(
        holder, 'NUMANode', cpus, [cell.id], os_index=cell.id,
        local_memory=machines.memory_kib(cell.pages) * _KIB, **subtype)
    for pool in cell.pages:
        _sub(element, 'page_type', size=pool.size_kib * _KIB, count=pool.total)
    return element


def _hwloc_device(holder: ElementTree.Element, host: host_model.Host,
                  device: host_model.Device) -> None:
    attachment = _attachment(host, device.address)
    host_bridge = holder.find('object[@bridge_type="0-1"]')
    above = (_sub(holder, 'object', type='Bridge', bridge_type='0-1')
             if host_bridge is None else host_bridge)
    for bridge in host.wiring.path(attachment) if host.wiring else ():
        found = above.find(f'object[@pci_busid="{bridge.address}"]')
        above = found if found is not None else _sub(
            above, 'object', type='Bridge', bridge_type='1-1',
            pci_busid=bridge.address, pci_type='0604 [8086:3c02]')
    _sub(above, 'object', type='PCIDev', pci_busid=device.address,
         pci_type=f'0200 [{device.vendor_id}:{device.product_id}] '
         '[8086:0001] 01')


def _hwloc_distances(root: ElementTree.Element, host: host_model.Host) -> None:
    if not host.distances:
        return
    values = [value for row in host.distances for value in row]
    element = _sub(root, 'distances2', type='NUMANode', kind=5,
                   nbobjs=len(host.cells), name='NUMALatency', indexing='os')
    _sub(element, 'indexes', length=1).text = ' '.join(
        str(cell.id) for cell in host.cells)
    for start in range(0, len(values), 5):
        _sub(element, 'u64values', length=1).text = ' '.join(
            map(str, values[start:start + 5])) + ' '


def bitmap(numbers: Iterable[int]) -> str:
    """Write a bitmap as hwloc does."""
    bits = sum(1 << number for number in set(numbers))
    words = []
    while bits:
        words.append(f'0x{bits & 0xffffffff:08x}')
        bits >>= 32
    return ','.join(reversed(words)) or '0x0'


def _object(holder: ElementTree.Element, type_: str, cpus: Iterable[int],
            nodes: Iterable[int], **attributes: object,
            ) -> ElementTree.Element:
    sets = {'cpuset': bitmap(cpus), 'nodeset': bitmap(nodes),
            'complete_nodeset': bitmap(nodes)}
    return _sub(holder, 'object', type=type_, **(sets | attributes))


def _sub(holder: ElementTree.Element, tag: str, **attributes: object,
         ) -> ElementTree.Element:
    return ElementTree.SubElement(
        holder, tag, {key: str(value) for key, value in attributes.items()})
