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

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import parser
from tests.unit.bench.parsers import test_parser

MACHINES = (sizing.Machine(1, 512), sizing.Machine(2, 2048),
            sizing.Machine(36, 196608, 2, 2 * 25344),
            sizing.Machine(256, 1048576, 8, 16 * 32768))


def without_kernel(definition):
    """Leave out of an NPB definition what depends on its kernel."""
    kernel = definition.name.removeprefix('npb-')
    plain = serialization.to_plain(definition)
    for field in ('name', 'title', 'summary', 'aliases', 'expect'):
        del plain[field]
    for source in plain['obtain']:
        # The language, and so the flags of the compiler.
        del source['note']
    for choice in plain['size']['class']['choices']:
        del choice['memory_mib']
    for variant in plain['variants']:
        if variant['name'] == 'mpi':
            del variant['ranks'], variant['binding']
        for words in (variant['command'], variant['build']['products'],
                      *variant['build']['commands']):
            words[:] = ['KERNEL' if word == kernel
                        else word.replace(f'/{kernel}.', '/KERNEL.')
                        for word in words if word != 'SHELL=/bin/bash']
    return plain


class TestFiles(testtools.TestCase):
    def test_a_file_is_named_after_its_benchmark(self):
        for name in catalogue.names():
            self.assertEqual(name, catalogue.load(name).name)

    def test_names_and_aliases_are_unique(self):
        names = [*catalogue.FAMILIES]
        for aliases in catalogue.FAMILIES.values():
            names += aliases
        for definition in catalogue.all_definitions():
            names += [definition.name, *definition.aliases]
        folded = [catalogue.fold(name) for name in names]
        self.assertEqual(sorted(set(folded)), sorted(folded))

    def test_the_benchmarks_of_the_field_are_there(self):
        self.assertLessEqual(
            {'hpcc', 'stream', 'osu-latency', 'osu-bandwidth',
             'osu-bibandwidth', 'netpipe', 'mpi4py-pingpong', 'qe-small',
             'qe-ausurf112', 'gromacs', 'lammps', 'namd-stmv',
             'wrf-conus12km', 'hepscore', 'hs06'}, set(catalogue.names()))
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
        for definition in catalogue.all_definitions():
            paths = {path.name: f'/{path.name}' for path in definition.paths}
            for variant in definition.variants:
                for machine in MACHINES:
                    values = {**paths, **definitions.sized(definition, variant,
                                                          machine)}
                    for command in (variant.command, *variant.prepare):
                        self.assertTrue(definitions.arguments(command,
                                                             values))
                    for text in (*definition.files.values(),
                                 *variant.environment.values()):
                        self.assertNotRegex(definitions.fill(text, values),
                                            definitions.PLACEHOLDER)

    def test_each_tells_its_parser_what_it_knows(self):
        for definition in catalogue.all_definitions():
            keys = (*parser.PARSERS[definition.parser].keys,
                    expectation.EXIT_STATUS)
            known = {key.name for key in keys}
            self.assertLessEqual({*definition.expect, *definition.echo}, known)

    def test_an_unusual_exit_status_is_expected_by_name(self):
        for definition in catalogue.all_definitions():
            self.assertEqual(str(definition.exit_status),
                             definition.expect.get('rc', '0'))

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
        for definition in catalogue.all_definitions():
            for variant in definition.variants:
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

    def test_the_kernels_of_npb_differ_in_nothing_else(self):
        found = [without_kernel(definition)
                 for definition in catalogue.all_definitions()
                 if definition.parser == 'npb']
        self.assertEqual(8, len(found))
        for other in found[1:]:
            self.assertEqual(found[0], other)

    def test_hpcc_asks_for_what_it_echoes(self):
        definition = catalogue.get('hpcc')
        values = definitions.sized(definition, definition.variant(),
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
        self.assertIn('there is qe-ausurf112, qe-small', str(exc))

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
