# SPDX-License-Identifier: Apache-2.0

import unittest

from oslo_config import cfg

from hpcvirt.tempest_plugin import config


class OptionsTest(unittest.TestCase):
    """The options of the plugin."""

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
