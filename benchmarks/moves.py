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

"""Count the core-hours lost if refused requests may move other guests.

The same simulation as :mod:`packing`: a request that no host can hold is lost,
unless at most K moves of other guests, which ``hpcvirt make-room`` finds, make
room for it. All guests are chosen hosts by hpcvirt's weigher, except in the
column "packing". A single pool of CPUs loses what no placement and no number
of moves can avoid::

    python benchmarks/moves.py --swf LOG.swf.gz
    python benchmarks/moves.py --fleet '4 cells' --load 0.9 --requests 4000

"Moves" are those of each request, refused or not.
"""

import argparse
import dataclasses
import sys

import packing
import packing_model
import packing_workload

from hpcvirt import exception
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import state

#: The simulation has no limit but the cells.
AMPLE = 2 ** 40


@dataclasses.dataclass
class Mover:
    """Makes room with up to so many moves, and counts them."""

    most: int
    packing: bool
    moves: int = 0

    def __call__(self, hosts, running, demand, count):
        cpus = packing_model.cpus(demand)
        if cpus * count > sum(len(cell.free) for host in hosts
                              for cell in host.supply.cells):
            return ()
        placed = {str(id(guest)): (own, place) for own in running
                  for place, guest in enumerate(own)}
        plan = make_room.search(
            _guest(demand), self._fleet(hosts, placed), self.most, count)
        if plan is None:
            return ()
        for move in plan.moves:
            own, place = placed[move.id]
            guest = own[place]
            own[place] = packing_model.place(
                hosts[int(move.target)], guest.number, guest.demand,
                self.packing)
            packing_model.remove([guest])
        self.moves += len(plan.moves)
        return [hosts[int(name)] for name, _ in plan.places]

    def _fleet(self, hosts, placed):
        residents = {id(host): [] for host in hosts}
        known = {}
        for name, (own, place) in placed.items():
            guest = own[place]
            residents[id(guest.host)].append((name, guest))
        return tuple(state.FleetHost(
            str(number),
            state.State(host.supply, guests.Sums(
                sum(len(cell.free) for cell in host.supply.cells),
                AMPLE, AMPLE)),
            tuple(state.Instance(
                name, '', str(number), None,
                known.setdefault(guest.number, _guest(guest.demand)),
                guest.placement.cells, frozenset().union(*(
                    before.free - after.free for before, after in zip(
                        guest.before.cells, guest.after.cells, strict=True))),
                guest.placement.pages_kib[0])
                for name, guest in residents[id(host)]), self.packing)
            for number, host in enumerate(hosts))


def _guest(demand):
    return guests.Guest(None, demand, guests.Sums(
        packing_model.cpus(demand), 0, 0))


def main(argv=None):
    """Run the simulations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--fleet', nargs='+', default=['2 cells', '4 cells'],
                        choices=[name for name in packing.FLEETS
                                 if 'devices' not in name], metavar='FLEET')
    parser.add_argument('--load', nargs='+', type=float, default=[0.8, 0.9])
    parser.add_argument('--requests', type=int, default=2000)
    parser.add_argument('--moves', type=int, default=2,
                        help='the largest K (default: %(default)s)')
    parser.add_argument('--smallest-cores', type=int)
    parser.add_argument('--swf', metavar='LOG')
    args = parser.parse_args(argv)
    numbers = range(1, args.moves + 1)
    try:
        print(_line('fleet', 'load', 'packing', 'K=0',
                    *(f'K={number}' for number in numbers), 'pool',
                    *(f'moves K={number}' for number in numbers)))
        for name in args.fleet:
            fleet = packing.build(name, args.smallest_cores)
            for load in args.load:
                print(_row(fleet, load, args), flush=True)
    except exception.HpcvirtError as exc:
        print(f'moves: {exc}', file=sys.stderr)
        return 2
    return 0


def _row(fleet, load, args):
    cpus = [packing_model.cpus(flavor) for flavor in fleet.flavors]
    arrivals = (packing_workload.from_swf(
        args.swf, cpus, fleet.capacity, load) if args.swf else
        packing_workload.synthetic(cpus, fleet.capacity, load, args.requests,
                                   0))
    warm_up = len(arrivals) // 8
    movers = [Mover(number, False) for number in range(1, args.moves + 1)]
    runs = [packing_model.run(fleet.hosts, fleet.flavors, arrivals,
                              multipliers, False, warm_up, mover)
            for multipliers, mover in (
                (packing_model.PACKING, None), (packing_model.HPCVIRT, None),
                *((packing_model.HPCVIRT, mover) for mover in movers))]
    pool = packing_model.pooled(fleet.hosts, fleet.flavors, arrivals, warm_up)
    lost = [*(sum(tally.lost for tally in run.values()) for run in runs),
            pool.lost]
    return _line(fleet.name, f'{load:.2f}',
                 *(f'{100 * each / pool.offered:.1f} %' for each in lost),
                 *(f'{mover.moves / len(arrivals):.3f}' for mover in movers))


def _line(*fields):
    return '  '.join(field.rjust(17 if not place else 9)
                     for place, field in enumerate(fields))


if __name__ == '__main__':
    sys.exit(main())
