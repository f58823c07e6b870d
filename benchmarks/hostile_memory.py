# SPDX-License-Identifier: Apache-2.0

"""Measure the memory of a scheduler whose one compute host is hostile.

    python -m benchmarks.hostile_memory              20,000 updates
    python -m benchmarks.hostile_memory --updates N

Before each request, root of this host reports another record: devices with
other sets, names of interfaces, tags and addresses, cells with other CPUs and
page sizes, and what is malformed. The filter and the weighers of hpcvirt then
decide about this host and an honest one. Run it from the root of the
repository. The exit status is 1 if the process takes too much memory in the
end.
"""

import argparse
import logging
import os
import random
import resource
import sys
import uuid
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

from nova import objects

from benchmarks import candidates
from benchmarks import fleet
from hpcvirt.fit import device_sets
from hpcvirt.nova import config
from hpcvirt.nova import filters
from hpcvirt.nova import port_interface
from hpcvirt.nova import weights

#: Limit of the memory of the process.
LIMIT_MIB = 300
#: The length of a column of Nova's database.
TEXT = 60_000

CASE = candidates.Case('', 4, (4,), (2,), 'preferred')


def a_word(dice: random.Random, length: int) -> str:
    """Make a text that has not been before."""
    return f'{dice.getrandbits(64):x}'.ljust(length, 'x')


def change_sets(host: Any, dice: random.Random) -> None:
    """Report as many sets as are read, others for each device."""
    for pool in host.pci_stats.pools:
        pool[device_sets.TAG] = ','.join(
            f's{dice.getrandbits(30):x}:{number}:2' for number in range(60))


def report_long_sets(host: Any, dice: random.Random) -> None:
    """Report sets of the length of a column."""
    host.pci_stats.pools[0][device_sets.TAG] = ','.join(
        f's{dice.getrandbits(40)}:{number}:2' for number in range(2000))


def change_names(host: Any, dice: random.Random) -> None:
    """Report many interfaces."""
    pool = host.pci_stats.pools[0]
    host.pci_stats.pools += [
        {**pool, port_interface.TAG: f'{dice.getrandbits(48):x}',
         'address': a_word(dice, 12), 'rp_uuid': str(uuid.uuid4())}
        for _ in range(200)]


def change_tags(host: Any, dice: random.Random) -> None:
    """Report other tags, each as long as it may be."""
    for pool in host.pci_stats.pools:
        for tag in ('physical_network', 'product_id', 'remote_managed'):
            pool[tag] = a_word(dice, 1000)


def report_a_long_tag(host: Any, dice: random.Random) -> None:
    """Report a tag of the length of a column."""
    host.pci_stats.pools[0]['physical_network'] = a_word(dice, TEXT)


def change_cpus(host: Any, dice: random.Random) -> None:
    """Report other CPUs, as many as a column has room for."""
    for cell in host.numa_topology.cells:
        cpus = set(dice.sample(range(100_000), 1500))
        cell.pcpuset, cell.cpuset, cell.pinned_cpus = cpus, set(), set()
        cell.siblings = [{cpu} for cpu in cpus]


def change_pages(host: Any, dice: random.Random) -> None:
    """Report other pages and networks."""
    for cell in host.numa_topology.cells:
        cell.memory_usage = dice.randrange(1 << 15)
        for pages in cell.mempages:
            pages.total = dice.getrandbits(30)
        cell.network_metadata = objects.NetworkMetadata(
            physnets={a_word(dice, 1000) for _ in range(20)}, tunneled=False)


def report_many_sizes(host: Any, dice: random.Random) -> None:
    """Report many page sizes."""
    cell = host.numa_topology.cells[0]
    cell.mempages += [objects.NUMAPagesTopology(
        size_kb=dice.getrandbits(40), total=1, used=0, reserved=0)
        for _ in range(300)]


def rename(host: Any, dice: random.Random) -> None:
    """Report another name of the node."""
    host.nodename = a_word(dice, 255)


def break_a_field(host: Any, dice: random.Random) -> None:
    """Report a value that cannot be read, and that appears in the error."""
    host.pci_stats.pools[0]['count'] = -1 - dice.getrandbits(900)


ATTACKS: tuple[Callable[[Any, random.Random], None], ...] = (
    change_sets, report_long_sets, change_names, change_tags,
    report_a_long_tag, change_cpus, change_pages, report_many_sizes, rename,
    break_a_field)


def requests() -> list[Any]:
    """Build requests for GPUs in Placement, ports, and CPUs only."""
    gpus = candidates.make_request(CASE)
    in_sets = candidates.make_request(CASE)
    in_sets.flavor.extra_specs['hpcvirt:device_set'] = 's1'
    return [gpus, in_sets, fleet.request(2, 1, 'preferred'),
            fleet.request(1, extra_specs={'hw:cpu_thread_policy': 'require'})]


class Scheduler:
    """The filter and the weighers of a scheduler."""

    def __init__(self) -> None:
        self.updates = 0
        self._dice = random.Random(0)
        self._filter = filters.HPCTopologyFilter()
        self._weighers = [weigher() for weigher in weights.all_weighers()]
        self._specs = requests()
        self._honest = candidates.make_host(CASE, fleet.busy())
        self._honest.aggregates = []

    def update(self) -> None:
        """Let the hostile host report something, and schedule a request."""
        bad = candidates.make_host(CASE, fleet.at_random)
        bad.host, bad.aggregates = 'bad', []
        ATTACKS[self.updates % len(ATTACKS)](bad, self._dice)
        spec = self._specs[self.updates // len(ATTACKS) % len(self._specs)]
        self.updates += 1
        states = [bad, self._honest]
        fleet.prepare(states)
        fleet.renew(states)
        pci_requests = spec.pci_requests.requests
        if pci_requests and pci_requests[0].alias_name:
            for state in states:
                state.allocation_candidates = candidates.list_candidates(
                    state, pci_requests, 20)
        passed = list(self._filter.filter_all(states, spec))
        for weigher in self._weighers:
            weigher._weigh(passed, spec)


def peak() -> float:
    """Return the most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Print the memory as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--updates', type=int, default=20_000, metavar='N',
                        help='records of the host (default %(default)s)')
    arguments = parser.parse_args(argv)
    fleet.configure()
    config.register()
    logging.disable(logging.CRITICAL)
    scheduler = Scheduler()
    while scheduler.updates < arguments.updates:
        scheduler.update()
        if scheduler.updates % (arguments.updates // 10 or 1) == 0:
            print(f'{scheduler.updates:>8} {peak():>8.0f} MiB', flush=True)
    found = peak()
    print(f'{found:.0f} MiB', 'ok' if found <= LIMIT_MIB else 'MISSED')
    return int(found > LIMIT_MIB)


if __name__ == '__main__':
    sys.exit(main())
