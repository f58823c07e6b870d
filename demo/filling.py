# SPDX-License-Identifier: Apache-2.0

"""Fill hosts with one flavor, and with a mixture of flavors."""

from collections.abc import Callable
from typing import Any

from demo import command
from demo import drawing
from demo import fleet
from demo import session as sessions
from demo import workload


def each_flavor(session: sessions.Session,
                say: Callable[[str], None]) -> dict[str, Any]:
    """Fill one host of each kind with each flavor alone.

    :returns: ``steps`` and ``again``, what ``flavor apply`` did the first
        and the second time; ``rows``, one for each flavor and host; and
        ``drawings`` of the hosts, filled with a mixture of flavors
    """
    rows = []
    drawings = []
    plan = session.plans[0]
    for host, alike in fleet.kinds(plan.hosts).items():
        for flavor in session.flavors.values():
            if flavor['per_host'][host]:
                rows.append({**_fill(session, flavor, host), 'hosts': alike})
                say(f'{host}: {rows[-1]["booted"]} of {flavor["name"]}')
        drawings.append(_mixture(session, host))
        say(f'{host}: filled with all sizes')
    return {'rows': rows, 'drawings': drawings, 'steps': session.steps[0],
            'document': session.documents[0],
            'again': command.apply(plan)}


def _fill(session: sessions.Session, flavor: dict[str, Any],
          host: str) -> dict[str, Any]:
    """Boot as many guests as planned, and one more."""
    name = flavor['name']
    wanted = flavor['per_host'][host]
    if session.ports(name):
        servers = [session.ask(name, f'{host}-{number}', host)
                   for number in range(wanted)]
    else:
        servers = session.boot_many(session.ids[name], wanted,
                                    sessions.ENDS, host=host)
    booted = [each for each in servers if each['status'] == 'ACTIVE']
    ledger = session.ledger(host)
    faults = list(ledger.faults())
    left = len(ledger.dedicated) - len(ledger.owners())
    session.reasons.take()
    one_more = session.ask(name, 'one-more', host)
    row = {
        'flavor': name, 'host': host, 'planned': wanted,
        'booted': len(booted), 'left_pcpus': left,
        'planned_left': flavor['unused_pcpus'][host],
        'one_more': one_more['status'], 'faults': faults,
        'why': why(session, flavor, host)}
    _clear(session, [*servers, one_more])
    return row


def why(session: sessions.Session, flavor: dict[str, Any], host: str) -> str:
    """Return why the filter or Placement refused the last request."""
    for line in session.reasons.take():
        if line.startswith(f'{host}, '):
            return line.partition(' refused: ')[2]
    ledger = session.ledger(host)
    left = len(ledger.dedicated) - len(ledger.owners())
    return (f'Placement has {left} PCPUs left of the {flavor["vcpus"]}'
            ' needed')


def _mixture(session: sessions.Session, host: str) -> dict[str, Any]:
    """Fill a host with one guest of each size in turn, and draw it.

    A size is requested while the host has enough free CPUs in total.
    """
    guests: dict[str, str] = {}
    refused: dict[str, str] = {}
    servers = []
    progress = True
    while progress:
        progress = False
        for flavor in sorted(session.flavors.values(),
                             key=lambda each: each['vcpus']):
            ledger = session.ledger(host)
            left = len(ledger.dedicated) - len(ledger.owners())
            if not flavor['per_host'][host] or flavor['vcpus'] > left:
                continue
            session.reasons.take()
            server = session.ask(flavor['name'], workload.LABELS[len(guests)],
                                 host)
            servers.append(server)
            if server['status'] == 'ACTIVE':
                guests[server['name']] = flavor['name']
                progress = True
            else:
                refused[flavor['name']] = why(session, flavor, host)
    ledger = session.ledger(host)
    drawn = {'host': host, 'guests': guests, 'refused': refused,
             'text': drawing.host(ledger),
             'faults': list(ledger.faults())}
    _clear(session, servers)
    return drawn


def _clear(session: sessions.Session, servers: list[dict[str, Any]]) -> None:
    for server in servers:
        session.api.delete_server(server['id'])
    for server in servers:
        session.wait_until_gone(server)
