# SPDX-License-Identifier: Apache-2.0

r"""Count instances that do not get the set of devices that they need.

Random instances of several sizes come and go on a few hosts, whose devices
have the traits of their ranks. Placement runs in this process on a database in
memory. For each request it lists the allocation candidates, HPCTopologyFilter
and HPCTopologyWeigher decide, and Placement gets the claim of the first
candidate; PciDeviceStats of Nova then says which devices the instance takes.
Some requests are decided by two schedulers at once: the loser of a device goes
to its next host, as in Nova.

Brute force knows the free sets of each host. For every request and host, the
candidates that the filter leaves must be exactly these sets::

    python -m benchmarks.device_sets                     1,000 of each case
    python -m benchmarks.device_sets --requests 100000   of each case

Run it from the root of the repository, with the Python of an environment that
has Nova and Placement. Hosts have no NUMA topology here. The times are CPU
times of a request, and the peak is that of the process so far. The exit status
is 1 if an instance got devices of no set, or was refused although a set was
free.
"""

import argparse
import collections
import dataclasses
import itertools
import os
import random
import resource
import sys
import time
import urllib.parse
import uuid
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import jsonschema
import nova.conf
from placement import deploy
from placement.tests.functional.fixtures import placement as fixture

from hpcvirt import text_table
from hpcvirt.nova import config
from hpcvirt.nova import filters
from hpcvirt.nova import weights
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import placement_app

#: The virtual functions of a card.
FUNCTIONS = 4
#: More candidates than any case has.
LIMIT = 100_000
#: The share of requests that another scheduler decides at the same time.
RACES = 0.2
#: The parts of a set: GPUs, and cards below the same switches.
GPU, VF = 'gpu', 'vf'

#: The devices of a host: the number of each, by part.
Devices = collections.Counter[tuple[str, int]]


@dataclasses.dataclass(frozen=True)
class Case:
    """Hosts and the kinds of sets that are requested.

    :ivar gpus: GPUs of each host
    :ivar kinds: the parts of a set, and its size
    """

    name: str
    hosts: int
    gpus: int
    kinds: tuple[tuple[tuple[str, ...], int], ...]


CASES = (
    Case('8 GPUs', 3, 8, tuple(((GPU,), size) for size in (1, 2, 4, 8))),
    Case('16 GPUs', 2, 16, tuple(((GPU,), size) for size in (1, 2, 4, 8, 16))),
    Case('8 GPUs, 8 cards', 2, 8, (
        *(((GPU,), size) for size in (1, 2, 4, 8)),
        *(((GPU, VF), size) for size in (1, 2, 4, 8)))),
    Case('16 GPUs, 16 cards', 2, 16, (
        *(((GPU,), size) for size in (1, 2, 4, 8, 16)),
        *(((GPU, VF), size) for size in (1, 16)))),
)


def name_of(parts: Sequence[str], size: int) -> str:
    """Name a kind of sets."""
    return f'{"-".join(parts)}{size}'


class Flavor:
    """A flavor of a set of devices, one request for each rank."""

    def __init__(self, parts: tuple[str, ...], size: int) -> None:
        self.parts, self.size = parts, size
        self.kind = name_of(parts, size)
        ranks = list(itertools.product(parts, range(size)))
        self.requests = tuple(
            cases.Request({'vendor_id': '10de', 'product_id': part}, 1, None,
                          f'{part}{size}-{rank}', str(uuid.uuid4()))
            for part, rank in ranks)
        query = [('resources', 'VCPU:1'), ('limit', str(LIMIT))]
        if len(ranks) > 1:
            query.append(('group_policy', 'none'))
        for request, (part, rank) in zip(self.requests, ranks, strict=True):
            query += [(f'resources{request.id}-0', f'CUSTOM_{part.upper()}:1'),
                      (f'required{request.id}-0', trait(part, size, rank))]
        self.query = '/allocation_candidates?' + urllib.parse.urlencode(query)


def trait(part: str, size: int, number: int) -> str:
    """Return the trait of a device for its place in sets of a size."""
    return f'CUSTOM_{part.upper()}{size}_{number % size}'


class Host:
    """A host, its devices in Placement, and what brute force knows."""

    def __init__(self, case: Case, name: str) -> None:
        self.case, self.name = case, name
        self.uuid = str(uuid.uuid4())
        parts = dict.fromkeys(itertools.chain.from_iterable(
            parts for parts, _ in case.kinds))
        self.provider = {
            device: str(uuid.uuid4())
            for device in itertools.product(parts, range(case.gpus))}
        self.device = {uid: each for each, uid in self.provider.items()}
        self.free: Devices = collections.Counter({
            each: 1 if each[0] == GPU else FUNCTIONS
            for each in self.provider})

    def sets(self, part: str, number: int) -> str:
        return ','.join(
            f'{name_of(parts, size)}:{number // size}:{size * len(parts)}'
            for parts, size in self.case.kinds if part in parts)

    def free_sets(self, flavor: Flavor) -> set[frozenset[tuple[str, int]]]:
        """List the sets of which all devices are free."""
        found = (frozenset(itertools.product(flavor.parts, range(
            first, first + flavor.size)))
            for first in range(0, self.case.gpus, flavor.size))
        return {each for each in found if all(map(self.free.get, each))}

    def state(self, flavor: Flavor, candidates: list[Any]) -> Any:
        """Make a HostState."""
        case = cases.Case(
            host=(), guest=(), policy=None, requests=flavor.requests,
            pools=tuple(
                cases.Pool(0, self.free[each], {
                    'vendor_id': '10de', 'product_id': each[0],
                    'dev_type': 'type-PCI', 'address': f'{each[1]:04x}',
                    'hpcvirt_device_sets': self.sets(*each)}, uid)
                for each, uid in self.provider.items() if self.free[each]))
        state = nova_objects.host_state_of(
            case, self.name, None, nova_objects.pci_stats(case, None))
        state.uuid, state.allocation_candidates = self.uuid, candidates
        state.aggregates = []
        return state


class World:
    """Placement and hosts."""

    def __init__(self, case: Case, seed: int) -> None:
        self.rng = random.Random(f'{case.name} {seed}')
        self.placement = fixture.PlacementFixture(use_intercept=False)
        self.placement.setUp()
        # This check of Placement's own schemas takes a quarter of the time.
        jsonschema.Draft4Validator.check_schema = lambda *_, **__: None
        self.app = deploy.loadapp(self.placement.conf_fixture.conf)
        self.hosts = [Host(case, f'host{n}') for n in range(case.hosts)]
        self.flavors = [Flavor(*kind) for kind in case.kinds]
        for part in set(itertools.chain.from_iterable(
                parts for parts, _ in case.kinds)):
            self.put(f'/resource_classes/CUSTOM_{part.upper()}')
            for size in {size for _, size in case.kinds}:
                for rank in range(size):
                    self.put(f'/traits/{trait(part, size, rank)}')
        for host in self.hosts:
            self.provide(host.uuid, 'VCPU', 1000)
            for (part, number), uid in host.provider.items():
                self.provide(uid, f'CUSTOM_{part.upper()}',
                             host.free[part, number], host.uuid, sorted({
                                 trait(part, size, number)
                                 for _, size in case.kinds}))
        self.by_uuid = {host.uuid: host for host in self.hosts}
        self.instances: dict[str, tuple[Host, Devices]] = {}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = placement_app.ask(self.app, method, path, body)
        if answer.status_int >= 400 and answer.status_int != 409:
            raise RuntimeError(answer.text)
        return answer

    def put(self, path: str, body: Any = None) -> Any:
        return self.call('PUT', path, body)

    def provide(self, uid: str, resource_class: str, total: int,
                parent: str | None = None, traits: Sequence[str] = ()) -> None:
        self.call('POST', '/resource_providers', {
            'name': uid, 'uuid': uid,
            **({'parent_provider_uuid': parent} if parent else {})})
        self.put(f'/resource_providers/{uid}/inventories', {
            'resource_provider_generation': 0, 'inventories': {
                resource_class: {'total': total, 'max_unit': total}}})
        if traits:
            self.put(f'/resource_providers/{uid}/traits', {
                'resource_provider_generation': 1, 'traits': traits})

    def claim(self, candidate: Any) -> str | None:
        """Claim a candidate; return the instance, None if devices are gone."""
        instance = str(uuid.uuid4())
        status = self.put(f'/allocations/{instance}', {
            'allocations': candidate['allocations'], 'project_id': 'p',
            'user_id': 'u', 'consumer_generation': None,
            'consumer_type': 'INSTANCE'}).status_int
        return instance if status == 204 else None

    def delete(self, instance: str) -> None:
        self.call('DELETE', f'/allocations/{instance}')
        host, devices = self.instances.pop(instance)
        host.free.update(devices)


class Run:
    """The requests of a case, and what is counted."""

    def __init__(self, case: Case, seed: int) -> None:
        self.world = World(case, seed)
        self.filter = filters.HPCTopologyFilter()
        self.weigher = weights.HPCTopologyWeigher()
        self.counts: collections.Counter[str] = collections.Counter()
        self.most = 0
        self.seconds: collections.Counter[str] = collections.Counter()

    def requests(self, count: int) -> None:
        world, rng = self.world, self.world.rng
        while self.counts['requests'] < count:
            asked = [rng.choice(world.flavors)
                     for _ in range(1 + (rng.random() < RACES))]
            decided = [self.decide(flavor) for flavor in asked]
            for flavor, offered in zip(asked, decided, strict=True):
                self.build(flavor, offered)
            while world.instances and rng.random() < 0.45:
                world.delete(rng.choice(list(world.instances)))

    def decide(self, flavor: Flavor) -> list[Any]:
        """Ask Placement, filter, and weigh; return the hosts, best first."""
        world = self.world
        start = time.process_time()
        found = world.call('GET', flavor.query).json['allocation_requests']
        self.seconds['placement'] += time.process_time() - start
        by_host: dict[str, list[Any]] = {}
        for each in found:
            by_host.setdefault(each['mappings'][''][0], []).append(each)
        states = [world.by_uuid[uid].state(flavor, candidates)
                  for uid, candidates in by_host.items()]
        spec = nova_objects.request_spec(cases.Case(
            host=(), guest=(), policy=None, requests=flavor.requests), {
            'hpcvirt:device_set': flavor.kind})
        start = time.process_time()
        passed = list(self.filter.filter_all(states, spec))
        weighed = self.weigher._weigh(passed, spec) if passed else []
        self.seconds['filter'] += time.process_time() - start
        self.most = max(self.most, 0, *map(len, by_host.values()))
        self.counts.update(requests=1, candidates=len(found), left=sum(
            len(state.allocation_candidates) for state in passed))
        self.compare(flavor, passed)
        order = sorted(zip(weighed, passed, strict=True), key=lambda pair: (
            -pair[0], world.rng.random()))
        return [state for _, state in order]

    def compare(self, flavor: Flavor, passed: Sequence[Any]) -> None:
        """Compare what the filter leaves with the sets that are free."""
        left = {state.uuid: [self.devices_of(each) for each
                             in state.allocation_candidates]
                for state in passed}
        for host in self.world.hosts:
            sets = host.free_sets(flavor)
            own = left.get(host.uuid, [])
            self.counts['illegal'] += sum(each not in sets for each in own)
            self.counts['missed'] += len(sets.difference(own))

    def devices_of(self, candidate: Any) -> frozenset[tuple[str, int]]:
        host, = {host for host in self.world.hosts
                 if host.uuid in candidate['allocations']}
        return frozenset(host.device[uid] for uid in candidate['allocations']
                         if uid in host.device)

    def build(self, flavor: Flavor, offered: Sequence[Any]) -> None:
        """Claim as nova-scheduler does, then take devices as nova-compute."""
        for state in offered:
            candidate = state.allocation_candidates[0]
            instance = self.world.claim(candidate)
            if instance is None:
                self.counts['conflicts'] += 1
                continue
            host = self.world.by_uuid[state.uuid]
            taken = self.take(flavor, host, candidate['mappings'])
            self.counts['claimed'] += 1
            self.counts['illegal'] += (
                frozenset(taken) not in host.free_sets(flavor) or
                frozenset(taken) != self.devices_of(candidate))
            host.free.subtract(taken)
            self.world.instances[instance] = host, taken
            return
        self.counts['lost' if offered else 'refused'] += 1

    @staticmethod
    def take(flavor: Flavor, host: Host, mappings: Any) -> Devices:
        """Let Nova take the devices of an allocation from fresh pools."""
        stats = host.state(flavor, []).pci_stats
        before = {pool['rp_uuid']: pool['count'] for pool in stats.pools}
        case = cases.Case(host=(), guest=(), policy=None,
                          requests=flavor.requests)
        stats.apply_requests(nova_objects.pci_requests(case, mappings), {})
        after = {pool['rp_uuid']: pool['count'] for pool in stats.pools}
        return collections.Counter({
            host.device[uid]: count - after.get(uid, 0)
            for uid, count in before.items() if count != after.get(uid, 0)})


HEADINGS = ('Case', 'Hosts', 'Requests', 'Candidates', 'Most per host', 'Left',
            'Claimed', 'Refused', 'Conflicts', 'Lost', 'Illegal', 'Missed',
            'Placement ms', 'Filter ms', 'Peak MiB')


def measure(case: Case, count: int, seed: int) -> tuple[list[str], bool]:
    """Run a case; return its line, and whether nothing was wrong."""
    run = Run(case, seed)
    run.requests(count)
    counts, number = run.counts, run.counts['requests']
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return [case.name, str(case.hosts), str(number),
            f'{counts["candidates"] / number:.0f}', str(run.most),
            f'{counts["left"] / number:.1f}',
            *(str(counts[name]) for name in (
                'claimed', 'refused', 'conflicts', 'lost', 'illegal',
                'missed')),
            *(f'{1000 * run.seconds[name] / number:.1f}'
              for name in ('placement', 'filter')),
            str(peak)], not counts['illegal'] + counts['missed']


def main(argv: Sequence[str] | None = None) -> int:
    """Run all cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--requests', type=int, default=1000, metavar='N',
                        help='requests of each case (default %(default)s)')
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='only cases whose name contains TEXT')
    parser.add_argument('--seed', type=int, default=0)
    arguments = parser.parse_args(argv)
    config.register()
    nova.conf.CONF([], default_config_files=[])
    nova.conf.CONF.set_override('max_placement_results', 10 * LIMIT,
                                'scheduler')
    found = [measure(case, arguments.requests, arguments.seed)
             for case in CASES if arguments.only in case.name]
    sys.stdout.write(text_table.draw(HEADINGS, [row for row, _ in found],
                                     HEADINGS[1:]))
    return 0 if all(good for _, good in found) else 1


if __name__ == '__main__':
    sys.exit(main())
