# SPDX-License-Identifier: Apache-2.0

"""Read the PCI functions of a guest from its own sysfs.

This module runs in a guest; see :mod:`hpcvirt.instance_topology.places`.
"""

from __future__ import annotations

import contextlib
import os
import re

from hpcvirt.instance_topology import places

_PCI = 'sys/bus/pci/devices'
_NAME = re.compile(r'[\w.-]+', re.ASCII)
_ADDRESS = re.compile(r'[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]')


def read(root: str = '/') -> list[places.Function]:
    """Read the PCI functions of a guest, below the root of its files.

    :raises OSError: if there is no sysfs
    """
    folder = os.path.join(root, _PCI)
    return [_read_one(root, f'{folder}/{address}', address)
            for address in sorted(os.listdir(folder))
            if _ADDRESS.fullmatch(address)]


def _read_one(root: str, folder: str, address: str) -> places.Function:
    def text(path: str, form: str) -> str:
        with contextlib.suppress(OSError), open(path, 'rb') as file:
            found = re.search(form, file.read(4096).decode(errors='replace'))
            return found[1] if found else ''
        return ''

    def names(name: str) -> list[str]:
        with contextlib.suppress(OSError):
            return sorted(filter(_NAME.fullmatch, os.listdir(
                f'{folder}/{name}')))
        return []

    node = text(f'{folder}/numa_node', r'^([0-9]{1,4})$')
    minor = text(f'{root}/proc/driver/nvidia/gpus/{address}/information',
                 r'Device Minor:\s*([0-9]+)')
    vendor, product = (text(f'{folder}/{name}', '^0x([0-9a-f]{4})$')
                       for name in ('vendor', 'device'))
    files = [f'/dev/nvidia{minor}'] if minor else [
        f'/dev/dri/{name}' for name in names('drm')
        if name.startswith('renderD') and vendor != '10de']
    nets: list[str] = []
    for name in names('infiniband'):
        ports = names(f'infiniband/{name}/ports')
        nets += [f'{name}:{port}' for port in ports]
    return places.Function(
        address, vendor, product, text(f'{folder}/class',
                                       '^(0x[0-9a-f]{6})$'),
        int(node) if node else None, tuple(nets or names('net')),
        files[0] if files else '')
