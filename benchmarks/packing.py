# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Compare the core-hours lost with upstream, packing and hpcvirt weighers.

hpcvirt plans flavors for a fleet, guests of these flavors start and end, and
a request that no host can hold is lost. The table shows the core-hours lost
in percent of those requested, and the loss of a single pool of CPUs without
hosts and cells, which no placement can avoid::

    python benchmarks/packing.py
    python benchmarks/packing.py --fleet mixed --load 0.7 0.9 --swf LOG.swf.gz

All figures of a row are for the same requests. Seeds are fixed, so that runs
are reproducible.
"""

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Mapping
from collections.abc import Sequence

import packing_model
import packing_workload

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from hpcvirt.topology import source

TOPOLOGIES = (pathlib.Path(__file__).parent.parent / 'etc' / 'hpcvirt'
              / 'topologies')

#: Fleet -> host by the name of its topology file -> number of such hosts.
FLEETS: Mapping[str, Mapping[str, int]] = {
    '2 cells': {'hs06-2s-16c': 24},
    '2 cells, SMT': {'intel-2s-16c-smt': 20},
    '2 large cells': {'epyc-2s-64c-nps1': 10},
    '4 cells': {'xeon-2s-24c-snc2-1g': 14},
    '8 cells': {'epyc-2s-64c-nps4': 10},
    '8 small cells': {'opteron-4s-12c': 14},
    'mixed': {'hs06-2s-16c': 10, 'opteron-4s-12c': 6,
              'epyc-2s-64c-nps4': 4, 'intel-2s-16c-smt': 6},
    '2 cells, devices': {'intel-2s-16c-smt': 20},
    '8 cells, devices': {'epyc-2s-64c-nps4': 10},
}

STRATEGIES: Mapping[str, Mapping[str, float]] = {
    'upstream': packing_model.UPSTREAM,
    'packing': packing_model.PACKING,
    'hpcvirt': packing_model.HPCVIRT,
}


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Empty hosts, and the flavors planned for them."""

    name: str
    hosts: tuple[supplies.Supply, ...]
    flavors: tuple[demands.Demand, ...]

    @property
    def capacity(self) -> int:
        return sum(len(cell.dedicated) for host in self.hosts
                   for cell in host.cells)


def build(name: str, smallest_cores: int | None = None) -> Fleet:
    """Plan flavors for the hosts of a fleet.

    :param smallest_cores: cores of the smallest flavors; None leaves the
        choice to the planner
    """
    counts = FLEETS[name]
    read = [source.read(str(TOPOLOGIES / f'{kind}.json')) for kind in counts]
    plain = planner.plan(read, profiles.Profile(
        smallest_cores=smallest_cores))
    flavors = [item.guest for item in plain.flavors]
    hosts = [planned.supply for planned in plain.hosts]
    if 'devices' in name:
        wanted = profiles.Profile(devices=profiles.Devices(
            affinity=shape.PCIAffinity.REQUIRED))
        devised = planner.plan(read, wanted)
        hosts = [as_nova_pools(planned.supply)
                 for planned in devised.hosts]
        flavors += [item.guest for item in devised.flavors
                    if len(item.guest.cells) == 1]
    fleet = [host for host, count in zip(hosts, counts.values(), strict=True)
             for _ in range(count)]
    if 'devices' in name:
        # Every second host has no devices.
        bare = {id(host): dataclasses.replace(host, pools=())
                for host in hosts}
        fleet[1::2] = [bare[id(host)] for host in fleet[1::2]]
    return Fleet(name, tuple(fleet), tuple(map(demands.of_shape, flavors)))


def as_nova_pools(host: supplies.Supply) -> supplies.Supply:
    """Merge the devices of all cards on a cell into one pool, like Nova."""
    merged = {}
    for pool in host.pools or ():
        known = merged.get(pool.cell, pool._replace(free=0))
        merged[pool.cell] = known._replace(free=known.free + pool.free)
    return dataclasses.replace(host, pools=tuple(merged.values()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--fleet', nargs='+', choices=list(FLEETS),
                        default=list(FLEETS), metavar='FLEET',
                        help='; '.join(FLEETS))
    parser.add_argument('--load', nargs='+', type=float, default=[0.8, 0.95],
                        help='CPUs requested / CPUs of the fleet')
    parser.add_argument('--requests', type=int, default=4000,
                        help='requests of a simulation (default: %(default)s)')
    parser.add_argument('--seeds', type=int, default=2,
                        help='simulations per row (default: %(default)s)')
    parser.add_argument('--smallest-cores', type=int,
                        help='cores of the smallest flavors')
    parser.add_argument('--swf', metavar='LOG',
                        help='read the requests from this log in the '
                        'Standard Workload Format')
    args = parser.parse_args(argv)
    try:
        fleets = [build(name, args.smallest_cores) for name in args.fleet]
        print(_line('fleet', 'cells first', 'load', *STRATEGIES, 'pool',
                    'to upstream', 'to packing'))
        for fleet in fleets:
            for packing in (False, True):
                for load in args.load:
                    print(_row(fleet, packing, load, args), flush=True)
    except exception.HpcvirtError as exc:
        print(f'packing: {exc}', file=sys.stderr)
        return 2
    return 0


def _row(fleet: Fleet, packing: bool, load: float,
         args: argparse.Namespace) -> str:
    cpus = [packing_model.cpus(flavor) for flavor in fleet.flavors]
    if args.swf:
        workloads = [packing_workload.from_swf(args.swf, cpus,
                                               fleet.capacity, load)]
    else:
        workloads = [packing_workload.synthetic(
            cpus, fleet.capacity, load, args.requests, seed)
            for seed in range(args.seeds)]
    warm_up = len(workloads[0]) // 8
    lost = dict.fromkeys([*STRATEGIES, 'pool'], 0.0)
    offered = 0.0
    for arrivals in workloads:
        for name, multipliers in STRATEGIES.items():
            lost[name] += sum(tally.lost for tally in packing_model.run(
                fleet.hosts, fleet.flavors, arrivals, multipliers, packing,
                warm_up).values())
        bound = packing_model.pooled(fleet.hosts, fleet.flavors, arrivals,
                                     warm_up)
        lost['pool'] += bound.lost
        offered += bound.offered
    return _line(
        fleet.name, 'fullest' if packing else 'emptiest', f'{load:.2f}',
        *(f'{100 * lost[name] / offered:.1f} %' for name in lost),
        *(f'{lost["hpcvirt"] / lost[other]:.2f}' if lost[other] else '-'
          for other in ('upstream', 'packing')))


def _line(*fields: str) -> str:
    widths = (17, 11, 4, 8, 8, 8, 8, 11, 10)
    return '  '.join(field.rjust(width) for field, width
                     in zip(fields, widths, strict=True))


if __name__ == '__main__':
    sys.exit(main())
