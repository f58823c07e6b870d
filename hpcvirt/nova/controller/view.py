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

"""The fleet as a controller sees it."""

import dataclasses
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import nova.conf
from nova import context as nova_context

from hpcvirt import exception
from hpcvirt.fit import devices
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.health import quarantine as health
from hpcvirt.nova import filters
from hpcvirt.nova import quarantine
from hpcvirt.nova.controller import cell_hosts
from hpcvirt.nova.controller import cloud_flavors
from hpcvirt.nova.controller import masking
from hpcvirt.nova.controller import providers
from hpcvirt.nova.controller import residents
from hpcvirt.nova.controller import supplies

#: What is compared in sum; an instance may have its disk elsewhere.
_CLASSES = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')

#: The trait of a host with a disabled nova-compute.
_DISABLED = 'COMPUTE_STATUS_DISABLED'


@dataclasses.dataclass(frozen=True)
class View:
    """What a controller sees.

    :ivar placement: Nova's client of Placement
    :ivar providers: UUID of a host -> what Placement has of it
    """

    context: typing.Any
    placement: typing.Any
    found: cell_hosts.CellHosts
    providers: Mapping[str, providers.Provider]
    fleet: state.Fleet
    flavors: Sequence[catalogue.Flavor]

    @property
    def disabled_cells(self) -> frozenset[str]:
        cells = self.found.manager.cells
        return frozenset(uuid for uuid, cell in cells.items()
                         if cell.disabled)


def read() -> View:
    """Read the hosts, their instances, and the flavors of the cloud.

    :raises InvalidInput: if an option of nova.conf is wrong
    :raises Unreachable: if a database or Placement cannot be used
    """
    context = nova_context.get_admin_context()
    found = cell_hosts.read(context)
    placement = providers.client()
    own = providers.read(placement, [
        host_state.uuid for host_state in found.states.values()])
    try:
        groups = residents.groups(context)
        flavors = cloud_flavors.read(context)
        aliases = supplies.pci_aliases()
    except cell_hosts.UNREADABLE as exc:
        raise exception.Unreachable(
            f'Nova cannot be read: {masking.masked(exc)}') from None
    return View(context, placement, found, own,
                _fleet(found, own, groups, aliases), flavors)


def _fleet(found: cell_hosts.CellHosts,
           own: Mapping[str, providers.Provider],
           groups: Mapping[str, state.ServerGroup],
           aliases: Mapping[str, devices.Request]) -> state.Fleet:
    broken = dict(found.broken)
    translate = residents.Residents(groups)
    peers = _peers(found, own)
    heeds = any(map(filters.enforces, found.manager.enabled_filters))
    hosts = []
    for name in sorted(found.states):
        host_state = found.states[name]
        try:
            if host_state.uuid not in own:
                raise exception.InvalidInput(
                    name, 'Placement has no resource provider of it')
            hosts.append(state.FleetHost(
                name, _state(host_state, own[host_state.uuid], aliases,
                             found.closed.get(name)
                             or (_quarantine(host_state) if heeds else None)),
                tuple(translate.translate(instance, name, peers[name])
                      for instance in found.instances[name]),
                nova.conf.CONF.compute
                .packing_host_numa_cells_allocation_strategy))
        except exception.InvalidInput as exc:
            broken[name] = str(exc)
        except cell_hosts.BROKEN as exc:
            broken[name] = f'{type(exc).__name__}: {masking.masked(exc)}'
    return state.Fleet(tuple(hosts), broken)


def _state(host_state: typing.Any, provider: providers.Provider,
           aliases: Mapping[str, devices.Request],
           closed: str | None) -> state.State:
    free = guests.Sums(*(provider.free.get(name, 0)
                         for name in _CLASSES))
    if closed is None and _DISABLED in provider.traits:
        closed = 'its nova-compute is disabled'
    supply = supplies.of_state(host_state, aliases)
    if provider.devices:
        supply = dataclasses.replace(supply, pools=(
            *(supply.pools or ()), *(
                devices.pool(None, free, resource_class=name)._replace(
                    provider=uuid) for name, free, uuid in provider.devices)))
    return state.State(supply,
                       guests.Sums(0, 0, 0) if closed else free, closed,
                       provider.traits)


def _quarantine(host_state: typing.Any) -> str | None:
    holds = quarantine.holds(host_state)
    return f'it is in quarantine: {health.sentence(holds)}' if holds else None


def _peers(found: cell_hosts.CellHosts,
           own: Mapping[str, providers.Provider],
           ) -> Mapping[str, frozenset[str]]:
    """Say to which hosts the instances of each host may move.

    These have the same traits and are in the same aggregates and cell, so
    that neither flavor nor image, zone nor project can forbid the move. That
    a host is disabled or in quarantine does not count: its instances may
    leave.
    """
    kinds: dict[object, set[str]] = {}
    kind_of = {}
    for name, host_state in found.states.items():
        provider = own.get(host_state.uuid)
        traits = provider.traits if provider else frozenset[str]()
        kind_of[name] = (
            frozenset(aggregate.id for aggregate in host_state.aggregates
                      if not quarantine.is_marked(aggregate)),
            traits - {_DISABLED, health.TRAIT}, host_state.cell_uuid)
        kinds.setdefault(kind_of[name], set()).add(name)
    return {name: frozenset(kinds[kind]) for name, kind in kind_of.items()}
