# SPDX-License-Identifier: Apache-2.0

import shlex
import unittest

from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import table
from tests.builders import hosts
from tests.builders.plans import plan


class ShellTest(unittest.TestCase):
    def test_a_line_creates_the_flavor_that_the_plan_has(self):
        for host in hosts.shipped():
            found = plan(host)
            commands = [line for line in table.commands(found)
                        if not line.startswith('#')]
            self.assertEqual(len(found.flavors), len(commands))
            for row, line in zip(found.flavors, commands, strict=True):
                words = shlex.split(line)
                self.assertEqual(['openstack', 'flavor', 'create'], words[:3])
                self.assertEqual(row.flavor.name, words[-1])
                self.assertEqual(
                    {f'{key}={value}' for key, value
                     in row.flavor.extra_specs.items()},
                    {words[at + 1] for at, word in enumerate(words)
                     if word == '--property'})
                for option, value in (('--vcpus', row.flavor.vcpus),
                                      ('--ram', row.flavor.ram_mib),
                                      ('--disk', row.flavor.disk_gib)):
                    self.assertEqual(str(value),
                                     words[words.index(option) + 1])
                self.assertNotIn('--id', words)

    def test_warnings_are_comments(self):
        first = next(table.commands(plan(hosts.build())))
        self.assertTrue(first.startswith('# no-housekeeping: '))


class TableTest(unittest.TestCase):
    def test_no_line_is_wider_than_the_terminal(self):
        for machines in (*([host] for host in hosts.shipped()),
                         hosts.shipped()):
            found = plan(*machines)
            for width, most in ((None, 100), (80, 80)):
                for line in table.table(
                        found, [plan_document.plan_other(found)],
                        width).splitlines():
                    self.assertLessEqual(len(line), most, line)

    def test_a_row_shows_the_guests_that_fit_and_what_they_leave(self):
        text = table.table(plan(hosts.named('hs06-2s-16c')))
        row = next(line.split() for line in text.splitlines()
                   if line.strip().startswith('hpc.24c'))
        self.assertEqual(
            ['3/4', 'host', '24', '2x12', '42', '1', '8', 'CPUs,', '14',
             'GiB'], row[1:])

    def test_hosts_of_one_kind_share_a_table(self):
        text = table.table(plan(hosts.build(name='a'),
                                hosts.build(name='b'),
                                hosts.build(cells=4, name='c')))
        self.assertIn('2 hosts: a, b', text)
        self.assertEqual(2, text.count('  Unused\n'))

    def test_memory_that_the_kernel_keeps_makes_no_table_of_its_own(self):
        # 251.6 and 252.1 GiB were 252 and 252, or 251 and 252.
        text = table.table(plan(hosts.build(mib=128800, name='a'),
                                hosts.build(mib=129020, name='b'),
                                hosts.build(mib=160000, name='c')))
        self.assertIn('2 hosts: a, b', text)
        self.assertIn(' of 252 GiB in pages', text.replace('\n  ', ' '))
        self.assertEqual(2, text.count('  Unused\n'))

    def test_many_hosts_of_one_kind_are_counted(self):
        text = table.table(plan(*(hosts.build(name=f'node-{number:03}')
                                  for number in range(1, 301))))
        self.assertIn('300 hosts (node-001, node-002, ...)\n', text)
        self.assertNotIn('node-003', text)

    def test_normal_pages_count_for_guests_only_as_far_as_they_get_them(self):
        texts = {size: table.table(planner.plan(
            [hosts.named('hs06-2s-16c')], profiles.Profile(page_size=size)))
            for size in (4, 2048)}
        for text in texts.values():
            self.assertIn(' 56 of 62.7 GiB in', text)

    def test_a_host_that_nothing_fits_says_so(self):
        text = table.table(plan(hosts.build(),
                                hosts.build(mib=0, name='bare')))
        self.assertIn('none of the flavors fits on this host', text)
