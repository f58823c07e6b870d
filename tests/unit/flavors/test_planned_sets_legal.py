# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import unittest

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planned_sets
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from tests.builders import hosts
from tests.builders import wired

LINK, PARTITION, SWITCH = device_choice.SetRule
_OF_FABRIC = 'the partitions of the fabric manager'


def find(host, rule, sizes=(1, 2, 4, 8), vendor='10de'):
    """Find the sets, as the last bytes of the addresses' buses."""
    addresses = [device.address for device in host.devices
                 if device.vendor_id == vendor]
    found = planned_sets.find_sets(host, addresses, device_choice.Devices(
        device_choice.DeviceKind.WHOLE, sets=rule, sizes=sizes))
    return {size: [' '.join(each[5:7] for each in members)
                   for members in sets] for size, sets in found.items()}


def packings(sets):
    """Yield every choice of sets that do not overlap."""
    if not sets:
        yield ()
        return
    first, *others = sets
    yield from packings(others)
    for rest in packings([each for each in others
                          if set(each).isdisjoint(first)]):
        yield first, *rest


def is_inside(members, larger):
    return all(set(members) <= set(other) or set(members).isdisjoint(other)
               for other in larger)


class RandomSetsTest(unittest.TestCase):
    """The sets against all choices of sets that the wiring allows."""

    def legal(self, host, rule, size, addresses):
        """List the legal sets by the words of the rule."""
        wires = host.wiring
        if size in (1, len(addresses)):
            return list(itertools.combinations(addresses, size))
        if rule is PARTITION:
            return [each.devices for each in wires.partitions or ()
                    if len(each.devices) == size]
        pairs = {link.ends for link in wires.links}
        if rule is SWITCH:
            roots = {each.address: next(
                bridge.address for bridge in wires.path(each))[:8]
                     for each in wires.attachments}
            pairs = {pair for pair in itertools.combinations(addresses, 2)
                     if roots[pair[0]] == roots[pair[1]]}
        return [each for each in itertools.combinations(addresses, size)
                if set(itertools.combinations(each, 2)) <= pairs]

    def random_host(self, dice):
        host = wired.tree(dice.choice([1, 2]), dice.choice([1, 2]),
                          dice.choice([1, 2, 3]), 0, links='none')
        host = dataclasses.replace(host, devices=host.devices[:7])
        addresses = [device.address for device in host.devices]
        chance = dice.random()
        partitions = {tuple(sorted(dice.sample(
            addresses, dice.randint(1, len(addresses)))))
            for _ in range(dice.randint(0, 8))}
        return dataclasses.replace(host, wiring=dataclasses.replace(
            host.wiring, attachments=host.wiring.attachments[:7],
            links=tuple(
                wiring.DeviceLink(wiring.LinkKind.XGMI, pair,
                                  dice.choice([None, 1, 2]))
                for pair in itertools.combinations(addresses, 2)
                if dice.random() < chance),
            partitions=tuple(wiring.FabricPartition(number, each)
                             for number, each
                             in enumerate(sorted(partitions)))))

    def test_there_are_as_many_sets_as_possible_and_none_is_illegal(self):
        dice = random.Random(28)
        nested = several = 0
        for number in range(400):
            host = self.random_host(dice)
            rule = dice.choice([LINK, PARTITION, SWITCH])
            addresses = [device.address for device in host.devices]
            wanted = dataclasses.replace(hosts.GPU, sets=rule,
                                         sizes=(1, 2, 3, 4, 8))
            found = planned_sets.find_sets(host, addresses, wanted)
            larger = []
            for size in (8, 4, 3, 2, 1):
                with self.subTest(number=number, rule=rule, size=size):
                    legal = self.legal(host, rule, size, addresses)
                    sets = found[size]
                    self.assertLessEqual(set(sets), set(legal))
                    best = max((len(each), sum(
                        is_inside(own, larger) for own in each))
                        for each in packings(legal))
                    self.assertEqual(best, (len(sets), sum(
                        is_inside(own, larger) for own in sets)))
                    self.assertEqual(size * len(sets), len({
                        *itertools.chain(*sets)}))
                    several += len(sets) > 1 < size
                    nested += bool(larger) and best[1] == len(sets) > 1 < size
                    larger += sets
        self.assertGreater(several, 100)
        self.assertGreater(nested, 20)

    def test_the_order_of_links_does_not_matter(self):
        dice = random.Random(7)
        for _ in range(50):
            host = self.random_host(dice)
            links = list(host.wiring.links)
            dice.shuffle(links)
            other = dataclasses.replace(host, wiring=dataclasses.replace(
                host.wiring, links=tuple(links)))
            self.assertEqual(find(host, LINK), find(other, LINK))


class SetsTest(unittest.TestCase):
    def test_a_dgx_1_has_the_pairs_with_two_nvlinks_within_its_quartets(self):
        self.assertEqual({
            1: ['06', '07', '0a', '0b', '85', '86', '89', '8a'],
            2: ['06 0b', '07 0a', '85 8a', '86 89'],
            4: ['06 07 0a 0b', '85 86 89 8a'],
            8: ['06 07 0a 0b 85 86 89 8a']},
            find(hosts.named('xeon-2s-20c-smt-8gpu'), LINK))

    def test_gpus_that_are_all_linked_follow_cells_and_switches(self):
        self.assertEqual({
            2: ['12 13', '22 23', '42 43', '52 53'],
            4: ['12 13 22 23', '42 43 52 53']},
            find(wired.tree(), LINK, (2, 4)))

    def test_sixteen_gpus_take_no_time(self):
        found = find(wired.tree(gpus=4), LINK, (2, 4, 8, 16))
        self.assertEqual([8, 4, 2, 1], [*map(len, found.values())])
        self.assertEqual('12 13 14 15', found[4][0])

    def test_devices_below_a_root_complex_are_sets_of_the_switch(self):
        host = wired.tree(links='none')
        self.assertEqual(
            {2: ['12 13', '22 23', '42 43', '52 53'],
             3: ['12 13 22', '42 43 52'],
             4: ['12 13 22 23', '42 43 52 53'],
             8: ['12 13 22 23 42 43 52 53']},
            find(host, SWITCH, (2, 3, 4, 8)))

    def test_partitions_are_those_of_the_fabric_manager(self):
        self.assertEqual({2: ['18 19'], 3: [], 4: ['18 19 98 99']},
                         find(wired.host(), PARTITION, (2, 3, 4)))

    def test_lists_need_all_of_their_devices(self):
        rule = (('0000:12:00.0', '0000:22:00.0'),
                ('0000:13:00.0', '0000:77:00.0'))
        self.assertEqual({2: ['12 22']}, find(wired.tree(), rule, (2,)))

    def test_what_the_topology_does_not_say_is_not_guessed(self):
        bare = hosts.build(gpus={0: 2, 1: 2})
        wanted = dataclasses.replace(hosts.GPU, sizes=(1, 2, 4))
        for rule, words in ((LINK, 'which GPUs are linked'),
                            (PARTITION, _OF_FABRIC),
                            (SWITCH, 'the switches above devices')):
            self.assertEqual({1: 4, 2: 0, 4: 1}, {
                size: len(sets)
                for size, sets in find(bare, rule, (1, 2, 4)).items()})
            self.assertEqual(words, planned_sets.find_unknown(
                bare, dataclasses.replace(wanted, sets=rule)))
            self.assertIsNone(planned_sets.find_unknown(
                wired.host(), dataclasses.replace(wanted, sets=rule)))

    def test_hosts_that_differ_in_links_are_planned_apart(self):
        one = wired.tree(name='one')
        other = wired.tree(name='other', links='cell')
        third = wired.tree(name='third')
        self.assertEqual(
            [['one', 'other', 'third']],
            [[host.name for host in same] for same
             in host_model.group_twins([one, other, third])])
        self.assertEqual({('one', 'third'), ('other',)}, {
            tuple(host.name for host in same) for same
            in host_model.group_twins([one, other, third],
                                      planned_sets.make_key)})
