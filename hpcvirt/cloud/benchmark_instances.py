# SPDX-License-Identifier: Apache-2.0

"""Boot instances for benchmarks on chosen hosts, and remove all of them.

The host is forced by the availability zone ``ZONE:HOST``, which only
administrators may name [Nova-Zones]. Nova then asks Placement and the claim of
the host, but no filters, so that the instances also start on a host in
quarantine.

All created resources are marked with their owner, which is the host under
acceptance or the case of a study: instances by their metadata; the key pair,
flavors and ports by their names. They are therefore found again and removed
after any interruption.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self

from keystoneauth1 import adapter
from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt import words
from hpcvirt.cloud import flavors as cloud_flavors
from hpcvirt.cloud import session
from hpcvirt.flavors import diff
from hpcvirt.model import flavor as flavor_model

#: Seconds to wait for instances to start, and to be deleted.
BOOT_S = 900.0
DELETION_S = 300.0
PAUSE_S = 1.0
_ALL = -1
_PORTS = '/v2.0/ports'


class InstancesNotStarted(exception.HpcvirtError):
    """Instances that Nova could not start."""


@dataclasses.dataclass(frozen=True)
class BenchmarkInstances:
    """The instances of one owner.

    :ivar nova: a client of :func:`hpcvirt.cloud.session.compute`
    :ivar mark: the metadata key of the instances, with which all names begin
    :ivar owner: the metadata value of the instances
    :ivar image: the id of the image
    :ivar networks: the ids of the networks, which the instances use in turn
    :ivar vnic_type: the VNIC type of ports; empty if Nova creates the ports
    :ivar user_data: the user data for cloud-init; empty for none
    """

    nova: Any
    mark: str
    owner: str
    image: str = ''
    networks: tuple[str, ...] = ()
    vnic_type: str = ''
    user_data: str = ''
    pause_s: float = PAUSE_S

    @property
    def key_name(self) -> str:
        """The name of the key pair and of ports."""
        return f'{self.mark}-{self.owner}'

    @property
    def _prefix(self) -> str:
        # No name of a host or case has a colon: "n1" does not own "n1-2".
        return f'{self.key_name}:'

    def check_host(self, name: str) -> None:
        """Check that instances can be started on a compute host.

        :raises InvalidInput: if the host does not exist, is down or disabled,
            or has other instances
        :raises Unreachable: if the cloud does not answer
        """
        service = self._find_service(name)
        where = f'host {name}'
        if service.state != 'up':
            raise exception.InvalidInput(
                where, f'its nova-compute is {service.state}')
        if service.status != 'enabled':
            raise exception.InvalidInput(
                where, 'its nova-compute is disabled; quarantine keeps work '
                'away from it as well')
        self.check_free(name)

    def _find_service(self, host: str) -> Any:
        with session.one_line_errors():
            found = self.nova.services.list(host=host, binary='nova-compute')
        if not found:
            raise exception.InvalidInput(
                f'host {host}', 'the cloud has no compute host of this name')
        return found[0]

    def check_free(self, host: str) -> None:
        """Check that a host has only instances of the owner.

        :raises InvalidInput: if it has others
        """
        with session.one_line_errors():
            others = [server.id for server in self.nova.servers.list(
                search_opts={'all_tenants': 1, 'host': host}, limit=_ALL)
                if server.metadata.get(self.mark) != self.owner]
        if others:
            raise exception.InvalidInput(
                f'host {host}', 'has '
                f'{words.count_noun(len(others), "instance")} of others, such '
                f'as {others[0]}; benchmarks need the whole host')

    def use(self, image: str, networks: Iterable[str]) -> Self:
        """Look up an image, by its name or id, and networks by their names.

        :raises Unreachable: if there is none, or several
        """
        return dataclasses.replace(
            self, image=self.find_image(image),
            networks=tuple(map(self.find_network, networks)))

    def find_image(self, name: str) -> str:
        with session.one_line_errors():
            return str(self.nova.glance.find_image(name).id)

    def find_network(self, name: str) -> str:
        with session.one_line_errors():
            return str(self.nova.neutron.find_network(name).id)

    def own(self) -> tuple[Any, ...]:
        """List the instances of the owner on all hosts."""
        with session.one_line_errors():
            return tuple(sorted((
                server for server in self.nova.servers.list(
                    search_opts={'all_tenants': 1, 'name': f'^{self.mark}-'},
                    limit=_ALL)
                if server.metadata.get(self.mark) == self.owner),
                key=lambda server: server.name))

    def left(self) -> tuple[str, ...]:
        """Name all resources of the owner that still exist."""
        with session.one_line_errors():
            return (*(f'server {server.id}' for server in self.own()),
                    *(f'key pair {key.name}' for key in self._keys()),
                    *(f'flavor {each.flavor.name}'
                      for each in self._flavors()))

    def boot(self, label: str, flavor_id: str, hosts: Sequence[str],
             public_key: str) -> tuple[str, ...]:
        """Start instances, or find those that were started before.

        Other instances of the owner are deleted.

        :param label: a part of their names
        :param hosts: the host of each instance
        :returns: the ids, in the order of the hosts
        :raises InstancesNotStarted: if Nova could not start all of them
        :raises Unreachable: if the cloud does not answer
        """
        wanted = {f'{self.mark}-{label}-{number}': host
                  for number, host in enumerate(hosts)}
        usable = {server.name for server in self.own()
                  if server.status in ('ACTIVE', 'BUILD')
                  and server.name in wanted}
        self._delete([server for server in self.own()
                      if server.name not in usable])
        zones = {host: self._find_service(host).zone for host in set(hosts)}
        with session.one_line_errors():
            if not self._keys():
                self.nova.keypairs.create(self.key_name, public_key)
            for number, (name, host) in enumerate(wanted.items()):
                if name not in usable:
                    self._create(name, flavor_id, f'{zones[host]}:{host}',
                                 self.networks[number % len(self.networks)])
        found = {server.name: server for server in waiting.poll(
            self.own, lambda servers: all(
                server.status != 'BUILD' for server in servers),
            BOOT_S, self.pause_s)}
        wrong = [server for server in found.values()
                 if server.status != 'ACTIVE']
        if wrong or len(found) != len(wanted):
            raise InstancesNotStarted(
                f'Nova started {len(found) - len(wrong)} of {len(wanted)} '
                f'instances' + (
                    f': {wrong[0].name} is {wrong[0].status}, '
                    f'{_fault(wrong[0])}' if wrong else ''))
        return tuple(str(found[name].id) for name in wanted)

    def add_flavor(self, flavor: flavor_model.Flavor,
                   like: diff.Existing | None = None) -> str:
        """Create a flavor of the owner, unless it exists.

        :param flavor: the flavor; the owner becomes part of its name
        :param like: a flavor whose other properties are copied
        :returns: its id
        :raises Unreachable: if it cannot be created
        """
        name = f'{self._prefix}{flavor.name}'
        for _ in range(2):
            for each in self._flavors():
                if each.flavor.name != name:
                    continue
                if dict(each.flavor.extra_specs) == dict(flavor.extra_specs):
                    return each.id
                # A process that was killed has created it in part.
                with session.one_line_errors():
                    self.nova.flavors.delete(each.id)
            cloud_flavors.create(self.nova, dataclasses.replace(
                flavor, name=name, projects=()), like)
        raise exception.Unreachable(f'the cloud does not list flavor {name}')

    def stop(self) -> None:
        """Delete the instances, and wait until they no longer exist.

        :raises Unreachable: if one still exists after the time limit
        """
        self._delete(self.own())

    def clear(self) -> None:
        """Remove all resources of the owner.

        :raises Unreachable: if one cannot be removed
        """
        self.stop()
        with session.one_line_errors():
            for each in self._flavors():
                self.nova.flavors.delete(each.id)
            for key in self._keys():
                self.nova.keypairs.delete(key.name)
            if self.vnic_type:
                api = self._network_api()
                found = api.get(_PORTS, params={'name': self.key_name})
                for port in found.json()['ports']:
                    api.delete(f'{_PORTS}/{port["id"]}')

    def _create(self, name: str, flavor_id: str, where: str,
                network: str) -> None:
        nic = {'net-id': network}
        if self.vnic_type:
            answer = self._network_api().post(_PORTS, json={'port': {
                'name': self.key_name, 'network_id': network,
                'binding:vnic_type': self.vnic_type}})
            nic = {'port-id': str(answer.json()['port']['id'])}
        more: Mapping[str, str] = (
            {'userdata': self.user_data} if self.user_data else {})
        self.nova.servers.create(
            name, self.image, flavor_id, key_name=self.key_name,
            availability_zone=where, nics=[nic], config_drive=True,
            meta={self.mark: self.owner}, **more)

    def _delete(self, servers: Collection[Any]) -> None:
        ids = {server.id for server in servers}
        if not ids:
            return
        with session.one_line_errors():
            for server_id in ids:
                try:
                    self.nova.servers.delete(server_id)
                except nova_exceptions.NotFound:
                    continue
        left = waiting.poll(
            lambda: ids & {server.id for server in self.own()},
            lambda found: not found, DELETION_S, self.pause_s)
        if left:
            raise exception.Unreachable(
                f'server {", ".join(sorted(left))} is not deleted after '
                f'{DELETION_S:.0f} s')

    def _network_api(self) -> adapter.Adapter:
        client = self.nova.client
        return adapter.Adapter(
            client.session, service_type='network',
            region_name=client.region_name, interface=client.interface)

    def _keys(self) -> list[Any]:
        return [key for key in self.nova.keypairs.list()
                if key.name == self.key_name]

    def _flavors(self) -> Iterator[diff.Existing]:
        for each in cloud_flavors.read(self.nova):
            if each.flavor.name.startswith(self._prefix):
                yield each


def _fault(server: Any) -> str:
    fault = getattr(server, 'fault', None) or {}
    return str(fault.get('message') or 'without a message')
