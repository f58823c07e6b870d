# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from hpcvirt.flavors import kernel_settings


class GuidRuleTest(unittest.TestCase):
    """The command of the udev rule, with a program ip that notes its words."""

    def run_rule(self, count: int) -> list[str]:
        rule = kernel_settings.format_guid_rule('0000:41:00.0', count)
        command = re.search('RUN[+]="(.*)"$', rule)
        assert command is not None
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / 'device').mkdir()
            (root / 'address').write_text(
                '00:00:10:29:fe:80:00:00:00:00:00:00:'
                '0c:42:a1:03:00:88:12:34\n')
            (root / 'ip').write_text(f'#!/bin/sh\necho "$@" >>{root}/said\n')
            (root / 'ip').chmod(0o755)
            # What udev replaces.
            text = command[1].replace('$$', '$').replace('%%', '%')
            subprocess.run(shlex.split(text), check=True, env={
                'PATH': f'{root}:/usr/bin:/bin', 'INTERFACE': 'ib0',
                'DEVPATH': f'/..{folder}'})
            self.assertEqual(f'{count}\n', (
                root / 'device/sriov_numvfs').read_text())
            return (root / 'said').read_text().splitlines()

    def test_each_function_gets_its_guid_and_its_policy(self) -> None:
        self.assertEqual([
            f'link set dev ib0 vf {number} {what}' for number in (0, 1)
            for what in (f'node_guid 0e:42:a1:00:0{number + 1}:88:12:34',
                         f'port_guid 0e:42:a1:00:0{number + 1}:88:12:34',
                         'state auto')], self.run_rule(2))

    def test_the_guids_of_many_functions_differ(self) -> None:
        said = self.run_rule(300)
        guids = {line.split()[-1] for line in said if 'port_guid' in line}
        self.assertEqual(300, len(guids))
        self.assertIn('0e:42:a1:01:2c:88:12:34', guids)
