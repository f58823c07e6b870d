# SPDX-License-Identifier: Apache-2.0

"""Repeat the comparison of the demonstration with other seeds, without Nova.

The demonstration lets an embedded Nova place one sequence of requests in
three ways, which takes minutes. Here the scheduler of ``hpcvirt simulate``
places such sequences on the same hosts, in seconds::

    PYTHONPATH=. python benchmarks/seeds.py
    PYTHONPATH=. python benchmarks/seeds.py --seed 3 --others 100

The other seeds are the first numbers from 1 on, without the seed of the
demonstration. A seed is better if more guests start with hpcvirt than without
it, and worse if fewer do.
"""

import argparse
import dataclasses
import itertools
import json
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from demo import fleet
from demo import workload
from hpcvirt.cmd import hosts as host_arguments
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import planner
from hpcvirt.model import shape
from hpcvirt.simulate import host_table
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy as strategies

#: The strategies of the demonstration.
STRATEGIES: Mapping[str, strategies.Strategy] = {
    name: strategies.parse(what, 0)[0] for name, what in (
        ('hpcvirt', 'hpcvirt+fullest'), ('nova', 'nova'),
        ('packing', 'packing+fullest'))}


@dataclasses.dataclass(frozen=True)
class Scene:
    """The hosts and flavors of the demonstration.

    :ivar hosts: the empty hosts
    """

    hosts: tuple[placement.HostState, ...]
    flavors: Mapping[str, guests.Guest]
    demands: tuple[workload.Demand, ...]

    @property
    def capacity(self) -> int:
        return sum(host.free.pcpus for host in self.hosts)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The number of requests of a sequence, and of those that started.

    :ivar small: small guests, which start and end
    :ivar large: large guests, which are requested afterwards
    """

    small: int
    large: int


def scene() -> Scene:
    """Plan the flavors of the demonstration."""
    hosts: dict[str, placement.HostState] = {}
    flavors = {}
    requested = []
    for one in fleet.PLANS:
        plan = planner.plan(
            [fleet.read(name) for name in one.hosts],
            host_arguments.read_profile(
                str(fleet.PROFILES / f'{one.profile}.yaml')))
        for host in plan.hosts:
            devices = bool(host.offered)
            if devices or host.name not in hosts:
                hosts[host.name] = host.state if devices else (
                    dataclasses.replace(host.state, supply=dataclasses.replace(
                        host.state.supply, pools=())))
        for flavor in plan.flavors:
            name = flavor.flavor.name
            # The flavor does not name the virtual functions of its ports.
            planned = guests.compile_shape(
                flavor.guest, flavor.flavor.vcpus, flavor.flavor.ram_mib)
            flavors[name] = dataclasses.replace(
                compiled_flavor.make(flavor.flavor), demand=planned.demand)
            requested.append(workload.Demand(
                name, flavor.flavor.vcpus, max(flavor.per_host.values())))
    return Scene(tuple(hosts.values()), flavors, tuple(requested))


def play(stage: Scene, events: Sequence[workload.Event],
         strategy: str) -> Outcome:
    """Place the requests of a sequence, as the demonstration does."""
    flavors = [flavor if strategy == 'hpcvirt' else _without_scope(flavor)
               for flavor in stage.flavors.values()]
    table = host_table.HostTable(stage.hosts, flavors)
    chooser = scheduler.Scheduler(table, flavors, STRATEGIES[strategy])
    numbers = {name: number for number, name in enumerate(stage.flavors)}
    there: dict[str, list[host_table.Running]] = {}
    started = {False: 0, True: 0}
    for event in events:
        if event.flavor is None:
            chooser.remove(there.pop(event.label, ()))
            continue
        placed = chooser.place(numbers[event.flavor], 1)
        started[event.late] += len(placed)
        if event.late:
            chooser.remove(placed)
        else:
            there[event.label] = placed
    return Outcome(started[False], started[True])


def _without_scope(guest: guests.Guest) -> guests.Guest:
    """Remove the scope of a demand, which Nova's own filter ignores."""
    return dataclasses.replace(guest, demand=dataclasses.replace(
        guest.demand, numa_scope=shape.NUMAScope.HOST))


def compare(stage: Scene, seeds: Sequence[int],
            ) -> dict[int, dict[str, Outcome]]:
    """Play the sequences of several seeds with every strategy."""
    found = {}
    for seed in seeds:
        events = workload.events(stage.demands, stage.capacity, seed)
        found[seed] = {name: play(stage, events, name) for name in STRATEGIES}
    return found


def verdicts(outcomes: Mapping[int, Mapping[str, Outcome]],
             ) -> Iterator[tuple[str, str, int, int, int]]:
    """Count the seeds that are better, equal and worse with hpcvirt.

    :returns: (other strategy, size of guests, better, equal, worse)
    """
    for other in list(STRATEGIES)[1:]:
        for size in ('small', 'large'):
            more = [getattr(each['hpcvirt'], size) - getattr(each[other], size)
                    for each in outcomes.values()]
            yield (other, size, sum(one > 0 for one in more),
                   sum(one == 0 for one in more), sum(one < 0 for one in more))


def others(seed: int, count: int) -> list[int]:
    """Return the first numbers from 1 on, without the seed."""
    return list(itertools.islice(
        (number for number in itertools.count(1) if number != seed), count))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the results of the sequences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seed', type=int, default=1,
                        help='seed of the demonstration (default: '
                        '%(default)s)')
    parser.add_argument('--others', type=int, default=20, metavar='NUMBER',
                        help='number of other seeds (default: %(default)s)')
    parser.add_argument('--format', choices=('text', 'json'), default='text')
    args = parser.parse_args(argv)
    stage = scene()
    own = compare(stage, [args.seed])
    found = compare(stage, others(args.seed, args.others))
    counts = list(verdicts(found))
    if args.format == 'json':
        print(json.dumps({
            'own': {name: dataclasses.asdict(outcome) for name, outcome
                    in own[args.seed].items()},
            'others': [int(seed) for seed in found], 'verdicts': counts}))
        return 0
    for seed, outcomes in {**own, **found}.items():
        print(f'seed {seed:3}', *(
            f'{name}: {outcome.small} small, {outcome.large} large'
            for name, outcome in outcomes.items()), sep='  ')
    for other, size, better, equal, worse in counts:
        print(f'{size} guests, against {other}: {better} better, {equal} '
              f'equal, {worse} worse')
    return 0


if __name__ == '__main__':
    sys.exit(main())
