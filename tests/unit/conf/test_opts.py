# SPDX-License-Identifier: Apache-2.0

"""The options, and how they are registered."""

import importlib.metadata
import unittest

from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import opts
from hpcvirt.conf import weights
from hpcvirt.fit import rating


class ListTest(unittest.TestCase):
    def test_the_generator_finds_the_list(self):
        found, = importlib.metadata.entry_points(
            group='oslo.config.opts', name='hpcvirt')
        self.assertIs(opts.list_opts, found.load())

    def test_every_option_stands_in_one_group_of_our_own(self):
        (group, listed), = opts.list_opts()
        self.assertEqual('hpcvirt', group.name)
        self.assertEqual(
            ['far_device_cost', 'filter_mode', 'moves_follow_placement',
             'topology_weight_multiplier'],
            sorted(opt.name for opt in listed))

    def test_help_says_what_happens_at_zero(self):
        (_, listed), = opts.list_opts()
        help_of = {opt.name: opt.help for opt in listed}
        self.assertIn('* 0: the weigher is off.',
                      help_of['topology_weight_multiplier'])
        self.assertIn('* 0: devices decide only between hosts',
                      help_of['far_device_cost'])


class RegisterTest(unittest.TestCase):
    def test_options_have_their_defaults_once_registered(self):
        conf = cfg.ConfigOpts()
        weights.register_opts(conf)
        conf([])
        self.assertGreater(conf.hpcvirt.topology_weight_multiplier, 3)
        self.assertEqual(0.0, conf.hpcvirt.far_device_cost)

    def test_far_devices_can_cost_any_room_but_not_less_than_none(self):
        conf = cfg.ConfigOpts()
        weights.register_opts(conf)
        conf([])
        self.addCleanup(conf.clear_override, 'far_device_cost', 'hpcvirt')
        conf.set_override('far_device_cost', 'inf', 'hpcvirt')
        self.assertEqual(rating.NEAR_FIRST, conf.hpcvirt.far_device_cost)
        for value in ('-0.1', 'much'):
            self.assertRaises(ValueError, conf.set_override,
                              'far_device_cost', value, 'hpcvirt')

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
        conf.set_override('topology_weight_multiplier', 1.5,
                          group='hpcvirt')
        weights.register_opts(conf)
        self.assertEqual(
            1.5, conf.hpcvirt.topology_weight_multiplier)

    def test_listing_registers_nothing(self):
        opts.list_opts()
        with self.assertRaises(cfg.NoSuchOptError):
            cfg.CONF.hpcvirt  # noqa: B018 - the look is the test
