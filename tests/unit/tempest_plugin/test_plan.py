# SPDX-License-Identifier: Apache-2.0

import ast
import json
import pathlib
import re
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import shape
from hpcvirt.tempest_plugin import plan
from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts


def flavor(name, vcpus, fits, stranded=0, cells=1):
    return plan_document.FlavorSummary(
        name=name, vcpus=vcpus, ram_mib=1024 * cells, per_host={'a': fits},
        unused_pcpus={'a': stranded},
        extra_specs={'hw:cpu_policy': 'dedicated',
                     'hw:mem_page_size': '2048',
                     'hw:numa_nodes': str(cells)})


class ChoiceTest(unittest.TestCase):
    """Choosing flavors out of a plan."""

    flavors = (flavor('small', 2, 8), flavor('rest', 3, 4, stranded=4),
               flavor('cell', 8, 2), flavor('host', 16, 1, cells=2))

    def name(self, found):
        return found and found.name

    def test_tiling_strands_least_and_takes_most_instances(self):
        self.assertEqual('small', self.name(plan.tiling(
            self.flavors, 'a', 16)))
        self.assertEqual('cell', self.name(plan.tiling(self.flavors, 'a', 4)))
        self.assertIsNone(plan.tiling(self.flavors, 'other', 16))

    def test_smallest_fits_twice_on_one_cell(self):
        self.assertEqual('small', self.name(plan.smallest(self.flavors, 'a')))
        self.assertIsNone(plan.smallest(self.flavors[3:], 'a'))

    def test_one_that_fits_once_is_better_than_none(self):
        once = self.flavors[3:]
        self.assertEqual('host', self.name(plan.tiling(once, 'a', 4)))
        one = (flavor('one', 1, 1),)
        self.assertIsNone(plan.smallest(one, 'a'))
        self.assertEqual('one', self.name(plan.smallest(one, 'a', 1)))
        self.assertIsNone(plan.larger(one, one[0], 'a'))

    def test_larger_is_the_next_that_fits_twice(self):
        for small, expected in (('small', 'rest'), ('rest', 'cell'),
                                ('cell', None)):
            (first,) = (item for item in self.flavors if item.name == small)
            self.assertEqual(expected, self.name(
                plan.larger(self.flavors, first, 'a')))

    def test_whole_cell_fits_once_on_each_host_cell(self):
        self.assertEqual('cell', self.name(plan.whole_cell(
            self.flavors, 'a', 2)))
        self.assertIsNone(plan.whole_cell(self.flavors, 'a', 3))

    def test_spread_flavor_has_cells_like_the_original(self):
        for name in ('hs06-2s-16c', 'intel-2s-16c-smt'):
            document = plan_document.make_document(
                planner.plan([hosts.named(name)], profile.DENSE))
            flavor = plan.whole_cell(document.flavors, name, 2)
            (cell,) = plan.decode(flavor).cells
            for scope in shape.NUMAScope:
                found = plan.decode(plan.spread(flavor, 2, scope))
                self.assertEqual((cell, cell), found.cells)
                self.assertEqual(2 * flavor.vcpus, found.cpus)
                self.assertEqual(scope, found.numa_scope)

    def test_extending_does_not_change_the_plan(self):
        before = dict(self.flavors[0].extra_specs)
        plan.extend(self.flavors[0], {'x:y': 'z'})
        self.assertEqual(before, self.flavors[0].extra_specs)


ROOT = pathlib.Path(__file__).parents[3]


class NeedsTest(unittest.TestCase):
    """The CPUs that the README of the DevStack plugin names."""

    def plan(self, cells, cpus, **parts):
        """Plan a node as the plugin does.

        :param cpus: of each cell; the host keeps another one
        """
        host = hosts.build(cells, cpus + 1, name='n', **parts)
        folder = folders.make(self)
        path = folder / 'n.json'
        path.write_text(snapshot.dumps(host))
        dedicated = ','.join(str(cpu) for cell in host.cells
                             for cpu in sorted(cell.cpus)[:cpus])
        status, out, err = commands.run(
            'flavor', 'plan', '-f', 'json', '--cpus', dedicated, '--pages',
            '4K:50%', '--profile', ROOT / 'devstack/profile.yaml', path)
        self.assertEqual(0, status, err)
        path.write_text(out)
        return plan.load(str(path)).flavors, host

    def least(self, choose, cells=1, **parts):
        """Find the fewest CPUs of a node for which a test has a flavor."""
        return next(cells * cpus for cpus in range(1, 9)
                    if choose(*self.plan(cells, cpus, **parts)))

    def needs(self):
        def any_flavor(flavors, _):
            return flavors

        def move(flavors, _):
            return plan.smallest(flavors, 'n', 1)

        def twice(flavors, _):
            return plan.smallest(flavors, 'n')

        def resize(flavors, host):
            small = move(flavors, host)
            return small and plan.larger(flavors, small, 'n')

        one = self.least(any_flavor)
        return {
            'ServerTopologyTest': one, 'GuestViewTest': one,
            'GuestLifeTest': one, 'GuestDeviceTest': one, 'CompareTest': one,
            'TilingTest': self.least(
                lambda flavors, _: plan.tiling(flavors, 'n', 8)),
            'MovesTest': self.least(move),
            'MovesTest.test_resize_and_revert': self.least(resize),
            'FragmentationTest': self.least(twice),
            'TenantNetworkTest': self.least(twice),
            'ScopeTest.test_exclusive_cells_were_empty': self.least(
                lambda flavors, host: plan.cells_to_share(flavors, host, 8),
                2),
            'ScopeTest.test_socket_scope_keeps_cells_together': self.least(
                plan.cell_of_socket, 4, sockets=2),
            'DeviceTest': self.least(
                lambda flavors, _: plan.whole_cell(flavors, 'n', 2), 2,
                vfs={0: 2}),
            'GeneratedFlavorsTest': 0, 'NamespaceTest': 0,
        }

    def test_the_readme_names_them(self):
        text = (ROOT / 'devstack/README.rst').read_text()
        rows = re.findall(r'   \* - (``[^*]*?)\n     - ([0-9]+)\n', text)
        told = {name: int(number) for names, number in rows
                for name in re.findall(r'``([\w.]+)``', names)}
        self.assertEqual(self.needs(), told)

    def test_the_readme_has_every_class(self):
        defined = {node.name for path in (
            ROOT / 'hpcvirt/tempest_plugin/tests').rglob('*.py')
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and any(
                getattr(item, 'name', '').startswith('test_')
                for item in node.body)}
        self.assertEqual(defined, {name.partition('.')[0]
                                   for name in self.needs()})


class LoadTest(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, 'plan.json')
            path.write_text(text)
            return plan.load(str(path))

    def test_plan_is_read(self):
        text = json.dumps({'schema_version': 1, 'flavors': []})
        self.assertEqual((), self.load(text).flavors)

    def test_warnings_are_logged(self):
        text = json.dumps({
            'schema_version': 1, 'flavors': [], 'warnings': [
                {'code': 'no-parts', 'message': 'n1: no flavor'}]})
        with self.assertLogs('hpcvirt.tempest_plugin.plan',
                             'WARNING') as logged:
            self.load(text)
        (line,) = logged.output
        self.assertTrue(line.endswith('plan.json: no-parts: n1: no flavor'))
        with self.assertNoLogs('hpcvirt.tempest_plugin.plan', 'WARNING'):
            self.load(json.dumps({'schema_version': 1, 'flavors': []}))

    def test_other_files_are_refused(self):
        for text in ('', '[]', '{}', '{"schema_version": 2, "flavors": []}'):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput, self.load, text)

    def test_missing_file_is_refused(self):
        self.assertRaises(exception.InvalidInput, plan.load, '/no/such/plan')
