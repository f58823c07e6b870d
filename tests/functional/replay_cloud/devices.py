# SPDX-License-Identifier: Apache-2.0

"""Describe the devices of a fleet as Nova does.

A pool of the fleet names the aliases that it serves. Nova compares vendor and
product, so each set of aliases becomes a product of its own, and an alias
requests any of the products that serve it.
"""

import collections
import json

import nova.conf
from nova.pci import request as pci_request

from hpcvirt.fit import devices

_VENDOR = 'ffff'
_KIND = 'type-PCI'
#: The product that no host has.
_MISSING = 'ffff'
_ALIAS = devices.alias_tag('')


class Products:
    """The products of the devices of a fleet.

    An alias has no affinity policy: that is an extra spec of the flavors.
    """

    def __init__(self, fleet, flavors):
        """Define the aliases of the flavors."""
        self._products = {}
        for host in fleet:
            for pool in host.pools or ():
                self._products.setdefault(
                    _aliases(pool), f'{len(self._products):04x}')
        names = {device.alias for flavor in flavors
                 for device in flavor.shape.devices if device.alias}
        aliases = []
        for name in sorted(names):
            aliases += map(json.dumps, self._alias(name))
        nova.conf.CONF.set_override('alias', aliases, 'pci')
        pci_request.get_alias_from_config.cache_clear()

    def _alias(self, name):
        tag = devices.alias_tag(name)
        products = [product for tags, product in self._products.items()
                    if tag in tags]
        return [{'name': name, 'vendor_id': _VENDOR, 'product_id': product,
                 'device_type': _KIND}
                for product in products or [_MISSING]]

    def pools(self, supply):
        """Describe the PCI devices of a host as nova-compute does.

        Devices that only Placement knows, such as vGPUs, are left out.
        """
        return [self._pool(number, pool)
                for number, pool in enumerate(supply.pools or ())
                if not is_in_placement(pool)]

    def _pool(self, number, pool):
        return {'vendor_id': _VENDOR,
                'product_id': self._products[_aliases(pool)],
                'dev_type': _KIND, 'numa_node': pool.cell,
                'address': f'{number:04x}:00:00.0', 'count': pool.free}


class ReplayDevice:
    """The attributes of a device that Nova's PciDeviceStats needs.

    :ivar address: the address of its pool
    """

    __slots__ = ('address', 'dev_type', 'request_id')

    def __init__(self, address):
        self.address = address
        self.dev_type = _KIND
        self.request_id = None

    def __deepcopy__(self, _):
        return self


def is_in_placement(pool):
    """Whether Placement, not nova-compute, counts the devices."""
    return 'resource_class' in pool.tags


def give_back(pools, taken):
    """Return devices to their pools, as PciDeviceStats.add_device does."""
    by_address = collections.defaultdict(list)
    for device in taken:
        by_address[device.address].append(device)
    for pool in pools:
        pool['count'] += len(by_address[pool['address']])
        pool['devices'] += by_address[pool['address']]


def _aliases(pool):
    return frozenset(tag for tag in pool.tags if tag.startswith(_ALIAS))
