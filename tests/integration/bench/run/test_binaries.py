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


import pathlib
import tempfile

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import local
from hpcvirt.bench.run import binaries
from hpcvirt.bench.run import run_spec

MAKEFILE = """\
ep:
\t@echo 'ep.f:57:17: Error: Rank mismatch' >&2; exit 1
"""


class TestBuild(testtools.TestCase):
    def build(self, makefile):
        with tempfile.TemporaryDirectory() as scratch:
            (pathlib.Path(scratch) / 'Makefile').write_text(makefile)
            spec = run_spec.make(catalogue.get('npb-ep'), 'serial',
                                 sizing.Machine(1, 512),
                                 {'npb_ser': scratch, 'class': 'S'})
            return str(self.assertRaises(
                exception.Unreachable, binaries.build, spec,
                local.LocalExecutor(), f'{scratch}/build'))

    def test_the_error_of_the_compiler_is_quoted(self):
        self.assertTrue(self.build(MAKEFILE).endswith(
            'building failed: ep.f:57:17: Error: Rank mismatch'))

    def test_the_error_of_make_is_quoted_if_there_is_no_other(self):
        self.assertIn('No rule to make target', self.build(''))
