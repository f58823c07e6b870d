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

    hpc.16c1n2t.2m        hpc.36c3n.2m.pkg.vf1
    |   | | |   |
    |   | | |   pages of 2 MiB (1g: 1 GiB, 64k: 64 KiB)
    |   | | SMT: threads of each guest core, if more than one
    |   | guest NUMA cells; then 1s: guest sockets, if not one per cell
    |   guest cores: vCPUs, if each core has one thread
    prefix of the profile

Some flavors have more parts: ``pkg`` (the cells share a package), ``emu``
(emulator threads have a dedicated CPU), ``vf2`` (two VFs with the affinity
policy preferred; ``vf2r``: required, ``vf2s``: socket, ``vf2l``: legacy). VFs
of a PCI alias other than hpc-vf have its name, such as ``ib-1``, and so have
whole devices (``gpu-4``); VFs of Neutron ports are ``port1``, and vGPUs are
``vgpu1``. Unequal cells add ``x`` and six hexadecimal digits of a digest.

Flavors of one plan that would have the same name get their memory as well
(``31g``, or ``1920m`` if it is not in whole GiB).
"""

import collections
import dataclasses
import hashlib
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import memory
from hpcvirt.flavors import name_template
from hpcvirt.model import shape as shape_model

USUAL_ALIAS = 'hpc-vf'

#: Nova's limit.
_LONGEST_NAME = 255


def assign(guests: Sequence[shape_model.Shape], prefix: str, disk_gib: int,
           form: str = name_template.TEMPLATE) -> tuple[str, ...]:
    """Name the guests of a plan; different guests get different names.

    :param guests: guests with dedicated CPUs and an explicit page size
    :raises InvalidInput: if a name is longer than Nova allows
    """
    found = [name(guest, prefix, disk_gib, form) for guest in guests]
    for suffixes in ([memory_name(guest.memory_mib) for guest in guests],
                     ['x' + _digest(guest) for guest in guests]):
        again = collections.Counter(found)
        found = [f'{word}.{suffix}' if again[word] > 1 else word
                 for word, suffix in zip(found, suffixes, strict=True)]
    for word in found:
        if len(word) > _LONGEST_NAME:
            raise exception.InvalidInput(
                'name_template', f'makes names of {len(word)} characters; '
                f'Nova allows {_LONGEST_NAME}')
    return tuple(found)


def name(guest: shape_model.Shape, prefix: str = 'hpc', disk_gib: int = 0,
         form: str = name_template.TEMPLATE) -> str:
    """Name a guest, whatever other guests there are."""
    return form.format_map(_fields(guest, prefix, disk_gib))


def _fields(guest: shape_model.Shape, prefix: str,
            disk_gib: int) -> dict[str, str]:
    cells = len(guest.cells)
    threads = guest.topology.threads if guest.topology else 1
    sockets = guest.topology.sockets if guest.topology else cells
    cores = guest.cpus // threads
    return {
        'prefix': prefix,
        'shape': f'{cores}c{cells}n'
        + (f'{sockets}s' if sockets != cells else '')
        + (f'{threads}t' if threads > 1 else ''),
        'cores': str(cores), 'vcpus': str(guest.cpus), 'cells': str(cells),
        'sockets': str(sockets), 'threads': str(threads),
        'memory': memory_name(guest.memory_mib),
        'memory_mib': str(guest.memory_mib), 'disk': f'{disk_gib}d',
        'page': memory.page_name(guest.cells[0].page_kib or 0),
        'options': ''.join(f'.{word}' for word in _options(guest)),
    }


def _options(guest: shape_model.Shape) -> Iterator[str]:
    if guest.numa_scope is shape_model.NUMAScope.PACKAGE:
        yield 'pkg'
    if guest.emulator_threads is shape_model.EmulatorThreads.ISOLATE:
        yield 'emu'
    if guest.devices:
        yield _devices_name(guest.devices)
    if guest != _usual(guest):
        yield 'x' + _digest(guest)


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
        devices=guest.devices[:1])


def _devices_name(wanted: Sequence[shape_model.DeviceRequest]) -> str:
    affinity = wanted[0].affinity or shape_model.PCIAffinity.LEGACY
    letter = ('' if affinity is shape_model.PCIAffinity.PREFERRED
              else affinity.value[0])
    alias = wanted[0].alias
    if wanted[0].resource_class is not None:
        return f'vgpu{wanted[0].count}'
    word = ('port' if alias is None else 'vf' if alias == USUAL_ALIAS
            else f'{alias}-')
    return f'{word}{wanted[0].count}{letter}'


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
