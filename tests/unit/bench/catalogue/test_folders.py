# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock

import fixtures
import testtools
import yaml

from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import folders as catalogue_folders
from hpcvirt.bench.model import record
from tests.builders import defined
from tests.builders import folders
from tests.builders import refusals

SPIN = {**defined.GOOD, 'name': 'spin', 'aliases': [], 'bounds': []}
LINES = {**SPIN, 'parser': 'pattern', 'expect': {}, 'echo': {},
         'required_lines': ['done'],
         'metrics': [{**SPIN['metrics'][0], 'pattern': r'turns: (\S+)'}]}


class TestFoldersOfASite(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        catalogue_folders.choose([str(self.folder)])
        self.addCleanup(catalogue_folders.choose, ())
        load = catalogue._load
        # Those of hpcvirt stay as they are.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.bench.catalogue.catalogue._load', lambda name, folder: (
                load(name, folder) if folder is None
                else load.__wrapped__(name, folder))))

    def forget(self):
        catalogue._places.cache_clear()

    def write(self, document=SPIN, name='spin', folder=None):
        path = (folder or self.folder) / f'{name}.yaml'
        path.write_text(yaml.safe_dump(document))
        self.forget()
        return path

    def refused(self, what, *document):
        path = self.write(*document)
        self.assertIn(what, refusals.message(self, catalogue.names))
        path.unlink()
        self.forget()

    def test_a_benchmark_stands_beside_those_of_hpcvirt(self):
        self.write()
        self.assertEqual('spin', catalogue.get('Spin').name)
        self.assertIn('spin', catalogue.names())
        self.assertIn('stream', catalogue.names())
        self.assertIn(
            'spin', [each.name for each in catalogue.all_definitions()])

    def test_the_environment_names_folders_too(self):
        other = folders.make(self)
        self.write()
        self.write({**SPIN, 'name': 'turn'}, 'turn', other)
        catalogue_folders.choose(())
        with mock.patch.dict(os.environ, {
                'HPCVIRT_CATALOGUE': f'{self.folder}:{other}:'}):
            self.assertLess({'spin', 'turn'}, {*catalogue.names()})
            catalogue_folders.choose([str(other)])
            self.assertNotIn('spin', catalogue.names())

    def test_without_a_folder_there_are_those_of_hpcvirt(self):
        catalogue_folders.choose(())
        self.assertNotIn('spin', catalogue.names())

    def test_names_of_hpcvirt_are_taken(self):
        for name in ('stream', 'npb-cg'):
            self.refused(f'hpcvirt has a benchmark {name}',
                         {**SPIN, 'name': name}, name)
        for alias in ('osu-bw', 'osu', 'stream'):
            self.refused(f'hpcvirt has a benchmark {alias}',
                         {**SPIN, 'aliases': [alias]})

    def test_members_of_a_family_have_figures_in_the_same_units(self):
        self.write({**SPIN, 'parser': 'npb', 'metrics': [
            {**SPIN['metrics'][0], 'name': 'mops_total', 'unit': 'Gop/s'}]})
        self.assertIn('mops_total is in Gop/s (up), but in Mop/s (up) in '
                      'another benchmark of npb', refusals.message(
                          self, lambda: catalogue.output_source(
                              'npb').output_format))
        form = catalogue.output_source('spin').output_format
        self.assertEqual('Gop/s', form.figures[0].unit)

    def test_a_name_is_in_one_folder(self):
        other = folders.make(self)
        catalogue_folders.choose([str(self.folder), str(other)])
        self.write()
        self.write(folder=other)
        self.assertIn(f'{self.folder} has a benchmark spin',
                      refusals.message(self, catalogue.names))

    def test_a_file_is_named_after_its_benchmark(self):
        self.refused("has the name 'spin'", SPIN, 'spun')
        self.refused('not named like a benchmark', SPIN, 'Spin')

    def test_what_is_no_definition_is_refused_with_its_file(self):
        self.refused(f'{self.folder}/spin.yaml', [1])
        self.refused("unknown key 'colour'", {**SPIN, 'colour': 'red'})
        (self.folder / 'spin.yaml').write_bytes(b'\xff')
        self.assertIn('is not UTF-8', refusals.message(self, catalogue.names))
        (self.folder / 'spin.yaml').write_text('a: [')
        self.assertIn('is not YAML', refusals.message(self, catalogue.names))
        catalogue_folders.choose([str(self.folder / 'none')])
        self.assertIn('is no folder of benchmarks',
                      refusals.message(self, catalogue.names))

    def test_other_files_are_no_benchmarks(self):
        self.write()
        for name in ('README.rst', '.hidden.yaml', 'x.shared.yaml'):
            (self.folder / name).write_text('?')
        self.assertEqual('spin', catalogue.get('spin').name)

    def test_definitions_share_files_of_the_site_and_of_hpcvirt(self):
        self.write({'words': {'what': 'spins', 'rate': 'turns'},
                    'summary': '<what>'}, 'own.shared')
        document = {key: value for key, value in SPIN.items()
                    if key != 'summary'}
        self.write({**document, 'shares': 'own', 'words': {'what': 'turns'}})
        self.assertEqual('turns', catalogue.get('spin').summary)
        self.refused('none.shared.yaml: does not exist',
                     {**SPIN, 'shares': 'none'})
        self.refused('is not the name of a shared',
                     {**SPIN, 'shares': '../own'})
        self.refused('no word for <other>',
                     {**SPIN, 'shares': 'own', 'summary': '<other>'})
        self.refused('words stand for each other', {
            **SPIN, 'shares': 'own', 'summary': '<a>',
            'words': {'a': 'x<b>', 'b': 'x<a>'}})

    def test_the_site_is_a_source_of_bounds_of_its_own_benchmarks(self):
        rule = {**defined.BOUND, 'source': 'site', 'at_least': 0.95}
        self.write({**SPIN, 'bounds': [rule]})
        found = bounds.foresee(record.Run(
            id='', benchmark='spin', variant='', samples=(),
            purpose=record.Purpose.COMPARE))
        [bound] = found.values()
        self.assertEqual(0.95, bound.ratio)
        self.assertTrue(bound.source.startswith('the site, '), bound.source)
        self.assertRaises(exception.InvalidInput, catalogue.read,
                          {**SPIN, 'bounds': [rule]}, 'x')

    def test_lines_are_described_for_the_parser_pattern_alone(self):
        self.write(LINES)
        self.assertEqual({'turns'}, {*catalogue.get('spin').lines.figures})
        for what, change in (
                ('no required_lines', {'required_lines': []}),
                ('is empty', {'forbidden_lines': [' ']}),
                ('no table of sizes', {'metrics': [
                    {**LINES['metrics'][0], 'per_size': True}]}),
                ('pattern of turns: has no group', {'metrics': SPIN['metrics']}
                 ),
                ('echo_patterns: N: .* may match', {
                    'echo_patterns': {'N': r'.* (\d+)'}}),
                ('N is expected, but', {'echo': {'N': '{N}'}}),
                ('required_lines: only for the parser pattern',
                 {'parser': 'npb', 'metrics': SPIN['metrics']})):
            self.refused(what, {**LINES, **change}, 'spin')
