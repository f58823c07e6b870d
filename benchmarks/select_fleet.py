# SPDX-License-Identifier: Apache-2.0

"""Run nova-scheduler on a database and a Placement in memory.

Only the queries are replaced. Nova's own code turns the rows of the tables
``compute_nodes`` and ``services`` into objects, and the response of Placement
is parsed from JSON for every request. Everything else is nova-scheduler, with
the filters and weighers that nova.conf selects.
"""

import datetime
import types
import uuid
from collections.abc import Sequence
from typing import Any

import fleet
import nova.conf
from nova import context as nova_context
from nova import objects
from nova import rpc
from nova.db.main import api as main_db
from nova.objects import compute_node
from nova.objects import service
from nova.scheduler import host_manager
from nova.scheduler import manager
from nova.scheduler import utils
from nova.servicegroup import api as servicegroup
from oslo_serialization import jsonutils

#: Hosts with different topologies and usage; a larger fleet repeats them.
DIFFERENT = 100
ROOT = 'benchmark'


class Database:
    """The rows of compute hosts, and the responses of Placement."""

    def __init__(self, hosts: int, states: Sequence[Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        bodies = [_body(state) for state in states]
        self.nodes = []
        self.services = []
        for number in range(hosts):
            name = f'host{number}'
            known = {'id': number + 1, 'host': name, 'created_at': now,
                     'updated_at': now, 'deleted_at': None, 'deleted': 0}
            self.nodes.append({
                **bodies[number % len(bodies)], **known,
                'uuid': str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
                'service_id': None, 'hypervisor_hostname': name})
            self.services.append({
                **known, 'uuid': str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
                'binary': 'nova-compute', 'topic': 'compute',
                'report_count': 1, 'disabled': False, 'disabled_reason': None,
                'availability_zone': 'nova', 'last_seen_up': now,
                'forced_down': False, 'version': service.SERVICE_VERSION})
        uuids = [node['uuid'] for node in self.nodes]
        self.candidates = jsonutils.dumps({
            'allocation_requests': [{
                'allocations': {each: {'resources': {
                    'PCPU': 8, 'MEMORY_MB': 8192, 'DISK_GB': 20}}},
                'mappings': {'': [each]}} for each in uuids],
            'provider_summaries': {each: {
                'resources': {name: {'capacity': 1 << 20, 'used': 0}
                              for name in ('PCPU', 'MEMORY_MB', 'DISK_GB')},
                'traits': ['COMPUTE_NODE', 'HW_CPU_X86_AVX2'],
                'parent_provider_uuid': None, 'root_provider_uuid': each}
                for each in uuids}})

    def refresh(self) -> None:
        """Refresh the heartbeats, so that all compute services are up."""
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        for row in self.services:
            row['last_seen_up'] = now


class Placement:
    """The client of Placement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_allocation_candidates(self, *_: Any) -> tuple[Any, Any, str]:
        answer = jsonutils.loads(self._database.candidates)
        return (answer['allocation_requests'], answer['provider_summaries'],
                '1.36')


class Scheduler(manager.SchedulerManager):
    """The manager of nova-scheduler, without its service."""

    placement_client: Any = None

    def __init__(self, database: Database) -> None:
        self.notifier = types.SimpleNamespace(info=lambda *_: None)
        self.placement_client = Placement(database)
        self.host_manager = host_manager.HostManager()
        self.host_manager._instance_info = {
            row['host']: {'instances': {}, 'updated': True}
            for row in database.nodes}


def configure(filters: Sequence[str], weighers: Sequence[str]) -> None:
    """Set the options that nova.conf of nova-scheduler would set."""
    conf = nova.conf.CONF
    conf.set_override('available_filters', [
        'nova.scheduler.filters.all_filters',
        'hpcvirt.nova.filters.all_filters'], 'filter_scheduler')
    conf.set_override('enabled_filters', [
        'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
        'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter',
        *filters], 'filter_scheduler')
    conf.set_override('weight_classes', [
        'nova.scheduler.weights.all_weighers', *weighers],
        'filter_scheduler')
    conf.set_override('disable_fallback_pcpu_query', True, 'workarounds')


def scheduler(database: Database) -> Scheduler:
    """Return a scheduler for a database."""
    objects.register_all()
    rpc.NOTIFIER = types.SimpleNamespace(is_enabled=lambda: False)
    cell = objects.CellMapping(id=1, uuid=str(uuid.UUID(int=9)),
                               name='cell1', disabled=False)
    objects.CellMappingList.get_all = classmethod(
        lambda *_: objects.CellMappingList(objects=[cell]))
    objects.AggregateList.get_all = classmethod(
        lambda *_: objects.AggregateList(objects=[]))
    host_manager.HostManager._init_instance_info = lambda *_: None
    nova_context.scatter_gather_cells = (
        lambda context, cells, _timeout, read, *arguments:
        {each.uuid: read(context, *arguments) for each in cells})
    compute_node.ComputeNodeList._db_compute_node_get_all_by_uuids = (
        staticmethod(lambda *_: database.nodes))
    main_db.service_get_all_by_binary = (lambda *_, **__: database.services)
    service.Service._db_service_get_minimum_version = staticmethod(
        lambda _, binaries, **__: dict.fromkeys(binaries,
                                                service.SERVICE_VERSION))
    utils.claim_resources = lambda *_, **__: True
    servicegroup.CONF.set_override('service_down_time', 1 << 30)
    return Scheduler(database)


def request(cells: int, vfs: int, pcpus: int) -> Any:
    """Build a RequestSpec as nova-scheduler receives it."""
    spec = fleet.request(cells, vfs, pcpus=pcpus)
    for name in ('ignore_hosts', 'force_hosts', 'force_nodes', 'retry',
                 'requested_destination'):
        setattr(spec, name, None)
    spec.security_groups = objects.SecurityGroupList(objects=[])
    spec.is_bfv = False
    spec.requested_networks = objects.NetworkRequestList(objects=[])
    return spec


def _body(state: Any) -> dict[str, Any]:
    """Write a HostState as a row of the table of compute nodes."""
    cells = len(state.numa_topology.cells)
    return {
        'vcpus': cells * fleet.CORES * fleet.THREADS, 'vcpus_used': 0,
        'memory_mb': cells * fleet.CELL_MIB, 'memory_mb_used': 0,
        'free_ram_mb': cells * fleet.CELL_MIB, 'local_gb': 1000,
        'local_gb_used': 0, 'free_disk_gb': 1000,
        'disk_available_least': None, 'hypervisor_type': 'QEMU',
        'hypervisor_version': 10000000, 'current_workload': 0,
        'running_vms': 0, 'cpu_info': '{"arch": "x86_64"}', 'metrics': '[]',
        'stats': '{"num_instances": "0", "io_workload": "0"}',
        'host_ip': '192.0.2.1', 'mapped': 1,
        'supported_instances': '[["x86_64", "kvm", "hvm"]]',
        'numa_topology': state.numa_topology._to_json(),
        'pci_stats': jsonutils.dumps(
            state.pci_stats.to_device_pools_obj().obj_to_primitive()),
        'cpu_allocation_ratio': 1.0, 'ram_allocation_ratio': 1.0,
        'disk_allocation_ratio': 1.0}
