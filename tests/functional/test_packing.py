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

"""The effect of the weigher, in a small simulation."""

import contextlib
import io
import pathlib
import random
import sys
import tempfile
import unittest

BENCHMARKS = pathlib.Path(__file__).parents[2] / 'benchmarks'
sys.path.insert(0, str(BENCHMARKS))
try:
    import moves
    import packing
    import packing_model
    import packing_workload
finally:
    sys.path.remove(str(BENCHMARKS))


def lost(tallies):
    """The part of the work that was refused."""
    return (sum(tally.lost for tally in tallies.values())
            / sum(tally.offered for tally in tallies.values()))


def play(fleet, multipliers, packing_cells=False, load=0.8, count=1500):
    cpus = [packing_model.cpus(flavor) for flavor in fleet.flavors]
    arrivals = packing_workload.synthetic(cpus, fleet.capacity, load, count,
                                          seed=5)
    return lost(packing_model.run(fleet.hosts, fleet.flavors, arrivals,
                                  multipliers, packing_cells, count // 8))


class SimulationTest(unittest.TestCase):

    def test_two_moves_recover_most_of_what_fragmentation_costs(self):
        fleet = packing.build('4 cells')
        cpus = [packing_model.cpus(flavor) for flavor in fleet.flavors]
        arrivals = packing_workload.synthetic(cpus, fleet.capacity, 0.9, 500,
                                              seed=0)
        movers = [None, moves.Mover(1, False), moves.Mover(2, False)]
        none, one, two = (lost(packing_model.run(
            fleet.hosts, fleet.flavors, arrivals, packing_model.HPCVIRT,
            False, 60, mover)) for mover in movers)
        pool = packing_model.pooled(fleet.hosts, fleet.flavors, arrivals, 60)
        bound = pool.lost / pool.offered
        self.assertLess(one, none)
        self.assertLess(two - bound, (none - bound) / 2)
        self.assertLess(movers[1].moves, len(arrivals) / 20)

    def test_less_than_half_is_lost_of_what_upstream_loses(self):
        for name in ('2 cells', '4 cells', '8 small cells'):
            fleet = packing.build(name)
            with self.subTest(fleet=name):
                self.assertLess(play(fleet, packing_model.HPCVIRT),
                                play(fleet, packing_model.UPSTREAM) / 2)

    def test_less_is_lost_than_by_packing_where_flavors_are_small(self):
        fleet = packing.build('8 cells', smallest_cores=2)
        for cells in (False, True):
            with self.subTest(packing_cells=cells):
                self.assertLess(
                    play(fleet, packing_model.HPCVIRT, cells),
                    0.9 * play(fleet, packing_model.PACKING, cells))

    def test_less_is_lost_than_by_packing_where_devices_are_few(self):
        fleet = packing.build('2 cells, devices')
        self.assertLess(play(fleet, packing_model.HPCVIRT),
                        0.9 * play(fleet, packing_model.PACKING))

    def test_hosts_are_empty_after_all_guests_are_removed(self):
        fleet = packing.build('2 cells, devices')
        hosts = [packing_model.Host(number, supply, {})
                 for number, supply in enumerate(fleet.hosts[:4])]
        dice = random.Random(3)
        guests = []
        for _ in range(200):
            if guests and dice.random() < 0.4:
                packing_model.remove([guests.pop(
                    dice.randrange(len(guests)))])
            number = dice.randrange(len(fleet.flavors))
            demand = fleet.flavors[number]
            host = packing_model.choose(hosts, number, demand,
                                        packing_model.HPCVIRT, packing=False)
            if host is not None:
                guests.append(packing_model.place(host, number, demand,
                                                  packing=False))
        self.assertGreater(len(guests), 4)
        packing_model.remove(guests)
        for host, empty in zip(hosts, fleet.hosts, strict=False):
            self.assertEqual(empty.cells, host.supply.cells)
            self.assertCountEqual(empty.pools, host.supply.pools)
            self.assertEqual(0, host.vcpus_used)


class WorkloadTest(unittest.TestCase):

    def log(self, text):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name, 'log.swf')
        path.write_text(text)
        return str(path)

    def test_the_load_is_as_requested(self):
        arrivals = packing_workload.synthetic([4, 16], 100, 0.7, 20000, 1)
        work = sum((4, 16)[each.flavor] * each.duration for each in arrivals)
        self.assertAlmostEqual(0.7, work / arrivals[-1].time / 100, delta=.05)

    def test_a_job_of_a_log_gets_the_smallest_flavor_that_has_room(self):
        path = self.log('; a comment\n1 0 0 10 3\n2 60 0 10 40\n3 70 0 -1 4\n')
        first, second = packing_workload.from_swf(path, [4, 16], 100, 0.5)
        self.assertEqual((0, 1), (first.flavor, first.count))
        self.assertEqual((1, 3), (second.flavor, second.count))

    def test_what_is_no_log_is_refused_in_one_line(self):
        for text in ('', 'no log at all, this one', '1 0 0 10 3\n'):
            with self.subTest(text=text):
                complaint = io.StringIO()
                with contextlib.redirect_stderr(complaint), \
                        contextlib.redirect_stdout(io.StringIO()):
                    status = packing.main(['--fleet', '2 cells', '--swf',
                                           self.log(text)])
                self.assertEqual(2, status)
                self.assertEqual(1, complaint.getvalue().count('\n'))
