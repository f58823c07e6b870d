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

"""Put a fleet together from what is known of its hosts.

A host whose record contradicts itself is broken; the others are not affected.
"""

from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.fleet import empty_host
from hpcvirt.fleet import host_settings
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from hpcvirt.model import host as host_model


def fleet(topologies: state.Topologies,
          settings: Mapping[str, host_settings.HostSettings],
          instances: Iterable[state.Instance]) -> state.Fleet:
    """Build the hosts.

    :raises InvalidInput: for an instance on a host that is not given
    """
    residents: dict[str, list[state.Instance]] = {
        name: [] for name in topologies}
    for instance in instances:
        if instance.host not in residents:
            raise exception.InvalidInput(
                f'{instance.where}.host', f'{instance.host!r} is not a host '
                'that --topology names')
        residents[instance.host].append(instance)
    hosts, broken = [], {}
    empty = _EmptyHosts()
    for name in topologies:
        try:
            hosts.append(_host(name, topologies, settings,
                               residents[name], empty))
        except exception.InvalidInput as exc:
            broken[name] = str(exc)
    return state.Fleet(tuple(hosts), broken)


def _host(name: str, topologies: state.Topologies,
          settings: Mapping[str, host_settings.HostSettings],
          instances: list[state.Instance],
          empty: '_EmptyHosts') -> state.FleetHost:
    topology = topologies[name]
    if isinstance(topology, exception.InvalidInput):
        raise topology
    if name not in settings:
        raise exception.InvalidInput(name, 'the plan has no host_config of '
                                     'this host')
    own = settings[name]
    bare, addresses = empty.of(topology, own)
    return state.FleetHost(
        name, *occupancy.occupy(bare, instances, addresses),
        own.packing_host_numa_cells_allocation_strategy)


class _EmptyHosts:
    """The empty hosts, of which each kind is built once."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[state.State, list[str]]] = {}

    def of(self, host: host_model.Host, settings: host_settings.HostSettings,
           ) -> tuple[state.State, list[str]]:
        """Return an empty host, and the addresses behind its pools."""
        key = id(host.cells), id(host.devices), id(settings)
        if key not in self._known:
            self._known[key] = empty_host.of(host, settings), [
                address for address, _ in empty_host.pools(host, settings)]
        return self._known[key]
