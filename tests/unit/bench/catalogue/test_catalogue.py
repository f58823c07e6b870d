# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import parser
from tests.builders import defined
from tests.builders import refusals


class TestRead(testtools.TestCase):
    def test_a_good_document_becomes_a_definition(self):
        spin = catalogue.read(defined.GOOD, 'x')
        self.assertEqual(('spin', 0, 'stdout'),
                         (spin.name, spin.exit_status,
                          spin.variants[0].output))

    def refused(self, what, document):
        self.assertIn(what, refusals.message(
            self, catalogue.read, document, 'x'))

    def test_what_is_no_object_is_refused(self):
        for document in (None, [], 'x', 3, {1: 2}):
            self.refused('', document)

    def test_an_unknown_field_is_refused_anywhere(self):
        self.refused("unknown key 'colour'", {**defined.GOOD, 'colour': 'red'})
        self.refused('x: variants[0]: unknown key', defined.change(
            'variants', 0, 'nice', to=3))

    def test_a_missing_field_is_refused(self):
        for name in ('name', 'title', 'parser', 'licence', 'obtain',
                     'variants', 'metrics', 'validity'):
            document = {key: value for key, value in defined.GOOD.items()
                        if key != name}
            self.refused(f"the key '{name}' is missing", document)

    def test_words_outside_a_list_are_refused(self):
        self.refused('must be one of up, down, not', defined.change(
            'metrics', 0, 'direction', to='left'))
        self.refused('must be one of apt', defined.change(
            'obtain', 0, 'by', to='snap'))
        self.refused('must be one of fixed', defined.change(
            'size', 'N', 'rule', to='guess'))
        self.refused('must be one of one', defined.change(
            'variants', 0, 'ranks', to='many'))

    def test_faults_between_fields_are_refused(self):
        self.refused('not a name in lower case',
                     {**defined.GOOD, 'name': 'Spin!'})
        self.refused('no metrics',
                     {**defined.GOOD, 'metrics': [], 'bounds': []})
        self.refused('no metric is primary', defined.change(
            'metrics', 0, 'primary', to=False))
        self.refused('two metrics have the same name', defined.change(
            'metrics', to=2 * defined.GOOD['metrics']))
        self.refused('no value for {M}', defined.change(
            'variants', 0, 'command', to=['spin', '{M}']))
        self.refused('no value for {M}',
                     {**defined.GOOD, 'files': {'a': '{M}'}})
        self.refused('unknown metric', defined.change(
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
            self.refused(what, defined.change(
                'bounds', 0, to={**defined.BOUND, **change}))

    def test_a_bound_says_what_it_is_and_where_it_stands(self):
        bound = defined.GOOD['bounds'][0]
        for field in ('kind', 'source', 'line', 'conditions'):
            self.refused(f"the key '{field}' is missing", defined.change(
                'bounds', 0, to={key: value for key, value in bound.items()
                                 if key != field}))
        for field in ('line', 'conditions'):
            self.refused(f'no {field}', defined.change(
                'bounds', 0, to={**bound, field: ' '}))
        self.refused('must be one of measured, transferred, expected',
                     defined.change('bounds', 0, 'kind', to='guessed'))

    def test_a_limit_may_be_the_figures_that_it_follows_from(self):
        spin = catalogue.read(defined.change(
            'bounds', 0, 'at_least', to='915 / 926'), 'x')
        self.assertEqual(915 / 926, spin.bounds[0].at_least)
        for limit in ('915/926', '1 / 0', '. / .', '1 / 2 / 3', 'x / 1', '',
                      '1.2.3 / 1', '\u0661 / 2', True, None, []):
            self.refused('', defined.change('bounds', 0, 'at_least', to=limit))


MACHINES = (sizing.Machine(1, 512), sizing.Machine(2, 2048),
            sizing.Machine(36, 196608, 2, 2 * 25344),
            sizing.Machine(256, 1048576, 8, 16 * 32768))


#: The ends of names that say the unit, the longer ones first.
UNITS_IN_NAMES = {
    '_mb_s': 'MB/s', '_gb_s': 'GB/s', '_mib_s': 'MiB/s',
    '_gbit_s': 'Gbit/s', '_per_s': '1/s', '_per_day': 'ns/day',
    'mops_total': 'Mop/s', 'gflops': 'Gflop/s', 'Gflops': 'Gflop/s',
    'Tflops': 'Tflop/s', 'GUPs': 'GUP/s', '_GBs': 'GB/s', '_GBytes': 'GB/s',
    '_usec': 'us', '_us': 'us', '_ns': 'ns', '_s': 's'}


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

    def test_definitions_that_share_a_parser_agree_on_its_figures(self):
        described = {}
        for each in catalogue.all_definitions():
            for figure in each.metrics:
                meaning = figure.unit, figure.direction, figure.per_size
                first = described.setdefault((each.parser, figure.name),
                                             meaning)
                self.assertEqual(first, meaning, f'{each.name} {figure.name}')

    def test_a_unit_in_a_name_is_that_of_the_figure(self):
        for each in catalogue.all_definitions():
            for figure in each.metrics:
                units = [unit for end, unit in UNITS_IN_NAMES.items()
                         if figure.name.endswith(end)]
                if units:
                    self.assertEqual(units[0], figure.unit,
                                     f'{each.name} {figure.name}')

    def test_times_are_better_if_they_are_smaller(self):
        for each in catalogue.all_definitions():
            for figure in each.metrics:
                is_time = figure.unit in ('s', 'us', 'ns')
                self.assertEqual('down' if is_time else 'up',
                                 figure.direction,
                                 f'{each.name} {figure.name}')

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
