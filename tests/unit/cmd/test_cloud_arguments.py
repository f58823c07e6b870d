# SPDX-License-Identifier: Apache-2.0

import argparse
import unittest
from unittest import mock

from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import main


class ConnectTest(unittest.TestCase):
    """Which cloud a command acts on."""

    def parsed(self, add, *words):
        parser = argparse.ArgumentParser()
        add(parser)
        for action in parser._actions:
            action.required = False
        return parser.parse_args(words)

    def test_the_session_of_the_program_around_it_is_used(self):
        for name in ('flavor apply', 'flavor lint', 'make-room'):
            parser = main.build_parser(name)
            for action in parser._actions:
                action.required = False
            args = parser.parse_args(
                ['--flavor', 'subject'] if name == 'make-room'
                else ['subject'])
            self.assertIsNone(args.connect)
            args.connect = lambda: 'its client'
            self.assertEqual('its client', cloud_arguments.connect(args))

    def test_placement_is_asked_with_the_session_around_it(self):
        args = self.parsed(cloud_arguments.add)
        args.connect = lambda: 'its client'
        args.connect_placement = mock.Mock(spec=(), return_value='adapter')
        cloud_arguments.connect_quarantine(args)
        args.connect_placement.assert_called_once_with()

    def test_a_cloud_that_is_named_comes_first(self):
        args = self.parsed(cloud_arguments.add, '--os-cloud', 'other')
        args.connect = self.fail
        with mock.patch('hpcvirt.cloud.session.compute',
                        autospec=True) as compute:
            cloud_arguments.connect(args)
        compute.assert_called_once_with('other')
