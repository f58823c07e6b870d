# SPDX-License-Identifier: Apache-2.0

"""Read libvirt's capabilities XML: the output of ``virsh capabilities``.

The XML has no PCI devices (libvirt reports them as node devices), and only
caches of level 3 and above: a machine without a third level gets one
last-level cache per cell. libvirt omits ``<memory>`` for a cell without
memory. On a machine without NUMA it reports one cell without ``<pages>``,
whose siblings may include offline CPUs (libvirt, src/conf/capabilities.c).
"""

from collections.abc import Iterable
from collections.abc import Mapping
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import document

#: POWER and SPARC have 8. The limit stops a hostile file with millions.
_MAX_SIBLINGS = 64


def _scale_units() -> dict[str, int]:
    """Return the bytes per unit, as libvirt scales them (virScaleInteger)."""
    units = {'b': 1, 'byte': 1, 'bytes': 1}
    for power, prefix in enumerate('kmgtpe', start=1):
        units[prefix] = 1024 ** power
        units[f'{prefix}ib'] = 1024 ** power
        units[f'{prefix}b'] = 1000 ** power
    return units


_UNITS = _scale_units()


def read(root: ElementTree.Element, where: str, name: str) -> host_model.Host:
    """Read a machine.

    :param root: the element ``<capabilities>``
    :param where: the file's name, for errors
    :param name: the name of the host, which is not in the XML
    :raises InvalidInput: if the XML is not a complete description
    """
    if root.tag != 'capabilities':
        raise exception.InvalidInput(
            where, f'the root element is <{root.tag[:40]}>, '
            'not <capabilities>')
    elements = root.findall('host/topology/cells/cell')
    if not elements:
        raise exception.InvalidInput(
            where, 'has no host topology (<host><topology><cells><cell>)')
    siblings = _siblings(elements, where)
    known = frozenset().union(siblings, *siblings.values())
    # For cells without <pages>.
    small_kib = assemble.small_page_kib(
        kib(pages, 'size', where) for pages in root.iterfind('host/cpu/pages'))
    cells = [_cell(element, where, siblings, small_kib)
             for element in elements]
    online = frozenset(siblings)
    return assemble.host(
        where, name, cells,
        {cpu: group & online for cpu, group in siblings.items()},
        _caches(root.findall('host/cache/bank'), where, known, online),
        _distances(elements, where), devices=(),
        address_bits=_address_bits(root, where))


def _address_bits(root: ElementTree.Element, where: str) -> int | None:
    """Read the width of physical addresses, which libvirt 8.7 reports."""
    element = root.find('host/cpu/maxphysaddr')
    if element is None or 'bits' not in element.attrib:
        return None
    return number(element, 'bits', where, 64)


def number(element: ElementTree.Element, attribute: str, where: str,
           most: int, least: int = 0) -> int:
    """Read a whole number from an attribute."""
    return document.whole(
        element.get(attribute), where,
        f'the attribute {attribute} of <{element.tag}>', most, least)


def _cell_where(element: ElementTree.Element, where: str) -> str:
    cell = number(element, 'id', f'{where}: a cell', assemble.MAX_CELL)
    return f'{where}: cell {cell}'


def _siblings(cells: Iterable[ElementTree.Element], where: str,
              ) -> dict[int, frozenset[int]]:
    """Read the siblings of every online CPU.

    libvirt writes only the number of an offline CPU, which is left out.
    """
    siblings: dict[int, frozenset[int]] = {}
    for cell in cells:
        here = _cell_where(cell, where)
        for cpu in cell.iterfind('cpus/cpu'):
            cpu_id = number(cpu, 'id', here, cpuset.MAX_CPU)
            text = cpu.get('siblings')
            if text is None:
                continue
            if cpu_id in siblings:
                raise exception.InvalidInput(
                    here, f'CPU {cpu_id} occurs twice')
            there = f'{here}: siblings of CPU {cpu_id}'
            core = cpuset.parse(text, there)
            if len(core) > _MAX_SIBLINGS:
                raise exception.InvalidInput(
                    there, f'no core has {len(core)} threads')
            siblings[cpu_id] = core
    return siblings


def _cell(element: ElementTree.Element, where: str,
          online: Mapping[int, object], small_kib: int,
          ) -> assemble.CellFacts:
    here = _cell_where(element, where)
    sockets = {}
    for cpu in element.iterfind('cpus/cpu'):
        cpu_id = number(cpu, 'id', here, cpuset.MAX_CPU)
        if cpu_id in online:
            # -1 means that the firmware does not number the sockets.
            sockets[cpu_id] = max(
                0, number(cpu, 'socket_id', here, 2 ** 31 - 1, least=-1))
    memory = element.find('memory')
    memory_kib = 0 if memory is None else kib(memory, None, here)
    pools = [host_model.PagePool(
                 kib(pages, 'size', here),
                 document.whole(pages.text, here, 'the content of <pages>',
                                assemble.MAX_MEMORY_KIB))
             for pages in element.iterfind('pages')]
    return assemble.CellFacts(
        id=number(element, 'id', here, assemble.MAX_CELL),
        sockets=frozenset(sockets.values()),
        cpus=frozenset(sockets),
        memory_kib=memory_kib,
        pages=assemble.add_small_pages(memory_kib, pools, small_kib))


def kib(element: ElementTree.Element, attribute: str | None, where: str,
        ) -> int:
    """Read a size with a unit, from an attribute or the content, in KiB."""
    unit = element.get('unit', 'KiB')
    scale = _UNITS.get(unit.lower())
    if scale is None:
        raise exception.InvalidInput(
            where, f'{unit[:40]!r} is not a unit of memory')
    text = element.text if attribute is None else element.get(attribute)
    what = (f'the content of <{element.tag}>' if attribute is None
            else f'the attribute {attribute} of <{element.tag}>')
    return document.whole(text, where, what, 2 ** 64) * scale // 1024


def _caches(banks: Iterable[ElementTree.Element], where: str,
            known: frozenset[int], online: frozenset[int],
            ) -> dict[int, frozenset[int]]:
    """Find the last-level cache of each CPU that a bank names."""
    caches: dict[int, tuple[int, frozenset[int]]] = {}
    for bank in banks:
        if bank.get('type') == 'code':
            continue
        here = f'{where}: cache bank {bank.get("id", "?")[:12]}'
        level = number(bank, 'level', here, 9, least=1)
        cpus = cpuset.parse(bank.get('cpus', ''), f'{here}: cpus')
        if not cpus <= known:
            raise exception.InvalidInput(
                here, f'names CPU {min(cpus - known)}, which does not exist')
        for cpu in sorted(cpus & online):
            found, _ = caches.get(cpu, (0, cpus))
            if found == level:
                raise exception.InvalidInput(
                    here, f'names CPU {cpu}, which another bank of level '
                    f'{level} also names')
            if found < level:
                caches[cpu] = level, cpus & online
    return {cpu: group for cpu, (_, group) in caches.items()}


def _distances(cells: Iterable[ElementTree.Element], where: str,
               ) -> dict[tuple[int, int], int]:
    distances = {}
    for cell in cells:
        here = _cell_where(cell, where)
        row = number(cell, 'id', here, assemble.MAX_CELL)
        for sibling in cell.iterfind('distances/sibling'):
            column = number(sibling, 'id', here, assemble.MAX_CELL)
            if (row, column) in distances:
                raise exception.InvalidInput(
                    here, f'has two distances to cell {column}')
            distances[row, column] = number(
                sibling, 'value', here, assemble.MAX_DISTANCE)
    return distances
