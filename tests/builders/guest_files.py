# SPDX-License-Identifier: Apache-2.0

"""Write the sysfs of a guest, and the addresses in its domain."""

import itertools
import pathlib
import re
import struct

from hpcvirt.instance_topology import places


def write(root: pathlib.Path, functions: list[places.Function]) -> str:
    """Write the files, and return the root."""
    devices = root / 'sys/bus/pci/devices'
    devices.mkdir(parents=True, exist_ok=True)
    for each in functions:
        folder = devices / each.address
        folder.mkdir()
        for name, content in (
                ('vendor', f'0x{each.vendor}'), ('class', each.code),
                ('device', f'0x{each.product}'),
                ('numa_node', -1 if each.cell is None else each.cell)):
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


def write_cpus(root: pathlib.Path, cells: tuple[tuple[int, ...], ...]) -> None:
    """Write what hwloc needs: CPUs, and a root port for each function."""
    def put(name: str, content: object) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes)
                         else f'{content}\n'.encode())

    last = max(max(cpus) for cpus in cells)
    for name in ('online', 'possible', 'present'):
        put(f'sys/devices/system/cpu/{name}', f'0-{last}')
    for name in ('online', 'possible'):
        put(f'sys/devices/system/node/{name}', f'0-{len(cells) - 1}')
    for number, cpus in enumerate(cells):
        mask = f'{sum(1 << cpu for cpu in cpus):08x}'
        node = f'sys/devices/system/node/node{number}'
        put(f'{node}/cpumap', mask)
        put(f'{node}/meminfo', f'Node {number} MemTotal: 1048576 kB')
        put(f'{node}/distance', ' '.join(
            '10' if other == number else '20' for other in range(len(cells))))
        for cpu in cpus:
            folder = f'sys/devices/system/cpu/cpu{cpu}/topology'
            put(f'{folder}/physical_package_id', number)
            put(f'{folder}/core_id', cpu)
            for name in ('thread_siblings', 'core_cpus'):
                put(f'{folder}/{name}', f'{1 << cpu:08x}')
            for name in ('core_siblings', 'package_cpus'):
                put(f'{folder}/{name}', mask)
    put('proc/cpuinfo', '\n\n'.join(
        f'processor : {cpu}' for cpus in cells for cpu in cpus))
    put('proc/meminfo', 'MemTotal: 2097152 kB')
    put('proc/mounts', 'sysfs /sys sysfs rw 0 0')
    for folder in sorted((root / 'sys/bus/pci/devices').iterdir()):
        bus = int(folder.name[5:7], 16)
        for name, vendor, product, code in (
                (folder.name, *(int((folder / key).read_text(), 16)
                                for key in ('vendor', 'device', 'class'))),
                (f'0000:00:{bus:02x}.0', 0x1b36, 0xc, 0x060400)):
            config = bytearray(256)
            struct.pack_into('<HH', config, 0, vendor, product)
            config[8:12] = struct.pack('<I', code << 8)
            if code == 0x060400:
                config[14] = 1
                config[24:27] = 0, bus, bus
            own = f'sys/bus/pci/devices/{name}'
            for key, content in (
                    ('vendor', f'0x{vendor:04x}'), ('device',
                                                    f'0x{product:04x}'),
                    ('class', f'0x{code:06x}'), ('numa_node', -1),
                    ('local_cpus', f'{(2 << last) - 1:08x}'),
                    ('config', bytes(config))):
                put(f'{own}/{key}', content)


def add_addresses(domain: str) -> str:
    """Give each passed-through device of Nova's XML an address in the guest.

    libvirt adds the addresses; here they are slots 1, 2 and so on of bus 0.
    """
    slots = itertools.count(1)
    return re.sub('</source>(?=\\s*</hostdev>)', lambda match: (
        f'{match[0]}<address type="pci" domain="0x0000" bus="0x00" '
        f'slot="0x{next(slots):02x}" function="0x0"/>'), domain)
