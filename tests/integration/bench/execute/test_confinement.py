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

"""Confining native runs to CPUs with the programs that a place has."""

import os
import pathlib
import shutil
import tempfile
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.execute import confinement
from hpcvirt.bench.execute import local


class ConfinementTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.programs = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.programs)
        self._have('sh', 'true')
        path = mock.patch.dict(os.environ, PATH=str(self.programs))
        path.start()
        self.addCleanup(path.stop)
        self.cpu = frozenset([min(os.sched_getaffinity(0))])

    def _have(self, *names):
        for name in names:
            (self.programs / name).symlink_to(shutil.which(name))

    def test_taskset_where_there_is_no_numactl(self):
        with mock.patch.dict(os.environ, PATH=os.defpath):
            self._have('taskset')
        (cpu,) = self.cpu
        self.assertEqual(('taskset', '-c', str(cpu)),
                         confinement.prefix(local.LocalExecutor(), self.cpu))

    def test_without_either_program_the_error_names_it(self):
        with self.assertRaisesRegex(exception.Unreachable, 'taskset'):
            confinement.prefix(local.LocalExecutor(), self.cpu)

    def test_unknown_cpus_confine_nothing(self):
        self.assertEqual((), confinement.prefix(local.LocalExecutor(), None))
