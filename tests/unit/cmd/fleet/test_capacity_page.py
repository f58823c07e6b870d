# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The page of a fleet, as a reader of its elements sees it."""

import contextlib
import dataclasses
import io
import json
import pathlib
import random
import re
import tempfile
import unittest

from hpcvirt.cmd import main
from hpcvirt.cmd.fleet import capacity_page
from hpcvirt.fleet import count
from hpcvirt.fleet import free_room
from hpcvirt.fleet import state
from tests import fleets
from tests.unit.bench.report import test_page

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'


def classed(root, kind):
    return [item for item in root.iter() if item.get('class') == kind]


class CapacityPageTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.fleet, self.flavors = fleets.a_fleet(random.Random(4), 3, load=1)

    def page(self, fleet):
        self.found = count.count(fleet, self.flavors)
        self.rooms = free_room.of_hosts(fleet, self.found)
        text = capacity_page.page(fleet, self.found, '2026-11-22 18:00 UTC')
        return text, test_page.Reader(text).root

    def test_each_flavor_has_its_counts_and_a_drawing(self):
        _, root = self.page(self.fleet)
        rows = next(root.iter('tbody'))
        for row, item in zip(rows, self.found, strict=True):
            shown = {cell.get('data-head'): test_page.words(cell)
                     for cell in row}
            self.assertEqual(
                (item.flavor.name, str(item.total), str(item.by_sums)),
                (test_page.words(row[0]), shown['Fit'], shown['By sums']))
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
            int(test_page.words(row[1])) for row in groups))
        self.assertIn('and 950 more', text)

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
        folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        host = f'n1={ETC / "topologies/hs06-2s-16c.json"}'
        plan, usage, page = (folder / name for name in (
            'plan.json', 'usage.json', 'page.html'))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main.main(['flavor', 'plan', host, '--format', 'json'])
        plan.write_text(out.getvalue())
        usage.write_text(json.dumps({'instances': []}))
        words = ['capacity', '--topology', host, '--usage', str(usage),
                 '--flavors', str(plan), '--html', str(page)]
        for _ in range(2):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(0, main.main(words))
            self.assertRegex(page.read_text(), re.compile(
                '<!DOCTYPE html>.*1 host with 0 instances', re.DOTALL))
        page.write_text('a thesis')
        for more in ([], ['--format', 'json'], ['--serve']):
            with contextlib.redirect_stderr(io.StringIO()) as complaint:
                self.assertEqual(2, main.main([*words, *more]))
            self.assertEqual('a thesis', page.read_text())
            self.assertEqual(1, complaint.getvalue().count('\n'))
        self.assertEqual({plan, usage, page}, {*folder.iterdir()})
