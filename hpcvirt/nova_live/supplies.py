# SPDX-License-Identifier: Apache-2.0

"""Translate HostStates of Nova into hosts of a fleet."""

import dataclasses
import typing
from collections.abc import Mapping

from nova.compute import pci_placement_translator
from nova.pci import request as pci_request

from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import config
from hpcvirt.nova import host_record

#: Types of devices that ports with VFs do not use.
_WHOLE = ('type-PF', 'vdpa')


@dataclasses.dataclass(frozen=True)
class Alias:
    """An item of ``[pci]alias``.

    :ivar request: the request for one device, which the claim compares with
        the pools
    :ivar traits: the traits of the devices that Placement offers for it
    """

    request: devices.DeviceRequest
    traits: frozenset[str]


def make_supply(host_state: typing.Any, aliases: Mapping[str, Alias],
                traits_of: Mapping[str, frozenset[str]],
                ) -> supplies.Supply:
    """Make the supply of a HostState.

    :param aliases: see :func:`read_aliases`
    :param traits_of: UUID -> the traits of a provider of the host
    :raises InvalidInput: if the host is malformed
    """
    supply = adapter.supply(host_state, config.read_packing())
    try:
        return dataclasses.replace(
            supply, cells=tuple(_frozen(cell) for cell in supply.cells),
            pools=None if supply.pools is None else tuple(
                _named(pool, aliases, traits_of) for pool in supply.pools),
            spares_devices=config.spares_devices(host_state)[0])
    except host_record.BROKEN as exc:
        raise host_record.make_error('the record', exc) from exc


def read_aliases() -> Mapping[str, Alias]:
    """Read ``[pci]alias``: name -> what it requests."""
    found = {}
    for name in pci_request.get_alias_from_config():
        (request,) = pci_request._translate_alias_to_requests(f'{name}:1')
        traits = pci_placement_translator.get_traits(
            request.spec[0].get('traits', ''))
        found[name] = Alias(adapter.device_request(request),
                            frozenset(traits))
    return found


def _frozen(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Copy a cell, so that it can be hashed."""
    return cell._replace(
        dedicated=frozenset(cell.dedicated), free=frozenset(cell.free),
        shared=frozenset(cell.shared),
        siblings=tuple(map(frozenset, cell.siblings)),
        pages=tuple(cell.pages), physnets=frozenset(cell.physnets))


def _named(pool: devices.Pool, aliases: Mapping[str, Alias],
           traits_of: Mapping[str, frozenset[str]]) -> devices.Pool:
    """Tag a pool with the aliases that it serves.

    :raises ValueError: if its tag of sets of devices is malformed
    """
    device_sets.sets_of(pool)
    served: dict[str, typing.Any] = {}
    offered = []
    traits = traits_of.get(pool.provider or '', frozenset())
    for name, alias in aliases.items():
        if devices.serves(pool, alias.request):
            served[devices.alias_tag(name)] = True
            if alias.traits <= traits:
                offered.append(name)
    if served and pool.provider in traits_of:
        served[devices.OFFERED] = devices.render_offered(offered)
    dropped = {'count', 'numa_node'}
    if served:
        # The alias has matched these tags; the request of a Shape has none.
        dropped |= {'dev_type', 'remote_managed', 'live_migratable'}
        if pool.tags.get('dev_type') in _WHOLE:
            dropped.add('physical_network')
    return pool._replace(tags={
        **{key: value for key, value in pool.tags.items()
           if key not in dropped}, **served})
