# SPDX-License-Identifier: Apache-2.0

import configparser
import pathlib
import unittest

from hpcvirt.cmd import command
from hpcvirt.cmd import main

ROOT = pathlib.Path(__file__).parents[3]


class TableTest(unittest.TestCase):
    def test_openstackclient_has_the_same_commands(self) -> None:
        config = configparser.ConfigParser()
        config.read(ROOT / 'setup.cfg')
        lines = config['entry_points']['openstack.hpc.v1'].split('\n')
        self.assertEqual(
            {f'hpc_{name.replace(" ", "_")} = {value}'
             for name, value in main.COMMANDS.items()},
            set(filter(None, lines)))

    def test_every_command_has_a_class_and_a_noun(self) -> None:
        program = main.HpcvirtApp()
        for name, entry in program.command_manager:
            with self.subTest(name):
                self.assertTrue(issubclass(entry.load(), command.Command))
                self.assertNotEqual('', command.get_summary(entry.load()))
                self.assertIn(name.split()[0], main.GROUPS)
                main.build_parser(name)
