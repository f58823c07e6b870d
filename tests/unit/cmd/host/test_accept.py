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

"""What ``hpcvirt host accept`` refuses before it asks a cloud."""

import contextlib
import io
import json
import pathlib

import fixtures
import testtools

from hpcvirt.cmd import main
from hpcvirt.cmd.host import audit_file


class AcceptTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.scratch = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.plan = self.write('plan.json', {'schema_version': 1, 'flavors': [
            {'name': 'a', 'per_host': {'n1': 2}}]})
        # What gets as far as a cloud finds none.
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', 'none'))
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', str(self.scratch / 'clouds.yaml')))

    def write(self, name, content):
        path = self.scratch / name
        path.write_text(json.dumps(content))
        return str(path)

    def refusal(self, *words, host='n1', flavors='a'):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main([
                'host', 'accept', host, '--flavors', flavors, '--plan',
                self.plan, '--image', 'i', '--network', 'n', '--data',
                str(self.scratch / 'data'), *words])
        self.assertEqual((2, ''), (status, out.getvalue()))
        self.assertEqual(1, err.getvalue().count('\n'), err.getvalue())
        self.assertFalse((self.scratch / 'data').exists())
        return err.getvalue()

    def test_each_fault_is_one_line(self):
        audit = self.write('audit.json', {'schema_version': 1})
        for more, words in (
                ({'host': '../n1'}, 'is not the name of a compute host'),
                ({'host': 'n2'}, 'is not for the host n2'),
                ({'flavors': 'b'}, "has no flavor 'b'")):
            self.assertIn(words, self.refusal('--apply', **more))
        for options, words in (
                (['--benchmarks', 'nosuch'], 'nosuch'),
                (['--set', 'nosuch=1'], 'none of the named benchmarks'),
                (['--bound', 'x'], 'is not METRIC=RATIO'),
                (['--audit', audit], 'is not the output of "hpcvirt host '),
                (['--report', self.plan], 'exists already'),
                (['--report', '/nowhere/x'], 'cannot be written'),
                (['--plan', str(self.scratch / 'nothing')], 'nothing')):
            self.assertIn(words, self.refusal('--apply', *options))

    def test_wrong_numbers_are_usage(self):
        for words in (['--pairs', '0'], ['--time-limit', '0'],
                      ['--time-limit', 'x'], ['--flavors', 'a,,b']):
            error = self.assertRaises(SystemExit, main.main, [
                'host', 'accept', 'n1', '--flavors', 'a', '--plan', 'p',
                '--image', 'i', '--network', 'n', *words])
            self.assertEqual(2, error.code)

    def test_the_findings_of_an_audit_are_read(self):
        finding = {'code': 'ksm', 'severity': 'warning', 'found': 'KSM runs',
                   'expected': 'no KSM', 'why': 'slow', 'sources': ['X'],
                   'change': ['echo 0']}
        (found,) = audit_file.read(self.write('audit.json', {
            'schema_version': 1, 'host': 'n1', 'clean': False, 'counts': {},
            'findings': [finding], 'checked': ['ksm']}))
        self.assertEqual(('ksm', 'warning', ('echo 0',)),
                         (found.code, found.severity, found.change))
