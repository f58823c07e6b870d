# SPDX-License-Identifier: Apache-2.0

"""Write the places of the devices of a guest for NCCL, UCX and Slurm.

This module runs in a guest; see :mod:`hpcvirt.instance_topology.places`.
"""

from __future__ import annotations

import itertools
import re

from hpcvirt.instance_topology import places

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
                head = (f'<pci busid="ffff:{cell:02x}:{number:02x}.0" '
                        f'class="0x060400"{_pcie(**switch)}>')
                below.setdefault((cell, switch['above']), []).extend((
                    head, *(f'  {line}' for line in inside), '</pci>'))
    version = 2 if any(each.vendor == '1002' and each.is_gpu
                       for each in found.functions) else 1
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


def write_ucx(found: places.Arrangement) -> str:
    """Write the network devices near each GPU and each cell.

    The last word of a line is a value for UCX_NET_DEVICES. Devices below the
    same switch are nearer than others of the same cell.
    """
    nets = [each for each in found.functions if each.is_net]
    lines = [(f'cell {cell}', [net for net in nets if net.cell == cell])
             for cell in range(len(found.cells))]
    for gpu in (each for each in found.functions if each.is_gpu):
        near = [net for net in nets
                if net.cell is not None and net.cell == gpu.cell]
        for switch in reversed(found.chain(gpu.switch)):
            near = [net for net in nets
                    if switch in found.chain(net.switch)] or near
        lines.append((f'gpu {gpu.address}', near))
    text = ''
    for what, near in lines:
        names: list[str] = []
        for net in near:
            names += net.nets or (net.address,)
        if near:
            text += f'{what} {",".join(names)}\n'
    return text


def write_gres(found: places.Arrangement) -> str:
    """Write lines of Slurm's gres.conf, one for each GPU.

    Cores are numbered in the order of their CPUs. Links= needs the links of
    all GPUs.
    """
    cores = sorted(itertools.chain.from_iterable(found.cells), key=min)
    gpus = [each for each in found.functions if each.is_gpu]
    gpus.sort(key=lambda one: [*map(int, re.findall(r'\d+', one.file))])
    links = [[-1 if a is b else found.count_links(a, b) for b in gpus]
             for a in gpus]
    lines = []
    for gpu, row in zip(gpus, links):  # noqa: B905
        words = ['Name=gpu', f'File={gpu.file}' if gpu.file else 'Count=1']
        if gpu.cell is not None:
            words.append('Cores=' + ','.join(
                str(number) for number, core in enumerate(cores)
                if core in found.cells[gpu.cell]))
        if len(gpus) > 1 and not any(None in each for each in links):
            words.append('Links=' + ','.join(map(str, row)))
        lines.append(' '.join(words))
    return ''.join(f'{line}\n' for line in lines)
