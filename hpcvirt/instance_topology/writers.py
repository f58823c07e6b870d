# SPDX-License-Identifier: Apache-2.0

"""Write the places of the devices of a guest for NCCL, hwloc, UCX and Slurm.

This module runs in a guest; see :mod:`hpcvirt.instance_topology.places`.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hpcvirt.instance_topology import places

#: Each file says who writes it.
MARK = 'Written by hpcvirt-guest-topology, which replaces this file.'

#: NCCL's longest attribute [NVIDIA/nccl, src/graph/xml.h: MAX_STR_LEN].
_NCCL_TEXT = 253


def write_nccl(found: places.Arrangement) -> str:
    """Write a topology file of NCCL or RCCL, for NCCL_TOPO_FILE.

    They add GPUs, NVLinks, NICs and the processor themselves. Their reader
    wants one space between attributes [NVIDIA/nccl, src/graph/xml.cc], and
    that of RCCL version 2 [ROCm/rccl, src/graph/xml.h].
    """
    below: dict[tuple[int, int | None], list[str]] = {}
    for each in found.functions:
        if each.cell is not None and (
                not each.code or each.is_gpu or each.is_net):
            code = f' class="{each.code}"' if each.code else ''
            below.setdefault((each.cell, each.switch), []).append(
                f'<pci busid="{each.address}"{code}'
                f'{_pcie(each.speed_gts, each.lanes)}/>')
    # A switch comes after those above it.
    for number, switch in reversed([*enumerate(found.switches)]):
        for cell in range(len(found.cells)):
            if inside := below.pop((cell, number), []):
                below.setdefault((cell, switch['above']), []).extend((
                    f'<pci busid="ffff:{cell:02x}:{number:02x}.0" '
                    f'class="0x060400"{_pcie(**switch)}>',
                    *(f'  {line}' for line in inside), '</pci>'))
    version = 2 if any(gpu.vendor == '1002' for gpu in found.gpus) else 1
    lines = [f'<system version="{version}">']
    for cell in range(len(found.cells)):
        mask = found.mask(cell)
        affinity = f' affinity="{mask}"' if len(mask) <= _NCCL_TEXT else ''
        lines += [f'  <cpu numaid="{cell}"{affinity}>', *(
            f'    {line}' for line in below.get((cell, None), [])), '  </cpu>']
    return '\n'.join((*lines, '</system>', ''))


def _pcie(speed_gts: float | None, lanes: int | None, **_: object) -> str:
    return ('' if speed_gts is None else
            f' link_speed="{speed_gts:.1f} GT/s PCIe"') + (
                '' if lanes is None else f' link_width="{lanes:d}"')


def write_hwloc(found: places.Arrangement,
                guest: ElementTree.Element) -> str:
    """Move the devices in the XML of the guest's lstopo below their cells.

    It is for HWLOC_XMLFILE. HWLOC_PCI_LOCALITY is of no use: it gives all
    devices below a host bridge one place, and all may be below the same
    [open-mpi/hwloc, hwloc/pci-common.c: hwloc_pcicommon_tree_attach].

    :param guest: the root element, which is changed
    """
    objects = [*guest.iter('object')]
    above = {child: parent for parent in objects
             for child in parent.findall('object')}
    homes = {each.get('os_index'): above[each] for each in objects
             if each.get('type') == 'NUMANode'}
    cells = {each.address: each.cell for each in found.functions}
    branches: dict[ElementTree.Element, set[int | None]] = {}
    for each in objects:
        if each.get('pci_busid') in cells and each.get('type') == 'PCIDev':
            branch = each
            while above[branch].get('bridge_type') == '1-1':
                branch = above[branch]
            branches.setdefault(branch, set()).add(cells[each.attrib[
                'pci_busid']])
    number = max(int(each.get('gp_index', '0')) for each in objects)
    for branch, own in branches.items():
        home = homes.get(str(min(own, key=str)))
        bridge = above[branch]
        if len(own) == 1 and home is not None and bridge in above:
            number += 1
            bridge.remove(branch)
            ElementTree.SubElement(home, 'object', {
                **bridge.attrib, 'gp_index': str(number)}).append(branch)
            if bridge.find('object') is None:
                above[bridge].remove(bridge)
    objects[0].insert(0, ElementTree.Element('info', name='Comment',
                                             value=MARK))
    ElementTree.indent(guest)
    text = ElementTree.tostring(guest, 'unicode').replace(' />', '/>')
    return f'<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n{text}\n'


def write_ucx(found: places.Arrangement) -> str:
    """Write the network devices near each GPU and each cell.

    The last word of a line is a value for UCX_NET_DEVICES. Devices below the
    same switch are nearer than others of the same cell.
    """
    lines = [(f'cell {cell}', [net for net in found.nets if net.cell == cell])
             for cell in range(len(found.cells))]
    for gpu in found.gpus:
        near = [net for net in found.nets
                if gpu.cell is not None and net.cell == gpu.cell]
        for switch in reversed(found.chain(gpu.switch)):
            near = [net for net in found.nets
                    if switch in found.chain(net.switch)] or near
        lines.append((f'gpu {gpu.address}', near))
    return ''.join(
        f'{what} ' + ','.join(name for net in near for name in (
            net.nets or (net.address,))) + '\n' for what, near in lines
        if near)


def write_gres(found: places.Arrangement) -> str:
    """Write lines of Slurm's gres.conf, one for each GPU.

    Cores are numbered in the order of their CPUs. Links= needs the links of
    all GPUs.
    """
    cores = sorted((core for cell in found.cells for core in cell), key=min)
    gpus = sorted(found.gpus, key=lambda one: [
        int(number) for number in re.findall(r'\d+', one.file)])
    links = [[-1 if a is b else found.count_links(a, b) for b in gpus]
             for a in gpus]
    lines = []
    for gpu, row in zip(gpus, links):  # noqa: B905
        if not gpu.file:
            lines.append(f'# {gpu.address}: the file is unknown without its '
                         'driver')
        words = ['Name=gpu', f'File={gpu.file}' if gpu.file else 'Count=1']
        if gpu.cell is not None:
            words.append('Cores=' + ','.join(
                str(number) for number, core in enumerate(cores)
                if core in found.cells[gpu.cell]))
        if len(gpus) > 1 and not any(None in each for each in links):
            words.append('Links=' + ','.join(map(str, row)))
        lines.append(' '.join(words))
    return ''.join(f'{line}\n' for line in lines)


def make_files(found: places.Arrangement,
               guest: ElementTree.Element | None) -> dict[str, str]:
    """Return the files of a guest by name; one that is empty must not be.

    :param guest: what its lstopo prints as XML; None without lstopo
    """
    files = {
        'etc/hpcvirt/nccl-topology.xml':
            f'<!-- {MARK} -->\n{write_nccl(found)}',
        'etc/nccl.conf':
            f'# {MARK}\nNCCL_TOPO_FILE=/etc/hpcvirt/nccl-topology.xml\n',
        'etc/hpcvirt/ucx-net-devices': f'# {MARK}\n{write_ucx(found)}',
        'etc/hpcvirt/gres.conf': f'# {MARK}\n{write_gres(found)}',
        'etc/hpcvirt/hwloc.xml':
            '' if guest is None else write_hwloc(found, guest),
        'etc/profile.d/hpcvirt-topology.sh': '' if guest is None else (
            f'# {MARK}\nexport HWLOC_XMLFILE=/etc/hpcvirt/hwloc.xml\n'
            'export HWLOC_THISSYSTEM=1\n')}
    return {name: text if found.functions else ''
            for name, text in files.items()}
