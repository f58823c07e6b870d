# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime
import enum
import json
import time
import unittest
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from tests.builders import refusals


class Colour(enum.StrEnum):
    RED = 'red'
    BLUE = 'blue'


@dataclasses.dataclass(frozen=True)
class Wheel:
    spokes: int
    colour: Colour = Colour.RED
    true: bool = True


@dataclasses.dataclass(frozen=True)
class Bike:
    name: str
    wheels: tuple[Wheel, ...]
    weight_kg: float
    parts: Mapping[str, Wheel] = dataclasses.field(default_factory=dict)
    gears: frozenset[int] = frozenset()
    owner: str | None = None
    price: Annotated[int, serialization.whole(1, 9)] | None = None
    frame: Annotated[str, serialization.text('[A-Z]+', 'STEEL')] = 'STEEL'
    shelves: Mapping[Annotated[str, serialization.text('[A-Z]+', 'LEFT')],
                     int] = dataclasses.field(default_factory=dict)


BIKE = {'name': 'tourer', 'wheels': [{'spokes': 36}, {'spokes': 32}],
        'weight_kg': 12}


def read(**changes: object) -> Bike:
    return serialization.load(Bike, BIKE | changes, 'bike.yaml')


class TestReading(unittest.TestCase):
    def test_a_document_becomes_a_record(self) -> None:
        self.assertEqual(
            Bike('tourer', (Wheel(36), Wheel(32)), 12.0,
                 {'spare': Wheel(28, Colour.BLUE, False)},
                 frozenset({1, 2}), 'Ada', 5, 'CARBON'),
            read(parts={'spare': {'spokes': 28, 'colour': 'blue',
                                  'true': False}},
                 gears=[2, 1], owner='Ada', price=5, frame='CARBON'))

    def test_a_whole_number_becomes_a_float_where_one_belongs(self) -> None:
        self.assertIs(float, type(read().weight_kg))

    def test_null_is_read_only_where_the_type_allows_it(self) -> None:
        self.assertIsNone(read(owner=None, price=None).owner)
        self.refused('name: must be text, not null', name=None)
        self.refused('gears: must be a list, not null', gears=None)

    def test_every_record_is_read_as_it_was_written(self) -> None:
        bike = read(gears=[3, 1], parts={'a b': {'spokes': 1}})
        plain = json.loads(json.dumps(serialization.dump(bike)))
        self.assertEqual([1, 3], plain['gears'])
        self.assertEqual(bike, serialization.load(Bike, plain, ''))

    def test_a_list_of_records_is_read_without_a_record_around_it(
            self) -> None:
        self.assertEqual((Wheel(3),), serialization.load(
            tuple[Wheel, ...], [{'spokes': 3}], 'x'))

    def refused(self, message: str, **changes: object) -> None:
        self.assertEqual(f'bike.yaml: {message}',
                         refusals.message(self, read, **changes))

    def test_nothing_is_converted(self) -> None:
        for value, shown in (
                ('36', "'36'"), (True, 'true'), (36.0, '36.0'),
                (None, 'null'), ([], 'a list'), ({}, 'a mapping'),
                (datetime.date(2026, 1, 2), 'datetime.date(2026, 1, 2)')):
            self.refused('wheels[1].spokes: must be a whole number, not '
                         f'{shown}', wheels=[{'spokes': 1},
                                             {'spokes': value}])
        for value in (1, 'true', None):
            self.refused(
                'wheels[0].true: must be true or false, not '
                f'{"null" if value is None else repr(value)}',
                wheels=[{'spokes': 1, 'true': value}])
        for value in (3, True, ['a']):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'name: must be text, not'):
                read(name=value)
        self.refused("wheels: must be a list, not 'ab'", wheels='ab')
        self.refused('wheels: must be a list, not a mapping', wheels={})

    def test_a_number_is_finite(self) -> None:
        for value in (float('nan'), float('inf'), -float('inf'), 10 ** 400,
                      -10 ** 400, True, '1.5'):
            with self.assertRaisesRegex(
                    exception.InvalidInput,
                    'weight_kg: must be a finite number, not'):
                read(weight_kg=value)

    def test_an_unknown_key_is_refused_with_the_known_ones(self) -> None:
        self.refused("unknown key 'bell'; known: name, wheels, weight_kg, "
                     'parts, gears, owner, price, frame, shelves', bell=1)
        self.refused("parts['x']: unknown key 'y'; known: spokes, colour, "
                     'true', parts={'x': {'spokes': 1, 'y': 2}})

    def test_a_missing_key_is_refused(self) -> None:
        self.refused("wheels[0]: the key 'spokes' is missing", wheels=[{}])

    def test_a_key_is_text(self) -> None:
        self.refused('parts: the key 1 must be in quotes',
                     parts={1: {'spokes': 1}})
        self.refused('wheels[0]: the key true must be in quotes',
                     wheels=[{True: 1}])

    def test_the_keys_of_a_mapping_are_checked(self) -> None:
        self.assertEqual({'LEFT': 3}, read(shelves={'LEFT': 3}).shelves)
        self.refused("shelves['left']: must be text such as LEFT, not 'left'",
                     shelves={'left': 3})

    def test_a_set_holds_no_element_twice(self) -> None:
        self.refused('gears: has 7 twice', gears=[7, 8, 7])

    def test_a_word_outside_a_list_is_refused(self) -> None:
        for value, shown in (('green', "'green'"), (['red'], 'a list'),
                             (1, '1')):
            self.refused('wheels[0].colour: must be one of red, blue, not '
                         f'{shown}',
                         wheels=[{'spokes': 1, 'colour': value}])

    def test_a_check_says_what_it_accepts(self) -> None:
        for value, shown in ((0, '0'), (10, '10'), (True, 'true'),
                             ('5', "'5'")):
            self.refused('price: must be a whole number from 1 to 9, not '
                         f'{shown}', price=value)
        self.refused("frame: must be text such as STEEL, not 'steel'",
                     frame='steel')

    def test_a_message_stays_short_whatever_the_value(self) -> None:
        for name in (0x1 << 20_000, 'x' * 5000, b'x' * 5000, ['x' * 5000]):
            with self.assertRaises(exception.InvalidInput) as caught:
                read(owner=name, frame='x' if name == '' else name)
            self.assertLess(len(str(caught.exception)), 130)
        with self.assertRaises(exception.InvalidInput) as caught:
            read(**{'x' * 5000: 1})
        self.assertLess(len(str(caught.exception)), 180)


class TestJson(unittest.TestCase):
    def test_text_and_bytes_with_or_without_a_mark_are_read(self) -> None:
        for data in ('{"a": 1}', b'{"a": 1}', b'\xef\xbb\xbf{"a": 1}'):
            self.assertEqual({'a': 1}, serialization.json_value(data, 'x'))

    def test_what_is_not_strict_json_is_refused(self) -> None:
        for data, message in (
                ('{"a": NaN}', 'NaN is not JSON'),
                ('{"a": 1, "a": 1}', "'a' occurs twice"),
                (b'"\xff"', 'is not UTF-8'),
                ('[' * 200_000, 'is nested too deeply'),
                ('', 'is not valid JSON')):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'^x: .*{message}'):
                serialization.json_value(data, 'x')

    def test_text_that_cannot_be_encoded_is_refused(self) -> None:
        for text in (r'"\ud800"', r'["a", "\uDFFF"]', r'{"\udc80": 1}',
                     r'"\ude00\ud83d"', '"\ud800"'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'unpaired surrogate'):
                serialization.json_value(text, 'x')
        for text in (r'"\ud83d\ude00"', '"\N{GRINNING FACE}"'):
            self.assertEqual('\N{GRINNING FACE}',
                             serialization.json_value(text, 'x'))
        # Escaped backslashes escape nothing.
        self.assertEqual(r'\ud800',
                         serialization.json_value(r'"\\ud800"', 'x'))

    def test_a_key_that_occurs_twice_is_found_in_linear_time(self) -> None:
        keys = ', '.join(f'"{number}": 1' for number in range(50_000))
        started = time.process_time()
        with self.assertRaisesRegex(exception.InvalidInput, "'49999' occurs"):
            serialization.json_value(f'{{{keys}, "49999": 2}}', 'x')
        self.assertLess(time.process_time() - started, 5)


class TestVersion(unittest.TestCase):
    def test_the_version_that_is_read_passes(self) -> None:
        serialization.require_version({'schema_version': 3}, 3, 'x')

    def test_another_version_is_named(self) -> None:
        for value, shown in ((2, '2'), ('3', "'3'"), (True, 'true'),
                             (3.0, '3.0'), (None, 'null')):
            with self.assertRaisesRegex(
                    exception.InvalidInput, f'^x: schema_version: is {shown};'
                    ' this version of hpcvirt reads 3$'):
                serialization.require_version({'schema_version': value}, 3,
                                              'x')

    def test_a_document_without_a_version_is_refused(self) -> None:
        for plain in ({}, [], None, 'schema_version'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        "the key 'schema_version'"):
                serialization.require_version(plain, 3, 'x')
