# SPDX-License-Identifier: Apache-2.0

"""Each item of the studies is where the page on studies says it is."""

import csv
import dataclasses
import unittest

from hpcvirt.audit import audit
from hpcvirt.bench.catalogue import catalogue as benchmarks
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.flavors import profile
from hpcvirt.flavors import warning
from tests import pages


def read_items():
    path = pages.SOURCE / 'reference/study-items.csv'
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def split_places(item):
    """Split what is said of an item: pairs of a kind and a name."""
    return [tuple(place.split(maxsplit=1))
            for place in item['Where'].split('; ')]


class ItemsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.items = read_items()
        self.studies = {each.id: each for each in study_catalogue.studies()}

    def is_there(self, study, kind, name):
        if kind == 'case':
            return name in [case.id for case in study.cases]
        if kind == 'figure':
            return name in [row.id for row in study.rows]
        if kind == 'number':
            return any(each.text.startswith(name)
                       for each in study.statements)
        if kind == 'lesson':
            return any(each.startswith(name) for each in study.lessons)
        if kind == 'rule':
            return name in [rule.code for rule in audit.RULES]
        if kind == 'warning':
            return name in [*warning.WarningCode]
        if kind == 'benchmark':
            return name in [each.name for each
                            in benchmarks.all_definitions()]
        if kind == 'key':
            return name in [each.name for each
                            in dataclasses.fields(profile.Profile)]
        if kind == 'page':
            return (pages.SOURCE / f'{name}.rst').is_file()
        # The reason why an item is nowhere.
        return kind == 'none:' and len(name.split()) > 2

    def test_each_item_is_where_the_page_says(self):
        self.assertGreaterEqual(len(self.items), 75)
        for item in self.items:
            places = split_places(item)
            self.assertTrue(item['Item'] and places, item)
            for kind, name in places:
                with self.subTest(item['Item'], kind=kind, name=name):
                    self.assertTrue(self.is_there(
                        self.studies[item['Study']], kind, name))

    def test_no_item_is_listed_twice(self):
        names = [(item['Study'], item['Item']) for item in self.items]
        self.assertEqual(len(set(names)), len(names))

    def test_each_case_and_figure_of_a_study_is_an_item(self):
        for study in self.studies.values():
            named = {place for item in self.items
                     if item['Study'] == study.id
                     for place in split_places(item)}
            figures = {name for kind, name in named if kind == 'figure'}
            cases = {row.case for row in study.rows if row.id in figures}
            cases |= {name for kind, name in named if kind == 'case'}
            self.assertEqual({case.id for case in study.cases}, cases)
            self.assertEqual({row.id for row in study.rows}, figures)

    def test_items_that_are_nowhere_are_few(self):
        nowhere = [item['Item'] for item in self.items
                   if all(kind == 'none:' for kind, _ in split_places(item))]
        self.assertLess(len(nowhere), 6, nowhere)
