# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit.reading.memory import Ksm
from hpcvirt.audit.rules import memory
from hpcvirt.flavors import profile as profiles
from tests.builders import audited
from tests.builders import hosts


class HugePagesTest(audited.Case):
    """Huge pages: as the flavors need them, on every cell."""

    def change(self, number, **fields):
        """Change one pool; pools are ordered by cell and name."""
        pools = list(audited.GOOD.memory.huge_pages)
        pools[number] = dataclasses.replace(pools[number], **fields)
        return self.but(memory={'huge_pages': tuple(pools)})

    def setUp(self):
        super().setUp()
        self.number, self.pool = next(
            (number, pool) for number, pool
            in enumerate(audited.GOOD.memory.huge_pages)
            if pool.cell == 1 and pool.size_kib == 2048)

    def test_fewer_than_the_flavors_need_is_an_error(self):
        facts = self.change(self.number, total=self.pool.total - 1)
        self.assertEqual(
            [('error', f'cell 1 has {self.pool.total - 1} pages of 2M')],
            self.found('huge-pages', facts))

    def test_more_than_they_need_is_a_warning(self):
        facts = self.change(self.number, total=self.pool.total + 1)
        self.check('huge-pages', ['warning'], facts)

    def test_another_size_is_a_warning(self):
        number = next(number for number, pool
                      in enumerate(audited.GOOD.memory.huge_pages)
                      if pool.cell == 0 and pool.size_kib == 1048576)
        self.assertEqual([('warning', 'cell 0 has 2 pages of 1G')],
                         self.found('huge-pages', self.change(number,
                                                              total=2)))

    def test_surplus_pages_are_not_reserved(self):
        facts = self.change(self.number, total=self.pool.total, surplus=1)
        self.check('huge-pages', 1, facts)

    def test_cells_are_even_within_five_percent(self):
        most = self.pool.total
        for count, expected in ((-(-most * 95 // 100), 0),
                                (most * 95 // 100 - 1, 1)):
            facts = self.change(self.number, total=count)
            self.check('huge-pages-even', expected, facts, profile=None)

    def test_none_at_all(self):
        facts = self.but(memory={'huge_pages': ()})
        self.assertEqual([('warning', 'no huge pages are reserved')],
                         self.found('huge-pages-even', facts, None))
        self.check('huge-pages-even', [], facts)


ONE_CELL = audited.facts(audited.tree(hosts.build(1, 8), profiles.DEFAULT))


class KsmTest(audited.Case):
    """KSM, THP, NUMA balancing, swap and what is left."""

    def ksm(self, facts=audited.GOOD, **fields):
        values = {'run': 0, 'merge_across_nodes': True, 'pages_shared': 0,
                  'pages_sharing': 0, 'full_scans': 0, **fields}
        return self.but(facts, memory={'ksm': Ksm(**values)})

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
            self.check('ksm', [], facts)

    def test_pages_are_separated_only_where_they_fit(self):
        """160 GiB that 40 GiB of pages stand for do not fit into 6 GiB."""
        scale = {'run': 1, 'pages_shared': 10 << 20}
        for sharing, expected in (
                (0, ['echo 2 > /sys/kernel/mm/ksm/run']),
                (256 * 1024, [
                    ('# merged pages need 1024 MiB to be separated, and 6150 '
                     'MiB are available'), 'echo 2 > /sys/kernel/mm/ksm/run']),
                (40 << 20, [
                    'echo 0 > /sys/kernel/mm/ksm/run',
                    ('# not 2: merged pages need 163840 MiB to be separated, '
                     'and 6150 MiB are available; move guests away before '
                     'that')])):
            item, = (item for item in audit.audit(self.ksm(
                pages_sharing=sharing, **scale)).findings
                if item.code == 'ksm')
            self.assertEqual(expected, list(item.change[:len(expected)]))
        for parts in ({'memory': {'available_mib': fact.UnknownFact(
                '/sys', 'is missing')}}, {'kernel': {
                    'programs': frozenset({'ksmtuned'})}}):
            full = self.but(self.ksm(pages_sharing=40 << 20, **scale), **parts)
            self.assertNotIn('echo 2 >', str([
                item.change for item in audit.audit(full).findings]))

    def test_pages_that_stay_merged_are_noted(self):
        self.assertEqual(
            [('note',
              'KSM is off, but 512 pages that it merged still save 4 MiB')],
            self.found('ksm', self.ksm(pages_shared=512, pages_sharing=1024)))

    def test_ksmtuned_starts_it(self):
        facts = self.but(kernel={'programs': frozenset({'ksmtuned'})})
        self.check('ksm', ['warning'], facts)

    def test_leaked_slab(self):
        for total, slab, scans, expected in (
                (65536, 1024, 9, 0), (65536, 1025, 9, 1), (65536, 1025, 0, 0),
                (131072, 2048, 9, 0), (131072, 2049, 9, 1)):
            facts = self.but(self.ksm(full_scans=scans), memory={
                'total_mib': total, 'slab_unreclaimable_mib': slab})
            self.check('ksm-slab', expected, facts)


class MemoryTest(audited.Case):
    def test_guests_with_normal_pages_need_transparent_huge_pages(self):
        small = profiles.build({'page_size': '4K'}, 'profile')
        for choice, expected in (('never', 1), ('madvise', 0), ('always', 0),
                                 (None, 0)):
            self.check('thp', expected, profile=small, memory={'thp': choice})
        self.check('thp', 0, memory={'thp': 'never'})

    def test_without_a_profile_huge_pages_say_which_guests_have(self):
        self.check('thp', 0, profile=None, memory={'thp': 'never'})
        self.check('thp', 1, profile=None,
                   memory={'thp': 'never', 'huge_pages': ()})

    def test_faults_must_not_wait_for_compaction(self):
        self.check('thp', 1, memory={'thp_defrag': 'always'})
        self.check('thp', 0, memory={'thp_defrag': 'defer'})
        self.check('thp', 0, memory={'thp': 'never', 'thp_defrag': 'always'})

    def test_numa_balancing(self):
        for mode, expected in ((0, 0), (1, 1), (2, 0), (3, 1), (None, 0)):
            self.check('numa-balancing', expected,
                       memory={'numa_balancing': mode})
        item, = (item for item in audit.audit(self.but(
            memory={'numa_balancing': 3})).findings
            if item.code == 'numa-balancing')
        self.assertEqual('sysctl kernel.numa_balancing=2', item.change[0])
        self.check('numa-balancing', 0, ONE_CELL, profile=None,
                   memory={'numa_balancing': 1})

    def test_numa_balancing_places_guests_that_float(self):
        balanced = self.but(memory={'numa_balancing': 1})
        self.check('numa-balancing', ['warning'], balanced)
        for options, expected in (
                ({}, ['note']), ({SHARED: None}, ['warning']),
                ({DEDICATED: None}, []),
                ({DEDICATED: None, SHARED: None}, [])):
            self.check('numa-balancing', expected, balanced, None,
                       nova=options)

    def test_the_tiering_of_memory_is_not_ended(self):
        tiers = audited.replace(audited.GOOD, host=hosts.build(
            2, 4, 2, memory_only=1))
        for mode, expected in ((1, 'sysctl kernel.numa_balancing=2'),
                               (3, 'sysctl kernel.numa_balancing=2')):
            item, = (item for item in audit.audit(self.but(
                tiers, memory={'numa_balancing': mode})).findings
                if item.code == 'numa-balancing')
            self.assertEqual(expected, item.change[0])
        self.check('numa-balancing', [], tiers, None,
                   memory={'numa_balancing': 2})

    def test_numad(self):
        facts = self.but(kernel={'programs': frozenset({'numad'})})
        self.assertEqual([('warning', 'numad runs')],
                         self.found('numad', facts))

    def test_swap(self):
        most = memory.MAX_SWAP_USED_MIB
        self.check('swap', 0, memory={'swap_used_mib': most})
        self.check('swap', 1, memory={'swap_used_mib': most + 1})

    def test_swappiness(self):
        most = memory.MAX_SWAPPINESS
        self.check('swappiness', 0, memory={'swappiness': most})
        self.check('swappiness', 1, memory={'swappiness': most + 1})
        self.check('swappiness', 0,
                   memory={'swappiness': 60, 'swap_total_mib': 0})

    def test_each_cell_has_half_of_what_the_host_keeps(self):
        for left, expected in ((1024, 0), (1023, 1)):
            self.check('host-memory', expected,
                       memory={'available_mib': {0: left, 1: 4096}})
        more = profiles.build({'host_reserve_mib_per_cell': 8192}, 'profile')
        for left, expected in ((4096, 0), (4095, 1)):
            self.check('host-memory', expected, profile=more,
                       memory={'available_mib': {0: 9999, 1: left}})


DEDICATED = ('compute', 'cpu_dedicated_set')
SHARED = ('compute', 'cpu_shared_set')
