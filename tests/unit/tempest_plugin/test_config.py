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

    def test_nothing_is_measured_unless_it_is_asked_for(self):
        ours = self.conf.hpcvirt
        self.assertEqual(([], None, None),
                         (ours.benchmarks, ours.native, ours.mpi_benchmark))

    def test_a_machine_that_cannot_tell_is_no_proof(self):
        self.assertEqual('fail', self.conf.hpcvirt.inconclusive)

    def test_values_that_would_decide_nothing_are_refused(self):
        for name, value in (('inconclusive', 'pass'), ('benchmark_pairs', 4),
                            ('benchmark_time_limit', 0)):
            with self.subTest(name=name):
                self.assertRaises(ValueError, self.conf.set_override, name,
                                  value, group='hpcvirt')
