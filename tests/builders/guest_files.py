# SPDX-License-Identifier: Apache-2.0

"""Write the sysfs of a guest, as far as its PCI functions need it."""

import pathlib

from hpcvirt.instance_topology import places


def write(root: pathlib.Path, functions: list[places.Function]) -> str:
    """Write the files, and return the root."""
    devices = root / 'sys/bus/pci/devices'
    devices.mkdir(parents=True, exist_ok=True)
    for each in functions:
        folder = devices / each.address
        folder.mkdir()
        for name, content in (
                ('vendor', f'0x{each.vendor}'), ('device', f'0x{each.product}'),
                ('class', each.code), ('numa_node', -1 if each.cell is None
                                       else each.cell)):
            (folder / name).write_text(f'{content}\n')
        for net in each.nets:
            name, _, port = net.partition(':')
            (folder / (f'infiniband/{name}/ports/{port}' if port
                       else f'net/{name}')).mkdir(parents=True)
        if each.file.startswith('/dev/nvidia'):
            told = root / 'proc/driver/nvidia/gpus' / each.address
            told.mkdir(parents=True)
            (told / 'information').write_text(
                'Model: \t\t NVIDIA H100\nDevice Minor: \t '
                f'{each.file.removeprefix("/dev/nvidia")}\n')
        elif each.file:
            (folder / 'drm' / pathlib.Path(each.file).name).mkdir(parents=True)
    return str(root)
