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

import copy

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition_reader

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
        spin = definition_reader.read(GOOD, 'x')
        self.assertEqual(('spin', 0, 'stdout'),
                         (spin.name, spin.exit_status,
                          spin.variants[0].output))

    def refused(self, what, document):
        exc = self.assertRaises(exception.InvalidInput,
                                definition_reader.read, document, 'x')
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
                ({'at_most': 1.1}, 'the wrong way round'),
                ({'at_least': 0.9, 'slowdown_at_most': 1.1}, 'exactly one'),
                ({}, 'exactly one'),
                ({'at_least': 0.9, 'source': 'nobody'}, 'the bibliography'),
                ({'at_least': -1.0}, 'not a ratio'),
                ({'at_least': 0.9, 'margin': 2.0}, 'not a margin'),
                ({'at_least': 0.9, 'below_bytes': 128}, 'no message sizes'),
                ({'at_least': 0.9, 'above_bytes': 128}, 'no message sizes'),
                ({'at_least': 0.9, 'when': {'moon': 'full'}}, 'no condition'),
                ({'at_least': 0.9, 'when': {'nodes': '2'}}, 'no condition')):
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
        spin = definition_reader.read(changed(
            'bounds', 0, 'at_least', to='915 / 926'), 'x')
        self.assertEqual(915 / 926, spin.bounds[0].at_least)
        for limit in ('915/926', '1 / 0', '. / .', '1 / 2 / 3', 'x / 1', '',
                      '1.2.3 / 1', '\u0661 / 2', True, None, []):
            self.refused('', changed('bounds', 0, 'at_least', to=limit))
