# SPDX-License-Identifier: Apache-2.0

"""Replays decided by Nova, and that fast mode decides the same."""

import heapq
import json
import logging
import pathlib
import random
import subprocess
import sys
import unittest

import nova.conf
from nova.pci import request as pci_request

from hpcvirt.controller.replay import cloud
from hpcvirt.controller.replay import replay
from hpcvirt.fit import claim
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import host_table
from hpcvirt.simulate import replay as replay_model
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers
from tests.builders import commands
from tests.builders import folders
from tests.functional import replays

STRATEGIES = 'nova', 'packing', 'hpcvirt'
TOPOLOGY = (pathlib.Path(__file__).parents[2] / 'etc' / 'hpcvirt'
            / 'topologies' / 'intel-2s-16c-smt.json')

NOVA_CONF = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = hpcvirt.nova.filters.all_filters
enabled_filters = ComputeFilter, ComputeCapabilitiesFilter, {filter}
weight_classes = nova.scheduler.weights.all_weighers,
    hpcvirt.nova.weights.all_weighers
"""


def decisions(guests):
    """Say on which host and which of its cells each guest is."""
    return [(guest.host, guest.holding.placement.cells) for guest in guests]


class ReplayTestCase(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)


class SameDecisionsTest(ReplayTestCase):
    """Nova and fast mode choose the same host and cells, one by one."""

    def assert_same(self, seed, name, fullest, filters=replays.OURS,
                    wanted=lambda _: True, count=50):
        """Replay random requests with both.

        :param wanted: chooses flavors
        :returns: the number of requests that were placed
        """
        dice = random.Random(seed)
        strategy = replays.configure(self, name, filters, fullest)
        fleet = replays.a_fleet(dice)
        asked = replays.some_requests(dice, fleet, count, wanted)
        flavors = replay_model.relax_flavors(asked.flavors)
        slow = replay.NovaScheduler(fleet, asked.flavors)
        fast = schedulers.Scheduler(host_table.HostTable(fleet, flavors),
                                    flavors, strategy)
        empty = self.states(slow)
        leaving = []
        placed = 0
        for order, arrival in enumerate(asked.arrivals):
            while leaving and leaving[0][0] <= arrival.time:
                _, _, one, other = heapq.heappop(leaving)
                slow.remove(one)
                fast.remove(other)
            one = slow.place(arrival.flavor, arrival.count)
            other = fast.place(arrival.flavor, arrival.count)
            self.assertEqual(
                decisions(one), decisions(other),
                f'{name}, seed {seed}, request {order} for {arrival.count}: '
                f'{asked.flavors[arrival.flavor].flavor}')
            placed += bool(one)
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     one, other))
        for _, _, one, _ in leaving:
            slow.remove(one)
        self.assertEqual(empty, self.states(slow))
        return placed

    def states(self, scheduler):
        """Say what nova-scheduler sees of each host."""
        return [
            (state.free_ram_mb, state.vcpus_used, state.num_instances,
             [(cell.pinned_cpus, cell.cpu_usage, cell.memory_usage,
               [pages.used for pages in cell.mempages])
              for cell in state.numa_topology.cells],
             [dict(pool) for pool in state.pci_stats.pools])
            for state in (host.state() for host in scheduler._cloud._hosts)]

    def test_of_small_fleets(self):
        placed = sum(self.assert_same(seed, STRATEGIES[seed % 3], seed > 2,
                                      count=24) for seed in range(6))
        self.assertGreater(placed, 70)

    def test_the_claim_knows_no_vgpus(self):
        # The second request is for vGPUs; other devices are on some cells.
        self.assert_same(2044, 'packing', True, count=4)

    def test_guests_of_a_request_get_vgpus_of_one_card(self):
        # The ninth request is for three guests with vGPUs.
        self.assert_same(3076, 'packing', True, count=9)

    def test_guests_without_cells_leave_the_shared_cpus_of_cells_free(self):
        # The sixth request is for shared CPUs of a cell.
        self.assert_same(5002, 'hpcvirt', False, count=6)

    def test_periodic_of_many_fleets(self):
        placed = sum(
            self.assert_same(100 * seed + number, name, fullest)
            for number, name in enumerate(STRATEGIES)
            for fullest in (False, True) for seed in range(1, 11))
        self.assertGreater(placed, 1500)

    def test_periodic_with_the_filters_of_nova(self):
        """Guests that Nova's defects cannot affect need no other filter."""
        def wanted(flavor):
            demand = flavor.guest.demand
            return not demand.cells or claim.is_immune(demand)

        placed = sum(
            self.assert_same(100 * seed + number, name, fullest,
                             replays.UPSTREAM, wanted)
            for number, name in enumerate(STRATEGIES)
            for fullest in (False, True) for seed in range(21, 26))
        self.assertGreater(placed, 750)


class ClaimTest(ReplayTestCase):
    """Claims that are refused, with filters that look at no cells."""

    def host(self, *cells):
        """Make a host by the number of PCPUs of its cells."""
        return supplies.Supply(tuple(
            supplies.CellSupply(
                number, number, cpus, cpus, frozenset(),
                tuple(frozenset({cpu}) for cpu in sorted(cpus)), 0, 4096, 0,
                (supplies.PageSupply(4, 1 << 20, 0, 1 << 20),))
            for number, cpus in enumerate(
                frozenset(range(100 * number, 100 * number + count))
                for number, count in enumerate(cells))))

    def cloud(self, *fleet):
        replays.configure(self, 'nova', replays.USUAL)
        flavor = flavor_model.Flavor('six', 6, 1024, 0, {
            'hw:cpu_policy': 'dedicated'})
        return cloud.ReplayCloud(fleet, [requests.RequestedFlavor(
            flavor, guests.compile_flavor(flavor))])

    def attempts(self, most):
        nova.conf.CONF.set_override('max_attempts', most, 'scheduler')
        self.addCleanup(nova.conf.CONF.clear_override, 'max_attempts',
                        'scheduler')

    def test_an_alternate_is_tried(self):
        self.attempts(2)
        found = self.cloud(self.host(4, 4), self.host(8))
        self.assertEqual([1], [one.host for one in found.create(0, 1)])

    def test_there_may_be_no_attempt_left(self):
        self.attempts(1)
        found = self.cloud(self.host(4, 4), self.host(8))
        self.assertEqual([], found.create(0, 1))
        # Nothing is left on the host, which now has a failed build.
        self.assertEqual([1], [one.host for one in found.create(0, 1)])

    def test_all_or_none_are_created(self):
        found = self.cloud(self.host(8), self.host(8))
        self.assertEqual([], found.create(0, 3))
        self.assertEqual({0, 1}, {one.host for one in found.create(0, 2)})


class DiceTest(ReplayTestCase):
    def test_periodic_a_subset_of_hosts_gives_the_same_each_time(self):
        replays.configure(self, 'nova')
        nova.conf.CONF.set_override('host_subset_size', 3, 'filter_scheduler')
        self.addCleanup(nova.conf.CONF.clear_override, 'host_subset_size',
                        'filter_scheduler')
        dice = random.Random(10)
        fleet = replays.a_fleet(dice)
        asked = replays.some_requests(dice, fleet, 25, lambda _: True)
        found = []
        for seed in range(2):
            random.seed(seed)
            found.append(replay.replay(fleet, asked))
        one, other = found
        self.assertIn(None, one.fates)
        self.assertEqual((one.fates, one.samples),
                         (other.fates, other.samples))


class CommandTest(unittest.TestCase):
    """The command with a nova.conf, as an operator runs it."""

    def run_command(self, *more, conf):
        folder = folders.make(self)
        (folder / 'nova.conf').write_text(conf)
        dice = random.Random(4)
        lines, now = [], 0
        for number in range(40):
            now += int(dice.expovariate(1 / 60))
            lines.append(f'{number} {now} 0 {dice.randrange(60, 1200)}'
                         f' {dice.choice((2, 8, 16, 30, 90))}' + ' -1' * 13)
        (folder / 'log.swf').write_text('\n'.join(lines) + '\n')
        return subprocess.run(
            [sys.executable, '-m', 'hpcvirt.cmd.main', 'simulate',
             '--workload', str(folder / 'log.swf'),
             f'{TOPOLOGY}*3', '--nova-conf',
             str(folder / 'nova.conf'), *more],
            capture_output=True, text=True, check=False)

    def check_refused(self, done, said):
        return commands.check_refused(
            self, said, (done.returncode, done.stdout, done.stderr))

    def test_periodic_it_says_the_same_of_the_same_weighers(self):
        done = self.run_command(
            '--compare', 'hpcvirt', '--format', 'json',
            conf=NOVA_CONF.format(filter='HPCTopologyFilter'))
        self.assertEqual(0, done.returncode, done.stderr)
        ours, novas = json.loads(done.stdout)['strategies']
        self.assertEqual('nova.conf', novas['name'])
        self.assertGreater(ours['lost_percent'], 0)
        self.assertEqual({**ours, 'name': ''}, {**novas, 'name': ''})

    def test_periodic_a_filter_that_is_not_installed_is_one_line(self):
        done = self.run_command(conf=NOVA_CONF.format(filter='NoFilter'))
        self.assertRegex(self.check_refused(done, 'NoFilter'),
                         r'^hpcvirt: \S+nova\.conf: ')

    def test_periodic_a_wrong_option_is_one_line(self):
        done = self.run_command(conf=NOVA_CONF.format(
            filter='HPCTopologyFilter') + 'cpu_weight_multiplier = much\n')
        self.assertRegex(self.check_refused(done, 'multiplier'),
                         '^hpcvirt: nova.conf: ')

    def test_periodic_a_file_that_is_no_configuration_is_one_line(self):
        done = self.run_command(conf='weight_classes\n')
        self.check_refused(done, 'cannot be understood at line 1')
