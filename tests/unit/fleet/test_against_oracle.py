# SPDX-License-Identifier: Apache-2.0

"""Sets of devices: counts, moves and replays against plain enumeration."""

import dataclasses
import random
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import capacity
from hpcvirt.fit import reasons
from hpcvirt.fit import room
from hpcvirt.fleet import drain
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.simulate import host_table
from hpcvirt.simulate import replay
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy
from tests.builders import set_hosts

KINDS = [*set_hosts.GUESTS.values()]
#: Their sets overlap, so that the first set that is free may not be the best.
OVERLAP = ('ring',)


class CountTest(unittest.TestCase):
    def test_an_instance_fits_where_a_set_is_free(self):
        self.assert_fits(1, 40, set_hosts.PLANNED, set_hosts.FLAVORS)

    def test_ranks_need_not_be_known(self):
        self.assert_ranks_need_not_be_known(40)

    def test_periodic_on_many_hosts(self):
        self.assert_fits(1, 600, set_hosts.PLANNED, set_hosts.FLAVORS)
        self.assert_ranks_need_not_be_known(600)

    def assert_ranks_need_not_be_known(self, rounds):
        self.assert_fits(2, rounds, set_hosts.IN_CLOUD, [
            each for each in set_hosts.FLAVORS if each.name != 'gpu8'])

    def assert_fits(self, seed, rounds, aliases, flavors):
        dice = random.Random(seed)
        kinds = [set_hosts.GUESTS[each.name] for each in flavors]
        counter = room.RoomCounter([each.demand for each in kinds])
        found = set()
        for _ in range(rounds):
            host = set_hosts.a_host(dice, aliases=aliases)
            self.assertEqual([], set_hosts.faults(host))
            left = set_hosts.room(host)
            for flavor, guest, bound in zip(
                    flavors, kinds, counter.count(host.state.supply),
                    strict=True):
                why = flavor.name, left
                placed = admission.predict(guest, host.state)
                fits = not isinstance(placed, reasons.Misfit)
                self.assertEqual(
                    set_hosts.fits(flavor, left, aliases), fits, why)
                found.add((flavor.name, fits))
                count = capacity.fill(guest, host.state, 9).count
                most = set_hosts.most(flavor, left, aliases)
                self.assertGreaterEqual(bound, most, why)
                if flavor.name in OVERLAP:
                    self.assertGreaterEqual(most, count, why)
                else:
                    self.assertEqual(most, count, why)
        self.assertEqual(2 * len(flavors), len(found))


def by_name(hosts):
    return {host.name: host for host in hosts}


def after_any_move(hosts):
    """Make every move that a target accepts."""
    for source in hosts:
        for instance in source.instances:
            for target in hosts:
                after = by_name(hosts)
                if (target is not source
                        and moving.stays(instance, True) is None
                        and moving.try_move(after, instance, target.name)):
                    yield tuple(after.values())


class MoveTest(unittest.TestCase):
    def some_hosts(self, dice, number, rounds, follows=True):
        return tuple(set_hosts.a_host(dice, f'h{index}', rounds,
                                      follows=follows)
                     for index in range(number))

    def carry_out(self, moves, hosts):
        """Make moves; all instances must have what they request."""
        after = by_name(hosts)
        for move in moves:
            (instance,) = (one for one in after[move.source].instances
                           if one.id == move.id)
            self.assertEqual(set_hosts.fits(
                instance.flavor, set_hosts.room(after[move.target])), True)
            made = moving.try_move(after, instance, move.target)
            self.assertEqual(move, made)
            for host in after.values():
                self.assertEqual([], set_hosts.faults(host))
        return after

    def fits(self, flavor, hosts):
        return any(set_hosts.fits(flavor, set_hosts.room(host))
                   for host in hosts)

    def fewest(self, flavor, hosts, most):
        layer = [hosts]
        for number in range(most + 1):
            if any(self.fits(flavor, each) for each in layer):
                return number
            layer = [after for each in layer for after
                     in after_any_move(each)] if number < most else []
        return None

    def test_an_instance_moves_where_allocated_devices_fit(self):
        dice = random.Random(3)
        for _ in range(60):
            source, target = self.some_hosts(dice, 2, 8)
            for one in source.instances:
                self.assertEqual(
                    set_hosts.fits(one.flavor, set_hosts.room(target)),
                    moving.land(one, target) is not None)

    def test_the_fewest_moves_make_room_for_a_set(self):
        self.assert_fewest(2, True, {1: 4, 2: 0, None: 4}, 20)

    def test_instances_with_sets_stay_unless_moves_follow_placement(self):
        self.assert_fewest(4, False, {1: 3, None: 4}, 20)

    def test_periodic_the_fewest_of_many_moves_make_room(self):
        self.assert_fewest(4, True, {1: 10, 2: 2, None: 10}, 60)
        self.assert_fewest(5, False, {1: 4, None: 10}, 60)

    def assert_fewest(self, seed, follows, least, rounds):
        dice = random.Random(seed)
        found = []
        for _ in range(rounds):
            hosts = self.some_hosts(dice, dice.choice((2, 3)), 9, follows)
            if sum(len(host.instances) for host in hosts) > 10:
                continue
            for flavor, guest in zip(set_hosts.FLAVORS, KINDS, strict=True):
                plan = make_room.search(guest, hosts, 2, cold=True)
                number = None if plan is None else len(plan.moves)
                if flavor.name in OVERLAP:
                    continue
                self.assertEqual(self.fewest(flavor, hosts, 2), number,
                                 (flavor.name, hosts))
                found.append(number)
                if number:
                    after = self.carry_out(plan.moves, hosts)
                    host = after[plan.places[0][0]]
                    self.assertTrue(set_hosts.fits(
                        flavor, set_hosts.room(host)))
        for number, count in least.items():
            self.assertGreater(found.count(number), count, number)

    def test_a_drain_leaves_the_fewest(self):
        self.assert_drain_leaves_the_fewest(2, 2, 20)

    def test_periodic_a_drain_of_more_instances_leaves_the_fewest(self):
        self.assert_drain_leaves_the_fewest(6, 3, 60)

    def assert_drain_leaves_the_fewest(self, seed, most, rounds):
        dice = random.Random(seed)
        found = []
        for _ in range(rounds):
            hosts = self.some_hosts(dice, 3, 6)
            own = len(hosts[0].instances)
            if not 0 < own <= most or sum(
                    len(host.instances) for host in hosts) > 6:
                continue
            plan = drain.plan(hosts, ['h0'], cold=True)
            after = self.carry_out(plan.moves, hosts)
            left = len(after['h0'].instances)
            self.assertEqual(left, len(plan.obstacles))
            self.assertTrue(plan.proven)
            best, layer = own, [hosts]
            for _ in range(own + 1):
                layer = list({
                    frozenset((one.id, one.host, one.cells,
                               one.holding.devices)
                              for host in each for one in host.instances): each
                    for before in layer
                    for each in after_any_move(before)}.values())
                best = min([best, *(len(each[0].instances)
                                    for each in layer)])
            self.assertLessEqual(left, best)
            found.append(left)
        self.assertGreater(found.count(0), 5)
        self.assertGreater(len(found) - found.count(0), 0)

    def test_of_equal_instances_the_one_leaves_whose_device_is_missed(self):
        one, near = set_hosts.FLAVORS[0], set_hosts.FLAVORS[2]
        home = set_hosts.with_instances('h0', (near, 'gpu0', 'gpu1'))
        # Only without the third, a pair is free.
        crowded = set_hosts.with_instances('h1', *(
            (one, f'gpu{number}') for number in (0, 1, 2, 4, 6)))
        crowded = dataclasses.replace(crowded, instances=(
            *crowded.instances[:3], *(
                dataclasses.replace(each, stays='stays')
                for each in crowded.instances[3:])))
        full = set_hosts.with_instances('h2', *(
            (one, f'gpu{number}') for number in range(1, 8)))
        full = dataclasses.replace(full, instances=tuple(
            dataclasses.replace(each, stays='stays')
            for each in full.instances))
        plan = drain.plan([home, crowded, full], ['h0'], cold=True)
        self.assertEqual([('h1-2', 'h2'), ('h0-0', 'h1')], [
            (move.id, move.target) for move in plan.moves])

    def test_without_the_patch_a_move_takes_the_first_device(self):
        one = set_hosts.FLAVORS[0]
        target = set_hosts.with_instances('h1', (one, 'gpu3'))
        for follows, device in ((False, 'gpu4'), (True, 'gpu2')):
            home = set_hosts.with_instances('h0', (one, 'gpu0'),
                                            follows=follows)
            after = by_name((home, target))
            moving.try_move(after, home.instances[0], 'h1')
            self.assertEqual([device], set_hosts.held(
                after['h1'].instances[-1], target))

    def test_a_drain_names_instances_that_keep_no_set(self):
        hosts = (set_hosts.with_instances('h0', (
            set_hosts.FLAVORS[3], *map('gpu{}'.format, range(4))),
            follows=False), set_hosts.host('h1'))
        (obstacle,) = drain.plan(hosts, ['h0'], cold=True).obstacles
        self.assertIn('set of PCI devices', obstacle.reason)


class ReplayTest(unittest.TestCase):
    def test_no_strategy_gives_an_illegal_set(self):
        for each in strategy.parse('nova,packing,best-fit,hpcvirt', 0):
            with self.subTest(each.name):
                self.replay(each)

    def replay(self, chosen):
        dice = random.Random(7)
        hosts = [set_hosts.host(f'h{number}') for number in range(3)]
        table = host_table.HostTable([host.state for host in hosts],
                                     replay.relax_flavors(KINDS))
        scheduler = schedulers.Scheduler(table, KINDS, chosen)
        running = []
        answers = set()
        for number in range(150):
            if running and dice.random() < 0.4:
                scheduler.remove([running.pop(dice.randrange(len(running)))])
            place = dice.randrange(len(KINDS))
            fits = scheduler.known.fits(place, scheduler._everywhere)
            for host, answer in enumerate(fits.tolist()):
                left = set_hosts.room(state.FleetHost(
                    '', table.describe_host(host)))
                self.assertEqual(set_hosts.fits(
                    set_hosts.FLAVORS[place], left), answer, left)
                answers.add(answer)
            running += scheduler.place(place, 1)
            for host in range(len(hosts)):
                self.assertEqual([], set_hosts.faults(state.FleetHost(
                    '', table.describe_host(host), tuple(state.Instance(
                        str(number), '', '', KINDS[one.flavor],
                        one.holding)
                        for number, one in enumerate(running)
                        if one.host == host))))
        self.assertEqual({True, False}, answers)
