# SPDX-License-Identifier: Apache-2.0

"""Compute the answers of Placement from the totals of hosts.

Each host with enough resources has one allocation candidate. The only known
trait is that of SMT. Pinned instances get PCPUs, as with
``[workarounds]disable_fallback_pcpu_query``.
"""

import dataclasses
import math

from nova.scheduler import utils

from tests.functional.replay_cloud import devices

#: The trait of hosts with SMT.
_SMT = 'HW_CPU_HYPERTHREADING'


@dataclasses.dataclass
class _Inventory:
    """The inventory of a resource class, with its usage."""

    total: int
    used: int = 0
    ratio: float = 1.0

    def has(self, amount):
        # max_unit is the total, regardless of the allocation ratio.
        return (amount <= self.total
                and self.used + amount <= math.floor(self.total * self.ratio))


class ReplayReportClient:
    """Nova's client of Placement, as far as nova-scheduler uses it."""

    def __init__(self, fleet):
        """Record the inventories of hosts, by their UUIDs."""
        self._inventories = {}
        self._devices = {}
        self._smt = {root: any(len(core) > 1 for cell in supply.cells
                               for core in cell.siblings)
                     for root, supply in fleet.items()}
        self._allocated = {}
        for root, supply in fleet.items():
            self._inventories[root] = _of_host(supply)
            self._devices[root] = []
            for number, pool in enumerate(supply.pools or ()):
                if devices.is_in_placement(pool):
                    card = f'{root} {number}'
                    self._devices[root].append(card)
                    self._inventories[card] = {
                        pool.tags['resource_class'].upper():
                            _Inventory(pool.free)}

    def candidates(self, spec):
        """Find the hosts that have enough for an instance.

        :returns: UUID of each such host -> its allocation candidates
        """
        wanted = utils.ResourceRequest.from_request_spec(spec)
        resources = wanted.merged_resources()
        group = wanted.get_request_group(None)
        found = {}
        for root, smt in self._smt.items():
            if (_SMT in group.forbidden_traits if smt
                    else _SMT in group.required_traits):
                continue
            allocations = self._allocations(root, resources)
            if allocations is not None:
                found[root] = [{'allocations': allocations,
                                'mappings': {'': list(allocations)}}]
        return found

    def _allocations(self, root, resources):
        allocations = {}
        for name, amount in resources.items():
            for provider in (root, *self._devices[root]):
                inventory = self._inventories[provider].get(name)
                if inventory is not None and inventory.has(amount):
                    allocations.setdefault(
                        provider, {'resources': {}})['resources'][name] = (
                            amount)
                    break
            else:
                return None
        return allocations

    def claim_resources(self, _context, consumer, alloc_request, *_, **__):
        """Allocate a candidate; return whether it is still free."""
        allocations = alloc_request['allocations']
        if not all(self._inventories[provider][name].has(amount)
                   for provider, name, amount in _amounts(allocations)):
            return False
        self.delete_allocation_for_instance(None, consumer)
        self._allocated[consumer] = allocations
        for provider, name, amount in _amounts(allocations):
            self._inventories[provider][name].used += amount
        return True

    def delete_allocation_for_instance(self, _context, consumer, *_, **__):
        """Free the allocation of an instance, if it has one."""
        for provider, name, amount in _amounts(
                self._allocated.pop(consumer, {})):
            self._inventories[provider][name].used -= amount


def _of_host(supply):
    cells = supply.cells
    return {
        'PCPU': _Inventory(
            sum(len(cell.dedicated) for cell in cells),
            sum(len(cell.dedicated) - len(cell.free) for cell in cells)),
        'VCPU': _Inventory(
            sum(len(cell.shared) for cell in cells),
            sum(cell.cpu_usage for cell in cells), supply.cpu_ratio),
        'MEMORY_MB': _Inventory(
            sum(cell.memory_mib for cell in cells),
            sum(cell.memory_used_mib for cell in cells), supply.ram_ratio)}


def _amounts(allocations):
    return [(provider, name, amount)
            for provider, own in allocations.items()
            for name, amount in own['resources'].items()]
