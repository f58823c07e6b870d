# SPDX-License-Identifier: Apache-2.0

"""Draw hosts and their guests, with one character for each core.

A letter is a guest, ``.`` is free, ``-`` is not for guests, and ``/`` is a
core whose SMT siblings have different owners.
"""

from hpcvirt.model import host as host_model
from testing import ledger as ledgers

FREE = '.'
HOST = '-'
SPLIT = '/'


def host(ledger: ledgers.Ledger) -> list[str]:
    """Draw a host cell by cell: cores, pages, virtual functions."""
    machine = ledger.machine
    free = len(ledger.dedicated) - len(ledger.owners())
    cells = [cell for cell in machine.host.cells if cell.cpus]
    head = (f'{machine.name}: {len(machine.host.sockets)} sockets,'
            f' {len(cells)} cells, {len(ledger.dedicated)} PCPUs, {free} free')
    width = max(len(cell.siblings) for cell in cells)
    return [head, *(
        f'  cell {cell.id}  socket {cell.socket}'
        f'  |{cores(ledger, cell):{width}}|  {_memory(ledger, cell)}'
        f'{_functions(ledger, cell)}'
        for cell in cells)]


def cores(ledger: ledgers.Ledger, cell: host_model.Cell) -> str:
    """Draw one character for each core of a cell."""
    return ''.join(_core(ledger, core) for core in cell.siblings)


def _core(ledger: ledgers.Ledger, core: frozenset[int]) -> str:
    owners = ledger.owners()
    mine = core & ledger.dedicated
    if not mine:
        return HOST
    found = {owners.get(cpu) for cpu in mine}
    if found == {None}:
        return FREE
    if len(found) > 1:
        return SPLIT
    names = found.pop() or ()
    return names[0][:1] if len(names) == 1 else SPLIT


def _memory(ledger: ledgers.Ledger, cell: host_model.Cell) -> str:
    """Describe the huge pages of a host cell: in use, and for guests."""
    used = ledger.pages_used()
    given = ledger.pages_given()
    return ', '.join(
        f'{used.get((cell.id, pool.size_kib), 0):5} of'
        f' {given[cell.id, pool.size_kib]} pages of'
        f' {_size(pool.size_kib)}'
        for pool in cell.pages[1:] if pool.total)


def _size(size_kib: int) -> str:
    units = {1024 * 1024: 'GiB', 1024: 'MiB', 1: 'KiB'}
    unit = next(each for each in units if not size_kib % each)
    return f'{size_kib // unit} {units[unit]}'


def _functions(ledger: ledgers.Ledger, cell: host_model.Cell) -> str:
    """Draw the virtual functions on a host cell, one character each."""
    if not ledger.machine.settings.device_spec:
        return ''
    owners = ledger.device_owners()
    found = [owners.get(each.address, (FREE,))[0][:1]
             for each in ledger.machine.functions()
             if each.physical and each.device.cell == cell.id]
    return f'  VFs {"".join(found)}' if found else ''
