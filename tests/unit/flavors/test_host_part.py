# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from tests.builders import hosts
from tests.builders import refusals

SMALL = profiles.Profile(smallest_cores=1, memory_step_mib=64)


def plan(host, cpus=None, *pages):
    return planner.plan([host], SMALL, host_part.build(cpus, pages))


class PagesTest(unittest.TestCase):
    def test_every_form_is_read(self):
        for text, expected in (
                ('2M', (None, 2048, None, None)),
                ('2M:1024', (None, 2048, 1024, None)),
                ('3:1G:4', (3, 1 << 20, 4, None)),
                ('3:1GiB:4', (3, 1 << 20, 4, None)),
                ('2mb', (None, 2048, None, None)),
                ('4K:50%', (None, 4, None, 50)),
                ('1:64K', (1, 64, None, None))):
            self.assertEqual(expected,
                             dataclasses.astuple(host_part.pages(text)))

    def test_anything_else_is_refused(self):
        for text in ('', '2', '2M:', ':2M', '2M:-1', '2M:1.5', '0M',
                     '2M:101%', 'x:2M:1', '1:2:2M', '2M:1 ', '2T:1',
                     '2M:99999999999', '\u0662M'):
            with self.assertRaisesRegex(exception.InvalidInput, '--pages',
                                        msg=text):
                host_part.pages(text)

    def test_one_size_and_each_cell_once(self):
        for pages, message in ((('2M:1', '1:1G:1'), 'several page sizes'),
                               (('2M:1', '2M:2'), 'twice for every cell'),
                               (('1:2M', '1:2M:4'), 'twice for cell 1')):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                host_part.build(None, pages)

    def test_a_list_without_cpus_is_refused(self):
        for text in ('', ' ', '0-3,^0-3'):
            with self.assertRaisesRegex(exception.InvalidInput, '--cpus'):
                host_part.build(text, ())
        with self.assertRaisesRegex(exception.InvalidInput, '--cpus'):
            host_part.build('all', ())


class CheckTest(unittest.TestCase):
    def assert_refused(self, message, host, cpus=None, *pages):
        part = host_part.build(cpus, pages)
        self.assertRegex(
            refusals.message(self, host_part.check, host, part), message)

    def test_cpus_and_cells_that_the_host_lacks(self):
        host = hosts.build(cells=2, cores=4)
        self.assert_refused('no CPU 8-9, ', host, '6-9')
        self.assert_refused('no cell 2, ', host, None, '2:2M:1')
        self.assert_refused('cell 1, where guests have no CPUs', host, '0-3',
                            '1:2M:1')

    def test_split_siblings_are_refused_and_whole_cores_are_not(self):
        host = hosts.build(cells=1, cores=4, threads=2)
        self.assert_refused('CPU 1 but not its SMT sibling 5', host, '0-1,4')
        host_part.check(host, host_part.build('0-1,4-5', ()))

    def test_no_more_pages_than_memory(self):
        host = hosts.build(cells=2, mib=1024)
        host_part.check(host, host_part.build(None, ['2M:512']))
        self.assert_refused('takes 1026 MiB of cell 0, which has 1024 MiB',
                            host, None, '2M:513')
        self.assert_refused('takes 1026 MiB of cell 1', host, None,
                            '0:2M:1', '1:2M:513')

    def test_pages_that_are_not_set_aside_need_a_number(self):
        self.assert_refused('SIZE:COUNT', hosts.build(), None, '2M')


class PlanTest(unittest.TestCase):
    def test_guests_tile_the_cpus_and_the_pages(self):
        found = plan(hosts.build(cells=2, cores=8), '2-5,10-13', '2M:1024')
        (host,) = found.hosts
        self.assertEqual('2-5,10-13', cpuset.render(host.settings.dedicated))
        self.assertEqual({0: 1024, 1: 1024}, {
            cell: pages[2048] for cell, pages in host.settings.pages.items()})
        self.assertEqual({(1, 8, 512), (2, 4, 1024), (4, 2, 2048),
                          (8, 1, 4096), (6, 1, 3072)}, {
            (row.flavor.vcpus, row.per_host['host'], row.flavor.ram_mib)
            for row in found.flavors})

    def test_the_host_keeps_the_rest_of_the_memory(self):
        found = plan(hosts.build(cells=1, cores=4, mib=8192), None, '2M:1024')
        # Four guests of 512 MiB have the most emulator memory.
        emulators = 4 * (234 + 8 + 1.024)
        self.assertEqual(int(8192 - 2048 - emulators),
                         found.hosts[0].settings.reserved_host_memory_mb)

    def test_a_cell_that_is_not_named_gives_no_memory(self):
        found = plan(hosts.build(cells=2, cores=4), None, '1:2M:1024')
        self.assertEqual('4-7', cpuset.render(
            found.hosts[0].settings.dedicated))
        self.assertIn('cell 0 has 0 MiB for guests',
                      ' '.join(item.message for item in found.warnings))

    def test_one_cell_may_give_more_than_the_others(self):
        part = host_part.build(None, ['2M:100', '1:2M:200'])
        self.assertEqual([100 * 2048, 200 * 2048], [
            part.memory_kib(cell) for cell in hosts.build(cells=2).cells])

    def test_a_share_of_the_memory_in_normal_pages(self):
        found = plan(hosts.build(cells=1, cores=4, mib=4096), None, '4K:50%')
        self.assertEqual({2048}, {
            row.flavor.ram_mib * row.per_host['host']
            for row in found.flavors if row.flavor.vcpus != 3})
        self.assertEqual({4}, {row.guest.cells[0].page_kib
                               for row in found.flavors})

    def test_the_pages_that_the_host_has_now(self):
        host = hosts.build(cells=1, cores=4, mib=8192)
        cell = dataclasses.replace(host.cells[0], pages=(
            host_model.PagePool(4, 1024 * 256),
            host_model.PagePool(2048, 3584)))
        found = plan(dataclasses.replace(host, cells=(cell,)), None, '2M')
        self.assertEqual(3584, found.hosts[0].settings.pages[0][2048])

    def test_the_size_of_the_pages_is_that_of_the_part(self):
        found = plan(hosts.build(), None, '1G:8')
        self.assertEqual({1 << 20}, {row.guest.cells[0].page_kib
                                     for row in found.flavors})
        with self.assertRaisesRegex(exception.InvalidInput, 'no pages of 2m'):
            plan(hosts.build(small_kib=64), None, '2M:64')

    def test_all_cpus_of_the_host_are_the_whole_host(self):
        host = hosts.build(threads=2)
        whole = planner.plan([host], SMALL)
        named = plan(host, cpuset.render(host.cpus))
        self.assertEqual(whole.flavors, named.flavors)
        self.assertEqual(whole.hosts[0].settings, named.hosts[0].settings)
