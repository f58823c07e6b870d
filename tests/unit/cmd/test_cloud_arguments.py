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

"""Which cloud a command acts on."""

import argparse
import unittest
from unittest import mock

from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd.flavor import apply
from hpcvirt.cmd.flavor import lint
from hpcvirt.cmd.fleet import make_room


class ConnectTest(unittest.TestCase):

    def parsed(self, add, *words):
        parser = argparse.ArgumentParser()
        add(parser)
        for action in parser._actions:
            action.required = False
        return parser.parse_args(words)

    def test_the_session_of_the_program_around_it_is_used(self):
        for add, words in ((apply.add_arguments, ['host']),
                           (lint.add_arguments, ['flavor']),
                           (make_room.add, [])):
            args = self.parsed(add, *words)
            self.assertIsNone(args.connect)
            args.connect = lambda: 'its client'
            self.assertEqual('its client', cloud_arguments.connect(args))

    def test_a_cloud_that_is_named_comes_first(self):
        args = self.parsed(cloud_arguments.add, '--os-cloud', 'other')
        args.connect = self.fail
        with mock.patch('hpcvirt.cloud.session.compute',
                        autospec=True) as compute:
            cloud_arguments.connect(args)
        compute.assert_called_once_with('other')
