# SPDX-License-Identifier: Apache-2.0

"""Build fleets of compute hosts as HostStates of nova-scheduler, and requests.

The occupancy is random with a fixed seed: in each cell a random fraction of
the cores is pinned, one core in five of them by a single thread, and the same
fraction of the huge pages is used.
"""

import gc
import logging
import random
import time
import uuid
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import nova.conf
from nova import objects
from nova.objects import pci_device_pool
from nova.pci import stats
from nova.pci import whitelist
from nova.scheduler import host_manager
from nova.virt import hardware

from hpcvirt.nova import adapter
from hpcvirt.nova import claim_input

objects.register_all()

CORES, THREADS = 8, 2
CELL_MIB, HUGE_MIB, GIANT_MIB = 65536, 32768, 8192
PHYSNET = 'hpc'
NO_DEVICE_FILTER = whitelist.Whitelist([])

Occupancy = Callable[[int, random.Random], float]


def at_random(_cell: int, dice: random.Random) -> float:
    """Fill each cell to a random degree."""
    return dice.random()


def busy(*cells: int) -> Occupancy:
    """Fill some cells completely and leave the others empty."""
    return lambda cell, _dice: float(cell in cells)


def passing(share: float) -> Occupancy:
    """Leave room in each cell of a share of the hosts, and nowhere else."""
    passes = False

    def fill(cell: int, dice: random.Random) -> float:
        nonlocal passes
        if not cell:
            passes = dice.random() < share
        return 0.3 if passes else dice.choice((0.9, 1.0))

    return fill


def configure() -> None:
    """Use the defaults of Nova's options, and log only warnings."""
    nova.conf.CONF([], project='nova', default_config_files=[])
    for name in ('nova', 'hpcvirt'):
        logging.getLogger(name).setLevel(logging.WARNING)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call a function without garbage collection.

    :returns: its result, and its CPU time in microseconds
    """
    gc.collect()
    gc.disable()
    start = time.process_time()
    result = work()
    spent = time.process_time() - start
    gc.enable()
    return result, spent * 1e6


def hosts(count: int, cells: int, occupancy: Occupancy = at_random,
          nics: Sequence[int | None] = (None, None),
          seed: int = 1) -> list[Any]:
    """Build HostStates.

    :param nics: the cell of each network card with eight VFs; None chooses a
        random cell
    """
    dice = random.Random(seed)
    return [_host(f'host{number}', cells, occupancy, nics, dice)
            for number in range(count)]


def prepare(fleet: Sequence[Any], candidates: int = 1) -> None:
    """Return hosts in the state in which a new request reaches the filters."""
    for state in fleet:
        state.limits = {}
        vars(state).pop(claim_input.ACCOUNT, None)
        state.allocation_candidates = [
            {'allocations': {state.uuid: {'resources': {'PCPU': 1}}},
             'mappings': {'': [state.uuid]}} for _ in range(candidates)]


def renew(fleet: Sequence[Any]) -> None:
    """Make the records of hosts new, as if nova-scheduler had read them."""
    for state in fleet:
        vars(state).pop(adapter.CHECKED, None)


def request(cells: int, vfs: int = 0, affinity: str = 'required',
            pcpus: int = 4, memory_mib: int = 4096,
            extra_specs: Mapping[str, str] | None = None) -> Any:
    """Build a RequestSpec.

    :param cells: guest cells; 0 for a guest without NUMA topology
    :param pcpus: dedicated CPUs of each guest cell
    :param memory_mib: memory of each guest cell, in pages of 2 MiB
    :param extra_specs: more extra specs, or other values
    """
    flavor = objects.Flavor(
        name='hpc', vcpus=max(cells, 1) * pcpus,
        memory_mb=max(cells, 1) * memory_mib,
        root_gb=20, ephemeral_gb=0, swap=0, extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': str(cells),
            'hw:mem_page_size': '2048', **(extra_specs or {})}
        if cells else {})
    image = objects.ImageMeta(properties=objects.ImageMetaProps())
    instance = str(uuid.uuid4())
    return objects.RequestSpec(
        instance_uuid=instance, num_instances=1, flavor=flavor, image=image,
        numa_topology=hardware.numa_get_constraints(flavor, image),
        pci_requests=objects.InstancePCIRequests(
            instance_uuid=instance, requests=[
                objects.InstancePCIRequest(
                    count=1, request_id=str(uuid.uuid4()), alias_name=None,
                    requester_id=str(uuid.uuid4()), numa_policy=affinity,
                    spec=[{'physical_network': PHYSNET,
                           'dev_type': 'type-VF', 'remote_managed': 'False'}])
                for _ in range(vfs)]),
        network_metadata=objects.NetworkMetadata(physnets=set(),
                                                 tunneled=False),
        scheduler_hints={}, requested_resources=[], project_id='project',
        user_id='user', availability_zone=None, instance_group=None,
        limits=objects.SchedulerLimits(),
        request_level_params=objects.RequestLevelParams())


def _host(name: str, cells: int, occupancy: Occupancy,
          nics: Sequence[int | None], dice: random.Random) -> Any:
    state = host_manager.HostState(name, name, str(uuid.UUID(int=1)))
    state.uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    # As it comes from the database.
    state.numa_topology = objects.NUMATopology.obj_from_db_obj(
        objects.NUMATopology(cells=[
            _cell(cell, cells, occupancy(cell, dice), dice)
            for cell in range(cells)])._to_json())
    pools = []
    for number, cell in enumerate(nics):
        pools += nic(number, dice.randrange(cells) if cell is None else cell)
    state.pci_stats = stats.PciDeviceStats(
        state.numa_topology, stats=pci_device_pool.from_pci_stats(pools),
        dev_filter=NO_DEVICE_FILTER)
    state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
    return state


def _cell(number: int, cells: int, full: float, dice: random.Random) -> Any:
    first = number * CORES * THREADS
    siblings = [set(range(cpu, cpu + THREADS)) for cpu in
                range(first, first + CORES * THREADS, THREADS)]
    pinned: set[int] = set()
    for core in dice.sample(siblings, round(CORES * full)):
        pinned |= core if dice.random() < 0.8 else {min(core)}
    huge = HUGE_MIB // 2
    used = int(huge * full)
    return objects.NUMACell(
        id=number, socket=number * 2 // cells, cpuset=set(),
        pcpuset=set().union(*siblings), pinned_cpus=pinned,
        siblings=siblings, cpu_usage=0, memory=CELL_MIB,
        memory_usage=used * 2,
        mempages=[
            objects.NUMAPagesTopology(
                size_kb=size, total=total, used=taken, reserved=0)
            for size, total, taken in (
                (4, (CELL_MIB - HUGE_MIB - GIANT_MIB) * 256, 0),
                (2048, huge, used), (1 << 20, GIANT_MIB // 1024, 0))],
        network_metadata=objects.NetworkMetadata(physnets=set(),
                                                 tunneled=False))


def nic(number: int, cell: int) -> list[dict[str, Any]]:
    """Build the pools of a network card with eight VFs."""
    alike = {'vendor_id': '8086', 'numa_node': cell,
             'physical_network': PHYSNET, 'remote_managed': 'false',
             'address': f'{number >> 7:04x}:{number + 0x81 & 0xff:02x}:00.0'}
    return [{**alike, 'product_id': '1528', 'dev_type': 'type-PF',
             'count': 1},
            {**alike, 'product_id': '1515', 'dev_type': 'type-VF',
             'count': 8, 'parent_ifname': f'ens{number}f0'}]
