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

"""KSM, THP, NUMA balancing, swap and what is left."""

from hpcvirt.audit import facts as facts_module
from hpcvirt.audit.rules import memory
from hpcvirt.flavors import profile as profiles
from tests import audited
from tests import hosts

ONE_CELL = audited.facts(audited.tree(hosts.build(1, 8), profiles.DEFAULT))


class KsmTest(audited.Case):

    def ksm(self, facts=audited.GOOD, **fields):
        values = {'run': 0, 'merge_across_nodes': True, 'pages_shared': 0,
                  'full_scans': 0, **fields}
        return self.but(facts, memory={'ksm': facts_module.Ksm(**values)})

    def test_it_must_not_merge_across_cells(self):
        self.assertEqual(
            [('warning', 'KSM runs, and merges pages of different cells')],
            self.found('ksm', self.ksm(run=1)))

    def test_within_a_cell_it_is_a_choice(self):
        for facts in (self.ksm(run=1, merge_across_nodes=False),
                      self.ksm(ONE_CELL, run=1)):
            self.assertEqual([('note', 'KSM runs')],
                             self.found('ksm', facts, None))

    def test_stopped_or_missing_is_fine(self):
        for facts in (self.ksm(), self.ksm(run=2),
                      self.but(memory={'ksm': None})):
            self.assertEqual([], self.found('ksm', facts))

    def test_ksmtuned_starts_it(self):
        facts = self.but(kernel={'programs': frozenset({'ksmtuned'})})
        (severity, _), = self.found('ksm', facts)
        self.assertEqual('warning', severity)

    def test_leaked_slab(self):
        for total, slab, scans, expected in (
                (65536, 1024, 9, 0), (65536, 1025, 9, 1), (65536, 1025, 0, 0),
                (131072, 2048, 9, 0), (131072, 2049, 9, 1)):
            facts = self.but(self.ksm(full_scans=scans), memory={
                'total_mib': total, 'slab_unreclaimable_mib': slab})
            self.assertEqual(expected, len(self.found('ksm-slab', facts)),
                             (total, slab, scans))


class MemoryTest(audited.Case):

    def count(self, code, facts=audited.GOOD, profile=audited.PROFILE,
              **fields):
        return len(self.found(code, self.but(facts, memory=fields), profile))

    def test_guests_with_normal_pages_need_transparent_huge_pages(self):
        small = profiles.build({'page_size': '4K'}, 'profile')
        for choice, expected in (('never', 1), ('madvise', 0), ('always', 0),
                                 (None, 0)):
            self.assertEqual(expected, self.count('thp', profile=small,
                                                  thp=choice))
        self.assertEqual(0, self.count('thp', thp='never'))

    def test_without_a_profile_huge_pages_say_which_guests_have(self):
        self.assertEqual(0, self.count('thp', profile=None, thp='never'))
        self.assertEqual(1, self.count('thp', profile=None, thp='never',
                                       huge_pages=()))

    def test_faults_must_not_wait_for_compaction(self):
        self.assertEqual(1, self.count('thp', thp_defrag='always'))
        self.assertEqual(0, self.count('thp', thp_defrag='defer'))
        self.assertEqual(0, self.count('thp', thp='never',
                                       thp_defrag='always'))

    def test_numa_balancing(self):
        for mode, expected in ((0, 0), (1, 1), (2, 0), (3, 1), (None, 0)):
            self.assertEqual(expected, self.count('numa-balancing',
                                                  numa_balancing=mode))
        self.assertEqual(0, self.count('numa-balancing', ONE_CELL, None,
                                       numa_balancing=1))

    def test_numad(self):
        facts = self.but(kernel={'programs': frozenset({'numad'})})
        self.assertEqual([('warning', 'numad runs')],
                         self.found('numad', facts))

    def test_swap(self):
        most = memory.MOST_SWAP_USED_MIB
        self.assertEqual(0, self.count('swap', swap_used_mib=most))
        self.assertEqual(1, self.count('swap', swap_used_mib=most + 1))

    def test_swappiness(self):
        most = memory.MOST_SWAPPINESS
        self.assertEqual(0, self.count('swappiness', swappiness=most))
        self.assertEqual(1, self.count('swappiness', swappiness=most + 1))
        self.assertEqual(0, self.count('swappiness', swappiness=60,
                                       swap_total_mib=0))

    def test_each_cell_has_half_of_what_the_host_keeps(self):
        for left, expected in ((1024, 0), (1023, 1)):
            self.assertEqual(expected, self.count(
                'host-memory', available_mib={0: left, 1: 4096}))
        more = profiles.build({'host_reserve_mib_per_cell': 8192}, 'profile')
        for left, expected in ((4096, 0), (4095, 1)):
            self.assertEqual(expected, self.count(
                'host-memory', profile=more,
                available_mib={0: 9999, 1: left}))
