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

"""What a libvirt domain's definition says about CPUs and memory."""

import dataclasses
from collections.abc import Mapping
from xml.etree import ElementTree

import defusedxml
import defusedxml.ElementTree

from hpcvirt import exception
from hpcvirt.model import cpuset


@dataclasses.dataclass(frozen=True)
class Domain:
    """The parts of a definition that the tests look at.

    :ivar vcpu_pins: guest CPU -> host CPUs that it may run on
    :ivar memory_cells: guest cell -> host cells of its memory
    :ivar strict: all memory is bound strictly
    :ivar pages: guest cell -> page size in KiB
    :ivar devices: number of PCI devices passed through
    """

    vcpus: int
    vcpu_pins: Mapping[int, frozenset[int]]
    emulator_pins: frozenset[int]
    memory_cells: Mapping[int, frozenset[int]]
    strict: bool
    pages: Mapping[int, int]
    topology: tuple[int, int, int] | None
    devices: int


def parse(text: str) -> Domain:
    """Read what ``virsh dumpxml`` prints.

    :raises InvalidInput: it is no domain
    """
    try:
        root = defusedxml.ElementTree.fromstring(text)
    except (ElementTree.ParseError, defusedxml.DefusedXmlException) as exc:
        raise exception.InvalidInput('domain', f'not XML: {exc}') from exc
    vcpu = root.find('vcpu')
    if root.tag != 'domain' or vcpu is None:
        raise exception.InvalidInput('domain', 'no definition of a domain')
    emulator = root.find('cputune/emulatorpin')
    memory = root.findall('numatune/memnode')
    found = root.find('cpu/topology')
    return Domain(
        vcpus=int(vcpu.text or 0),
        vcpu_pins={int(pin.get('vcpu', '')): _cpus(pin.get('cpuset'))
                   for pin in root.findall('cputune/vcpupin')},
        emulator_pins=_cpus(emulator.get('cpuset')
                            if emulator is not None else ''),
        memory_cells={int(node.get('cellid', '')): _cpus(node.get('nodeset'))
                      for node in memory},
        strict=bool(memory) and all(node.get('mode') == 'strict'
                                    for node in memory),
        pages={cell: int(page.get('size', ''))
               for page in root.findall('memoryBacking/hugepages/page')
               for cell in _cpus(page.get('nodeset'))},
        topology=None if found is None else (
            int(found.get('sockets', '1')), int(found.get('cores', '1')),
            int(found.get('threads', '1'))),
        devices=len(root.findall('devices/hostdev')))


def _cpus(text: str | None) -> frozenset[int]:
    return cpuset.parse(text or '', 'domain')
