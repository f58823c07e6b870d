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

import fixtures
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
                local.LocalExecutor(), f'{scratch}/run/build'))

    def test_the_error_of_the_compiler_is_quoted(self):
        self.assertTrue(self.build(MAKEFILE).endswith(
            'building failed: ep.f:57:17: Error: Rank mismatch'))

    def test_the_error_of_make_is_quoted_if_there_is_no_other(self):
        self.assertIn('No rule to make target', self.build(''))


class TestDistribute(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.product = self.scratch / 'bin' / 'ep.S.x'

    def distribute(self):
        return binaries.distribute({str(self.product): b'#!/bin/sh\n'},
                                   [local.LocalExecutor()])

    def test_a_missing_binary_is_copied(self):
        self.assertEqual({}, self.distribute())
        self.assertEqual(b'#!/bin/sh\n', self.product.read_bytes())
        self.assertEqual(0o755, self.product.stat().st_mode & 0o777)
        self.assertEqual({}, self.distribute())
        self.assertEqual([self.product], list(self.product.parent.iterdir()))

    def test_another_binary_is_left_as_it_is(self):
        self.product.parent.mkdir()
        self.product.write_text('other')
        self.assertRaises(exception.InvalidInput, self.distribute)
        self.assertEqual('other', self.product.read_text())

    def test_a_directory_that_everybody_writes_to_is_refused(self):
        self.product.parent.mkdir()
        self.product.write_bytes(b'#!/bin/sh\n')
        self.product.parent.chmod(0o1777)
        error = self.assertRaises(exception.Unreachable, self.distribute)
        self.assertIn('others could replace the programs', str(error))

    def test_a_link_that_waits_for_the_copy_is_not_followed(self):
        self.product.parent.mkdir()
        kept = self.scratch / 'kept'
        kept.write_text('mine')
        pathlib.Path(f'{self.product}.new').symlink_to(kept)
        self.distribute()
        self.assertEqual('mine', kept.read_text())
