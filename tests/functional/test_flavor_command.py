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

"""The commands that talk to a cloud, against Nova's real API."""

import contextlib
import io
import json
import pathlib

from hpcvirt.cmd import main
from tests.functional import base

TOPOLOGIES = pathlib.Path(__file__).parents[2] / 'etc/hpcvirt/topologies'


class FlavorCommandTest(base.HPCNova):

    def setUp(self):
        super().setUp()
        self.use_as_cloud()

    def run_command(self, *words, status=0):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(status, main.main(['flavor', *words]))
        return output.getvalue()

    def apply(self, *words, status=0):
        """Run ``flavor apply`` for one machine; what it did, by name."""
        document = json.loads(self.run_command(
            'apply', str(TOPOLOGIES / 'hs06-2s-16c.json'), '--format',
            'json', *words, status=status))
        return {step['name']: (step['action'], step['done'])
                for step in document['steps']}

    def flavors(self):
        """What the cloud has of ours."""
        return {flavor['name']: flavor
                for flavor in self.api.get_flavors()
                if flavor['name'].startswith('hpc.')}

    def test_nothing_is_created_without_apply(self):
        steps = self.apply()
        self.assertEqual({('create', False)}, set(steps.values()))
        self.assertEqual({}, self.flavors())

    def test_a_second_time_nothing_is_left_to_do(self):
        steps = self.apply('--apply')
        self.assertEqual(4, len(steps))
        self.assertEqual({('create', True)}, set(steps.values()))
        made = self.flavors()
        self.assertEqual(steps.keys(), made.keys())
        steps = self.apply('--apply')
        self.assertEqual({('same', False)}, set(steps.values()))
        self.assertEqual(made, self.flavors())

    def test_a_flavor_that_somebody_edited_is_replaced_only_when_told(self):
        self.apply('--apply')
        name, flavor = min(self.flavors().items())
        self.api.post_extra_spec(
            flavor['id'], {'extra_specs': {'hw:mem_page_size': '1048576'}})
        self.assertEqual(('differs', False),
                         self.apply('--apply', status=1)[name])
        self.assertEqual(
            '1048576', self.specs(name)['hw:mem_page_size'])
        self.assertEqual(('differs', True),
                         self.apply('--apply', '--replace')[name])
        self.assertEqual('2048', self.specs(name)['hw:mem_page_size'])

    def specs(self, name):
        return self.api.get_extra_specs(self.flavors()[name]['id'])

    def test_a_flavor_of_somebody_else_is_never_touched(self):
        name = min(self.apply())
        foreign = self.create_flavor(1, 64, {'hw:cpu_policy': 'shared'}, name)
        self.assertEqual(
            ('foreign', False),
            self.apply('--apply', '--replace', status=1)[name])
        self.assertEqual({'hw:cpu_policy': 'shared'}, self.specs(name))
        self.assertEqual(foreign, self.flavors()[name]['id'])

    def test_lint_knows_what_is_wrong_with_a_flavor_of_the_cloud(self):
        self.create_flavor(4, 1024, {
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
            'hw:mem_page_size': 'large'}, 'doubtful')
        self.assertIn('page-size-class',
                      self.run_command('lint', 'doubtful', status=1))
        self.apply('--apply')
        self.run_command('lint', min(self.flavors()))
