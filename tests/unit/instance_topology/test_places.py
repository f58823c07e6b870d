# SPDX-License-Identifier: Apache-2.0

import itertools
import unittest

import hypothesis
from hypothesis import strategies

from hpcvirt.instance_topology import places

PRODUCTS = (('2330',), ('101d', '101e'))
VENDORS = ('10de', '15b3')


def device(kind, cell, switch, address=None):
    return {'vendor': VENDORS[kind], 'products': list(PRODUCTS[kind]),
            'cell': cell, 'switch': switch, 'speed_gts': None, 'lanes': None,
            'address': address}


@strategies.composite
def guests(draw):
    """Draw devices and links, and functions of which the truth is known."""
    devices = [device(draw(strategies.integers(0, 1)), draw(
        strategies.sampled_from((None, 0, 1))), draw(
            strategies.sampled_from((None, 0, 1)))) for _ in range(draw(
                strategies.integers(1, 5)))]
    ends = [*itertools.combinations(range(len(devices)), 2)]
    links = draw(strategies.lists(strategies.sampled_from(ends), unique=True)
                 ) if ends else []
    order = draw(strategies.permutations(range(len(devices))))
    sees_cells = draw(strategies.booleans())
    functions = [places.Function(
        f'0000:{bus:02x}:00.0', devices[index]['vendor'],
        draw(strategies.sampled_from(devices[index]['products'])),
        cell=devices[index]['cell'] if sees_cells else None)
        for bus, index in enumerate(order)]
    return {'schema_version': 1, 'cells': [[[0]], [[1]]], 'notes': [],
            'devices': devices, 'switches': [{'above': None}] * 2,
            'links': [{'ends': [*pair], 'count': 4} for pair in links],
            }, functions


def fits(one, function):
    return (one['vendor'] == function.vendor
            and function.product in one['products']
            and (one['cell'] is None or function.cell is None
                 or one['cell'] == function.cell))


class ArrangeTest(unittest.TestCase):
    @hypothesis.given(guests())
    def test_what_is_said_holds_however_the_devices_are_assigned(self, guest):
        made, functions = guest
        devices = made['devices']
        found = places.arrange(made, functions)
        by_address = {each.address: each for each in found.functions}
        self.assertEqual({each.address for each in functions},
                         by_address.keys())
        counts = {frozenset(link['ends']): link['count']
                  for link in made['links']}
        for order in itertools.permutations(range(len(devices))):
            if not all(fits(devices[index], function) for index, function
                       in zip(order, functions, strict=True)):
                continue
            for index, function in zip(order, functions, strict=True):
                own = by_address[function.address]
                for key in ('cell', 'switch'):
                    value = getattr(own, key)
                    if value is not None and not (
                            key == 'cell' and value == function.cell):
                        self.assertEqual(devices[index][key], value)
            for (a, one), (b, other) in itertools.permutations(
                    zip(order, functions, strict=True), 2):
                count = found.count_links(by_address[one.address],
                                          by_address[other.address])
                if count is not None:
                    self.assertEqual(counts.get(frozenset((a, b)), 0), count)

    def test_all_that_are_alike_have_their_place(self):
        made = {'schema_version': 1, 'cells': [[[0]]], 'links': [],
                'switches': [{'above': None}], 'notes': [],
                'devices': [device(0, 0, 0), device(0, 0, 0)]}
        found = places.arrange(made, [
            places.Function(f'0000:0{bus}:00.0', '10de', '2330')
            for bus in (1, 2)])
        self.assertEqual([(0, 0), (0, 0)], [
            (each.cell, each.switch) for each in found.functions])
        self.assertEqual([], found.notes)

    def test_more_functions_than_devices_have_no_place(self):
        made = {'schema_version': 1, 'cells': [[[0]]], 'switches': [],
                'devices': [device(0, 0, None)], 'links': [], 'notes': []}
        found = places.arrange(made, [
            places.Function(f'0000:0{bus}:00.0', '10de', '2330')
            for bus in (1, 2)])
        self.assertEqual([], found.functions)
        self.assertIn('more devices 10de:2330', found.notes[0])

    def test_another_version_is_refused(self):
        with self.assertRaisesRegex(ValueError, 'schema_version 2, not 1'):
            places.arrange({'schema_version': 2}, [])
