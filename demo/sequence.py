# SPDX-License-Identifier: Apache-2.0

"""Place a sequence of requests, and measure the result."""

import collections
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from demo import drawing
from demo import session as sessions
from demo import workload
from hpcvirt.topology import domain
from testing import ledger as ledgers


def place(session: sessions.Session, seed: int,
          say: Callable[[str], None]) -> dict[str, Any]:
    """Start and end small guests, then request large ones.

    Each large guest is deleted before the next one is requested.

    :returns: ``answers``, one for each request; ``state``, the fleet before
        the large guests; ``faults``, all faults in the ledgers
    """
    events = workload.events(demands(session), capacity(session), seed)
    running: dict[str, dict[str, Any]] = {}
    answers = []
    faults: set[str] = set()
    state: dict[str, Any] = {}
    for number, event in enumerate(events, 1):
        if event.late and not state:
            state = measure(session, running)
        if event.flavor is None:
            server = running.pop(event.label, None)
            if server is not None:
                session.delete(server)
        else:
            answer, server = _ask(session, event.label, event.flavor)
            answers.append({**answer, 'late': event.late})
            faults.update(session.faults())
            if event.late or not answer['host']:
                session.delete(server)
            else:
                running[event.label] = server
        if number % 20 == 0:
            say(f'{number} of {len(events)} events')
    return {'answers': answers, 'state': state, 'faults': sorted(faults)}


def _ask(session: sessions.Session, label: str, flavor: str,
         ) -> tuple[dict[str, Any], dict[str, Any]]:
    session.reasons.take()
    most_free = max(len(book.dedicated) - len(book.owners())
                    for name, book in session.ledgers().items()
                    if session.flavors[flavor]['per_host'].get(name))
    server = session.ask(flavor, label)
    active = server['status'] == 'ACTIVE'
    host = server['OS-EXT-SRV-ATTR:host'] if active else None
    cells = next((guest.host_cells for guest in session.ledger(host).guests
                  if guest.uuid == server['id']), ()) if host else ()
    return {
        'label': label, 'flavor': flavor,
        'vcpus': session.flavors[flavor]['vcpus'], 'host': host,
        'most_free': most_free,
        'cells': list(cells),
        'why': [] if active else session.reasons.take(),
    }, server


def demands(session: sessions.Session) -> list[workload.Demand]:
    """Return the demand for each flavor of the plans."""
    return [workload.Demand(flavor['name'], flavor['vcpus'],
                            max(flavor['per_host'].values()))
            for flavor in session.flavors.values()]


def capacity(session: sessions.Session) -> int:
    """Return the number of dedicated CPUs in the fleet."""
    return sum(len(each.dedicated) for each in session.ledgers().values())


def measure(session: sessions.Session,
            running: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Describe the state of the fleet."""
    books = session.ledgers()
    split, far, devices = [], [], 0
    for book in books.values():
        for guest in book.guests:
            if (_wants_one_socket(session, guest)
                    and len(_sockets(book, guest)) > 1):
                split.append(guest.name)
            if any(book.device_cell(address) not in guest.host_cells
                   for address in guest.devices):
                far.append(guest.name)
            devices += len(guest.devices)
    return {
        'guests': len(running),
        'hosts': {name: _cells(book) for name, book in books.items()},
        **_room(list(books.values())),
        'split': split,
        'far': far,
        'devices': devices,
    }


def _cells(book: ledgers.Ledger) -> dict[str, Any]:
    return {str(cell.id): drawing.cores(book, cell)
            for cell in book.machine.host.cells if cell.cpus}


def _room(books: Sequence[ledgers.Ledger]) -> dict[str, int]:
    """Count the free CPUs, and the unused host cells and hosts."""
    room: dict[str, int] = collections.Counter()
    for book in books:
        whole = True
        for cell in book.machine.host.cells:
            given = len(cell.cpus & book.dedicated)
            free = len(book.free_pcpus(cell.id))
            room['free_pcpus'] += free
            if free == given:
                room['whole_cells'] += 1
            else:
                whole = False
                room['unused_pcpus'] += free
        room['whole_hosts'] += whole
    return {name: room[name] for name in (
        'free_pcpus', 'unused_pcpus', 'whole_cells', 'whole_hosts')}


def _wants_one_socket(session: sessions.Session, guest: domain.Domain) -> bool:
    flavor = session.flavors[session.flavor_of[guest.uuid]]
    scope = flavor['extra_specs'].get('hpcvirt:numa_scope')
    return bool(scope == 'socket')


def _sockets(book: ledgers.Ledger, guest: domain.Domain) -> set[int | None]:
    cells = book.machine.host.by_id
    return {cells[cell].socket for cell in guest.host_cells
            if cell is not None}
