# SPDX-License-Identifier: Apache-2.0

"""Translate between a Shape and the extra specs of a flavor.

``decode(s.cpus, s.memory_mib, encode(s)) == s`` holds for every shape that a
flavor can express. ``decode`` accepts and refuses the same flavors as Nova's
``numa_get_constraints`` (``nova/virt/hardware.py``) without image properties.
The only exception is that Nova accepts negative sizes of memory or pages.

The sockets, cores and threads that a guest sees are those of Nova's
``get_best_cpu_topology`` without image properties.
"""

import math
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NoReturn

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import shape
from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import policies
from hpcvirt.specs import scheduler_keys
from hpcvirt.specs import vocabulary

#: ``ImageMetaProps.NUMA_NODES_MAX``: Nova reads no more cells.
MAX_CELLS = 128

#: The keys of all guest cells, for what is said of them together.
ALL_CPUS = vocabulary.NUMA_CPUS.at(num='N')
ALL_MEMORY = vocabulary.NUMA_MEM.at(num='N')


def read_cells(vcpus: int, ram_mib: int, specs: Mapping[str, str],
               policy: policies.Policies,
               page_kib: int | shape.PageClass | None,
               has_page: bool) -> tuple[shape.GuestCell, ...]:
    """Read the cells; empty if Nova gives the guest no NUMA topology.

    :raises InvalidInput: if cells are incomplete or overlap, or do not add up
        to the flavor
    """
    nodes = _nodes(specs)
    pinned = policy.cpu is not shape.CPUPolicy.SHARED
    if not (nodes or has_page or pinned or _has_pmem(specs)):
        return ()
    nodes = nodes or 1
    cpu_lists = _cpu_lists(specs)
    memory_mib = _memory(specs)
    if not cpu_lists and not memory_mib:
        cpu_lists, memory_mib = _split(vcpus, ram_mib, nodes)
    elif len(cpu_lists) != nodes or len(memory_mib) != nodes:
        raise exception.InvalidInput(
            vocabulary.NUMA_NODES.name,
            f'{nodes} guest cells, but the CPUs of {len(cpu_lists)} '
            f'({ALL_CPUS}) and the memory of {len(memory_mib)} '
            f'({ALL_MEMORY}); give both for '
            'each cell, or neither')
    else:
        _check_sums(vcpus, ram_mib, cpu_lists, memory_mib)
    return tuple(
        shape.GuestCell(
            pcpus=len(cpus & policy.dedicated),
            vcpus=len(cpus - policy.dedicated),
            memory_mib=size, page_kib=page_kib)
        for cpus, size in zip(cpu_lists, memory_mib, strict=True))


def are_even(cells: Sequence[shape.GuestCell]) -> bool:
    """Whether Nova's even split of the flavor gives these cells."""
    return len({(cell.cpus, cell.memory_mib) for cell in cells}) == 1


def write_cells(cells: Sequence[shape.GuestCell]) -> dict[str, str]:
    """Write the CPUs and the memory of each cell."""
    specs = {}
    first = 0
    for number, cell in enumerate(cells):
        cpus = range(first, first + cell.cpus)
        specs[vocabulary.NUMA_CPUS.at(num=number)] = cpuset.render(cpus)
        specs[vocabulary.NUMA_MEM.at(num=number)] = str(cell.memory_mib)
        first += cell.cpus
    return specs


def dedicated_cpus(cells: Sequence[shape.GuestCell]) -> frozenset[int]:
    """Number the dedicated vCPUs, which follow the shared ones of a cell."""
    dedicated: set[int] = set()
    first = 0
    for cell in cells:
        dedicated.update(range(first + cell.vcpus, first + cell.cpus))
        first += cell.cpus
    return frozenset(dedicated)


def _nodes(specs: Mapping[str, str]) -> int | None:
    row = vocabulary.NUMA_NODES
    text = specs.get(row.name, '')
    if not text:
        return None
    # Nova accepts only the canonical form: no sign, blank or leading zero.
    if not (text.isascii() and text.isdigit() and text[0] != '0'):
        raise exception.InvalidInput(
            row.name, f'{text[:64]!r} is not one of its values '
            f'({row.values})')
    # No flavor has that many cells. A shorter text keeps int() fast.
    return int(text[:9])


def _cpu_lists(specs: Mapping[str, str]) -> list[frozenset[int]]:
    return [policies.read_list(text, name)
            for name, text in _numbered(specs, vocabulary.NUMA_CPUS)]


def _memory(specs: Mapping[str, str]) -> list[int]:
    sizes = []
    for name, text in _numbered(specs, vocabulary.NUMA_MEM):
        size = extra_spec_key.integer(text)
        if size is None or size < 0:
            raise exception.InvalidInput(
                name, f'{text[:64]!r} is not a size in MiB')
        sizes.append(size)
    return sizes


def _numbered(specs: Mapping[str, str],
              row: extra_spec_key.ExtraSpecKey) -> list[tuple[str, str]]:
    """List the values of cell 0, 1 and so on, up to the first missing one."""
    found = []
    for number in range(MAX_CELLS):
        name = row.at(num=number)
        if name not in specs:
            break
        found.append((name, specs[name]))
    return found


def _split(vcpus: int, ram_mib: int,
           nodes: int) -> tuple[list[frozenset[int]], list[int]]:
    wrong = [f'{amount} {what}' for what, amount in (
        ('vCPUs', vcpus), ('MiB', ram_mib)) if amount % nodes]
    if wrong:
        raise exception.InvalidInput(
            vocabulary.NUMA_NODES.name,
            f'{" and ".join(wrong)} do not divide into {nodes} guest cells')
    share = vcpus // nodes
    return ([frozenset(range(node * share, (node + 1) * share))
             for node in range(nodes)], [ram_mib // nodes] * nodes)


def _check_sums(vcpus: int, ram_mib: int,
                cpu_lists: Sequence[frozenset[int]],
                memory_mib: Sequence[int]) -> None:
    left = set(range(vcpus))
    for number, cpus in enumerate(cpu_lists):
        wrong = cpus - left
        if wrong:
            problem = ('is in two guest cells' if min(wrong) < vcpus
                       else f'is not one of the {vcpus}')
            raise exception.InvalidInput(
                vocabulary.NUMA_CPUS.at(num=number),
                f'vCPU {min(wrong)} {problem}')
        left -= cpus
    if left:
        raise exception.InvalidInput(
            ALL_CPUS, f'vCPU {min(left)} is in no guest cell'
            if len(left) == 1
            else f'vCPUs {cpuset.render(left)} are in no guest cell')
    if sum(memory_mib) != ram_mib:
        raise exception.InvalidInput(
            ALL_MEMORY,
            f'the cells have {sum(memory_mib)} MiB, the flavor {ram_mib}')


def _has_pmem(specs: Mapping[str, str]) -> bool:
    labels = specs.get(vocabulary.PMEM.name, '')
    return any(label.strip() for label in labels.split(','))


#: Nova's limit if the flavor sets none.
_NO_LIMIT = 65536

_WANTED = (vocabulary.CPU_SOCKETS, vocabulary.CPU_CORES,
           vocabulary.CPU_THREADS)
_LIMITS = (vocabulary.CPU_MAX_SOCKETS, vocabulary.CPU_MAX_CORES,
           vocabulary.CPU_MAX_THREADS)


def read_topology(vcpus: int,
                  specs: Mapping[str, str]) -> shape.GuestTopology | None:
    """Return the CPU topology that the guest will see.

    :returns: None if the flavor does not set any; Nova then gives each vCPU
        its own socket
    :raises InvalidInput: if a value is not an integer, or if the limits do
        not allow any arrangement of the vCPUs
    """
    if not any(row.name in specs for row in _WANTED + _LIMITS):
        return None
    limits = [_integer(specs, row) or _NO_LIMIT for row in _LIMITS]
    wanted = [_integer(specs, row) for row in _WANTED]
    if any(want > limit for want, limit in zip(wanted, limits, strict=True)):
        wanted = [0, 0, 0]
    best = max(
        _arrangements(vcpus, limits), default=None,
        key=lambda parts: (
            sum(part == want for part, want
                in zip(parts, wanted, strict=True)),
            parts[0] * parts[1], parts[0], parts[2]))
    if best is None:
        at_fault = next(row.name for row in _LIMITS if row.name in specs)
        raise exception.InvalidInput(
            at_fault, f'{vcpus} vCPUs cannot be arranged within the limits '
            'on sockets, cores and threads')
    return shape.GuestTopology(*best)


def write_topology(topology: shape.GuestTopology,
                   vcpus: int) -> dict[str, str]:
    """Write a topology.

    :raises InvalidInput: if it does not have exactly the guest's vCPUs
    """
    parts = (topology.sockets, topology.cores, topology.threads)
    if min(parts) < 1 or parts[0] * parts[1] * parts[2] != vcpus:
        raise exception.InvalidInput(
            'shape', f'{parts[0]} x {parts[1]} x {parts[2]} sockets, cores '
            f'and threads are not {vcpus} vCPUs')
    return {row.name: str(part)
            for row, part in zip(_WANTED, parts, strict=True)}


def _arrangements(vcpus: int,
                  limits: list[int]) -> Iterator[tuple[int, int, int]]:
    for sockets in _divisors(vcpus, limits[0]):
        for cores in _divisors(vcpus // sockets, limits[1]):
            threads = vcpus // (sockets * cores)
            if threads <= limits[2]:
                yield sockets, cores, threads


def _divisors(number: int, limit: int) -> list[int]:
    return [part for part in range(1, min(number, limit) + 1)
            if number % part == 0]


def _integer(specs: Mapping[str, str],
             row: extra_spec_key.ExtraSpecKey) -> int:
    text = specs.get(row.name, '0')
    try:
        return int(text)
    except ValueError:
        raise exception.InvalidInput(
            row.name, f'{text[:64]!r} is not one of its values '
            f'({row.values})') from None


_THREAD_POLICY = vocabulary.CPU_THREAD_POLICY.name


def decode(vcpus: int, ram_mib: int,
           extra_specs: Mapping[str, str]) -> shape.Shape:
    """Read the shape of a flavor.

    Keys that do not affect the topology are ignored. The shape has no cells
    if Nova gives the flavor no NUMA topology.

    :raises InvalidInput: naming the key, if Nova would refuse the flavor
    """
    if not 1 <= vcpus <= cpuset.MAX_CPU:
        raise exception.InvalidInput(
            'vcpus', f'{vcpus} is not between 1 and {cpuset.MAX_CPU}')
    if ram_mib < 0:
        raise exception.InvalidInput('ram', f'{ram_mib} MiB is negative')
    policy = policies.read(vcpus, extra_specs)
    page_kib, has_page = read_page_size(extra_specs)
    guest_cells = read_cells(vcpus, ram_mib, extra_specs, policy,
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
        devices=read_devices(extra_specs),
        topology=read_topology(vcpus, extra_specs),
        numa_scope=scheduler_keys.numa_scope(extra_specs),
        exclusive_cells=scheduler_keys.exclusive_cells(extra_specs),
        device_set=scheduler_keys.device_set(extra_specs))


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
            dedicated_cpus(guest.cells))
    if guest.emulator_threads is not None:
        specs[vocabulary.EMULATOR_THREADS_POLICY.name] = (
            guest.emulator_threads.value)
    if not are_even(guest.cells):
        specs.update(write_cells(guest.cells))
    page_kib = guest.cells[0].page_kib
    if page_kib is not None:
        specs[scheduler_keys.MEM_PAGE_SIZE.name] = write_page_size(page_kib)
    specs.update(write_devices(guest.devices))
    if guest.topology is not None:
        specs.update(write_topology(guest.topology, guest.cpus))
    if guest.numa_scope is not shape.NUMAScope.HOST:
        specs[scheduler_keys.NUMA_SCOPE.name] = guest.numa_scope.value
    if guest.exclusive_cells:
        specs[scheduler_keys.EXCLUSIVE_CELLS.name] = 'true'
    if guest.device_set is not None:
        scheduler_keys.DEVICE_SET.check(guest.device_set)
        specs[scheduler_keys.DEVICE_SET.name] = guest.device_set
    return specs


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


#: The names of page classes in the extra spec.
_CLASSES = {page_class.name.lower(): page_class
            for page_class in shape.PageClass}

#: oslo.utils ``string_to_bytes`` in its IEC system: units are powers of 1024
#: with or without the i, ``b`` and ``bit`` are bits, a unit must end in one.
_SIZE = re.compile(r'\+?(\d*\.?\d+)(?:([KMGTPEZYRQ])i?)?(b|bit|B)$')
_EXPONENTS = {unit: exponent for exponent, unit
              in enumerate(' KMGTPEZYRQ')}

#: Far below the largest float, even with the largest unit.
_MAX_LENGTH = 200


def read_page_size(specs: Mapping[str, str]
                   ) -> tuple[int | shape.PageClass | None, bool]:
    """Read the page size, and whether the flavor requests one.

    In Nova, a size below 1 KiB gives the guest a NUMA topology whose cells
    have no page size.

    :returns: the size in KiB, a class, or None; and whether the request
        alone gives the guest a NUMA topology
    :raises InvalidInput: if Nova refuses the size, or if memory is locked
        without a page size
    """
    name = scheduler_keys.MEM_PAGE_SIZE.name
    text = specs.get(name, '')
    locked = vocabulary.LOCKED_MEMORY.name
    if extra_spec_key.truth(specs.get(locked, '')) and not text:
        raise exception.InvalidInput(locked, f'needs {name}')
    if not text:
        return None, False
    if text in _CLASSES:
        return _CLASSES[text], True
    size_kib = _kib(text, name)
    return int(size_kib) or None, size_kib > 0


def write_page_size(page_kib: int | shape.PageClass) -> str:
    """Write an explicit size in KiB, or the name of a class."""
    for word, page_class in _CLASSES.items():
        if page_kib == page_class:
            return word
    if page_kib < 1:
        raise exception.InvalidInput(
            scheduler_keys.MEM_PAGE_SIZE.name,
            f'{page_kib} is not a page size')
    return str(int(page_kib))


def _kib(text: str, where: str) -> float:
    if text.isdigit():
        number = extra_spec_key.integer(text)
        if number is not None:
            return number
    match = _SIZE.match(text) if len(text) <= _MAX_LENGTH else None
    if match:
        magnitude, unit, end = match.groups()
        size = float(magnitude) / (1 if end == 'B' else 8)
        size *= 1024.0 ** _EXPONENTS[unit or ' ']
        return math.ceil(size) / 1024
    raise exception.InvalidInput(
        where, f'{text[:64]!r} is not a page size (small, large, any, 2048, '
        '2MB, 1GB)')


_MAX_COUNT = 10 ** 9


def read_devices(specs: Mapping[str, str]) -> tuple[shape.GuestDevices, ...]:
    """Read the requests of ``pci_passthrough:alias``.

    :raises InvalidInput: if the list or the affinity policy is malformed
    """
    policy_row = vocabulary.PCI_NUMA_AFFINITY_POLICY
    word = specs.get(policy_row.name, '')
    if word:
        policy_row.check(word)
    affinity = shape.PCIAffinity(word) if word else None
    text = specs.get(vocabulary.PCI_ALIAS.name, '')
    if not text:
        return ()
    requests = []
    for term in text.split(','):
        alias, count = _term(term)
        if count:
            requests.append(shape.GuestDevices(alias, count, affinity))
    return tuple(requests)


def write_devices(devices: Sequence[shape.GuestDevices]) -> dict[str, str]:
    """Write the requests of devices.

    :raises InvalidInput: for Neutron ports, which a flavor cannot request,
        and for different affinity policies
    """
    if not devices:
        return {}
    terms = []
    for device in devices:
        if device.alias is None or device.physnet is not None:
            raise exception.InvalidInput(
                'shape', 'a flavor cannot request Neutron ports')
        term = f'{device.alias}:{device.count}'
        if _parse(term) != (device.alias, device.count) or device.count < 1:
            raise exception.InvalidInput(
                'shape', f'{term[:64]!r} is not a PCI alias and a count')
        terms.append(term)
    specs = {vocabulary.PCI_ALIAS.name: ','.join(terms)}
    affinities = {device.affinity for device in devices}
    if len(affinities) > 1:
        raise exception.InvalidInput(
            'shape', 'all devices of a flavor must have the same affinity '
            'policy')
    affinity = affinities.pop()
    if affinity is not None:
        specs[vocabulary.PCI_NUMA_AFFINITY_POLICY.name] = affinity.value
    return specs


def _term(text: str) -> tuple[str, int]:
    found = _parse(text)
    if found is None:
        raise exception.InvalidInput(
            vocabulary.PCI_ALIAS.name,
            f'{text[:64]!r} is not of the form alias:count')
    return found


def _parse(text: str) -> tuple[str, int] | None:
    alias, colon, count = text.partition(':')
    alias, number = alias.strip(), extra_spec_key.integer(count)
    if (not alias or ',' in alias or not colon or number is None
            or not 0 <= number <= _MAX_COUNT):
        return None
    return alias, number


def write_resource(resource_class: str, count: int,
                   traits: Iterable[str] = ()) -> dict[str, str]:
    """Write a request for resources of one class on a host with traits."""
    specs = {vocabulary.RESOURCES.at(group='', resource=resource_class):
             str(count)}
    for trait in traits:
        specs[vocabulary.TRAIT.at(group='', trait=trait)] = vocabulary.REQUIRED
    return specs


def read_traits(specs: Mapping[str, str], wish: str) -> frozenset[str]:
    """Return the traits that a flavor requires or forbids.

    :param wish: ``vocabulary.REQUIRED`` or ``vocabulary.FORBIDDEN``
    """
    prefix = vocabulary.TRAIT.at(group='', trait='')
    return frozenset(name.removeprefix(prefix) for name, value
                     in specs.items()
                     if value == wish and name.startswith(prefix))


def drop_traits(specs: Mapping[str, str],
                names: Iterable[str]) -> dict[str, str]:
    """Remove the extra specs that name certain traits."""
    keys = {vocabulary.TRAIT.at(group='', trait=name) for name in names}
    return {name: value for name, value in specs.items() if name not in keys}


def is_device(resource_class: str) -> bool:
    """Whether a class is VGPU or a custom class."""
    return resource_class == 'VGPU' or resource_class.startswith('CUSTOM_')


def read_device_classes(specs: Mapping[str, str]) -> Mapping[str, int]:
    """Count the devices that a flavor requests from Placement, by class."""
    counts = {}
    prefix = vocabulary.RESOURCES.at(group='', resource='')
    for name in specs:
        resource = name.removeprefix(prefix)
        if resource == name:
            continue
        if is_device(resource):
            counts[resource] = read_resource(resource, specs)
    return {name: count for name, count in counts.items() if count}


def read_grouped_classes(specs: Mapping[str, str]) -> Mapping[str, int]:
    """Count the devices that numbered groups request together, by class."""
    counts: dict[str, int] = {}
    for name, text in specs.items():
        group, _, resource = name.partition(':')
        if (vocabulary.RESOURCES.matches(name) and group != 'resources'
                and is_device(resource)):
            amount = extra_spec_key.integer(text) or 0
            counts[resource] = counts.get(resource, 0) + amount
    return {name: count for name, count in counts.items() if count}


def read_resource(resource_class: str, specs: Mapping[str, str]) -> int:
    """Read the amount of a class that one provider must have.

    Numbered groups do not count, because each may use another provider.
    """
    name = vocabulary.RESOURCES.at(group='', resource=resource_class)
    return extra_spec_key.integer(specs.get(name, '0')) or 0
