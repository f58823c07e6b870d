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

"""Translate between a Shape and the extra specs of a flavor.

``decode(s.cpus, s.memory_mib, encode(s)) == s`` holds for every shape that a
flavor can express. ``decode`` accepts and refuses the same flavors as Nova's
``numa_get_constraints`` (``nova/virt/hardware.py``) does without image
properties, except that Nova accepts negative sizes of memory or pages.
"""

from collections.abc import Mapping
from typing import NoReturn

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import shape
from hpcvirt.specs import cells
from hpcvirt.specs import devices
from hpcvirt.specs import guest_topology
from hpcvirt.specs import key
from hpcvirt.specs import pages
from hpcvirt.specs import policies
from hpcvirt.specs import vocabulary

_THREAD_POLICY = vocabulary.CPU_THREAD_POLICY.name


def decode(vcpus: int, ram_mib: int,
           extra_specs: Mapping[str, str]) -> shape.Shape:
    """Read the shape of a flavor.

    Keys that do not affect the topology are ignored. The shape has no cells
    if Nova gives the flavor no NUMA topology.

    :raises InvalidInput: naming the key, where Nova would refuse the flavor
    """
    if not 1 <= vcpus <= cpuset.MAX_CPU:
        raise exception.InvalidInput(
            'vcpus', f'{vcpus} is not between 1 and {cpuset.MAX_CPU}')
    if ram_mib < 0:
        raise exception.InvalidInput('ram', f'{ram_mib} MiB is negative')
    policy = policies.read(vcpus, extra_specs)
    page_kib, has_page = pages.read(extra_specs)
    guest_cells = cells.read(vcpus, ram_mib, extra_specs, policy,
                             page_kib, has_page)
    if (guest_cells and policy.thread is None
            and extra_specs.get(_THREAD_POLICY) == ''):
        # Nova cannot store an empty policy on a cell.
        raise exception.InvalidInput(_THREAD_POLICY, 'is empty')
    return shape.Shape(
        cells=guest_cells,
        cpu_policy=policy.cpu,
        thread_policy=policy.thread,
        emulator_threads=policy.emulator,
        devices=devices.read(extra_specs),
        topology=guest_topology.read(vcpus, extra_specs),
        numa_scope=numa_scope(extra_specs),
        exclusive_cells=exclusive_cells(extra_specs))


def encode(guest: shape.Shape) -> dict[str, str]:
    """Write a shape as the extra specs of a flavor with its vCPUs and memory.

    The number of cells, the CPU policy and an explicit page size are always
    written. vCPUs are numbered cell by cell. In a cell of a mixed guest the
    shared vCPUs come first, because the guest's operating system uses CPU 0
    for its own work.

    :raises InvalidInput: if a flavor cannot express the shape
    """
    _check(guest)
    specs = {
        vocabulary.CPU_POLICY.name: guest.cpu_policy.value,
        vocabulary.NUMA_NODES.name: str(len(guest.cells)),
    }
    if guest.thread_policy is not None:
        specs[_THREAD_POLICY] = guest.thread_policy.value
    if guest.cpu_policy is shape.CPUPolicy.MIXED:
        specs[vocabulary.CPU_DEDICATED_MASK.name] = cpuset.render(
            cells.dedicated_cpus(guest.cells))
    if guest.emulator_threads is not None:
        specs[vocabulary.EMULATOR_THREADS_POLICY.name] = (
            guest.emulator_threads.value)
    if not cells.are_even(guest.cells):
        specs.update(cells.write(guest.cells))
    page_kib = guest.cells[0].page_kib
    if page_kib is not None:
        specs[vocabulary.MEM_PAGE_SIZE.name] = pages.write(page_kib)
    specs.update(devices.write(guest.devices))
    if guest.topology is not None:
        specs.update(guest_topology.write(guest.topology, guest.cpus))
    if guest.numa_scope is not shape.NUMAScope.HOST:
        specs[vocabulary.NUMA_SCOPE.name] = guest.numa_scope.value
    if guest.exclusive_cells:
        specs[vocabulary.EXCLUSIVE_CELLS.name] = 'true'
    return specs


def numa_scope(specs: Mapping[str, str]) -> shape.NUMAScope:
    """Read ``hpcvirt:numa_scope``.

    :raises InvalidInput: if it is not one of its values
    """
    row = vocabulary.NUMA_SCOPE
    if row.name not in specs:
        return shape.NUMAScope.HOST
    row.check(specs[row.name])
    return shape.NUMAScope(specs[row.name])


def exclusive_cells(specs: Mapping[str, str]) -> bool:
    """Read ``hpcvirt:exclusive_cells``.

    :raises InvalidInput: if it is not a boolean
    """
    row = vocabulary.EXCLUSIVE_CELLS
    if row.name not in specs:
        return False
    row.check(specs[row.name])
    return key.truth(specs[row.name]) is True


def _check(guest: shape.Shape) -> None:
    """Refuse shapes that no flavor can express."""
    if not guest.cells:
        _refuse('has no cells, so that its size is unknown')
    if any(cell.cpus < 1 or cell.memory_mib < 1 for cell in guest.cells):
        _refuse('needs at least one CPU and one MiB in each cell')
    if len({cell.page_kib for cell in guest.cells}) > 1:
        _refuse('has cells with different page sizes, which a flavor cannot '
                'express')
    pcpus = sum(cell.pcpus for cell in guest.cells)
    wanted = policies.dedicated_range(guest.cpu_policy, guest.cpus)
    if pcpus not in wanted:
        _refuse(f'has {pcpus} of {guest.cpus} CPUs dedicated, which the '
                f'policy {guest.cpu_policy} does not allow')
    if guest.cpu_policy is shape.CPUPolicy.SHARED:
        if guest.thread_policy is not None:
            _refuse('has a thread policy, which needs dedicated CPUs')
        if guest.emulator_threads is shape.EmulatorThreads.ISOLATE:
            _refuse('has isolated emulator threads, which need dedicated '
                    'CPUs')


def _refuse(what: str) -> NoReturn:
    raise exception.InvalidInput('shape', what)
