# SPDX-License-Identifier: Apache-2.0

"""Look up the instances to be measured, with host and CPUs, and reboot them.

Nova shows the name of the host and the pins only to administrators. For other
users they are None, and the user must name the CPUs of the native run.
"""

import dataclasses
import itertools
from typing import Any

from keystoneauth1 import exceptions as auth_exceptions
from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.cloud import session
from hpcvirt.instance_topology import description
from hpcvirt.specs import codec

#: Seconds to wait for a hard reboot.
REBOOT_S = 300.0
PAUSE_S = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """An instance.

    :ivar address: its floating address; its first address if it has none
    :ivar inner: its first fixed address, which other instances use
    :ivar host: the compute host; None if Nova does not show it to the user
    :ivar flavor: the name of its flavor
    :ivar host_cpus: the PCPUs to which its vCPUs are pinned; empty if it is
        not pinned; None if Nova does not show them to the user
    :ivar page_kib: the page size of its memory; None for small pages
    """

    id: str
    name: str
    address: str
    inner: str
    host: str | None
    flavor: str
    host_cpus: frozenset[int] | None
    page_kib: int | None


def find(nova: Any, name: str) -> Server:
    """Look up an instance by its name or id.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :raises InvalidInput: if there is none, or more than one
    :raises Unreachable: if the cloud does not answer
    """
    with session.one_line_errors():
        found = look_up(nova, name)
        if found.status != 'ACTIVE':
            raise exception.InvalidInput(
                f'server {name}', f'is {found.status}, not ACTIVE')
        cpus, pages = _topology(nova, found)
        address, inner = _addresses(found, name)
        return Server(
            id=found.id, name=found.name, address=address, inner=inner,
            host=get_host(found),
            flavor=found.flavor['original_name'], host_cpus=cpus,
            page_kib=pages)


def console(nova: Any, server_id: str) -> str:
    """Read the console log of an instance; empty if it is not available."""
    try:
        return str(nova.servers.get_console_output(server_id) or '')
    except (auth_exceptions.ClientException, nova_exceptions.ClientException):
        return ''


@dataclasses.dataclass(frozen=True)
class ServerRebooter:
    """Reboots one instance, as a new process of the hypervisor.

    :ivar nova: a client that no other thread uses; several instances may
        reboot at once
    """

    nova: Any
    server_id: str
    patience_s: float = REBOOT_S
    pause_s: float = PAUSE_S

    def reboot(self) -> None:
        """Hard-reboot the instance and wait until it is active again.

        :raises Unreachable: if Nova refuses, or does not finish in time
        """
        with session.one_line_errors():
            self.nova.servers.reboot(self.server_id, 'HARD')
            server = waiting.poll(
                lambda: self.nova.servers.get(self.server_id),
                lambda server: server.status == 'ERROR' or _is_ready(server),
                self.patience_s, self.pause_s)
        if not _is_ready(server):
            raise exception.Unreachable(
                f'server {server.name}: is {server.status} after a hard '
                f'reboot, task {get_task(server)}')


def _is_ready(server: Any) -> bool:
    return server.status == 'ACTIVE' and get_task(server) is None


def get_host(server: Any) -> str | None:
    """Return the host of a server; None if Nova does not show it."""
    return getattr(server, 'OS-EXT-SRV-ATTR:host', None)


def get_node(server: Any) -> str | None:
    """Return the compute node of a server; None if Nova does not show it."""
    return getattr(server, 'OS-EXT-SRV-ATTR:hypervisor_hostname', None)


def read_cells(nova: Any, server: Any) -> list[description.InstanceCell]:
    """Read the cells of a server; one of all vCPUs if it has no topology.

    Nova shows host cells only to administrators.

    :param server: a server of novaclient
    """
    with session.one_line_errors():
        nodes = nova.servers.topology(server)['nodes'] or [
            {'vcpu_set': range(server.flavor['vcpus'])}]
    return [description.InstanceCell(
        node.get('host_node'), tuple(map(frozenset, node.get('siblings') or [
            (cpu,) for cpu in node['vcpu_set']]))) for node in nodes]


def get_task(server: Any) -> Any:
    """Return the task of a server of novaclient; None if it has none."""
    return getattr(server, 'OS-EXT-STS:task_state', None)


def look_up(nova: Any, name: str) -> Any:
    """Look up a server of novaclient by its name or id.

    :raises InvalidInput: if there is none, or more than one
    """
    named = nova.servers.list(search_opts={'name': f'^{name}$'})
    found = [server for server in named if server.name == name]
    if not found:
        try:
            return nova.servers.get(name)
        except nova_exceptions.NotFound as exc:
            raise exception.InvalidInput(
                f'server {name}', 'the cloud has no such server') from exc
    if len(found) > 1:
        ids = ', '.join(server.id for server in found)
        raise exception.InvalidInput(
            f'server {name}', f'names several servers: {ids}')
    return found[0]


def _addresses(server: Any, name: str) -> tuple[str, str]:
    entries = list(itertools.chain.from_iterable(server.addresses.values()))
    if not entries:
        raise exception.InvalidInput(f'server {name}', 'has no address')
    # Floating addresses go last; otherwise the order is kept.
    entries.sort(key=lambda entry: entry.get('OS-EXT-IPS:type') == 'floating')
    floating = entries[-1].get('OS-EXT-IPS:type') == 'floating'
    return str(entries[-1 if floating else 0]['addr']), str(entries[0]['addr'])


def _topology(nova: Any,
              server: Any) -> tuple[frozenset[int] | None, int | None]:
    try:
        nodes = nova.servers.topology(server)['nodes']
    except (nova_exceptions.Forbidden, nova_exceptions.NotFound):
        nodes = []
    pins = [node.get('cpu_pinning') for node in nodes]
    cpus = None
    # Users who are not administrators see only the guest cells.
    if any('host_node' in node for node in nodes):
        cpus = frozenset(itertools.chain.from_iterable(
            pin.values() for pin in pins if pin))
    sizes = {node.get('pagesize_kb') for node in nodes} - {None}
    if sizes:
        return cpus, min(sizes)
    shape = codec.decode(server.flavor['vcpus'], server.flavor['ram'],
                         server.flavor['extra_specs'])
    requested = [cell.page_kib for cell in shape.cells
                 if cell.page_kib is not None]
    return cpus, min(requested, default=None)
