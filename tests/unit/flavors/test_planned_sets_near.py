# SPDX-License-Identifier: Apache-2.0

import collections
import itertools
import random
import unittest

from hpcvirt.flavors import planned_sets


def can_serve(near, counts, number):
    """Whether all sets can have their devices, by trying everything."""
    if not near:
        return True
    most = -(-number // len(near[0])) if near[0] else 0
    for chosen in itertools.combinations_with_replacement(near[0], number):
        own = collections.Counter(chosen)
        if all(number <= min(counts[card], most)
               for card, number in own.items()) and can_serve(
                near[1:], collections.Counter(counts) - own, number):
            return True
    return False


class AssignTest(unittest.TestCase):
    def test_all_sets_are_served_if_the_devices_suffice(self):
        dice = random.Random(3)
        served = 0
        for turn in range(500):
            cards = 'abcd'[:dice.randint(1, 4)]
            counts = {card: dice.randint(1, 4) for card in cards}
            near = [dice.sample(cards, dice.randint(0, len(cards)))
                    for _ in range(dice.randint(1, 5))]
            number = dice.randint(1, 3)
            found = planned_sets.assign_near(near, counts, number)
            with self.subTest(turn=turn):
                used = collections.Counter(itertools.chain(*found))
                self.assertTrue(all(used[card] <= counts[card]
                                    for card in used))
                for own, taken in zip(near, found, strict=True):
                    self.assertIn(len(taken), (0, number))
                    self.assertLessEqual(set(taken), set(own))
                if all(near):
                    self.assertEqual(can_serve(near, counts, number),
                                     all(found))
                    served += all(found)
        self.assertGreater(served, 50)

    def test_cards_are_used_evenly_and_the_best_first(self):
        self.assertEqual(
            [('a',), ('a',), ('b',), ('b',)],
            planned_sets.assign_near([['a', 'b']] * 4, {'a': 8, 'b': 8}, 1))
        self.assertEqual([('a',), ('b',)], planned_sets.assign_near(
            [['a', 'b'], ['b', 'a']], {'a': 8, 'b': 8}, 1))

    def test_a_set_gets_several_devices_of_a_card_only_if_it_must(self):
        self.assertEqual([('a', 'b')], planned_sets.assign_near(
            [['a', 'b']], {'a': 8, 'b': 8}, 2))
        self.assertEqual([('a', 'a', 'b')], planned_sets.assign_near(
            [['a', 'b']], {'a': 8, 'b': 1}, 3))

    def test_the_first_sets_are_served_if_devices_are_missing(self):
        self.assertEqual([('a',), ()], planned_sets.assign_near(
            [['a'], ['a']], {'a': 1}, 1))
        self.assertEqual([()], planned_sets.assign_near([[]], {}, 1))


class OrderTest(unittest.TestCase):
    def test_a_card_has_one_place_in_all_sets(self):
        self.assertEqual(
            [('a', 'b'), ('c', 'b'), ('a', 'd')],
            planned_sets.order_cards([('a', 'b'), ('b', 'c'), ('d', 'a')]))

    def test_a_card_has_two_places_where_it_must(self):
        ordered = planned_sets.order_cards([('a', 'b'), ('b', 'c'),
                                            ('a', 'c')])
        self.assertEqual([{'a', 'b'}, {'b', 'c'}, {'a', 'c'}],
                         [*map(set, ordered)])
