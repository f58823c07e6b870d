# SPDX-License-Identifier: Apache-2.0

"""The cases of :mod:`tests.builders.cases` as Nova's own objects."""

import copy
import dataclasses
import types
import uuid

from nova import objects
from nova.compute import utils
from nova.objects import pci_device_pool
from nova.objects import service
from nova.pci import stats
from nova.pci import whitelist
from nova.scheduler import host_manager

from hpcvirt.model import quarantine
from tests.builders import cases

objects.register_all()

#: No device_spec: pools are given here, not discovered.
NO_DEVICE_FILTER = whitelist.Whitelist([])


class Device:
    """A PCI device, as far as PciDeviceStats asks for it.

    :ivar keys: what its pool has but devices
    """

    def __init__(self, keys):
        self.keys = keys
        self.dev_type = keys['dev_type']
        self.numa_node = keys['numa_node']
        self.parent_device = None
        self.child_devices = []


class Stats(stats.PciDeviceStats):
    """Nova's, but quick to copy: support_requests() changes only pools."""

    def _create_pool_keys_from_dev(self, dev):
        return dev.keys

    def __deepcopy__(self, memo):
        twin = copy.copy(self)
        twin.pools = [dict(pool) for pool in self.pools]
        return twin


def host_topology(case):
    """What nova-compute reports of the host."""
    return objects.NUMATopology(cells=[
        objects.NUMACell(
            id=cell.id, socket=cell.socket, cpuset=set(cell.shared),
            pcpuset=set(cell.dedicated), pinned_cpus=set(cell.pinned),
            siblings=[set(core) for core in cell.siblings],
            cpu_usage=cell.cpu_usage, memory=cell.memory_mib,
            memory_usage=cell.memory_used_mib,
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=pages.size_kib, total=pages.total,
                    used=pages.used, reserved=pages.reserved)
                for pages in cell.pages],
            network_metadata=objects.NetworkMetadata(
                physnets=set(cell.physnets), tunneled=cell.tunneled))
        for cell in case.host])


def guest_topology(case):
    """The topology that nova-api derives from the flavor."""
    cells = []
    start = 0
    for number, cell in enumerate(case.guest):
        middle = start + cell.pcpus
        end = middle + cell.vcpus
        cells.append(objects.InstanceNUMACell(
            id=number, pcpuset=set(range(start, middle)),
            cpuset=set(range(middle, end)), memory=cell.memory_mib,
            pagesize=case.page_kib, cpu_policy=case.policy,
            cpu_thread_policy=case.threads))
        start = end
    return objects.InstanceNUMATopology(
        cells=cells, emulator_threads_policy='isolate'
        if case.isolated_emulator else None)


def with_usage(cell, reported):
    """A host cell in the state that a NUMACell reports."""
    return dataclasses.replace(
        cell, pinned=frozenset(reported.pinned_cpus),
        cpu_usage=reported.cpu_usage, memory_used_mib=reported.memory_usage,
        pages=tuple(dataclasses.replace(pages, used=now.used)
                    for pages, now in zip(cell.pages, reported.mempages,
                                          strict=True)))


def pci_stats(case, topology, devices=False):
    """The devices that nova-compute reports, None if it reports none.

    :param devices: with the devices themselves, as only nova-compute has it
    """
    if case.pools is None:
        return None
    pools = pci_device_pool.from_pci_stats([
        {**pool.tags, 'numa_node': pool.cell, 'count': pool.count,
         **({'rp_uuid': pool.provider} if pool.provider else {})}
        for pool in case.pools])
    found = Stats(topology, stats=pools, dev_filter=NO_DEVICE_FILTER)
    if devices:
        _add_devices(found.pools)
    return found


def _add_devices(pools):
    """Put the devices of cards into their pools."""
    parents = {}
    for pool in sorted(pools, key=lambda pool: pool['dev_type'] != 'type-PF'):
        keys = {key: value for key, value in pool.items()
                if key not in ('count', 'rp_uuid')}
        pool['devices'] = [Device(keys) for _ in range(pool['count'])]
        for device in pool['devices']:
            if device.dev_type == 'type-PF':
                parents[pool['address']] = device
            elif device.dev_type in ('type-VF', 'vdpa'):
                device.parent_device = parents.get(pool.get('address'))
                if device.parent_device:
                    device.parent_device.child_devices.append(device)


def pools_left(case, devices):
    """The pools of a case, after some of its devices have been taken."""
    counts = {_identity(pool): pool['count'] for pool in devices.pools}
    left = (dataclasses.replace(pool, count=counts.get(_identity(
        {**pool.tags, 'numa_node': pool.cell}), 0)) for pool in case.pools)
    return tuple(pool for pool in left if pool.count)


def _identity(pool):
    return frozenset(
        (key, value) for key, value in pool.items()
        if key not in ('count', 'devices', 'rp_uuid'))


def requests_with_allocation(case, mapping):
    """Let Nova add an allocation to the requests, as it does for a claim."""
    requests = pci_requests(case)
    for request in requests:
        if request.alias_name is None:
            # That of a port is not the id of the port.
            request.request_id = str(uuid.uuid4())
    utils.update_pci_request_with_placement_allocations(
        None, types.SimpleNamespace(
            get_resource_provider_name=lambda _context, provider:
                f'host:NIC Switch agent:{cases.interface_of(provider)}'),
        requests, mapping)
    return requests


def pci_requests(case, mapping=None):
    """The requests; with a mapping, as the claim receives them."""
    requests = []
    for request in case.requests:
        spec = dict(request.spec)
        uuids = [uuids[0] for group, uuids in (mapping or {}).items()
                 if group.startswith(request.id)]
        if uuids and request.alias:
            spec['rp_uuids'] = ','.join(uuids)
        requests.append(objects.InstancePCIRequest(
            count=request.count, request_id=request.id, spec=[spec],
            alias_name=request.alias, numa_policy=request.affinity,
            requester_id=None if request.alias else request.id))
    return requests


def network_metadata(case):
    return objects.NetworkMetadata(physnets=set(case.physnets),
                                   tunneled=case.tunneled)


def limits(case):
    return objects.NUMATopologyLimits(
        cpu_allocation_ratio=case.cpu_ratio,
        ram_allocation_ratio=case.ram_ratio,
        network_metadata=network_metadata(case))


def host_state(case, name='host'):
    """A HostState, as HostState.update leaves it."""
    topology = host_topology(case)
    return host_state_of(case, name, topology, pci_stats(case, topology))


def host_state_of(case, name, topology, devices):
    """A HostState with the given objects."""
    state = host_manager.HostState(name, name, str(uuid.UUID(int=1)))
    state.uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    state.service = {'host': name, 'version': service.SERVICE_VERSION}
    state.numa_topology = topology
    state.pci_stats = devices
    state.cpu_allocation_ratio = case.cpu_ratio
    state.ram_allocation_ratio = case.ram_ratio
    state.allocation_candidates = candidates(case, state.uuid)
    return state


def idle_host():
    """A HostState that has an interface of every name."""
    return host_state(cases.Case(
        host=(), guest=(), policy=None, pools=tuple(
            cases.Pool(0, 1, {
                'vendor_id': '15b3', 'product_id': '101e',
                'dev_type': 'type-VF', 'parent_ifname': name})
            for name in cases.PROVIDERS)), 'idle')


def hold(state, holder, text):
    """Put a host in quarantine, after an aggregate that is not about it."""
    state.aggregates = [
        *(state.aggregates or [objects.Aggregate(
            id=1, name='zone', hosts=[state.host],
            metadata={'availability_zone': 'one'})]),
        objects.Aggregate(
            id=2, name=quarantine.aggregate_name(holder), hosts=[state.host],
            metadata={quarantine.MARK: holder,
                      quarantine.key(state.host): text,
                      quarantine.key('another'): 'another reason'})]


def host_state_of_service(version):
    """A HostState of which only the version of nova-compute is known."""
    state = host_manager.HostState('host', 'host', str(uuid.UUID(int=1)))
    state.service = {'version': version}
    return state


def candidates(case, provider):
    return [
        {'allocations': {provider: {'resources': {'MEMORY_MB': number + 1}}},
         'mappings': copy.deepcopy(mapping)}
        for number, mapping in enumerate(case.mappings)]


def request_spec(case, extra_specs=None):
    """A RequestSpec, as nova-scheduler receives it."""
    vcpus = sum(cell.pcpus + cell.vcpus for cell in case.guest)
    memory_mib = sum(cell.memory_mib for cell in case.guest)
    instance = str(uuid.uuid4())
    return objects.RequestSpec(
        instance_uuid=instance, num_instances=1,
        flavor=_constant(objects.Flavor(
            name='hpc', vcpus=vcpus, memory_mb=memory_mib, root_gb=1,
            ephemeral_gb=0, swap=0, extra_specs=extra_specs or {})),
        image=_constant(
            objects.ImageMeta(properties=objects.ImageMetaProps())),
        numa_topology=guest_topology(case) if case.guest else None,
        pci_requests=_constant(objects.InstancePCIRequests(
            instance_uuid=instance, requests=pci_requests(case))),
        network_metadata=_constant(network_metadata(case)),
        scheduler_hints={}, requested_resources=[],
        limits=_constant(objects.SchedulerLimits()))


def _constant(part):
    """Exclude a part of a request from copies.

    Nova's filter copies the request for each host, but it changes only the
    NUMA topology.
    """
    part.__deepcopy__ = lambda _memo: part
    return part
