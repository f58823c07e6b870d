# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import host
from hpcvirt.model import quarantine
from hpcvirt.model import shape
from tests.builders import machines
from tests.builders import wired


class GroupTwinsTest(unittest.TestCase):
    def test_twins_may_differ_in_names_and_present_links(self) -> None:
        first, other = wired.host(), wired.host()
        self.assertEqual([[first, dataclasses.replace(
            other, name='n2', wiring=None)]], host.group_twins((
                first, dataclasses.replace(other, name='n2', wiring=None))))
        self.assertEqual(2, len(host.group_twins((
            first, dataclasses.replace(other, devices=())))))


class ParseTest(unittest.TestCase):
    def test_ranges_numbers_and_blanks(self) -> None:
        for text, cpus in {
                '': set(), ' \n': set(), '0': {0}, '0-3': {0, 1, 2, 3},
                '0-1,8': {0, 1, 8}, ' 0 - 1 , 8\n': {0, 1, 8},
                '5-5': {5}, '0-3,2-4': {0, 1, 2, 3, 4},
                '007': {7}, '0000000000000000012': {12}}.items():
            self.assertEqual(cpus, cpuset.parse(text), text)

    def test_a_caret_excludes_cpus_at_any_position(self) -> None:
        for text, cpus in {'0-3,^2': {0, 1, 3}, '^2,0-3': {0, 1, 3},
                           '0-7,^1-6': {0, 7}, '0,^0': set(),
                           '0-3, ^ 2': {0, 1, 3}, '^5': set()}.items():
            self.assertEqual(cpus, cpuset.parse(text), text)

    def test_anything_else_is_refused_and_named(self) -> None:
        for text in ('a', '1,', ',1', '1-', '-1', '1--2', '0x3', '1.5', '^',
                     '3-1', '65536', '0-65536', '0-99999999999999', '1;2',
                     '\u0663', '1 2', '0-3,^', '^^1'):
            with self.assertRaises(exception.InvalidInput, msg=text) as got:
                cpuset.parse(text, 'node0/cpulist')
            self.assertEqual('node0/cpulist', got.exception.where)

    def test_the_highest_cpu_is_read(self) -> None:
        self.assertEqual(65536, len(cpuset.parse('0-65535')))

    def test_many_large_ranges_are_read_quickly(self) -> None:
        text = ','.join(['0-65535'] * 40000)
        self.assertEqual(65536, len(cpuset.parse(text)))

    def test_a_text_that_is_too_long_is_refused(self) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, 'too long'):
            cpuset.parse('1,' * 300_000 + '1')


class RenderTest(unittest.TestCase):
    def test_consecutive_cpus_become_ranges(self) -> None:
        for cpus, text in ((set(), ''), ({3}, '3'), ({0, 1}, '0-1'),
                           ({0, 2}, '0,2'), ([8, 2, 1, 0, 8], '0-2,8'),
                           ({0, 1, 2, 8, 9, 11}, '0-2,8-9,11')):
            self.assertEqual(text, cpuset.render(cpus))

    def test_rendered_sets_are_parsed_back(self) -> None:
        dice = random.Random(1)
        for _ in range(500):
            cpus = frozenset(dice.sample(range(300), dice.randint(0, 300)))
            self.assertEqual(cpus, cpuset.parse(cpuset.render(cpus)))


class CellTest(unittest.TestCase):
    def test_threads_per_core_is_the_maximum_of_the_cores(self) -> None:
        for cores, threads in (((), 1), (((0,), (1,)), 1),
                               (((0, 1), (2,)), 2)):
            self.assertEqual(
                threads, machines.cell(0, *cores).threads_per_core)

    def test_a_pool_is_found_by_its_page_size(self) -> None:
        cell = machines.cell(0, (0,), huge=((2048, 3), (1048576, 1)))
        self.assertEqual(host.PagePool(2048, 3), cell.pool(2048))
        self.assertIsNone(cell.pool(64))

    def test_the_memory_of_a_pool_is_rounded_down(self) -> None:
        self.assertEqual(6, host.PagePool(2048, 3).memory_mib)
        self.assertEqual(3, host.PagePool(4, 1023).memory_mib)


class HostTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), socket=1),
            machines.cell(2, (2, 6), socket=0), machines.cell(7, socket=None))

    def test_cpus_are_those_of_all_cells(self) -> None:
        self.assertEqual({0, 1, 2, 4, 5, 6}, self.host.cpus)

    def test_cells_are_found_by_their_number(self) -> None:
        self.assertEqual({0, 2, 7}, set(self.host.by_id))
        self.assertIs(self.host.cells[1], self.host.by_id[2])

    def test_sockets_are_listed_once_and_in_order(self) -> None:
        self.assertEqual((0, 1), self.host.sockets)

    def test_threads_per_core_is_the_maximum_of_the_cells(self) -> None:
        self.assertEqual(2, self.host.threads_per_core)


WORDS = st.text(min_size=1, max_size=60)
NAMES = st.from_regex(r'[a-z0-9.@-]{1,60}', fullmatch=True)


class QuarantineTest(unittest.TestCase):
    """The metadata by which an aggregate describes quarantine."""

    def read(self, hold, host='node7'):
        found, = quarantine.read_holds(host, [{
            quarantine.MARK: hold.holder,
            quarantine.key(host): quarantine.entry(hold)}])
        return found

    @hypothesis.given(NAMES, WORDS, NAMES)
    def test_what_is_written_is_read(self, host, reason, by):
        hold = quarantine.Hold('watch', reason, '2026-01-02T03:04:05Z', by)
        self.assertEqual(hold, self.read(hold, host))

    def test_a_long_reason_fits_into_a_value(self):
        hold = quarantine.Hold('watch', 'x' * 999, '2026', 'me')
        self.assertEqual(255, len(quarantine.entry(hold)))
        self.assertEqual('2026', self.read(hold).since)
        self.assertTrue(self.read(hold).reason.endswith('x...'))

    def test_the_reasons_of_other_hosts_and_aggregates_do_not_count(self):
        hold = quarantine.Hold('watch', 'why', '2026', 'me')
        metadata = {quarantine.MARK: 'watch',
                    quarantine.key('node70'): quarantine.entry(hold)}
        found, = quarantine.read_holds('node7', [{}, metadata])
        self.assertEqual('no reason is given', found.reason)
        self.assertEqual((), quarantine.read_holds('node70', [
            {quarantine.key('node70'): quarantine.entry(hold)}]))

    def test_what_a_person_writes_into_the_metadata_is_the_reason(self):
        found, = quarantine.read_holds('a', [{
            quarantine.MARK: 'operator', quarantine.key('a'): 'hands off'}])
        self.assertEqual('operator: hands off', found.sentence)

    def test_all_holders_are_named(self):
        self.assertEqual('operator since 2026 by me: a; watch: b',
                         quarantine.sentence([
                             quarantine.Hold('operator', 'a', '2026', 'me'),
                             quarantine.Hold('watch', 'b')]))


class ShapeTest(unittest.TestCase):
    def test_cpus_and_memory_are_those_of_all_cells(self) -> None:
        threads = shape.EmulatorThreads
        for emulator, cells, numbers in (
                (None, ((4, 1), (2, 0)), (7, 6, 1024)),
                # Isolated emulator threads need one PCPU for the guest.
                (threads.ISOLATE, ((4, 1), (2, 0)), (7, 7, 1024)),
                (threads.SHARE, ((4, 0),), (4, 4, 512)),
                # Without dedicated vCPUs they isolate nothing.
                (threads.ISOLATE, ((0, 4),), (4, 0, 512))):
            guest = shape.Shape(
                tuple(shape.GuestCell(*cpus, 512) for cpus in cells),
                shape.CPUPolicy.MIXED, emulator_threads=emulator)
            self.assertEqual(
                numbers, (guest.cpus, guest.pcpus, guest.memory_mib))
