# SPDX-License-Identifier: Apache-2.0

"""Plan the settings that a host needs for its flavors."""

import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model


def make_settings(partition: cpu_partition.Partition,
                  pools: Sequence[memory.CellPool],
                  guests: Iterable[shape_model.Shape],
                  profile: profiles.Profile,
                  offered: Iterable[offered_devices.OfferedDevice],
                  types: Mapping[device_choice.Devices, str],
                  sets: planned_sets.PlannedSets = planned_sets.NONE,
                  ) -> tuple[host_settings.HostSettings, dict[int, int]]:
    """Compute the settings of a host for all flavors that may run on it.

    Each cell gets the huge pages that a mix of guests can fill, and those of
    the host's own programs. The host keeps the rest in normal pages.

    :param types: the ``device_type`` of the PCI alias of devices
    :param sets: the sets of devices that these guests get
    :returns: the settings; and cell -> the MiB of it that the host keeps
    """
    small = memory.small_page_kib(partition.host)
    page_kib = pools[0].page_kib if pools else small
    parts: set[memory.MemoryPart] = set()
    for guest in guests:
        parts.update(memory.memory_parts(guest))
    pool_of = {pool.id: pool for pool in pools}
    pages, reserved, rest = {}, [], {}
    for cell in partition.host.cells:
        pool = pool_of.get(cell.id)
        cpus = pool.cores * partition.threads if pool else 0
        count = _pages_needed(cpus, pool, parts) if pool else 0
        own = dict(profile.host_pages_per_cell) if pool else {}
        huge = {each.size_kib: 0 for each in cell.pages} | own
        if pool and page_kib != small:
            huge[page_kib] = huge.get(page_kib, 0) + count
        huge.pop(small, None)
        huge_kib = sum(size * number for size, number in huge.items())
        normal = max(0, _memory_kib(cell, small) - huge_kib) // small
        pages[cell.id] = dict(sorted({small: normal, **huge}.items()))
        reserved += [host_settings.ReservedPages(cell.id, size, number)
                     for size, number in own.items() if number]
        if pool and page_kib == small:
            reserved.append(host_settings.ReservedPages(cell.id, small,
                                                        normal - count))
        # The most that emulators need when the cell is full.
        emulators = max((min(cpus // part.cpus, count // part.pages)
                         * memory.overhead_mib(profile, part)
                         for part in parts), default=0.0)
        guests_mib = -(-count * page_kib // 1024)
        # Rounding errors of the sum must not cost a whole MiB.
        rest[cell.id] = max(0, int(
            cell.memory_mib - guests_mib - emulators + 1e-6
            - (memory.host_pages_mib(profile) if own else 0)))
    wanted = profile.device
    vgpus = wanted is not None and wanted.kind is device_choice.DeviceKind.VGPU
    device_specs = []
    if wanted and not vgpus:
        for item in offered:
            tags = sets.write_tags(item.device.address) if sets.sets else {}
            device_specs.append(make_device_spec(item, item.wanted) | tags)
    return host_settings.HostSettings(
        cpu_dedicated_set=cpuset.render(partition.dedicated),
        cpu_shared_set=cpuset.render(partition.shared),
        reserved_host_memory_mb=sum(rest.values()),
        reserved_huge_pages=tuple(reserved),
        packing_host_numa_cells_allocation_strategy=profile.pack_cells,
        pages=pages,
        pci_device_spec=tuple(device_specs),
        mdev_types=(host_settings.MdevType(
            wanted.mdev_type or '', tuple(item.device.address
                                          for item in offered),
            wanted.resource_class),) if wanted and vgpus else (),
        device_counts={item.device.address: item.count for item in offered},
        # All services of Nova need it.
        pci_alias=tuple(_make_aliases(wanted, guests, types, sets))), rest


def _make_aliases(wanted: device_choice.Devices | None,
                  guests: Iterable[shape_model.Shape],
                  types: Mapping[device_choice.Devices, str],
                  sets: planned_sets.PlannedSets,
                  ) -> Iterator[Mapping[str, str]]:
    """Write ``[pci]alias``, which all services of Nova need.

    Moves ignore the policy of the flavor and apply that of the alias.
    """
    named = {}
    for each in sets.sets:
        for placed in each.members:
            named[placed.alias] = placed.wanted
    if wanted and wanted.has_alias and wanted.sets is None:
        named[wanted.alias] = wanted
    # Guests of several cells prefer their cells only.
    policies = {}
    for guest in sorted(guests, key=lambda guest: len(guest.cells)):
        for device in guest.devices if sets.sets else ():
            policies[device.alias] = device.affinity
    for name, own in named.items():
        alias = {'name': name, 'vendor_id': own.vendor_id or '',
                 'product_id': own.product_id or '',
                 'device_type': types[own], 'numa_policy': (
                     policies.get(name) or own.affinity).value}
        if sets.sets:
            alias['traits'] = planned_sets.make_trait(name)
        yield alias


def make_device_spec(item: offered_devices.OfferedDevice,
                     wanted: device_choice.Devices) -> dict[str, str]:
    """Write an item of ``[pci]device_spec``.

    The address of a physical function also matches its virtual functions.
    With their product id, the item does not match the physical function.
    """
    spec = {'address': item.device.address}
    product = wanted.product_id or item.device.vf_product_id
    if product is not None:
        spec['vendor_id'] = item.device.vendor_id
        spec['product_id'] = product
    if wanted.ports is device_choice.Ports.NEUTRON:
        spec['physical_network'] = wanted.physical_network or ''
    return spec


def _memory_kib(cell: host_model.Cell, small_kib: int) -> int:
    """Return the memory of a cell, exact if its pages are known."""
    if cell.pool(small_kib) is None:
        return cell.memory_mib * 1024
    return sum(pool.size_kib * pool.total for pool in cell.pages)


def _pages_needed(cpus: int, pool: memory.CellPool,
                  parts: Iterable[memory.MemoryPart]) -> int:
    """Return the most pages of a cell that a mix of guests fills.

    The mix is limited by the CPUs of the cell and by its pages for guests.
    """
    fitting = {(part.cpus, part.pages) for part in parts
               if part.page_kib == pool.page_kib and part.pages <= pool.pages}
    unit = math.gcd(*(pages for _, pages in fitting)) or 1
    limit = (1 << pool.pages // unit + 1) - 1
    # sums[n]: bit s is set if guests with at most n CPUs fill s units.
    sums = [1]
    for number in range(1, cpus + 1):
        total = sums[-1]
        for own, pages in fitting:
            if own <= number:
                total |= sums[number - own] << pages // unit
        sums.append(total & limit)
    return (sums[-1].bit_length() - 1) * unit
