# SPDX-License-Identifier: Apache-2.0

import ast
import json
import pathlib
import re
import tempfile
import unittest

from oslo_config import cfg

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import outcome as bench_outcome
from hpcvirt.bench.model import record
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import shape
from hpcvirt.tempest_plugin import benchmarking
from hpcvirt.tempest_plugin import config
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan
from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.builders import runs


class OptionsTest(unittest.TestCase):
    """The options of the plugin."""

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        config.register_opts(self.conf)
        self.conf([])

    def test_no_benchmark_runs_by_default(self):
        options = self.conf.hpcvirt
        self.assertEqual(
            ([], None, None),
            (options.benchmarks, options.native, options.mpi_benchmark))

    def test_inconclusive_result_fails_by_default(self):
        self.assertEqual('fail', self.conf.hpcvirt.inconclusive)

    def test_useless_values_are_refused(self):
        for name, value in (('inconclusive', 'pass'), ('benchmark_pairs', 4),
                            ('benchmark_time_limit', 0)):
            with self.subTest(name=name):
                self.assertRaises(ValueError, self.conf.set_override, name,
                                  value, group='hpcvirt')


FLAVOR = plan.Flavor(
    name='f', vcpus=4, ram_mib=2048, per_host={},
    extra_specs={'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
                 'hw:numa_nodes': '2'})


def answer(**changes):
    nodes = [
        {'memory_mb': 1024, 'vcpu_set': [0, 1], 'host_node': 0,
         'cpu_pinning': {'0': 4, '1': 5}, 'siblings': []},
        {'memory_mb': 1024, 'vcpu_set': [2, 3], 'host_node': 1,
         'cpu_pinning': {'2': 8, '3': 9}, 'siblings': []}]
    nodes[1].update(changes)
    return {'nodes': nodes, 'pagesize_kb': 2048}


class ViolationsTest(unittest.TestCase):
    """Differences between a flavor and the topology of its server."""

    def violations(self, **changes):
        return contract.violations(FLAVOR, contract.nodes(answer(**changes)))

    def test_matching_server_has_none(self):
        self.assertEqual([], self.violations())

    def test_missing_guest_cell_is_named(self):
        found = contract.nodes(answer())[:1]
        self.assertEqual(['1 guest cells instead of 2'],
                         contract.violations(FLAVOR, found))

    def test_each_difference_is_named(self):
        for changes, words in (
                ({'memory_mb': 512}, '512 MiB instead of 1024'),
                ({'vcpu_set': [2]}, '1 CPUs instead of 2'),
                ({'cpu_pinning': {}}, '0 pins instead of 2'),
                ({'cpu_pinning': {'2': 8, '3': 8}}, 'on one host CPU'),
                ({'cpu_pinning': {'2': 4, '3': 9}}, 'on one host CPU'),
                ({'host_node': 0}, 'on one host cell'),
                ({'pagesize_kb': 4}, 'pages of 4 KiB instead of 2048')):
            with self.subTest(changes=changes):
                found = self.violations(**changes)
                self.assertTrue(any(words in text for text in found), found)

    def test_answer_without_pins_is_read(self):
        nodes = contract.nodes(
            {'nodes': [{'memory_mb': 64, 'cpu_pinning': None}]})
        self.assertEqual({}, nodes[0].pins)
        self.assertIsNone(nodes[0].page_kib)

    def test_host_cpus_are_those_of_all_cells(self):
        self.assertEqual({4, 5, 8, 9},
                         contract.host_cpus(contract.nodes(answer())))

    def test_guest_threads_on_one_core(self):
        found = contract.nodes(answer())
        together = [frozenset({4, 5}), frozenset({8, 9})]
        apart = [frozenset({4, 8}), frozenset({5, 9})]
        self.assertEqual([], contract.split_cores(found, 2, together))
        self.assertEqual(2, len(contract.split_cores(found, 2, apart)))


PRINTED = ('0-3\n0-1\n0-1 2-3 \n613520\nhugepages-1048576kB '
           'hugepages-2048kB \n0x1af4:0x1000:-1 0x8086:0x1515:1 \n')


class GuestTest(unittest.TestCase):
    """Reading what guests print about their hardware."""

    def test_everything_is_read(self):
        found = contract.parse_guest(PRINTED)
        self.assertEqual({0, 1, 2, 3}, found.cpus)
        self.assertEqual({0, 1}, found.cells)
        self.assertEqual({frozenset({0, 1}), frozenset({2, 3})}, found.cores)
        self.assertEqual(613520, found.memory_kib)
        self.assertIn('hugepages-2048kB', found.page_pools)
        self.assertEqual((('0x1af4', '0x1000', -1), ('0x8086', '0x1515', 1)),
                         found.network_devices)

    def test_guest_without_pools_and_devices(self):
        found = contract.parse_guest('0\n0\n0 \n64\n\n\n')
        self.assertEqual(((), ()), (found.page_pools, found.network_devices))

    def test_other_output_is_refused(self):
        for text in ('', 'sh: not found\n', PRINTED.replace('613520', '?')):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput,
                                  contract.parse_guest, text)


Result = benchmarking.TestOutcome
NATIVE = [100, 101, 99, 100, 102]
ALIKE = [99.9, 101.2, 98.8, 100.1, 101.9]
SLOW = [10, 11, 10, 9, 10]
NOISY = [60, 140, 99, 75, 130]


def judged(*measured):
    return record.Result(measured, verdict.judge(measured))


class OutcomeTest(unittest.TestCase):
    """From a verdict to the outcome of a test."""

    def outcomes(self, *measured):
        result = judged(*measured)
        return tuple(benchmarking.make_outcome(result, inconclusive)
                     for inconclusive in ('fail', 'skip'))

    def test_a_verdict_decides_and_inconclusive_follows_the_option(self):
        passed, failed = (Result.PASS,) * 2, (Result.FAIL,) * 2
        undecided = (Result.FAIL, Result.SKIP)
        for expected, measured in (
                (passed, [runs.run(NATIVE, ALIKE)]),
                (failed, [runs.run(NATIVE, SLOW)]),
                (undecided, [runs.run(NATIVE, NOISY)]),
                (undecided, [runs.run(NATIVE, ALIKE[:4])]),
                # Figures without a bound prove nothing.
                (undecided, [runs.run(NATIVE, ALIKE, bounds={})]),
                # Ranks of five pairs cannot decide two figures.
                (undecided, [runs.run(NATIVE, ALIKE), runs.run(
                    NATIVE, SLOW, id='s', benchmark='npb-ep')]),
                (failed, [runs.run(NATIVE * 2, ALIKE * 2), runs.run(
                    NATIVE * 2, SLOW * 2, id='s', benchmark='npb-ep')])):
            self.assertEqual(expected, self.outcomes(*measured))

    def test_one_corrupted_output_fails_whatever_the_option_says(self):
        guest = [*ALIKE[:4], runs.bad('HPL: residual 1e3 failed')]
        measured = runs.run(NATIVE, guest)
        self.assertEqual((Result.FAIL, Result.FAIL),
                         self.outcomes(measured))
        self.assertEqual(
            ['npb-cg mpi, guest pair 5: HPL: residual 1e3 failed'],
            benchmarking.faults(judged(measured)))

    def test_a_result_without_a_verdict_fails(self):
        self.assertEqual(Result.FAIL,
                         benchmarking.make_outcome(record.Result(()), 'skip'))

    def test_the_worst_flavor_decides_and_the_table_is_shown(self):
        good, skipped, bad = Result
        for outcomes, error in (((good, skipped, bad), self.failureException),
                                ((), self.failureException),
                                ((good, skipped), unittest.SkipTest)):
            with (self.subTest(outcomes=outcomes),
                  self.assertRaises(error) as caught):
                benchmarking.conclude(self, outcomes, 'the table')
            self.assertIn('the table', str(caught.exception))
        benchmarking.conclude(self, (good, good), 'the table')

    def test_valid_samples_have_no_fault(self):
        good = bench_outcome.Outcome(True, None)
        self.assertEqual(
            [], benchmarking.faults(judged(runs.run([good], [good]))))


def flavor(name, vcpus, fits, stranded=0, cells=1):
    return plan.Flavor(
        name=name, vcpus=vcpus, ram_mib=1024 * cells, per_host={'a': fits},
        stranded_pcpus={'a': stranded},
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


ROOT = pathlib.Path(__file__).parents[2]


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
