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

"""Read what a guest sees of its hardware, through ssh."""

import dataclasses

from hpcvirt import exception
from hpcvirt.model import cpuset

#: One command, so that one connection is enough. It needs only a POSIX shell
#: and sysfs, since a guest may have nothing but BusyBox.
COMMAND = ('cat /sys/devices/system/cpu/online; '
           'cat /sys/devices/system/node/online; '
           'for c in /sys/devices/system/cpu/cpu[0-9]*; do '
           'cat $c/topology/thread_siblings_list; done | sort -u | '
           "tr '\\n' ' '; echo; "
           "awk '/^MemTotal:/{print $2}' /proc/meminfo; "
           "ls /sys/kernel/mm/hugepages | tr '\\n' ' '; echo; "
           'for d in /sys/bus/pci/devices/*; do [ -e "$d/physfn" ] || '
           'case "$(cat "$d/class")" in 0x0200*) '
           'echo "$(cat "$d/vendor"):$(cat "$d/device"):'
           '$(cat "$d/numa_node")";; esac; done | '
           "tr '\\n' ' '; echo")


@dataclasses.dataclass(frozen=True)
class Guest:
    """The hardware that a guest sees.

    :ivar cores: the threads of each core
    :ivar memory_kib: memory that the kernel can use, which is less than the
        flavor's
    :ivar page_pools: names of the huge page pools below
        /sys/kernel/mm/hugepages
    :ivar network_devices: vendor, device and NUMA cell of each PCI network
        device; the cell is -1 if the guest does not know it
    """

    cpus: frozenset[int]
    cells: frozenset[int]
    cores: frozenset[frozenset[int]]
    memory_kib: int
    page_pools: tuple[str, ...]
    network_devices: tuple[tuple[str, str, int], ...]


def parse(text: str) -> Guest:
    """Read the output of :data:`COMMAND`.

    :raises InvalidInput: if it is something else
    """
    lines = text.splitlines()
    try:
        cpus, cells, cores, memory, pools, devices = lines[:6]
        return Guest(
            cpus=cpuset.parse(cpus, 'guest'),
            cells=cpuset.parse(cells, 'guest'),
            cores=frozenset(cpuset.parse(core, 'guest')
                            for core in cores.split()),
            memory_kib=int(memory),
            page_pools=tuple(pools.split()),
            network_devices=tuple(_device(item)
                                  for item in devices.split()))
    except ValueError as exc:
        raise exception.InvalidInput(
            'guest', f'unexpected output {text!r}') from exc


def _device(text: str) -> tuple[str, str, int]:
    vendor, device, cell = text.split(':')
    return vendor, device, int(cell)
