# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Name flavors.

::

    hpc.16c1n2t.31g.2m        hpc.36c3n.180g.2m.pkg.vf1
    |   | | |   |   |
    |   | | |   |   pages of 2 MiB (1g: 1 GiB, 64k: 64 KiB)
    |   | | |   memory, in GiB if whole (31744m: MiB)
    |   | | SMT: threads of each guest core, if more than one
    |   | guest NUMA cells; then 1s: guest sockets, if not one per cell
    |   vCPUs
    prefix of the profile

Some flavors have more parts: ``pkg`` (the cells share a package), ``emu``
(emulator threads have a dedicated CPU), ``emushare`` (emulator threads run on
the host's shared CPUs), ``vf2`` (two VFs with the affinity policy preferred;
``vf2r``: required, ``vf2s``: socket, ``vf2l``: legacy), ``20d`` (a root disk
of 20 GiB). Properties that these parts do not express, such as unequal cells,
add ``x`` and six hexadecimal digits of a digest. The name depends on the
flavor alone: it is the same in every run and for every host, and different
flavors have different names.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import memory
from hpcvirt.model import shape as shape_model

#: The PCI alias that adds no digest to the name.
USUAL_ALIAS = 'hpc-vf'


def name(prefix: str, guest: shape_model.Shape, disk_gib: int = 0) -> str:
    """Name a flavor.

    :param guest: a guest with dedicated CPUs and an explicit page size
    """
    cells = len(guest.cells)
    page_kib = guest.cells[0].page_kib or 0
    cpu = f'{guest.cpus}c{cells}n'
    if guest.topology and guest.topology.sockets != cells:
        cpu += f'{guest.topology.sockets}s'
    if guest.topology and guest.topology.threads > 1:
        cpu += f'{guest.topology.threads}t'
    parts = [prefix, cpu, memory_name(guest.memory_mib),
             memory.page_name(page_kib)]
    if guest.numa_scope is shape_model.NUMAScope.PACKAGE:
        parts.append('pkg')
    if guest.emulator_threads is shape_model.EmulatorThreads.ISOLATE:
        parts.append('emu')
    if guest.emulator_threads is shape_model.EmulatorThreads.SHARE:
        parts.append('emushare')
    if guest.devices:
        parts.append(_devices_name(guest.devices))
    if disk_gib:
        parts.append(f'{disk_gib}d')
    if guest != _usual(guest):
        parts.append('x' + _digest(guest))
    return '.'.join(parts)


def memory_name(memory_mib: int) -> str:
    """``31g`` for whole GiB, otherwise MiB: ``1920m``."""
    if memory_mib % 1024:
        return f'{memory_mib}m'
    return f'{memory_mib // 1024}g'


def content_digest(vcpus: int, ram_mib: int, disk_gib: int,
                   extra_specs: Mapping[str, str]) -> str:
    """Return a digest of the content of a flavor, in hexadecimal digits."""
    lines = [f'{vcpus} {ram_mib} {disk_gib}']
    lines += [f'{key}={value}' for key, value in sorted(extra_specs.items())]
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()[:12]


def _usual(guest: shape_model.Shape) -> shape_model.Shape:
    """Return the guest that the parts of the name without a digest mean."""
    count = len(guest.cells)
    topology = guest.topology
    threads = topology.threads if topology else 1
    cell = shape_model.GuestCell(
        guest.cpus // count, 0, guest.memory_mib // count,
        guest.cells[0].page_kib)
    sockets = topology.sockets if topology else count
    return dataclasses.replace(
        guest, cells=(cell,) * count,
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        thread_policy=(shape_model.ThreadPolicy.REQUIRE if threads > 1
                       else None),
        topology=shape_model.GuestTopology(
            sockets, guest.cpus // (sockets * threads), threads),
        devices=tuple(shape_model.DeviceRequest(
            USUAL_ALIAS, device.count,
            device.affinity or shape_model.PCIAffinity.LEGACY)
            for device in guest.devices[:1]),
        exclusive_cells=False)


def _devices_name(wanted: Sequence[shape_model.DeviceRequest]) -> str:
    affinity = wanted[0].affinity or shape_model.PCIAffinity.LEGACY
    letter = ('' if affinity is shape_model.PCIAffinity.PREFERRED
              else affinity.value[0])
    return f'vf{sum(device.count for device in wanted)}{letter}'


def _digest(guest: shape_model.Shape) -> str:
    # A repr() would change with every new field of a class, and with it the
    # names of existing flavors.
    topology = guest.topology
    words = [
        *(f'{cell.pcpus}+{cell.vcpus}/{cell.memory_mib}/{cell.page_kib}'
          for cell in guest.cells),
        str(guest.cpu_policy), str(guest.thread_policy),
        str(guest.emulator_threads),
        *(f'{device.alias}:{device.count}:{device.affinity}:{device.physnet}'
          for device in guest.devices),
        *((str(topology.sockets), str(topology.cores),
           str(topology.threads)) if topology else ()),
        str(guest.numa_scope), str(guest.exclusive_cells)]
    return hashlib.sha256(' '.join(words).encode()).hexdigest()[:6]
