# SPDX-License-Identifier: Apache-2.0

import copy

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import parser
from tests.unit.bench.parsers import test_parser

BOUND = {'metric': 'turns', 'kind': 'measured', 'line': 'table 1',
         'source': 'CERN-HEPiX-2015', 'conditions': 'one host'}
GOOD = {
    'name': 'spin', 'title': 'Spin', 'summary': 'Turns.', 'parser': 'hpcc',
    'licence': 'MIT', 'validity': 'always',
    'obtain': [{'by': 'apt', 'packages': ['spin']}],
    'variants': [{
        'name': 'mpi', 'ranks': 'per-cpu', 'threads': 'one',
        'binding': 'one rank per core',
        'command': ['mpirun', '-np', '{ranks}', '{hosts}', 'spin', '{N}',
                    '{data}/x']}],
    'metrics': [{'name': 'turns', 'unit': '1/s', 'direction': 'up',
                 'help': 'turns', 'primary': True}],
    'size': {'N': {'rule': 'hpl-order', 'help': 'order',
                   'multiple_of': 80}},
    'paths': [{'name': 'data', 'help': 'where x is'}],
    'files': {'in.txt': 'N = {N}\n'},
    'echo': {'N': '{N}'}, 'expect': {'version': '1'},
    'bounds': [BOUND | {'at_least': 0.95}],
}


def changed(*path, to):
    document = copy.deepcopy(GOOD)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return document


class TestRead(testtools.TestCase):
    def test_a_good_document_becomes_a_definition(self):
        spin = catalogue.read(GOOD, 'x')
        self.assertEqual(('spin', 0, 'stdout'),
                         (spin.name, spin.exit_status,
                          spin.variants[0].output))

    def refused(self, what, document):
        exc = self.assertRaises(exception.InvalidInput,
                                catalogue.read, document, 'x')
        self.assertIn(what, str(exc))

    def test_what_is_no_object_is_refused(self):
        for document in (None, [], 'x', 3, {1: 2}):
            self.refused('', document)

    def test_an_unknown_field_is_refused_anywhere(self):
        self.refused("unknown key 'colour'", {**GOOD, 'colour': 'red'})
        self.refused('x: variants[0]: unknown key', changed(
            'variants', 0, 'nice', to=3))

    def test_a_missing_field_is_refused(self):
        for name in ('name', 'title', 'parser', 'licence', 'obtain',
                     'variants', 'metrics', 'validity'):
            document = {key: value for key, value in GOOD.items()
                        if key != name}
            self.refused(f"the key '{name}' is missing", document)

    def test_words_outside_a_list_are_refused(self):
        self.refused('must be one of up, down, not', changed(
            'metrics', 0, 'direction', to='left'))
        self.refused('must be one of apt', changed(
            'obtain', 0, 'by', to='snap'))
        self.refused('must be one of fixed', changed(
            'size', 'N', 'rule', to='guess'))
        self.refused('must be one of one', changed(
            'variants', 0, 'ranks', to='many'))

    def test_faults_between_fields_are_refused(self):
        self.refused('not a name in lower case', {**GOOD, 'name': 'Spin!'})
        self.refused('no metrics', {**GOOD, 'metrics': [], 'bounds': []})
        self.refused('no metric is primary', changed(
            'metrics', 0, 'primary', to=False))
        self.refused('no value for {M}', changed(
            'variants', 0, 'command', to=['spin', '{M}']))
        self.refused('no value for {M}', {**GOOD, 'files': {'a': '{M}'}})
        self.refused('unknown metric', changed(
            'bounds', 0, 'metric', to='twists'))

    def test_a_bound_has_one_limit_the_right_way_round_with_a_source(self):
        for change, what in (
                ({'at_most': 1.1}, 'contradicts the direction'),
                ({'at_least': 0.9, 'slowdown_at_most': 1.1}, 'exactly one'),
                ({}, 'exactly one'),
                ({'at_least': 0.9, 'source': 'nobody'}, 'the bibliography'),
                ({'at_least': -1.0}, 'not a ratio'),
                ({'at_least': 0.9, 'margin': 2.0}, 'not a margin'),
                ({'at_least': 0.9, 'below_bytes': 128}, 'no message sizes'),
                ({'at_least': 0.9, 'above_bytes': 128}, 'no message sizes'),
                ({'at_least': 0.9, 'when': {'moon': 'full'}}, 'a condition'),
                ({'at_least': 0.9, 'when': {'nodes': '2'}}, 'a condition')):
            self.refused(what, changed('bounds', 0, to={**BOUND, **change}))

    def test_a_bound_says_what_it_is_and_where_it_stands(self):
        bound = GOOD['bounds'][0]
        for field in ('kind', 'source', 'line', 'conditions'):
            self.refused(f"the key '{field}' is missing", changed(
                'bounds', 0, to={key: value for key, value in bound.items()
                                 if key != field}))
        for field in ('line', 'conditions'):
            self.refused(f'no {field}', changed(
                'bounds', 0, to={**bound, field: ' '}))
        self.refused('must be one of measured, transferred, expected',
                     changed('bounds', 0, 'kind', to='guessed'))

    def test_a_limit_may_be_the_figures_that_it_follows_from(self):
        spin = catalogue.read(changed(
            'bounds', 0, 'at_least', to='915 / 926'), 'x')
        self.assertEqual(915 / 926, spin.bounds[0].at_least)
        for limit in ('915/926', '1 / 0', '. / .', '1 / 2 / 3', 'x / 1', '',
                      '1.2.3 / 1', '\u0661 / 2', True, None, []):
            self.refused('', changed('bounds', 0, 'at_least', to=limit))


class TestUse(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.spin = catalogue.read(GOOD, 'x')
        self.machine = sizing.Machine(cpus=8, memory_mib=16384)

    def values(self, **overrides):
        return definition.compute_sizes(self.spin, self.spin.variant(),
                                        self.machine, overrides)

    def test_everything_is_worked_out_from_the_machine(self):
        self.assertEqual({'ranks': '8', 'threads': '1', 'cpus': '8',
                          'N': '32720'}, self.values())

    def test_the_user_may_fix_a_value(self):
        self.assertEqual('1000', self.values(N='1000')['N'])
        self.assertEqual('2', self.values(ranks='2')['cpus'])
        exc = self.assertRaises(exception.InvalidInput, self.values, M='1')
        self.assertIn('the sizes are N', str(exc))
        for bad in ('0', '-1', 'x', '9' * 30, ''):
            self.assertRaises(exception.InvalidInput, self.values, ranks=bad)

    def test_a_command_is_filled_and_hosts_go_in_whole(self):
        values = {**self.values(), 'data': '/d'}
        self.assertEqual(
            ('mpirun', '-np', '8', '--host', 'a:8', 'spin', '32720', '/d/x'),
            definition.arguments(self.spin.variants[0].command, values,
                                 ('--host', 'a:8')))
        self.assertRaises(exception.InvalidInput, definition.fill, '{data}',
                          self.values())

    def test_expectations_join_what_is_asked_and_what_the_name_says(self):
        self.assertEqual({'version': '1', 'N': '32720'},
                         definition.expectations(self.spin, self.values()))

    def test_a_variant_is_found_by_name(self):
        self.assertEqual('mpi', self.spin.variant('mpi').name)
        exc = self.assertRaises(exception.InvalidInput, self.spin.variant,
                                'cuda')
        self.assertIn('the variants are mpi', str(exc))


Count = sizing.ProcessCount
MACHINE = sizing.Machine(cpus=12, memory_mib=24576, cells=2, llc_kib=32768)


class TestCount(testtools.TestCase):
    def test_every_rule(self):
        for rule, number in ((Count.ONE, 1), (Count.TWO, 2),
                             (Count.PER_CPU, 12), (Count.PER_CELL, 2),
                             (Count.POWER_OF_TWO, 8), (Count.SQUARE, 9)):
            self.assertEqual(number, sizing.count(rule, MACHINE))
        self.assertEqual(6, sizing.count(Count.REST, MACHINE, ranks=2))

    @hypothesis.given(strategies.integers(1, 4096))
    def test_no_rule_takes_more_cpus_than_there_are(self, cpus):
        machine = sizing.Machine(cpus, 1024)
        for rule in set(Count) - {Count.TWO}:
            self.assertTrue(1 <= sizing.count(rule, machine) <= cpus)


class TestGrid(testtools.TestCase):
    @hypothesis.given(strategies.integers(1, 5000))
    def test_a_grid_uses_all_ranks_and_is_not_upright(self, ranks):
        rows, columns = sizing.grid(ranks)
        self.assertEqual(ranks, rows * columns)
        self.assertLessEqual(rows, columns)

    def test_a_grid_is_as_square_as_can_be(self):
        self.assertEqual([(1, 1), (2, 2), (3, 4), (1, 7), (8, 8)],
                         [sizing.grid(n) for n in (1, 4, 12, 7, 64)])


class TestSize(testtools.TestCase):
    def size(self, rule, machine=MACHINE, ranks=12, **more):
        return sizing.size(sizing.SizeParameter(rule, 'help', **more), machine,
                           ranks, 'x')

    def test_an_hpl_matrix_fills_its_part_of_the_memory(self):
        order = int(self.size(sizing.SizeRule.HPL_ORDER, multiple_of=80))
        used = order ** 2 * 8
        self.assertEqual(0, order % 80)
        self.assertTrue(0.99 < used / (12288 * 2 ** 20) <= 1)

    def test_stream_arrays_fill_memory_and_dwarf_the_cache(self):
        elements = int(self.size(sizing.SizeRule.STREAM_ELEMENTS,
                                 memory_fraction=0.3))
        self.assertLessEqual(elements * 24, 0.3 * 24576 * 2 ** 20)
        self.assertGreater(elements * 8, 4 * 32 * 2 ** 20)

    def refused(self, what, *args, **more):
        exc = self.assertRaises(exception.InvalidInput, self.size, *args,
                                **more)
        self.assertIn(what, str(exc))

    def test_a_machine_too_small_is_refused(self):
        tiny = sizing.Machine(1, 1)
        self.refused('not enough', sizing.SizeRule.HPL_ORDER, tiny,
                     multiple_of=8000)
        self.refused('4 times a cache', sizing.SizeRule.STREAM_ELEMENTS,
                     sizing.Machine(4, 256, llc_kib=65536))
        self.refused('not enough', sizing.SizeRule.LARGEST, tiny,
                     choices=(sizing.ProblemSize('S', 5),))

    def test_the_largest_choice_that_fits_is_taken(self):
        choices = (sizing.ProblemSize('A', 100),
                   sizing.ProblemSize('B', 12288),
                   sizing.ProblemSize('C', 12289))
        self.assertEqual('B', self.size(sizing.SizeRule.LARGEST,
                                        choices=choices))

    def test_fixed_and_grid(self):
        self.assertEqual('80', self.size(sizing.SizeRule.FIXED, value='80'))
        self.assertEqual(('3', '4'), (self.size(sizing.SizeRule.GRID_ROWS),
                                      self.size(sizing.SizeRule.GRID_COLUMNS)))


MACHINES = (sizing.Machine(1, 512), sizing.Machine(2, 2048),
            sizing.Machine(36, 196608, 2, 2 * 25344),
            sizing.Machine(256, 1048576, 8, 16 * 32768))


class TestFiles(testtools.TestCase):
    def test_a_file_is_named_after_its_benchmark(self):
        for name in catalogue.names():
            self.assertEqual(name, catalogue.load(name).name)

    def test_names_and_aliases_are_unique(self):
        names = [*catalogue.FAMILIES]
        for aliases in catalogue.FAMILIES.values():
            names += aliases
        for each in catalogue.all_definitions():
            names += [each.name, *each.aliases]
        folded = [catalogue.fold(name) for name in names]
        self.assertEqual(sorted(set(folded)), sorted(folded))

    def test_the_benchmarks_of_the_field_are_there(self):
        self.assertLessEqual(
            {'hpcc', 'stream', 'osu-latency', 'osu-bandwidth',
             'osu-bibandwidth', 'netpipe', 'mpi4py-pingpong', 'qe-small',
             'qe-ausurf112', 'gromacs', 'lammps', 'namd-stmv',
             'wrf-conus12km', 'hepscore', 'hs06', 'nccl-tests', 'nvbandwidth',
             'gpu-burn', 'hpl', 'dgemm', 'hpcg', 'ior', 'perftest',
             'osu-allreduce', 'osu-alltoall', 'cyclictest', 'multichase'},
            set(catalogue.names()))
        kernels = {definition.expect.get('benchmark')
                   for definition in catalogue.all_definitions()
                   if definition.parser == 'npb'}
        self.assertEqual(
            {'EP', 'CG', 'MG', 'FT', 'IS', 'LU', 'BT', 'SP'}, kernels)
        self.assertEqual(
            set(parser.PARSERS),
            {definition.parser for definition in catalogue.all_definitions()})
        self.assertLessEqual(set(catalogue.FAMILIES), set(parser.PARSERS))


class TestDefinitions(testtools.TestCase):
    def test_each_runs_on_machines_small_and_large(self):
        for each in catalogue.all_definitions():
            paths = {path.name: f'/{path.name}' for path in each.paths}
            for variant in each.variants:
                for machine in MACHINES:
                    values = {**paths,
                              **definitions.compute_sizes(each, variant,
                                                          machine)}
                    for command in (variant.command, *variant.prepare):
                        self.assertTrue(definitions.arguments(command, values))
                    for text in (*each.files.values(),
                                 *variant.environment.values()):
                        self.assertNotRegex(definitions.fill(text, values),
                                            definitions.PLACEHOLDER)

    def test_each_tells_its_parser_what_it_knows(self):
        for each in catalogue.all_definitions():
            keys = (*parser.PARSERS[each.parser].keys, expectation.EXIT_STATUS)
            known = {key.name for key in keys}
            self.assertLessEqual({*each.expect, *each.echo}, known)

    def test_an_unusual_exit_status_is_expected_by_name(self):
        for each in catalogue.all_definitions():
            self.assertEqual(str(each.exit_status), each.expect.get('rc', '0'))

    def test_figures_have_the_unit_and_direction_of_the_parser(self):
        for name, raw, expect in test_parser.GOOD:
            outcome = parser.parse(name, raw, expect)
            for metric, measured in outcome.metrics.items():
                plain, size = bounds.split(metric)
                described = [
                    figure for definition in catalogue.all_definitions()
                    if definition.parser == name
                    for figure in definition.metrics if figure.name == plain]
                self.assertTrue(described, f'{name} {metric}')
                for figure in described:
                    self.assertEqual(
                        (measured.unit, measured.direction, size is not None),
                        (figure.unit, figure.direction, figure.per_size))

    def test_both_arms_are_bound_to_cores(self):
        for each in catalogue.all_definitions():
            for variant in each.variants:
                self.assertTrue(variant.binding)
                if variant.command[0] == 'mpirun':
                    self.assertIn('--bind-to', variant.command)

    def test_gromacs_runs_what_it_has_minimised(self):
        for variant in catalogue.get('gromacs').variants:
            minimise, pack = variant.prepare[-2:]
            self.assertEqual('em', minimise[minimise.index('-deffnm') + 1])
            self.assertEqual('em.gro', pack[pack.index('-c') + 1])
            self.assertEqual(pack[pack.index('-o') + 1],
                             variant.command[variant.command.index('-s') + 1])

    def test_hepscore_gets_arguments_that_it_knows(self):
        command = catalogue.get('hepscore').variant().command
        # "hep-score --help": -m {singularity,docker}, -o OUTFILE.
        self.assertIn(command[command.index('-m') + 1],
                      ('singularity', 'docker'))
        self.assertEqual(catalogue.get('hepscore').variant().output,
                         command[command.index('-o') + 1])

    def test_hpcc_asks_for_what_it_echoes(self):
        definition = catalogue.get('hpcc')
        values = definitions.compute_sizes(definition, definition.variant(),
                                  sizing.Machine(4, 8192))
        lines = definitions.fill(definition.files['hpccinf.txt'],
                                values).splitlines()
        self.assertEqual(
            [values[name] for name in ('N', 'NB', 'P', 'Q')],
            [lines[number].split()[0] for number in (5, 7, 10, 11)])
        self.assertGreaterEqual(len(lines), 36)


class TestNames(testtools.TestCase):
    def test_any_spelling_finds_a_benchmark(self):
        for name, found in (
                ('HPCC', 'hpcc'), ('npb_cg', 'npb-cg'), ('NPB CG', 'npb-cg'),
                ('osu_latency', 'osu-latency'), ('osu_bw', 'osu-bandwidth'),
                ('osu-bibw', 'osu-bibandwidth'), ('pingpong',
                                                  'mpi4py-pingpong'),
                ('AUSURF112', 'qe-ausurf112'), ('stmv', 'namd-stmv'),
                ('gmx', 'gromacs'), ('hep-score', 'hepscore')):
            self.assertEqual(found, catalogue.get(name).name)

    def test_a_family_can_be_read_but_not_run(self):
        for name, family in (('npb', 'npb'), ('PWSCF', 'qe'),
                             ('quantum_espresso', 'qe'), ('osu', 'osu'),
                             ('pw.x', 'qe'), ('namd', 'namd'),
                             ('wrf', 'wrf')):
            self.assertEqual(family, catalogue.output_source(name).name)
        exc = self.assertRaises(exception.InvalidInput, catalogue.get, 'qe')
        self.assertIn('the benchmarks are qe-ausurf112, qe-small', str(exc))

    def test_an_unknown_name_is_refused(self):
        for name in ('', 'x', '../hpcc', 'hpcc.yaml', 'npb-dt'):
            self.assertRaises(exception.InvalidInput, catalogue.output_source,
                              name)

    def test_an_output_tells_which_member_of_a_family_it_is(self):
        family = catalogue.output_source('npb')
        self.assertEqual('npb-ft', catalogue.member(
            family, {'benchmark': 'FT'}).name)
        self.assertIsNone(catalogue.member(family, {'benchmark': 'DT'}))
        self.assertIsNone(catalogue.member(catalogue.output_source('qe'), {}))
