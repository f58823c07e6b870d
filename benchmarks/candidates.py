# SPDX-License-Identifier: Apache-2.0

"""Measure the time of HPCTopologyFilter for a host with many candidates.

    python -m benchmarks.candidates

Placement offers a guest that requests 6 of the 16 devices of a host up to
8,008 allocation candidates. Run it from the root of the repository. Each line
has the CPU time for one host in milliseconds, and how many candidates are
left, for 1, 10, 100 and 1,000 of them. Where they end, Nova's filters answer
the same with 100 candidates, in the last column. The exit status is 1 if a
host takes too long.

The time cannot be the same for 1,000 candidates as for one. The last line says
how long it takes to do no more than look up the cells of the devices of 1,000
candidates, which any decision needs: longer than the whole decision about one
candidate in the quickest of these cases.
"""

import dataclasses
import itertools
import os
import random
import sys
import uuid
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

from nova import objects
from nova.objects import pci_device_pool
from nova.pci import stats
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter

from benchmarks import fleet
from hpcvirt.nova import decision

#: Limit of the time for a host, in milliseconds.
LIMIT_MS = 200
COUNTS = (1, 10, 100, 1000)
#: The number of candidates that Nova's filters get.
NOVAS_COUNT = 100
DEVICES = 16
GPU = {'vendor_id': '10de', 'product_id': '2330'}


@dataclasses.dataclass(frozen=True)
class Case:
    """A host with 16 GPUs, and a guest.

    :ivar guest: the PCPUs of each guest cell
    :ivar gpus: the GPUs of each request; one request is an alias with a count
    :ivar nova_ends: whether Nova's filters end within a minute: for each
        candidate, they may try all arrangements of the guest's cells
    """

    name: str
    cells: int
    guest: tuple[int, ...]
    gpus: tuple[int, ...]
    affinity: str | None = None
    nova_ends: bool = False


_UNEQUAL = tuple(range(1, 8))
CASES = (
    Case('7 unequal cells of 8, 6 GPUs', 8, _UNEQUAL, (6,)),
    Case('the same, preferred', 8, _UNEQUAL, (6,), 'preferred'),
    Case('7 unequal cells of 16, 6 GPUs', 16, _UNEQUAL, (6,)),
    Case('the same, preferred', 16, _UNEQUAL, (6,), 'preferred'),
    Case('7 unequal cells of 16, 6 requests', 16, _UNEQUAL, (1,) * 6),
    Case('4 equal cells of 4, 8 GPUs', 4, (4,) * 4, (8,), nova_ends=True),
    Case('4 equal cells of 8, 8 GPUs', 8, (4,) * 4, (8,)),
    Case('the same, socket', 8, (4,) * 4, (8,), 'socket'),
    Case('2 equal cells of 8, 2 GPUs', 8, (4,) * 2, (2,), nova_ends=True),
    Case('2 equal cells of 8, 8 requests', 8, (4,) * 2, (1,) * 8),
)


def main() -> int:
    """Measure all cases and print a line for each."""
    fleet.configure()
    print(f'{"":34}' + ''.join(f'{count:>16}' for count in COUNTS)
          + f'{f"Nova, {NOVAS_COUNT}":>18}')
    worst = 0.0
    for case in CASES:
        for name, occupancy in (('empty', fleet.busy()),
                                ('in use', fleet.at_random)):
            host = make_host(case, occupancy)
            line = f'{case.name}, {name}'
            shown = []
            for count in COUNTS:
                left, spent = measure(case, host, count)
                shown.append(f'{spent:>9.1f} {left:>6}')
                worst = max(worst, spent)
            if case.nova_ends:
                left, spent = measure_nova(case, host, NOVAS_COUNT)
                shown.append(f'{spent:>11.1f} {left:>6}')
            print(f'{line:42}' + ''.join(shown), flush=True)
    quickest = next(case for case in CASES if case.nova_ends)
    print(f'only to look up cells, {COUNTS[-1]} candidates: '
          f'{measure_reading(quickest, COUNTS[-1]):.2f} ms')
    print('ok' if worst <= LIMIT_MS else 'MISSED')
    return int(worst > LIMIT_MS)


def make_host(case: Case, occupancy: fleet.Occupancy) -> Any:
    """Build a HostState whose GPUs are in Placement."""
    host, = fleet.hosts(1, case.cells, occupancy, nics=())
    host.pci_stats = stats.PciDeviceStats(
        host.numa_topology, stats=pci_device_pool.from_pci_stats([
            {**GPU, 'numa_node': number * case.cells // DEVICES,
             'address': f'0000:{number:02x}:00.0', 'dev_type': 'type-PCI',
             'count': 1, 'rp_uuid': provider_of(number)}
            for number in range(DEVICES)]), dev_filter=fleet.NO_DEVICE_FILTER)
    return host


def provider_of(number: int) -> str:
    """Return the resource provider of a GPU."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f'gpu{number}'))


def make_request(case: Case) -> Any:
    """Build a RequestSpec."""
    starts = [*itertools.accumulate(case.guest, initial=0)]
    spec = fleet.request(
        1, pcpus=sum(case.guest), memory_mib=512 * sum(case.guest),
        extra_specs={
            'hw:numa_nodes': str(len(case.guest)),
            **{f'hw:numa_cpus.{number}':
               f'{starts[number]}-{starts[number + 1] - 1}'
               for number in range(len(case.guest))},
            **{f'hw:numa_mem.{number}': str(512 * pcpus)
               for number, pcpus in enumerate(case.guest)}})
    spec.pci_requests.requests = [objects.InstancePCIRequest(
        count=count, request_id=str(uuid.uuid4()), alias_name='gpu',
        numa_policy=case.affinity, spec=[dict(GPU)]) for count in case.gpus]
    return spec


def list_candidates(host: Any, requests: Sequence[Any],
                    count: int) -> list[Any]:
    """List random allocation candidates of a host, all of them different."""
    dice = random.Random(0)
    groups: list[str] = []
    for request in requests:
        groups += [f'{request.request_id}-{number}'
                   for number in range(request.count)]
    chosen = [*itertools.islice(itertools.combinations(
        range(DEVICES), len(groups)), 20_000)]
    candidates = []
    for numbers in dice.sample(chosen, min(count, len(chosen))):
        mappings = {'': [host.uuid]}
        for group, number in zip(groups, numbers, strict=True):
            mappings[group] = [provider_of(number)]
        candidates.append({'allocations': {}, 'mappings': mappings})
    return candidates


def measure(case: Case, host: Any, count: int) -> tuple[int, float]:
    """Filter a host; return the candidates left, and milliseconds."""
    spec = make_request(case)
    offer(host, spec, count)
    request = decision.FilterDecision(spec)
    _, spent = fleet.timed(lambda: list(request.judge([host])))
    return len(host.allocation_candidates), spent / 1000


def measure_nova(case: Case, host: Any, count: int) -> tuple[int, float]:
    """Do what :func:`measure` does with the filters of Nova."""
    spec = make_request(case)
    offer(host, spec, count)
    filters = (numa_topology_filter.NUMATopologyFilter(),
               pci_passthrough_filter.PciPassthroughFilter())
    passes, spent = fleet.timed(lambda: all(
        each.host_passes(host, spec) for each in filters))
    return len(host.allocation_candidates) if passes else 0, spent / 1000


def measure_reading(case: Case, count: int) -> float:
    """Look up the cells of all devices of candidates; return milliseconds."""
    requests = make_request(case).pci_requests.requests
    host = make_host(case, fleet.busy())
    candidates = list_candidates(host, requests, count)
    cells = {pool['rp_uuid']: pool['numa_node']
             for pool in host.pci_stats.pools}
    _, spent = fleet.timed(lambda: [
        tuple(map(cells.get, (
            providers[0] for providers in candidate['mappings'].values())))
        for candidate in candidates])
    return spent / 1000


def offer(host: Any, spec: Any, count: int) -> None:
    """Give a host, whose record is new, allocation candidates."""
    fleet.prepare([host])
    fleet.renew([host])
    host.allocation_candidates = list_candidates(
        host, spec.pci_requests.requests, count)


if __name__ == '__main__':
    sys.exit(main())
