# SPDX-License-Identifier: Apache-2.0

r"""Replay requests for GPUs with legal sets, and with Nova's first match.

The pods of Alibaba's cluster-trace-gpu-v2023 [FGD-Weng-2023] are requests for
1, 2, 4 or 8 whole GPUs on hosts like an HGX H200::

    python benchmarks/device_sets_replay.py openb_pod_list_multigpu50.csv \
        --times openb_pod_list_default.csv

The list with many pods of several GPUs was sampled by its authors without
times. With --times, its pods arrive at random in a random order, and live as
long as a random pod of the other list with as many GPUs. The times are scaled
so that the pods request the --load of the GPUs.

A host has two cells, each with 64 CPUs and four GPUs. All eight GPUs are
connected by NVSwitch, but the fabric manager connects only the GPUs of a
partition: the eight, the four of a cell, or a pair.
Pairs are neighbors in the order of PCI addresses, which favors the first
match. Every GPU has an eighth of the CPUs and memory of its host, so that only
GPUs are scarce.

``first match``
  Flavors request an alias K times. Nova takes the first free devices in the
  order of their addresses, and knows no partitions. A guest whose GPUs are of
  no common partition is counted as illegal: it has no NVLink between some of
  its GPUs.
``sets``
  Flavors have ``hpcvirt:device_set``, and get a partition or are refused.

Guests without NUMA topology get devices of any cell. Guests with dedicated
CPUs have one cell, or two for eight GPUs, and Nova gives them devices of these
cells. "Served" is the share of the requests that got a legal set.
"""

import argparse
import collections
import dataclasses
import random
import sys
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import text_table
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import compiled_flavor
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import host_table
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

SIZES = (1, 2, 4, 8)
GPUS, CELLS, CPUS, MIB = 8, 2, 64, 1 << 20
#: Requests at the start that do not count, while the hosts fill.
WARM_UP = 0.2
SEED = 0

#: How devices are chosen, and the strategy of choosing hosts.
ROWS = (('first match', 'nova'), ('first match', 'packing'),
        ('sets', 'nova'), ('sets', 'hpcvirt'))
HEADINGS = ('Guests', 'Devices', 'Hosts', 'GPUs', 'Asked', 'Accepted',
            'Illegal', 'Served', 'GPU-hours')


@dataclasses.dataclass(frozen=True)
class Pod:
    """A pod; its time and life in seconds are None if they are unknown."""

    gpus: int
    time: float | None = None
    life: float | None = None


def read(path: str) -> list[Pod]:
    """Read the pods that request GPUs; those with times must have lived.

    :raises InvalidInput: with the file, and the row that is wrong
    """
    table = tables.Table(logs.Log(path))
    found = []
    for gpus, created, scheduled, deleted in table.rows(
            'num_gpu', 'creation_time', 'scheduled_time', 'deletion_time'):
        count = table.whole(gpus, 'num_gpu', GPUS + 1)
        if count not in SIZES:
            continue
        if not created:
            found.append(Pod(count))
        elif scheduled and deleted:
            life = (table.time(deleted, 'deletion_time')
                    - table.time(scheduled, 'scheduled_time'))
            if life > 0:
                found.append(Pod(count, table.time(created, 'creation_time'),
                                 life))
    if not found:
        raise exception.InvalidInput(path, 'has no pod with GPUs')
    return found


def give_times(pods: Sequence[Pod], like: Sequence[Pod]) -> list[Pod]:
    """Give pods random times, and lives of pods with as many GPUs."""
    dice = random.Random(SEED)
    lives = collections.defaultdict(list)
    for pod in like:
        if pod.life is not None:
            lives[pod.gpus].append(pod.life)
    found, time = [], 0.0
    for pod in dice.sample(pods, len(pods)):
        if not lives[pod.gpus]:
            raise exception.InvalidInput(
                '--times', f'has no pod with {pod.gpus} GPUs')
        found.append(Pod(pod.gpus, time, dice.choice(lives[pod.gpus])))
        time += dice.expovariate(1)
    return found


def flavor(gpus: int, legal: bool, pinned: bool) -> flavor_model.Flavor:
    """Make a flavor with a number of GPUs and their share of a host."""
    cpus = gpus * CELLS * CPUS // GPUS
    specs = {'pci_passthrough:alias': f'gpu:{gpus}'}
    if pinned:
        specs |= {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
                  'hw:numa_nodes': str(-(-gpus * CELLS // GPUS))}
    if legal:
        specs['hpcvirt:device_set'] = f'gpu{gpus}'
    return flavor_model.Flavor(
        f'gpu{gpus}', cpus, gpus * CELLS * MIB // GPUS, 0, specs)


def make_host(legal: bool, pinned: bool) -> supplies.Supply:
    """Make an empty host."""
    cells = []
    for number in range(CELLS):
        cpus = frozenset(range(number * CPUS, (number + 1) * CPUS))
        cells.append(supplies.CellSupply(
            number, number, cpus if pinned else frozenset(),
            cpus if pinned else frozenset(),
            frozenset() if pinned else cpus,
            tuple(frozenset((cpu,)) for cpu in sorted(cpus)), 0, MIB, 0,
            (supplies.PageSupply(2048, MIB // 2, 0, MIB // 2),)))
    return supplies.Supply(tuple(cells), tuple(
        devices.Pool(gpu * CELLS // GPUS, 1, {
            devices.alias_tag('gpu'): True,
            **({device_sets.TAG: device_sets.render(
                device_sets.DeviceSet(f'gpu{size}', gpu // size, size)
                for size in SIZES)} if legal else {})}, f'gpu{gpu}')
        for gpu in range(GPUS)))


class Scheduler(schedulers.Scheduler):
    """A scheduler that notes whether guests got legal sets."""

    def __init__(self, table: host_table.HostTable,
                 flavors: Sequence[guests.Guest],
                 strategy: strategies.Strategy) -> None:
        super().__init__(table, flavors, strategy)
        self.legal: list[bool] = []

    def place(self, number: int, count: int) -> list[host_table.Running]:
        placed = super().place(number, count)
        for running in placed:
            taken = [gpu // SIZES[number] for gpu, count
                     in enumerate(running.holding.devices) if count]
            self.legal.append(len(taken) == SIZES[number]
                              and len(set(taken)) == 1)
        return placed


@dataclasses.dataclass
class Tally:
    """What became of the requests for a number of GPUs."""

    asked: int = 0
    accepted: int = 0
    legal: int = 0
    hours: float = 0.0
    served: float = 0.0


def run(pods: Sequence[Pod], hosts: int, load: float, how: str, name: str,
        pinned: bool) -> Mapping[int, Tally]:
    """Replay pods over empty hosts.

    :returns: the number of GPUs -> what became of the requests
    """
    legal = how == 'sets'
    flavors = tuple(compiled_flavor.make(flavor(size, legal, pinned))
                    for size in SIZES)
    asked = request_model.scale_to_load(request_model.Requests(flavors, tuple(
        request_model.Arrival(pod.time or 0.0, pod.life or 0.0,
                              SIZES.index(pod.gpus)) for pod in sorted(
            pods, key=lambda pod: pod.time or 0.0))),
        hosts * CELLS * CPUS, load)
    (strategy,) = strategies.parse(name, 0)
    table = host_table.HostTable(
        [placement.add_up(make_host(legal, pinned))] * hosts,
        replay.relax_flavors(flavors))
    scheduler = Scheduler(table, flavors, strategy)
    fates = replay.run_events(asked, scheduler).fates
    found = {size: Tally() for size in SIZES}
    notes = iter(scheduler.legal)
    skipped = int(WARM_UP * len(fates))
    for place, (arrival, fate) in enumerate(zip(asked.arrivals, fates,
                                                strict=True)):
        is_legal = fate is None and next(notes)
        if place < skipped:
            continue
        tally = found[SIZES[arrival.flavor]]
        hours = SIZES[arrival.flavor] * arrival.duration / 3600
        tally.asked += 1
        tally.accepted += fate is None
        tally.legal += is_legal
        tally.hours += hours
        tally.served += hours * is_legal
    return found


def rows(pods: Sequence[Pod], hosts: int, load: float,
         ) -> list[tuple[str, ...]]:
    """Replay pods in all ways, and write the lines of the table."""
    lines = []
    for pinned in (False, True):
        for how, name in ROWS:
            found = run(pods, hosts, load, how, name, pinned)
            every = [sum(getattr(each, key) for each in found.values())
                     for key in ('asked', 'accepted', 'legal', 'hours',
                                 'served')]
            for size, tally in (*found.items(), ('all', Tally(*every))):
                if size == 1 or not tally.asked:
                    continue
                lines.append((
                    'dedicated CPUs' if pinned else 'no topology', how, name,
                    str(size), str(tally.asked), str(tally.accepted),
                    str(tally.accepted - tally.legal),
                    f'{tally.legal / tally.asked:.1%}',
                    f'{tally.served / tally.hours:.1%}'))
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pods', help='a list of pods with num_gpu, as CSV')
    parser.add_argument('--times', help='a list with the lives of pods')
    parser.add_argument('--hosts', type=int, default=32)
    parser.add_argument('--load', type=float, default=0.9)
    args = parser.parse_args(argv)
    try:
        pods = read(args.pods)
        if args.times is not None:
            pods = give_times(pods, read(args.times))
        lines = rows(pods, args.hosts, args.load)
    except exception.HpcvirtError as exc:
        print(f'device_sets_replay: {exc}', file=sys.stderr)
        return 2
    print(text_table.draw(HEADINGS, lines, {*HEADINGS[3:]}, 200), end='')
    return 0


if __name__ == '__main__':
    sys.exit(main())
