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

"""Boot the instances of an acceptance on one host, and remove all of them.

The host is forced: ``ZONE:HOST`` as the availability zone, which only
administrators may name [Nova-Zones]. Nova then asks Placement and the claim of
the host, but none of its filters, so that the instances also start on a host
that takes no others because it is in quarantine.

Whatever is created is marked with the host: instances by their metadata, the
key pair and the flavors by their names. So it is found again, and removed,
after an interruption of any kind. Ports are those that Nova creates and
deletes with the instances.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterator
from typing import Any

from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.cloud import flavors as cloud_flavors
from hpcvirt.cloud import session
from hpcvirt.flavors import diff
from hpcvirt.specs import resources

#: The metadata key of the instances, and what all names begin with.
MARK = 'hpcvirt-accept'
#: Seconds to wait for instances to start, and to be deleted.
BOOT_S = 900.0
DELETION_S = 300.0
PAUSE_S = 1.0
_ALL = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A compute host, as its service has it.

    :ivar obstacle: why nothing can be started on it, empty if it can
    """

    name: str
    zone: str
    obstacle: str = ''


class NotStarted(exception.HpcvirtError):
    """Instances that Nova could not start."""


@dataclasses.dataclass(frozen=True)
class Guests:
    """The instances of the acceptance of one host.

    :ivar nova: a client of :func:`hpcvirt.cloud.session.compute`
    """

    nova: Any
    host: str
    pause_s: float = PAUSE_S

    @property
    def key_name(self) -> str:
        return f'{MARK}-{self.host}'

    def find_host(self) -> Host:
        """Look up the compute service of the host.

        :raises InvalidInput: if there is none
        :raises Unreachable: if the cloud does not answer
        """
        with session.one_line_errors():
            found = self.nova.services.list(host=self.host,
                                            binary='nova-compute')
        if not found:
            raise exception.InvalidInput(
                f'host {self.host}', 'the cloud has no compute host of this '
                'name')
        service = found[0]
        obstacle = ''
        if service.state != 'up':
            obstacle = f'its nova-compute is {service.state}'
        elif service.status != 'enabled':
            obstacle = ('its nova-compute is disabled; quarantine keeps work '
                        'away from it as well')
        return Host(self.host, service.zone, obstacle)

    def image(self, name: str) -> str:
        """Look up an image by its name or id.

        :raises Unreachable: if there is none, or several
        """
        with session.one_line_errors():
            return str(self.nova.glance.find_image(name).id)

    def network(self, name: str) -> str:
        """Look up a network by its name.

        :raises Unreachable: if there is none, or several
        """
        with session.one_line_errors():
            return str(self.nova.neutron.find_network(name).id)

    def others(self) -> tuple[str, ...]:
        """List the instances on the host that are not of an acceptance."""
        with session.one_line_errors():
            return tuple(
                server.id for server in self.nova.servers.list(
                    search_opts={'all_tenants': 1, 'host': self.host},
                    limit=_ALL)
                if server.metadata.get(MARK) != self.host)

    def own(self) -> tuple[Any, ...]:
        """List the instances of the acceptance, wherever Nova put them."""
        with session.one_line_errors():
            return tuple(sorted((
                server for server in self.nova.servers.list(
                    search_opts={'all_tenants': 1, 'name': f'^{MARK}-'},
                    limit=_ALL)
                if server.metadata.get(MARK) == self.host),
                key=lambda server: server.name))

    def left(self) -> tuple[str, ...]:
        """Name all that an acceptance created and did not remove."""
        with session.one_line_errors():
            return (*(f'server {server.id}' for server in self.own()),
                    *(f'key pair {key.name}' for key in self._keys()),
                    *(f'flavor {each.flavor.name}'
                      for each in self._flavors()))

    def start(self, flavor: str, flavor_id: str, count: int, image: str,
              network: str, public_key: str) -> tuple[Any, ...]:
        """Start instances, or find those that were started before.

        :param flavor: its name, by which the instances are named
        :raises NotStarted: if Nova could not start all of them
        :raises Unreachable: if the cloud does not answer
        """
        names = [f'{MARK}-{flavor}-{number}' for number in range(count)]
        usable = {server.name for server in self.own()
                  if server.status in ('ACTIVE', 'BUILD')
                  and server.name in names}
        self._delete([server for server in self.own()
                      if server.name not in usable])
        host = self.find_host()
        with session.one_line_errors():
            if not self._keys():
                self.nova.keypairs.create(self.key_name, public_key)
            for name in names:
                if name not in usable:
                    self.nova.servers.create(
                        name, image, flavor_id, key_name=self.key_name,
                        availability_zone=f'{host.zone}:{host.name}',
                        nics=[{'net-id': network}], config_drive=True,
                        meta={MARK: self.host})
        found = waiting.until(
            self.own, lambda servers: all(
                server.status != 'BUILD' for server in servers),
            BOOT_S, self.pause_s)
        wrong = [server for server in found if server.status != 'ACTIVE']
        if wrong or len(found) != count:
            raise NotStarted(
                f'Nova started {len(found) - len(wrong)} of {count} '
                f'instances of {flavor}' + (
                    f': one is {wrong[0].status}, {_fault(wrong[0])}'
                    if wrong else ''))
        return found

    def flavor(self, existing: diff.Existing,
               traits: Collection[str]) -> str:
        """Return the id of a flavor, or of a copy that does without traits.

        :param traits: those that the host gets only if it is accepted
        :raises Unreachable: if the copy cannot be created
        """
        specs = resources.without_traits(existing.flavor.extra_specs, traits)
        if len(specs) == len(existing.flavor.extra_specs):
            return existing.id
        name = f'{self.key_name}-{existing.flavor.name}'
        copies = [each.id for each in self._flavors()
                  if each.flavor.name == name]
        if not copies:
            cloud_flavors.create(self.nova, dataclasses.replace(
                existing.flavor, name=name, extra_specs=specs, projects=()),
                existing)
            copies = [each.id for each in self._flavors()
                      if each.flavor.name == name]
        return copies[0]

    def stop(self) -> None:
        """Delete the instances, and wait until they are gone.

        :raises Unreachable: if some are not
        """
        self._delete(self.own())

    def clear(self) -> None:
        """Remove all that was created.

        :raises Unreachable: if something is left
        """
        self.stop()
        with session.one_line_errors():
            for each in self._flavors():
                self.nova.flavors.delete(each.id)
            for key in self._keys():
                self.nova.keypairs.delete(key.name)

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
        left = waiting.until(
            lambda: ids & {server.id for server in self.own()},
            lambda found: not found, DELETION_S, self.pause_s)
        if left:
            raise exception.Unreachable(
                f'server {", ".join(sorted(left))} is not deleted after '
                f'{DELETION_S:.0f} s')

    def _keys(self) -> list[Any]:
        return [key for key in self.nova.keypairs.list()
                if key.name == self.key_name]

    def _flavors(self) -> Iterator[diff.Existing]:
        for each in cloud_flavors.read(self.nova):
            if each.flavor.name.startswith(f'{self.key_name}-'):
                yield each


def _fault(server: Any) -> str:
    fault = getattr(server, 'fault', None) or {}
    return str(fault.get('message') or 'without a message')
