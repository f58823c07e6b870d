# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import unittest

from tests.builders import audited
from tests.builders import commands
from tests.builders import sysfs_files

PROFILE = 'devices: [{vendor_id: "15b3", product_id: "101e"}]\n'


class AuditTest(unittest.TestCase):
    """``hpcvirt host audit``."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self), 'n17')
        sysfs_files.lay_out(audited.tree(), self.root)
        self.profile = self.root / 'profile.yaml'
        self.profile.write_text(PROFILE)

    def run_command(self, *words):
        return commands.run('host', 'audit', '--root', self.root, *words)

    def test_status_is_0_without_faults(self):
        status, out, err = self.run_command('--profile', str(self.profile))
        self.assertEqual((0, ''), (status, err))
        self.assertTrue(out.startswith('host: no finding; '), out)

    def test_status_is_1_with_one(self):
        (self.root / 'proc/sys/vm/swappiness').write_text('60')
        for words, line in (([], 'WARNING swappiness'),
                            (['--format', 'nhc'], '* || die 1 "hpcvirt'),
                            (['--format', 'json'], '"swappiness"')):
            status, out, err = self.run_command(*words)
            self.assertEqual((1, ''), (status, err))
            self.assertIn(line, out)

    def fleet(self, **swappiness):
        """Lay out hosts that differ in one setting."""
        roots = []
        for name, value in swappiness.items():
            roots.append(self.root.with_name(name))
            sysfs_files.lay_out(audited.tree() | {
                'proc/sys/kernel/hostname': name,
                'proc/sys/vm/swappiness': value}, roots[-1])
        return roots

    def test_several_hosts_have_a_summary(self):
        self.root, *roots = self.fleet(c1='1', c2='60', c3='1')
        status, out, err = self.run_command(*roots)
        self.assertEqual((1, ''), (status, err))
        self.assertIn('WARNING swappiness: 1 of 3 hosts (c2)\n', out)
        self.assertIn('  swappiness\n    1: c1, c3\n    60: c2\n', out)
        self.assertTrue(out.endswith(
            '3 hosts: 2 without faults, 1 with faults\n'), out)
        _, out, _ = self.run_command(*roots, '-f', 'csv', '-c', 'host', '-c',
                                     'code')
        self.assertEqual(['"Host","Code"', '"c2","swappiness"'],
                         out.splitlines())
        found = json.loads(self.run_command(*roots, '-f', 'json')[1])
        self.assertEqual([True, False, True],
                         [each['clean'] for each in found['hosts']])
        status, out, _ = self.run_command(*roots, '-f', 'nhc')
        self.assertEqual(1, out.count('die 1'))

    def test_one_host_is_not_counted_twice(self):
        (again,) = self.fleet(host='1')
        commands.check_refused(self, f'{again}: is of host, as is',
                               self.run_command(again))

    def test_a_script_captures_a_host(self):
        status, out, err = commands.run('host', 'capture')
        self.assertEqual((0, ''), (status, err))
        self.assertTrue(out.startswith('#!/bin/sh\n'))

    def test_json_can_be_read(self):
        self.assertEqual([], commands.read_document(
            self, self.run_command('--format', 'json'))['findings'])

    def test_status_is_2_without_a_host_or_profile(self):
        for words, where in ((['--root', '/dev/null'], '/dev/null'),
                             (['--profile', '/none'], '/none')):
            commands.check_refused(self, where, self.run_command(*words))
