# SPDX-License-Identifier: Apache-2.0

"""Translate Nova's objects to those of the fit engine.

A RequestSpec becomes a Demand, once per request. A HostState becomes a Supply,
whose cells and device pools are read when the engine needs them. This module
makes no decisions and keeps no state. It changes no object of Nova, except
that it marks a HostState whose record it has checked.

The fields of a NUMACell are read from the attributes in which
oslo.versionedobjects stores them (``_obj_NAME``). Access through properties
is twenty times slower, and a request in a large cloud looks at 100,000 cells.
"""

import operator
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from nova import exception as nova_exception
from nova import objects
from nova.objects import numa
from nova.virt import hardware

from hpcvirt import kept_text
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import host_record
from hpcvirt.specs import scheduler_keys

#: The fields that Nova's claim reads of every cell.
_CELL_FIELDS = operator.attrgetter(
    '_obj_id', '_obj_cpuset', '_obj_pcpuset', '_obj_pinned_cpus',
    '_obj_siblings', '_obj_cpu_usage', '_obj_memory', '_obj_memory_usage',
    '_obj_mempages')

#: The number of attributes of a cell with all fields. Counting them takes a
#: quarter of the time of looking each of them up.
_WHOLE_CELL = len(vars(numa.NUMACell())) + len(numa.NUMACell.fields)

_CELL_ID = operator.itemgetter('_obj_id')

#: The attribute of a HostState with the NUMATopology and the PciDeviceStats
#: that were checked: Nova replaces the former when it charges an instance.
CHECKED = 'hpcvirt_checked'

#: The most device pools of a host and page sizes of a cell that are read.
MAX_POOLS = 1024
MAX_PAGE_SIZES = 16

#: The largest allocation ratio that Placement accepts.
_MAX_RATIO = 3.40282e+38


def demand(spec: typing.Any) -> demands.Demand | None:
    """Compile a RequestSpec.

    :returns: None for an instance with neither NUMA topology nor PCI requests
    :raises InvalidInput: if an extra spec of hpcvirt's own is malformed
    """
    topology = _unused_topology(spec)
    requests = tuple(map(device_request, pci_requests(spec)))
    extra_specs = _extra_specs(spec)
    if not topology:
        return demands.Demand(
            (), requests, device_set=scheduler_keys.device_set(extra_specs),
            ) if requests else None
    metadata = network(spec)
    return demands.Demand(
        cells=guest_cells(topology),
        requests=requests,
        physnets=frozenset(_get(metadata, 'physnets', ())),
        tunneled=_get(metadata, 'tunneled', False),
        numa_scope=scheduler_keys.numa_scope(extra_specs),
        exclusive_cells=scheduler_keys.exclusive_cells(extra_specs),
        device_set=scheduler_keys.device_set(extra_specs))


def guest_cells(topology: typing.Any) -> tuple[demands.CellDemand, ...]:
    """Compile an InstanceNUMATopology."""
    isolated = topology.emulator_threads_isolated
    return tuple(
        demands.CellDemand(
            policy=_policy(cell), threads=_threads(cell),
            pcpus=len(cell.pcpuset), vcpus=len(cell.cpuset),
            memory_mib=cell.memory, page_kib=_page_kib(cell),
            emulator_pcpus=int(isolated and number == 0))
        for number, cell in enumerate(topology.cells))


def network(spec: typing.Any) -> typing.Any:
    """Return the NetworkMetadata of a RequestSpec, None if it has none."""
    return spec.network_metadata if 'network_metadata' in spec else None


def pci_requests(spec: typing.Any) -> Sequence[typing.Any]:
    """Return the PCI requests of a RequestSpec or an Instance."""
    return spec.pci_requests.requests if spec.pci_requests else ()


def is_of_flavor(request: typing.Any) -> bool:
    """Return whether a PCI request is the flavor's, not that of a port."""
    return bool(request.source != objects.InstancePCIRequest.NEUTRON_PORT)


def supply(host_state: typing.Any,
           packing: bool = False) -> supplies.Supply:
    """Describe a HostState for an instance with a NUMA topology.

    :param packing: see :class:`hpcvirt.fit.supply.Supply`
    :returns: a Supply without cells if the host has no NUMA topology
    :raises InvalidInput: see :func:`check_record`; wrong values of a cell or
        a pool raise it only when the cell or pool is read
    """
    check_record(host_state)
    topology, stats = host_state.numa_topology, host_state.pci_stats
    return supplies.Supply(
        cells=host_record.LazySequence(
            topology._obj_cells if topology else (), _cell),
        pools=_pools(stats),
        cpu_ratio=float(host_state.cpu_allocation_ratio),
        ram_ratio=float(host_state.ram_allocation_ratio), packing=packing)


def check_record(host_state: typing.Any) -> None:
    """Check that a HostState has what Nova's claim reads.

    The claim reads all cells and pools, even those that the instance does not
    need. The filter and the weigher of a request get the same HostState, so
    that a record without faults is checked once.

    :raises InvalidInput: if the host is malformed
    """
    where: str | int = 'the NUMA topology'
    try:
        topology, stats = host_state.numa_topology, host_state.pci_stats
        topology_before, stats_before = getattr(host_state, CHECKED,
                                                (None, None))
        if (topology is topology_before and stats is stats_before
                and topology is not None):
            return
        cells = topology._obj_cells if topology else ()
        attributes = list(map(vars, cells))
        if not _are_whole(attributes):
            for number, cell in enumerate(cells):
                where = number
                _CELL_FIELDS(cell)
        where = 'the NUMA topology'
        if len({*map(_CELL_ID, attributes)}) < len(cells):
            raise ValueError('several NUMA cells have the same id')
        where = 'the allocation ratios'
        cpu_ratio = float(host_state.cpu_allocation_ratio)
        ram_ratio = float(host_state.ram_allocation_ratio)
        if not (0 <= cpu_ratio <= _MAX_RATIO and 0 <= ram_ratio <= _MAX_RATIO):
            raise ValueError(f'{cpu_ratio} and {ram_ratio}')
        where = 'the PCI devices'
        _check_pools(host_state, 'numa_node')
        setattr(host_state, CHECKED, (topology, stats))
    except host_record.BROKEN as exc:
        if isinstance(where, int):
            where = f'NUMA cell {where}'
        raise host_record.make_error(where, exc) from exc


def _are_whole(attributes: Sequence[Mapping[str, typing.Any]]) -> bool:
    """Return whether NUMACells have all fields, by counting attributes.

    Cells that were decoded have a version as well.
    """
    counts = {*map(len, attributes)}
    return len(counts) == 1 and counts == {
        _WHOLE_CELL + ('VERSION' in attributes[0])}


def device_supply(host_state: typing.Any) -> supplies.Supply:
    """Describe a HostState for an instance without a NUMA topology.

    :raises InvalidInput: if the data of the devices is malformed
    """
    try:
        _check_pools(host_state)
    except host_record.BROKEN as exc:
        raise host_record.make_error('the PCI devices', exc) from exc
    return supplies.Supply(cells=(), pools=_pools(host_state.pci_stats))


def _unused_topology(spec: typing.Any) -> typing.Any:
    """Return the instance NUMA topology that the claim starts from.

    If a request creates several instances, the scheduler leaves the result
    for the previous instance in the request: host cells, pinned CPUs, and a
    page size where the flavor names a class; or no topology, if a defect of
    Nova affected the previous instance. The claim starts from the flavor and
    the image again.
    """
    topology = spec.numa_topology
    if topology is None and not _extra_specs(spec):
        return None
    if topology is not None and not _is_used(topology, spec):
        return topology
    try:
        anew = hardware.numa_get_constraints(spec.flavor, spec.image)
    except (nova_exception.NovaException, AttributeError):
        return topology
    if topology and (anew is None or len(anew) != len(topology)):
        return topology
    return anew


def _is_used(topology: typing.Any, spec: typing.Any) -> bool:
    """Whether the scheduler has already written a result to the topology."""
    size = _extra_specs(spec).get(scheduler_keys.MEM_PAGE_SIZE.name, '')
    by_class = size.upper() in shape_model.PageClass.__members__
    return any(
        cell.id != number or _get(cell, 'cpu_pinning_raw', None) or
        (by_class and (_get(cell, 'pagesize', None) or 0) > 0)
        for number, cell in enumerate(topology.cells))


def _extra_specs(spec: typing.Any) -> Mapping[str, str]:
    return _get(spec.flavor, 'extra_specs', {})


def _policy(cell: typing.Any) -> shape_model.CPUPolicy:
    return shape_model.CPUPolicy(_get(cell, 'cpu_policy', None) or
                                 shape_model.CPUPolicy.SHARED)


def _threads(cell: typing.Any) -> shape_model.ThreadPolicy | None:
    policy = _get(cell, 'cpu_thread_policy', None)
    return shape_model.ThreadPolicy(policy) if policy else None


def _page_kib(cell: typing.Any) -> int | shape_model.PageClass | None:
    size = _get(cell, 'pagesize', None)
    if not size:
        return None
    return shape_model.PageClass(size) if size < 0 else size


def device_request(request: typing.Any) -> devices.DeviceRequest:
    """Compile an InstancePCIRequest."""
    affinity = _get(request, 'numa_policy', None)
    name = request.alias_name or f'port {request.requester_id}'
    return devices.DeviceRequest(
        specs=tuple({tag: value.lower() if isinstance(value, str) else value
                     for tag, value in spec.items()
                     if tag not in devices.IGNORED_TAGS}
                    for spec in request.spec),
        count=request.count,
        affinity=(shape_model.PCIAffinity(affinity) if affinity
                  else shape_model.PCIAffinity.LEGACY),
        name=name)


def providers_of(request: typing.Any,
                 mappings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the providers of a PCI request in an allocation candidate.

    :param mappings: request group -> UUIDs of resource providers, as in the
        candidate
    :returns: the resource provider of each device; empty if the devices are
        not in Placement
    """
    # The devices of Neutron ports are not in Placement. The request group of a
    # port with a guaranteed bandwidth is named after the port.
    if request.source == objects.InstancePCIRequest.NEUTRON_PORT:
        return ()
    if not mappings:
        uuids = request.spec[0].get('rp_uuids') if request.spec else None
        return tuple(uuids.split(',')) if uuids else ()
    # One group for each device: REQUEST_ID-0, REQUEST_ID-1, ... Which of them
    # has which device does not matter. Reading a field of Nova's objects takes
    # long, and a host has up to 1,000 candidates.
    prefix = request.request_id
    return tuple(sorted([
        group_uuids[0] for group, group_uuids in mappings.items()
        if group.startswith(prefix)]))


def _check_pools(host_state: typing.Any, *needed: str) -> None:
    """Check the device pools, each of which must have the needed tags."""
    stats = host_state.pci_stats
    pools = () if stats is None else stats.pools
    if len(pools) > MAX_POOLS:
        raise ValueError(f'{len(pools)} pools')
    for pool in pools:
        if operator.index(pool['count']) < 0:
            raise ValueError(f"a pool with {pool['count']} devices")
        for tag in needed:
            hash(pool[tag])


def _pools(stats: typing.Any) -> Sequence[devices.Pool] | None:
    return (None if stats is None
            else host_record.LazySequence(stats.pools, read_pool))


def read_pool(pool: Mapping[str, typing.Any]) -> devices.Pool:
    """Compile a pool of a PciDeviceStats.

    :raises ValueError: if it has a longer text than may be kept
    """
    if not kept_text.are_short(pool.values()):
        raise ValueError('a tag of a pool has more than '
                         f'{kept_text.MAX_CHARACTERS} characters')
    return devices.Pool(pool.get('numa_node'), pool['count'], pool,
                        pool.get('rp_uuid'))


def _cell(cell: typing.Any) -> supplies.CellSupply:
    try:
        socket, network = cell._obj_socket, cell._obj_network_metadata
        physnets, tunneled = network._obj_physnets, network._obj_tunneled
    except AttributeError:
        # Other Nova releases may leave these fields out.
        socket = _get(cell, 'socket', None)
        network = _get(cell, 'network_metadata', None)
        physnets = _get(network, 'physnets', frozenset())
        tunneled = _get(network, 'tunneled', False)
    if physnets and not kept_text.are_short(physnets):
        raise ValueError('the name of a physical network has more than '
                         f'{kept_text.MAX_CHARACTERS} characters')
    if len(cell._obj_mempages) > MAX_PAGE_SIZES:
        raise ValueError(f'{len(cell._obj_mempages)} page sizes')
    pages = []
    for each in cell._obj_mempages:
        size_kib, total, used = each._obj_size_kb, each._obj_total, (
            each._obj_used)
        if size_kib <= 0:
            raise ValueError(f'pages of {size_kib} KiB')
        pages.append(supplies.PageSupply(
            size_kib, total, used,
            total - used - getattr(each, '_obj_reserved', 0)))
    dedicated = cell._obj_pcpuset
    return supplies.CellSupply(
        cell._obj_id, socket, dedicated, dedicated - cell._obj_pinned_cpus,
        cell._obj_cpuset, cell._obj_siblings, cell._obj_cpu_usage,
        cell._obj_memory, cell._obj_memory_usage,
        tuple(pages), physnets, tunneled)


def _get(thing: typing.Any, field: str, default: typing.Any) -> typing.Any:
    """Read a field that may be unset from an object that may be None."""
    if thing is None or field not in thing:
        return default
    return getattr(thing, field)
