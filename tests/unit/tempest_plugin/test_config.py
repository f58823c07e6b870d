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

"""The options of the plugin."""

import unittest

from oslo_config import cfg

from hpcvirt.tempest_plugin import config


class OptionsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        config.register_opts(self.conf)
        self.conf([])

    def test_no_benchmark_runs_by_default(self):
        options = self.conf.hpcvirt
        self.assertEqual(
            ([], None, None),
            (options.benchmarks, options.native, options.mpi_benchmark))

    def test_inconclusive_result_fails_by_default(self):
        self.assertEqual('fail', self.conf.hpcvirt.inconclusive)

    def test_useless_values_are_refused(self):
        for name, value in (('inconclusive', 'pass'), ('benchmark_pairs', 4),
                            ('benchmark_time_limit', 0)):
            with self.subTest(name=name):
                self.assertRaises(ValueError, self.conf.set_override, name,
                                  value, group='hpcvirt')
