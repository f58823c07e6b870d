# SPDX-License-Identifier: Apache-2.0

"""Describe the devices of a fleet as Nova does.

A pool of the fleet names the aliases that it serves. Nova compares vendor and
product, so each set of aliases becomes a product of its own, and an alias
requests any of the products that serve it.
"""

import collections
import json
import typing
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import nova.conf
from nova import exception as nova_exception
from nova.pci import request as pci_request

from hpcvirt import exception
from hpcvirt.controller import masking
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import requests

_VENDOR = 'ffff'
_KIND = 'type-PCI'
#: The product that no host has.
_MISSING = 'ffff'
_ALIAS = devices.alias_tag('')


class Products:
    """The products of the devices of a fleet.

    They replace ``[pci]alias`` of nova.conf, except the affinity policies.
    """

    def __init__(self, fleet: Iterable[supplies.Supply],
                 flavors: Iterable[requests.RequestedFlavor]) -> None:
        """Define the aliases of the flavors.

        :raises InvalidInput: if Nova does not accept ``[pci]alias``
        """
        self._products: dict[frozenset[str], str] = {}
        for host in fleet:
            for pool in host.pools or ():
                self._products.setdefault(
                    _aliases(pool), f'{len(self._products):04x}')
        try:
            pci_request.get_alias_from_config.cache_clear()
            policies = {name: alias[0] for name, alias in
                        pci_request.get_alias_from_config().items()}
        except nova_exception.NovaException as exc:
            raise exception.InvalidInput(
                'nova.conf', masking.mask(exc)) from None
        names = {device.alias for flavor in flavors
                 for device in flavor.guest.shape.devices if device.alias}
        nova.conf.CONF.set_override('alias', [
            json.dumps(alias) for name in sorted(names)
            for alias in self._alias(name, policies)], 'pci')
        pci_request.get_alias_from_config.cache_clear()

    def _alias(self, name: str, policies: Mapping[str, str],
               ) -> list[dict[str, str]]:
        tag = devices.alias_tag(name)
        products = [product for tags, product in self._products.items()
                    if tag in tags]
        policy = {'numa_policy': policies[name]} if name in policies else {}
        return [{'name': name, 'vendor_id': _VENDOR, 'product_id': product,
                 'device_type': _KIND, **policy}
                for product in products or [_MISSING]]

    def pools(self, supply: supplies.Supply) -> list[dict[str, typing.Any]]:
        """Describe the PCI devices of a host as nova-compute does.

        Devices that only Placement knows, such as vGPUs, are left out.
        """
        return [self._pool(number, pool)
                for number, pool in enumerate(supply.pools or ())
                if not is_in_placement(pool)]

    def _pool(self, number: int, pool: devices.Pool,
              ) -> dict[str, typing.Any]:
        physnet = pool.tags.get('physical_network')
        return {'vendor_id': _VENDOR,
                'product_id': self._products[_aliases(pool)],
                'dev_type': _KIND, 'numa_node': pool.cell,
                'address': f'{number:04x}:00:00.0', 'count': pool.free,
                **({'physical_network': physnet} if physnet else {})}


class ReplayDevice:
    """The attributes of a device that Nova's PciDeviceStats needs.

    :ivar address: the address of its pool
    """

    __slots__ = ('address', 'dev_type', 'request_id')

    def __init__(self, address: str) -> None:
        self.address = address
        self.dev_type = _KIND
        self.request_id: str | None = None

    def __deepcopy__(self, _: typing.Any) -> 'ReplayDevice':
        return self


def is_in_placement(pool: devices.Pool) -> bool:
    """Whether Placement, not nova-compute, counts the devices."""
    return 'resource_class' in pool.tags


def give_back(pools: Sequence[dict[str, typing.Any]],
              taken: Iterable[ReplayDevice]) -> None:
    """Return devices to their pools, as PciDeviceStats.add_device does."""
    by_address = collections.defaultdict(list)
    for device in taken:
        by_address[device.address].append(device)
    for pool in pools:
        pool['count'] += len(by_address[pool['address']])
        pool['devices'] += by_address[pool['address']]


def _aliases(pool: devices.Pool) -> frozenset[str]:
    return frozenset(tag for tag in pool.tags if tag.startswith(_ALIAS))
