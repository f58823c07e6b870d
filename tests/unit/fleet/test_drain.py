# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fit import admission
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import drain
from hpcvirt.fleet import drain_search
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from tests.builders import drains
from tests.builders import fleets


class PlanTestCase(unittest.TestCase):
    def carry_out(self, moves, hosts, drained, cold=True):
        """Make moves by hand, on hosts built anew; returns the hosts."""
        hosts = {host.name: host for host in hosts}
        for move in moves:
            source, target = hosts[move.source], hosts[move.target]
            self.assertNotIn(target.name, drained)
            (instance,) = (item for item in source.instances
                           if item.id == move.id)
            self.assertTrue(drains.may_move(instance, target, cold))
            self.assertEqual(bool(instance.only_cold or instance.devices),
                             move.cold)
            placed = admission.predict(instance.guest, target.state)
            self.assertEqual(placed.cells, move.cells)
            landed = dataclasses.replace(
                instance, host=target.name, holding=fleets.an_instance(
                    '', instance.flavor, target, placed,
                    guest=instance.guest).holding)
            hosts[target.name] = fleets.rebuilt(
                target, (*target.instances, landed))
            hosts[source.name] = fleets.rebuilt(source, tuple(
                item for item in source.instances if item is not instance))
        return hosts


def some_fleet(dice, numbers, most, constrained=False, cold=False):
    """Create a fleet with few instances."""
    while True:
        found = fleets.a_fleet(dice, dice.choice(numbers), load=0.9,
                               movable=0.85)
        if found and 2 < sum(len(host.instances)
                             for host in found[0].hosts) <= most:
            return (fleets.constrained(dice, found[0], cold) if constrained
                    else found[0]).hosts


class FewestTest(PlanTestCase):
    def roll(self, seed, rounds, numbers, most, drained=1, **more):
        """Compare plans with all sequences of moves."""
        dice = random.Random(seed)
        cold = more.get('cold', False)
        kinds = []
        for _ in range(rounds):
            hosts = some_fleet(dice, numbers, most, **more)
            names = [host.name for host in dice.sample(
                hosts, min(drained, len(hosts) - 1))]
            plan = drain.plan(hosts, names, cold)
            left, used, moves = drains.AllMoves(hosts, names, cold).fewest(
                drain_search.MAX_OTHERS)
            self.assertTrue(plan.proven)
            after = self.carry_out(plan.moves, hosts, names, cold)
            stay = {item.id for name in names
                    for item in after[name].instances}
            self.assertEqual(stay, {
                one.instance.id for one in plan.obstacles})
            self.assertEqual((left, used, moves), (
                len(stay), sum(move.cold for move in plan.moves),
                len(plan.moves)))
            kinds.append((left, moves - sum(
                len(host.instances) for host in hosts
                if host.name in names) + left))
        return kinds

    def test_as_few_instances_are_left_as_possible(self):
        found = self.roll(1, 40, (2, 3), 9)
        self.assertGreater(sum(left > 0 for left, _ in found), 5)
        self.assertGreater(sum(left == 0 for left, _ in found), 5)
        self.assertGreater(sum(others > 0 for _, others in found), 0)

    def test_hosts_and_groups_are_kept(self):
        self.roll(2, 12, (2, 3, 4), 9, constrained=True)

    def test_cold_migrations_are_the_last_resort(self):
        self.roll(3, 12, (2, 3), 8, constrained=True, cold=True)

    def test_several_hosts_are_emptied_at_once(self):
        self.roll(4, 10, (3, 4), 9, drained=2)

    def test_periodic_plans_for_six_hosts_are_the_best(self):
        for seed in range(20):
            self.roll(seed, 3, (4, 5, 6), 10, drained=1 + seed % 3,
                      constrained=seed % 2 > 0, cold=seed % 4 > 1)


class ObstaclesTest(unittest.TestCase):
    def obstacle(self, hosts, name='h0', cold=False):
        (found,) = drain.plan(hosts, (name,), cold).obstacles
        return found.reason, found.helps

    def test_an_instance_with_devices_leaves_only_cold(self):
        fleet, _ = fleets.with_devices()
        self.assertEqual((
            'has PCI devices, so that it cannot be live-migrated',
            ('--cold',)), self.obstacle(fleet.hosts))
        (move,) = drain.plan(fleet.hosts, ('h0',), True).moves
        self.assertEqual(moving.Move('a', 'h0', 'h1', (0,), True), move)
        first, second = fleet.hosts
        second = fleets.changed(second, supply=dataclasses.replace(
            second.state.supply, pools=()))
        reason, helps = self.obstacle((first, second), cold=True)
        self.assertIn('no free PCI device', reason)
        self.assertEqual(('an empty host like h0',), helps)

    def change(self, **more):
        """Change the only instance of a host with an empty neighbour."""
        fleet, _ = fleets.with_devices()
        first, second = fleet.hosts
        (instance,) = first.instances
        return dataclasses.replace(first, instances=(dataclasses.replace(
            instance, **more),)), second

    def test_the_reasons_are_named(self):
        like = 'an empty host like h0'
        for hosts, words, helps in (
                (self.change(stays='is locked'), 'is locked', ()),
                (self.change(hosts=frozenset({'h0'})), 'aggregates', (like,)),
                (self.change(group=state.ServerGroup(
                    state.Policy.AFFINITY, frozenset({'a'}))),
                    'affinity', ())):
            reason, found = self.obstacle(hosts, cold=True)
            self.assertIn(words, reason)
            self.assertEqual(helps, found)

    def test_a_host_with_room_may_have_members_of_the_group(self):
        dice = random.Random(8)
        host, other = next(
            hosts for hosts in iter(lambda: some_fleet(dice, (2,), 9), None)
            if hosts[0].instances and hosts[1].instances
            and any(moving.place(item, hosts[1])
                    for item in hosts[0].instances))
        one = next(item for item in host.instances
                   if moving.place(item, other))
        blocker = dataclasses.replace(other.instances[0], stays='is locked')
        group = state.ServerGroup(state.Policy.ANTI_AFFINITY,
                                  frozenset({one.id, blocker.id}))
        reason, helps = self.obstacle((
            dataclasses.replace(fleets.rebuilt(host, (dataclasses.replace(
                one, group=group, stays=None),))),
            fleets.rebuilt(other, (dataclasses.replace(
                blocker, group=group), *other.instances[1:]))), host.name)
        self.assertIn('server group', reason)
        self.assertEqual((f'an empty host like {host.name}',), helps)

    def test_hosts_that_are_emptied_together_take_nothing(self):
        fleet, _ = fleets.with_devices()
        reasons = {one.reason for one in drain.plan(
            fleet.hosts, [host.name for host in fleet.hosts],
            True).obstacles}
        self.assertEqual({'may move only to hosts that are to be emptied too'},
                         reasons)

    def test_an_empty_host_helps_if_it_is_proposed(self):
        dice = random.Random(9)
        tried = 0
        for _ in range(40):
            hosts = some_fleet(dice, (2, 3), 12)
            plan = drain.plan(hosts, ('h0',))
            for one in plan.obstacles:
                for text in one.helps:
                    if text == 'an empty host like h0':
                        tried += 1
                        extra = dataclasses.replace(fleets.rebuilt(
                            hosts[0], ()), name='extra')
                        self.assertIsNotNone(moving.land(one.instance, extra))
        self.assertGreater(tried, 2)


class WavesTest(PlanTestCase):
    def test_the_hosts_of_each_wave_are_empty_in_it(self):
        dice = random.Random(5)
        emptied = 0
        for _ in range(25):
            hosts = some_fleet(dice, (3, 4, 5), 14)
            names = [host.name for host in hosts]
            size = dice.choice((1, 2))
            plan = drain.plan_waves(hosts, names, size)
            now = hosts
            for wave in plan.waves:
                self.assertLessEqual(len(wave.hosts), size)
                after = self.carry_out(wave.moves, now, wave.hosts)
                self.assertEqual([()] * len(wave.hosts), [
                    after[name].instances for name in wave.hosts])
                now = tuple(after.values())
                emptied += len(wave.hosts)
            done = [name for wave in plan.waves for name in wave.hosts]
            self.assertEqual(len(done), len(set(done)))
            self.assertEqual(set(names) - set(done), {
                one.instance.host for one in plan.obstacles})
        self.assertGreater(emptied, 30)

    def test_each_instance_moves_once_if_a_host_is_spare(self):
        fleet, flavors = fleets.a_fleet(random.Random(2), 4)
        guest = compiled_flavor.make(flavors[0])
        empty = [fleets.rebuilt(host, ()) for host in fleet.hosts]
        hosts = [empty[0]]
        for host in empty[1:]:
            placed = admission.predict(guest, host.state)
            hosts.append(fleets.rebuilt(host, (fleets.an_instance(
                f'on {host.name}', flavors[0], host, placed, guest=guest),)))
        plan = drain.plan_waves(hosts, ['h1', 'h2', 'h3'], 1)
        self.assertEqual([1, 1, 1], [len(wave.moves) for wave in plan.waves])
        self.assertEqual((), plan.obstacles)


class PlanAgainTest(unittest.TestCase):
    def setUp(self):
        dice = random.Random(6)
        self.hosts = next(
            hosts for hosts in iter(lambda: some_fleet(dice, (3,), 9), None)
            if len(drain.plan(hosts, ('h0',)).moves) > 1)
        self.move = drain.plan(self.hosts, ('h0',)).moves[0]

    def again(self, failures=1, cold=False, hosts=None):
        return drain.plan_again(
            hosts or self.hosts, ('h0',), cold, (), [moving.MoveAttempt(
                self.move, 'it did not converge')] * failures)

    def reasons(self, plan):
        return [one.reason for one in plan.obstacles
                if one.instance.id == self.move.id]

    def test_what_failed_is_not_planned_again(self):
        self.assertNotIn((self.move.id, self.move.target), [
            (each.id, each.target) for each in self.again().moves])
        cold = self.again(cold=True)
        self.assertTrue({each.id: each.cold for each in cold.moves}[
            self.move.id])
        self.assertEqual(['did not move: it did not converge'],
                         self.reasons(self.again(2, cold=True)))

    def test_a_failure_is_named_if_no_other_host_has_room(self):
        (reason,) = self.reasons(self.again(hosts=[
            host for host in self.hosts
            if host.name in ('h0', self.move.target)]))
        self.assertRegex(reason, f'did not move to {self.move.target}: it did '
                         'not converge; now: may move to no other host')


class ReportTest(unittest.TestCase):
    def test_what_stays_and_what_would_help_is_said(self):
        fleet, _ = fleets.with_devices()
        text = move_report.drain_text(fleet, drain.plan(
            fleet.hosts, ('h0',)))
        self.assertEqual(
            '1 instance cannot leave:\n'
            '  a on h0: has PCI devices, so that it cannot be live-migrated. '
            'What would help: --cold.\n', text)
        text = move_report.drain_text(fleet, drain.plan(
            fleet.hosts, ('h0',), True))
        self.assertEqual('h0 is empty after 1 move:\n'
                         '  1. a from h0 to h1, cell 0 (cold)\n', text)
