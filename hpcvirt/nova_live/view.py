# SPDX-License-Identifier: Apache-2.0

"""Read the fleet of a cloud on a controller."""

import dataclasses
import json
import typing
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import nova.conf
from nova import context as nova_context

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import quarantine as health
from hpcvirt.nova import filters
from hpcvirt.nova import quarantine
from hpcvirt.nova_live import cell_hosts
from hpcvirt.nova_live import cloud_flavors
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import providers
from hpcvirt.nova_live import residents
from hpcvirt.nova_live import supplies

#: The resource classes whose totals are compared.
_CLASSES = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')

#: The trait of a host with a disabled nova-compute.
_DISABLED = 'COMPUTE_STATUS_DISABLED'


@dataclasses.dataclass(frozen=True)
class View:
    """The fleet of a cloud, with the records from which it was made.

    :ivar placement: Nova's client of Placement
    :ivar found: the hosts of all Nova cells
    :ivar providers: UUID of a host -> its resource provider
    :ivar peers: host -> the hosts to which its instances may move
    """

    context: typing.Any
    placement: typing.Any
    found: cell_hosts.CellHosts
    providers: Mapping[str, providers.Provider]
    fleet: state.Fleet
    flavors: Sequence[flavor_model.Flavor]
    peers: Mapping[str, frozenset[str]]

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
        aliases = supplies.read_aliases()
    except cell_hosts.UNREADABLE as exc:
        raise exception.Unreachable(
            f'Nova cannot be read: {masking.mask(exc)}') from None
    peers = _peers(found, own)
    return View(context, placement, found, own,
                _fleet(found, own, groups, aliases, peers), flavors, peers)


def _fleet(found: cell_hosts.CellHosts,
           own: Mapping[str, providers.Provider],
           groups: Mapping[str, state.ServerGroup],
           aliases: Mapping[str, supplies.Alias],
           peers: Mapping[str, frozenset[str]]) -> state.Fleet:
    broken = dict(found.broken)
    translate = residents.Residents(groups)
    heeds = any(map(filters.enforces, found.manager.enabled_filters))
    hosts = []
    for name in sorted(found.states, key=words.natural_order):
        host_state = found.states[name]
        try:
            if host_state.uuid not in own:
                raise exception.InvalidInput(
                    name, 'Placement has no resource provider for it')
            holds = quarantine.holds(host_state) if heeds else ()
            left = _state(host_state, own[host_state.uuid], aliases,
                          found.closed.get(name), health.sentence(holds))
            hosts.append(state.FleetHost(
                name, left, tuple(occupancy.find_devices(
                    translate.translate(instance, name, peers[name]),
                    left.supply.pools or ())
                    for instance in found.instances[name]),
                *_place(host_state.aggregates)))
        except exception.InvalidInput as exc:
            broken[name] = str(exc)
        except cell_hosts.BROKEN as exc:
            broken[name] = f'{type(exc).__name__}: {masking.mask(exc)}'
    return state.Fleet(tuple(hosts), broken)


def _state(host_state: typing.Any, provider: providers.Provider,
           aliases: Mapping[str, supplies.Alias],
           closed: str | None, quarantined: str) -> placement.HostState:
    free = guests.Resources(*(provider.free.get(name, 0)
                              for name in _CLASSES))
    if closed is None and _DISABLED in provider.traits:
        closed = 'its nova-compute is disabled'
    in_quarantine = closed is None and bool(quarantined)
    if in_quarantine:
        closed = quarantined
    supply = supplies.make_supply(host_state, aliases, provider.traits_of)
    if provider.devices:
        # nova-compute reports PCI devices that are in Placement, too.
        own = {pool.provider for pool in supply.pools or ()}
        supply = dataclasses.replace(supply, pools=(
            *(supply.pools or ()), *(
                devices.pool(None, free, resource_class=name)._replace(
                    provider=uuid) for name, free, uuid in provider.devices
                if uuid not in own)))
    return placement.HostState(
        supply, guests.Resources(0, 0, 0) if closed else free, closed,
        provider.traits, in_quarantine, _kept_for(host_state.aggregates),
        address_bits=_address_bits(host_state))


def _address_bits(host_state: typing.Any) -> int | None:
    """Return the width of addresses that nova-compute reports, if it does."""
    # As ComputeCapabilitiesFilter of Nova reads it.
    try:
        return int(json.loads(host_state.cpu_info)['maxphysaddr']['bits'])
    except (KeyError, TypeError, ValueError):
        return None


def _kept_for(aggregates: Iterable[typing.Any]) -> frozenset[str]:
    """Return the traits that isolating aggregates of a host demand.

    As ``isolate_aggregates`` of nova/scheduler/request_filter.py reads them.
    """
    if not nova.conf.CONF.scheduler.enable_isolated_aggregate_filtering:
        return frozenset()
    prefix = 'trait:'
    found: set[str] = set()
    for aggregate in aggregates:
        found.update(key.removeprefix(prefix)
                     for key, value in aggregate.metadata.items()
                     if key.startswith(prefix) and value == 'required')
    return frozenset(found)


def _place(aggregates: Iterable[typing.Any],
           ) -> tuple[str, str, tuple[str, ...]]:
    """Return the zone, the project aggregate and the aggregates of a host.

    Nova's filters read all keys of the metadata that begin so.
    """
    zones = [each.metadata['availability_zone'] for each in aggregates
             if each.metadata.get('availability_zone')]
    kept = [each.name for each in aggregates if any(
        key.startswith('filter_tenant_id') for key in each.metadata)]
    keeper = ''
    if len(kept) == 1:
        keeper = kept[0]
    elif kept:
        keeper = 'multiple'
    return (zones[0] if zones else '', keeper,
            tuple(each.name for each in aggregates))


def _peers(found: cell_hosts.CellHosts,
           own: Mapping[str, providers.Provider],
           ) -> Mapping[str, frozenset[str]]:
    """Return the hosts to which the instances of each host may move.

    They have the same traits, aggregates and Nova cell, so that no flavor,
    image, zone or project can forbid the move. The traits and aggregates of
    disabled and quarantined hosts are ignored: their instances may leave.
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
