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

import unittest

from hpcvirt.flavors import alternative
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.flavors import table
from tests import hosts


def plan(*machines):
    return planner.plan(machines, profile.Profile())


class TableTest(unittest.TestCase):

    def test_no_line_is_wider_than_the_terminal(self):
        for machines in (*([host] for host in hosts.shipped()),
                         hosts.shipped()):
            found = plan(*machines)
            for width, most in ((None, 100), (80, 80)):
                for line in table.table(found, alternative.of(found),
                                        width).splitlines():
                    self.assertLessEqual(len(line), most, line)

    def test_units_are_written_out(self):
        text = table.table(plan(hosts.named('hs06-2s-16c')))
        self.assertIn('GiB in pages of 2 MiB', text)

    def test_a_row_shows_the_guests_that_fit_and_what_they_leave(self):
        text = table.table(plan(hosts.named('hs06-2s-16c')))
        row = next(line.split() for line in text.splitlines()
                   if line.strip().startswith('hpc.24c'))
        self.assertEqual(
            ['3/4', 'host', '24', '2x12', '42', '1', '8', 'CPUs,', '14', 'GiB',
             '5%,', '1x24'], row[1:])

    def test_hosts_of_one_kind_share_a_table(self):
        text = table.table(plan(hosts.build(name='a'), hosts.build(name='b'),
                                hosts.build(cells=4, name='c')))
        self.assertIn('2 hosts: a, b', text)
        self.assertEqual(2, text.count('  Loss\n'))

    def test_many_hosts_of_one_kind_are_counted(self):
        text = table.table(plan(*(hosts.build(name=f'node-{number:03}')
                                  for number in range(1, 301))))
        self.assertIn('300 hosts (node-001, node-002, ...)\n', text)
        self.assertNotIn('node-003', text)

    def test_normal_pages_count_for_guests_only_as_far_as_they_get_them(self):
        texts = {size: table.table(planner.plan(
            [hosts.named('hs06-2s-16c')], profile.Profile(page_size=size)))
            for size in (4, 2048)}
        for text in texts.values():
            self.assertIn(' 56 of 62.7 GiB in', text)

    def test_figures_have_their_sources(self):
        text = table.table(plan(hosts.build()))
        self.assertIn('[CERN-HEPiX-2015]', text)

    def test_a_host_that_nothing_fits_says_so(self):
        text = table.table(plan(hosts.build(),
                                hosts.build(mib=0, name='bare')))
        self.assertIn('none of the flavors fits on this host', text)
