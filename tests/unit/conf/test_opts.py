# SPDX-License-Identifier: Apache-2.0

"""The options, and how they are registered."""

import importlib.metadata
import unittest

from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import opts
from hpcvirt.conf import weights


class ListTest(unittest.TestCase):
    def test_the_generator_finds_the_list(self):
        found, = importlib.metadata.entry_points(
            group='oslo.config.opts', name='hpcvirt')
        self.assertIs(opts.list_opts, found.load())

    def test_every_option_stands_in_one_group_of_our_own(self):
        (group, listed), = opts.list_opts()
        self.assertEqual('hpcvirt', group.name)
        self.assertEqual(
            ['device_locality_weight_multiplier',
             'device_set_weight_multiplier', 'filter_mode',
             'moves_follow_placement', 'numa_fragmentation_weight_multiplier'],
            sorted(opt.name for opt in listed))

    def test_help_says_what_happens_at_zero(self):
        for _, listed in opts.list_opts():
            for opt in listed:
                if opt.name in ('filter_mode', 'moves_follow_placement'):
                    continue
                with self.subTest(name=opt.name):
                    self.assertIn('* 0: the weigher is off.', opt.help)


class RegisterTest(unittest.TestCase):
    def test_options_have_their_defaults_once_registered(self):
        conf = cfg.ConfigOpts()
        weights.register_opts(conf)
        conf([])
        self.assertGreater(
            conf.hpcvirt.numa_fragmentation_weight_multiplier, 3)
        self.assertGreater(conf.hpcvirt.device_locality_weight_multiplier, 3)

    def test_the_filter_decides_unless_it_is_told_not_to(self):
        conf = cfg.ConfigOpts()
        filters.register_opts(conf)
        weights.register_opts(conf)
        conf([])
        self.assertEqual(filters.ENFORCE, conf.hpcvirt.filter_mode)
        self.assertRaises(ValueError, conf.set_override, 'filter_mode',
                          'off', 'hpcvirt')

    def test_registering_twice_changes_nothing(self):
        conf = cfg.ConfigOpts()
        weights.register_opts(conf)
        conf([])
        conf.set_override('numa_fragmentation_weight_multiplier', 1.5,
                          group='hpcvirt')
        weights.register_opts(conf)
        self.assertEqual(
            1.5, conf.hpcvirt.numa_fragmentation_weight_multiplier)

    def test_listing_registers_nothing(self):
        opts.list_opts()
        with self.assertRaises(cfg.NoSuchOptError):
            cfg.CONF.hpcvirt  # noqa: B018 - the look is the test
