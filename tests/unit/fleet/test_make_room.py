# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from tests.builders import fleets


def fits(guest, hosts, count=1):
    return count <= sum(len(admission.place_guests(guest, host.state, count))
                        for host in hosts)


def allowed(instance, target):
    """Whether Nova would let an instance come, whatever room there is."""
    if instance.stays or target.name == instance.host or (
            instance.hosts and target.name not in instance.hosts):
        return False
    if instance.group is None:
        return True
    there = {item.id for item in target.instances} & instance.group.members
    match instance.group.policy:
        case 'affinity':
            return False
        case 'anti-affinity':
            return len(there) < instance.group.most_per_host
    return True


def after_any_move(hosts, cold=True):
    """Make every move that a target accepts."""
    for source in hosts:
        for instance in source.instances:
            for target in hosts:
                if not allowed(instance, target) or (
                        instance.only_cold and not cold):
                    continue
                placed = admission.predict(instance.guest, target.state)
                if not isinstance(placed, reasons.Misfit):
                    by_name = {host.name: host for host in hosts}
                    by_name[target.name] = moving.arrive(instance, target,
                                                         placed)
                    by_name[source.name] = moving.leave(instance, source)
                    yield tuple(by_name.values()), bool(instance.only_cold)


def fewest(guest, hosts, most, count=1, most_cold=0):
    """Search all sequences of moves, with as few cold ones as possible."""
    for cold in range(most_cold + 1):
        layer = [(hosts, 0)]
        for number in range(most + 1):
            if any(fits(guest, found, count) for found, _ in layer):
                return number, cold
            if number < most:
                layer = [(after, used + is_cold) for found, used in layer
                         for after, is_cold
                         in after_any_move(found, used < cold)]
    return None, None


class PlanTestCase(unittest.TestCase):
    def carry_out(self, plan, flavor, hosts):
        """Make the moves and claim the places, on hosts built anew."""
        for move in plan.moves:
            source, target = hosts[move.source], hosts[move.target]
            (instance,) = (item for item in source.instances
                           if item.id == move.id)
            self.assertTrue(allowed(instance, target))
            self.assertEqual(bool(instance.only_cold), move.cold)
            landed = self.claim(move.id, instance.flavor, instance.guest,
                                target, move.cells)
            hosts[move.target] = fleets.rebuilt(
                target, (*target.instances, dataclasses.replace(
                    landed, hosts=instance.hosts, group=instance.group)))
            hosts[move.source] = fleets.rebuilt(source, tuple(
                item for item in source.instances if item is not instance))
        for name, cells in plan.places:
            host = hosts[name]
            hosts[name] = fleets.rebuilt(host, (*host.instances, self.claim(
                f'new{len(host.instances)}', *flavor, host, cells)))

    def claim(self, name, flavor, guest, host, cells):
        placed = admission.predict(guest, host.state)
        self.assertEqual(cells, placed.cells)
        return fleets.an_instance(name, flavor, host, placed, guest=guest)


class MakeRoomTest(PlanTestCase):
    def assert_fewest(self, flavor, guest, fleet, most, count, cold):
        plan = make_room.search(guest, fleet.hosts, most, count, cold)
        number = None if plan is None else len(plan.moves)
        used = plan and sum(move.cold for move in plan.moves)
        self.assertEqual(fewest(guest, fleet.hosts, most, count, cold * most),
                         (number, used))
        if plan is not None:
            self.carry_out(plan, (flavor, guest), {
                host.name: host for host in fleet.hosts})
        return number

    def roll(self, seed, rounds, number, most, variants, constrained=False,
             counts=(1,), cold=False):
        dice = random.Random(seed)
        found = []
        for _ in range(rounds):
            fleet, flavors = fleets.a_fleet(dice, dice.choice(number),
                                            movable=0.8)
            if sum(len(host.instances) for host in fleet.hosts) > 14:
                continue
            if constrained:
                fleet = fleets.constrained(dice, fleet, cold)
            for flavor in flavors:
                guest = compiled_flavor.make(flavor)
                found += [self.assert_fewest(flavor, guests.compile_shape(
                    dataclasses.replace(guest.shape, **change),
                    flavor.vcpus, flavor.ram_mib), fleet, most, count,
                    cold)
                    for change in variants for count in counts]
        return found

    def test_one_move_is_found_wherever_one_is_enough(self):
        found = self.roll(11, 20, (2, 3, 6), 1, (
            {}, {'exclusive_cells': True}))
        self.assertGreater(found.count(1), 6)
        self.assertGreater(found.count(None), 6)

    def test_two_moves_are_found_wherever_two_are_enough(self):
        found = self.roll(12, 25, (2, 3), 2, ({}, {'exclusive_cells': True}))
        self.assertGreater(found.count(2), 1)

    def test_hosts_and_groups_are_kept(self):
        found = self.roll(13, 30, (2, 3, 4), 2, ({},), constrained=True)
        self.assertGreater(found.count(1), 3)
        self.assertGreater(found.count(2), 0)

    def test_room_for_several_guests_is_found(self):
        found = self.roll(39, 12, (2, 3, 4), 2, (
            {}, {'exclusive_cells': True}), constrained=True, counts=(2, 4))
        self.assertGreater(found.count(1), 0)

    def test_periodic_plans_for_six_hosts_are_the_fewest(self):
        for seed in range(30):
            self.roll(seed, 4, (2, 3), 2, ({},), constrained=seed % 2 > 0)
            self.roll(seed, 4, (3, 4, 5, 6), 2, ({},), counts=(1, 2, 3, 5),
                      constrained=seed % 2 > 0, cold=seed % 4 > 1)

    def test_cold_migrations_are_the_last_resort(self):
        found = self.roll(33, 25, (2, 3), 2, ({},), constrained=True,
                          cold=True)
        self.assertGreater(found.count(1), 1)

    def test_devices_move_with_their_instance(self):
        """A VF is free again where it was, and taken where it is."""
        fleet, guest = fleets.with_devices()
        self.assertIsNone(make_room.search(guest, fleet.hosts, 2))
        plan = make_room.search(guest, fleet.hosts, 2, cold=True)
        self.assertEqual([moving.Move('a', 'h0', 'h1', (0,), True)],
                         list(plan.moves))
        self.assertEqual((('h0', (0,)),), plan.places)
        after = {host.name: host for host in fleet.hosts}
        (resident,) = after['h0'].instances
        free = [len(after[name].state.supply.pools) for name in after]
        moving.try_move(after, resident, 'h1')
        self.assertEqual(free[::-1], [
            len(after[name].state.supply.pools) for name in after])

    def test_instances_with_devices_and_affinity_stay(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 2)
        for host in fleet.hosts:
            for instance in host.instances:
                group = state.ServerGroup(state.Policy.AFFINITY,
                                          frozenset({instance.id}))
                self.assertIsNone(moving.stays(instance))
                self.assertIn('devices', moving.stays(dataclasses.replace(
                    instance, devices=('0000:41:02.1',))))
                self.assertIn('affinity', moving.stays(dataclasses.replace(
                    instance, group=group)))

    def test_who_comes_and_leaves_again_leaves_nothing_behind(self):
        fleet, flavors = fleets.a_fleet(random.Random(6), 4)
        count = 0
        for host in fleet.hosts:
            for flavor in flavors:
                instance = state.Instance('new', '', host.name,
                                          compiled_flavor.make(flavor),
                                          fleets.hold((0,), ()))
                placed = moving.land(instance, host)
                if placed is not None:
                    there = moving.arrive(instance, host, placed)
                    self.assertNotEqual(host, there)
                    self.assertEqual(host, moving.leave(
                        there.instances[-1], there))
                    count += 1
        self.assertGreater(count, 3)


class StandingTest(PlanTestCase):
    def test_all_kinds_fit_at_once_after_the_moves(self):
        dice = random.Random(3)
        moves = several = 0
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 3)
            wanted = [make_room.RoomTarget(compiled_flavor.make(flavor),
                                           dice.choice((1, 1, 2)))
                      for flavor in dice.sample(flavors, min(
                          3, len(flavors)))]
            found = make_room.keep_room(wanted, fleet.hosts, 1)
            self.assertEqual(
                sorted((one.guest.cpus for one in wanted), reverse=True),
                [kept.target.guest.cpus for kept in found])
            self.assertEqual(found[0].plan, make_room.search(
                found[0].target.guest, fleet.hosts, 1,
                found[0].target.count))
            hosts = {host.name: host for host in fleet.hosts}
            fits = [kept for kept in found if kept.plan]
            several += len(fits) > 1
            for kept in fits:
                moves += len(kept.plan.moves)
                self.assertEqual(kept.target.count, len(kept.plan.places))
                guest = kept.target.guest
                self.carry_out(kept.plan, (guest.flavor, guest), hosts)
        self.assertGreater(moves, 2)
        self.assertGreater(several, 5)


def a_flavor(vcpus, ram_mib=1024):
    return compiled_flavor.make(flavor_model.Flavor(
        f'f{vcpus}-{ram_mib}', vcpus, ram_mib, 0, {}))


def kept(vcpus, *moved):
    """Make the plan of a kind, with moves of these instances."""
    return make_room.RoomPlan(
        make_room.RoomTarget(a_flavor(vcpus), 1), moving.MovePlan(tuple(
            moving.Move(name, 'a', 'b', (0,)) for name in moved),
            (('a', (0,)),)))


NO_PLAN = make_room.RoomPlan(make_room.RoomTarget(a_flavor(64), 1), None)


class UsualTest(unittest.TestCase):
    def test_the_three_largest_are_found_the_largest_first(self):
        flavors = [a_flavor(vcpus) for vcpus in (4, 32, 8, 16)]
        self.assertEqual([1, 3, 2], make_room.find_usual(
            flavors, [10, 10, 10, 10]))

    def test_what_has_few_of_the_cpus_is_not_usual(self):
        flavors = [a_flavor(vcpus) for vcpus in (4, 8, 64)]
        # One request for 64 CPUs among 3,200.
        self.assertEqual([2, 1], make_room.find_usual(flavors, [4, 390, 1]))
        # And among 3,208.
        self.assertEqual([1], make_room.find_usual(flavors, [4, 391, 1]))

    def test_memory_decides_between_equal_cpus(self):
        flavors = [a_flavor(8, 512), a_flavor(8, 2048), a_flavor(8)]
        self.assertEqual([1, 2, 0], make_room.find_usual(flavors, [1, 1, 1]))

    def test_nothing_is_usual_if_nothing_was_requested(self):
        self.assertEqual([], make_room.find_usual([a_flavor(8)], [0]))


class LimitTest(unittest.TestCase):
    PLANS = kept(32, 'x', 'y'), NO_PLAN, kept(16), kept(8, 'z')

    def limit(self, most):
        plan = make_room.limit(self.PLANS, most, 'of the budget')
        names = ''.join(move.id for move in plan.moves)
        self.assertEqual(3, len(names) + plan.waiting)
        self.assertEqual('of the budget' if plan.waiting else None, plan.why)
        return names

    def test_no_plan_is_made_in_part(self):
        # The small kind does not overtake the large one.
        for most, moved in ((None, 'xyz'), (3, 'xyz'), (2, 'xy'), (1, ''),
                            (0, '')):
            self.assertEqual(moved, self.limit(most))


class ExcludedTest(unittest.TestCase):
    def test_only_instances_of_the_projects_stay(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 2)
        hosts = tuple(dataclasses.replace(host, instances=tuple(
            dataclasses.replace(instance, project=host.name)
            for instance in host.instances)) for host in fleet.hosts)
        self.assertEqual(hosts, make_room.exclude_projects(hosts, ['other']))
        first, second = make_room.exclude_projects(hosts, [hosts[0].name])
        self.assertEqual(hosts[1], second)
        self.assertEqual({'is of an excluded project'}, {
            moving.stays(instance) for instance in first.instances})


class ReportTest(unittest.TestCase):
    def test_the_reasons_of_those_that_stay_are_counted(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 2)
        first, *others = fleet.hosts[0].instances
        host = dataclasses.replace(fleet.hosts[0], instances=(
            dataclasses.replace(first, stays='is locked'),
            *(dataclasses.replace(item, devices=('0000:41:02.1',))
              for item in others)))
        text = move_report.text(state.Fleet((host,), {}), make_room.limit(
            [NO_PLAN], None, ''), move_report.MoveRequest(1, single=True))
        self.assertEqual(
            f'f64-1024 does not fit, and would not after 1 move either.\n'
            f'{len(others) + 1} of {len(others) + 1} instances cannot move:\n'
            f'  has PCI devices that its flavor does not request: '
            f'{len(others)}\n  is locked: 1\n', text)

    def test_what_cold_migrations_would_free_is_said(self):
        fleet, _ = fleets.with_devices()
        plan = make_room.limit([NO_PLAN], None, '')
        for cold, said in ((False, True), (True, False)):
            text = move_report.text(fleet, plan, move_report.MoveRequest(
                1, cold, single=True))
            self.assertEqual(
                said, 'With --cold, 1 of these can move.' in text, text)

    def test_a_guest_that_fits_needs_no_moves(self):
        fleet, _ = fleets.a_fleet(random.Random(6), 1)
        asked = move_report.MoveRequest(2, single=True)
        self.assertEqual(
            'f8-1024 fits now, on a, cell 0. Nothing has to move.\n',
            move_report.text(fleet, make_room.limit([kept(8)], None, ''),
                             asked))
        document = move_report.document(
            fleet, make_room.limit([NO_PLAN], None, ''), asked)
        self.assertEqual((False, [], None), (
            document['fits'], document['moves'], document['then']))
