# SPDX-License-Identifier: Apache-2.0

"""The page of a fleet, as a reader of its elements sees it."""

import collections
import dataclasses
import json
import pathlib
import random
import re
import unittest

from hpcvirt.cmd.fleet import capacity_page
from hpcvirt.fleet import count
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import state
from tests.builders import commands
from tests.builders import fleets
from tests.builders import folders
from tests.builders import page_reader

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'


def classed(root, kind):
    return [item for item in root.iter() if item.get('class') == kind]


class CapacityPageTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.fleet, self.flavors = fleets.a_fleet(random.Random(4), 3, load=1)

    def page(self, fleet):
        self.found = count.count(fleet, self.flavors)
        self.rooms = free_resources.describe_hosts(fleet, self.found)
        text = capacity_page.page(fleet, self.found, '2026-11-22 18:00 UTC')
        return text, page_reader.Reader(text).root

    def test_each_flavor_has_its_counts_and_a_drawing(self):
        _, root = self.page(self.fleet)
        rows = next(root.iter('tbody'))
        for row, item in zip(rows, self.found, strict=True):
            shown = {cell.get('data-head'): page_reader.words(cell)
                     for cell in row}
            self.assertEqual(
                (item.flavor.name, str(item.total), str(item.by_sums)),
                (page_reader.words(row[0]), shown['Fit'], shown['By sums']))
            (drawing,) = row.iter('svg')
            self.assertIn(f'{item.total} of {item.by_sums} fit',
                          drawing.get('aria-label'))

    def test_each_host_of_a_small_fleet_is_drawn_cell_by_cell(self):
        _, root = self.page(self.fleet)
        for card, host in zip(classed(root, 'card'), self.fleet.hosts,
                              strict=True):
            (drawing,) = card.iter('svg')
            squares = {kind: sum(item.get('width') == item.get('height')
                                 for item in classed(drawing, kind))
                       for kind in ('free', 'partly', 'taken')}
            cells = host.state.supply.cells
            cores = [core for cell in cells for core in cell.siblings]
            free = frozenset().union(*(cell.free for cell in cells))
            self.assertEqual(
                {'free': sum(core <= free for core in cores),
                 'taken': sum(core.isdisjoint(free) for core in cores)},
                {'free': squares['free'], 'taken': squares['taken']})
            self.assertEqual(len(cores), sum(squares.values()))
            for cell in cells:
                self.assertIn(f'cell {cell.id} has {len(cell.free)} of '
                              f'{len(cell.dedicated)} PCPUs',
                              drawing.get('aria-label'))

    def test_a_large_fleet_is_summed_up(self):
        many = state.Fleet(tuple(
            dataclasses.replace(self.fleet.hosts[number % 3],
                                name=f'n{number}')
            for number in range(5000)), {
                f'b{number}': 'is broken' for number in range(1000)})
        text, root = self.page(many)
        self.assertLess(len(text), 200_000)
        self.assertLessEqual(len(classed(root, 'card')),
                             2 * capacity_page.STAND_OUT)
        _, _, groups = root.iter('tbody')
        self.assertEqual(5000, sum(
            int(page_reader.words(row[1])) for row in groups))
        self.assertIn('and 950 more', text)

    def test_hosts_of_each_class_of_a_large_fleet_are_drawn(self):
        many = state.Fleet(tuple(
            dataclasses.replace(self.fleet.hosts[0], name=f'{own}{number}',
                                fleet_class=own)
            for own in ('alpha', 'beta', 'gamma') for number in range(20)), {})
        _, root = self.page(many)
        drawn = [page_reader.words(card) for card in classed(root, 'card')]
        for own in ('alpha', 'beta', 'gamma'):
            self.assertGreaterEqual(
                sum(text.startswith(own) for text in drawn), 2)

    def test_flavors_are_counted_by_class_if_there_are_several(self):
        for names, shown in (('aab', True), ('aaa', False)):
            fleet = state.Fleet(tuple(
                dataclasses.replace(host, fleet_class=own) for host, own
                in zip(self.fleet.hosts, names, strict=True)), {})
            _, root = self.page(fleet)
            rows = next(root.iter('tbody'))
            for row, item in zip(rows, self.found, strict=True):
                sums = collections.Counter[str]()
                for host in fleet.hosts:
                    sums[host.fleet_class] += item.per_host[host.name]
                wanted = ', '.join(f'{own}: {number}' for own, number
                                   in sums.items() if number) or '-'
                found = [page_reader.words(cell) for cell in row
                         if cell.get('data-head') == 'By class']
                self.assertEqual([wanted] if shown else [], found)

    def test_names_are_text(self):
        host = dataclasses.replace(self.fleet.hosts[0], name='<script>\u202e')
        text, _ = self.page(state.Fleet((host,), {'<b>': '</ul><script>'}))
        self.assertNotIn('<script', text)
        self.assertNotIn('\u202e', text)

    def test_an_empty_fleet_has_a_page(self):
        text, _ = self.page(state.Fleet((), {}))
        self.assertIn('0 hosts with 0 instances', text)


class CommandTest(unittest.TestCase):

    def test_only_a_page_is_replaced(self):
        folder = folders.make(self)
        fleet, page = folder / 'fleet.json', folder / 'page.html'
        fleet.write_text(json.dumps({'schema_version': 1, 'classes': {'c': {
            'hosts': [str(ETC / 'topologies/hs06-2s-16c.json')]}}}))
        words = ['capacity', '--fleet', str(fleet), '--html', str(page)]
        for _ in range(2):
            self.assertEqual(0, commands.run(*words).status)
            self.assertRegex(page.read_text(), re.compile(
                '<!DOCTYPE html>.*1 host with 0 instances', re.DOTALL))
        page.write_text('a thesis')
        for more in ([], ['--format', 'json'], ['--serve']):
            commands.check_refused(self, '', commands.run(*words, *more))
            self.assertEqual('a thesis', page.read_text())
        self.assertEqual({fleet, page}, {*folder.iterdir()})
