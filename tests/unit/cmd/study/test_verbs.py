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

import shutil
import subprocess

from tests import hosts
from tests.unit.cmd.bench import test_bench

SMT = str(hosts.TOPOLOGIES / 'intel-2s-16c-smt.json')
PLAIN = str(hosts.TOPOLOGIES / 'hs06-2s-16c.json')


class TestOnHosts(test_bench.CommandTestCase):
    def test_every_case_has_its_line_or_its_reason(self):
        status, out, _ = test_bench.call('studies', 'S3', '--topology', PLAIN)
        self.assertEqual(0, status)
        lines = {line.split()[0]: line for line in out.splitlines()}
        self.assertIn('1x32', lines['off-1vm-4'])
        self.assertIn('cannot be run: it needs SMT', lines['on-1vm-4'])
        self.assertEqual(2 + 16, len(lines))

    def test_a_document_has_the_flavor_and_the_reason(self):
        status, found = self.answer('studies', 'S3', '--topology', SMT,
                                    '--case', 'on-4vm-4net-8')
        self.assertEqual(0, status)
        one, = found
        self.assertEqual((4, 16, {}), (
            one['per_host'], one['flavor']['vcpus'],
            one['flavor']['extra_specs']))
        status, found = self.answer('studies', 'S5', '--topology', SMT)
        self.assertEqual(1, status)
        self.assertTrue(all(one['refused'] for one in found))

    def test_a_script_goes_to_the_standard_output(self):
        status, out, err = test_bench.call(
            'studies', 'S4', '--case', '4x8-tuned', '--topology',
            f'n7={PLAIN}', '--format', 'shell')
        self.assertEqual((0, ''), (status, err))
        self.assertTrue(out.startswith('#!/bin/sh\n'))
        self.assertIn('HOST_1=n7\n', out)
        done = subprocess.run([shutil.which('sh'), '-n'],
                              input=out.encode(), check=False)
        self.assertEqual(0, done.returncode)

    def test_a_refused_case_has_no_script(self):
        status, out, err = test_bench.call(
            'studies', 'S3', '--case', 'on-1vm-4', '--topology', PLAIN,
            '--format', 'shell')
        self.assertEqual((1, ''), (status, out))
        self.assertIn('needs SMT', err)

    def test_a_profile_keeps_cores_for_the_host(self):
        profile = self.folder / 'profile.yaml'
        profile.write_text('housekeeping_cores_per_cell: 2\n')
        _, found = self.answer('studies', 'S4', '--case', '4x8-tuned',
                               '--topology', PLAIN, '--profile', str(profile))
        self.assertEqual(7, found[0]['flavor']['vcpus'])

    def test_what_would_be_passed_over_is_refused(self):
        for what, *words in (
                ('ID', '--topology', PLAIN),
                ('ID', '--case', 'sriov'),
                ('ID', '--data', '/nowhere'),
                ('no case', 'S4', '--case', 'sriov'),
                ('--topology', 'S4', '--format', 'shell'),
                ('--case', 'S4', '--format', 'shell', '--topology', PLAIN),
                ('--profile', 'S4', '--profile', 'x'),
                ('another question', 'S4', '--topology', PLAIN, '--data',
                 '/nowhere'),
                ('bench.sqlite', 'S4', '--data', '/nowhere'),
                ('/nowhere', 'S4', '--topology', '/nowhere'),
                ('NAME=', 'S5', '--topology', PLAIN, '--topology',
                 PLAIN)):
            self.assert_unusable(what, 'studies', *words)

    def test_one_case_alone_is_shown(self):
        status, out, _ = test_bench.call('studies', 'S4', '--case',
                                         '2x16-tuned')
        self.assertEqual(0, status)
        self.assertIn('2x16-tuned', out)
        self.assertNotIn('1x24-', out.partition('What to take')[0])
        _, found = self.answer('studies', 'S4', '--case', '2x16-tuned')
        self.assertEqual(1, len(found['rows']))
        _, found = self.answer('studies', 'S1', '--case', 'small-on')
        self.assertEqual(
            {'0.848', '0.973', '85'},
            {claim['printed'] for claim in found['claims']})
