# SPDX-License-Identifier: Apache-2.0

"""Compare the search of make-room with a constraint solver, OR-Tools CP-SAT.

The fleet is that of :mod:`benchmarks.make_room`. The model of the solver is
simpler than the problem, so that the solver can handle this size: instances
with several cells do not move, only CPUs count, the moves have no order, and
instances of one size on a host cell are a single variable::

    pip install ortools
    python3 -m benchmarks.make_room_cp_sat [HOSTS [SEED]]

Run it from the root of the repository.
"""

import collections
import itertools
import random
import sys
import time

from ortools.sat.python import cp_model

from benchmarks import make_room as benchmark
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import make_room

PATIENCE_S = 60


def solve(guest, fleet, most):
    """Find the fewest moves, and return the result as text."""
    demand = guest.demand
    needed = demand.cells[0].pcpus
    model = cp_model.CpModel()
    free = {}
    there = collections.Counter()
    for host in fleet:
        for cell in host.state.supply.cells:
            free[host.name, cell.id] = len(cell.free)
        for instance in host.instances:
            if len(instance.cells) == 1:
                place = host.name, instance.cells[0]
                there[instance.flavor.vcpus, place] += 1
    sizes = {size for size, _ in there}
    leave = {key: model.new_int_var(0, min(count, most), '')
             for key, count in there.items()}
    come = {key: model.new_int_var(0, most, '')
            for key in itertools.product(sizes, free)}
    for size in sizes:
        model.add(sum(leave[key] for key in leave if key[0] == size)
                  == sum(come[key] for key in come if key[0] == size))
    model.add(sum(leave.values()) <= most)
    chosen = []
    for host in fleet:
        here = model.new_bool_var('')
        cells = []
        for cell in host.state.supply.cells:
            place = host.name, cell.id
            cells.append(model.new_bool_var(''))
            model.add(free[place] >= needed * cells[-1] + sum(
                size * (come[size, place] - leave.get((size, place), 0))
                for size in sizes))
        model.add(sum(cells) == len(demand.cells) * here)
        chosen.append(here)
    model.add(sum(chosen) == 1)
    model.minimize(sum(leave.values()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = PATIENCE_S
    status = solver.solve(model)
    if status == cp_model.OPTIMAL:
        return f'{solver.objective_value:.0f} moves'
    return solver.status_name(status).lower()


def main(number=300, seed=1):
    """Run both searches for the larger flavors."""
    fleet, flavors = benchmark.a_fleet(random.Random(seed), number)
    for flavor in flavors[3:6]:
        guest = compiled_flavor.make(flavor)
        for most in (1, 2):
            begin = time.perf_counter()
            plan = make_room.search(guest, fleet, most)
            middle = time.perf_counter()
            solved = solve(guest, fleet, most)
            end = time.perf_counter()
            print(f'{flavor.name:16} K={most}  make-room: '
                  + (f'{len(plan.moves)} moves' if plan else 'infeasible')
                  + f' {middle - begin:.2f} s  CP-SAT: {solved} '
                  f'{end - middle:.2f} s', flush=True)


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))
