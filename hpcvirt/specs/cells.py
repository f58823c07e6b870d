# SPDX-License-Identifier: Apache-2.0

"""Read and write the NUMA cells of a guest."""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import shape
from hpcvirt.specs import cpu_mask
from hpcvirt.specs import key
from hpcvirt.specs import policies
from hpcvirt.specs import vocabulary

#: ``ImageMetaProps.NUMA_NODES_MAX``: Nova reads no more cells.
MAX_CELLS = 128


def read(vcpus: int, ram_mib: int, specs: Mapping[str, str],
         policy: policies.Policies, page_kib: int | shape.PageClass | None,
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
            f'({vocabulary.NUMA_CPUS.name}) and the memory of '
            f'{len(memory_mib)} ({vocabulary.NUMA_MEM.name}); give both for '
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


def write(cells: Sequence[shape.GuestCell]) -> dict[str, str]:
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
    return [cpu_mask.read_list(text, name)
            for name, text in _numbered(specs, vocabulary.NUMA_CPUS)]


def _memory(specs: Mapping[str, str]) -> list[int]:
    sizes = []
    for name, text in _numbered(specs, vocabulary.NUMA_MEM):
        size = key.integer(text)
        if size is None or size < 0:
            raise exception.InvalidInput(
                name, f'{text[:64]!r} is not a size in MiB')
        sizes.append(size)
    return sizes


def _numbered(specs: Mapping[str, str],
              row: key.ExtraSpecKey) -> list[tuple[str, str]]:
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
            vocabulary.NUMA_CPUS.name,
            f'vCPUs {cpuset.render(left)} are in no guest cell')
    if sum(memory_mib) != ram_mib:
        raise exception.InvalidInput(
            vocabulary.NUMA_MEM.name,
            f'the cells have {sum(memory_mib)} MiB, the flavor {ram_mib}')


def _has_pmem(specs: Mapping[str, str]) -> bool:
    labels = specs.get(vocabulary.PMEM.name, '')
    return any(label.strip() for label in labels.split(','))
