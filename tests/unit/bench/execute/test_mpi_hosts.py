# SPDX-License-Identifier: Apache-2.0

import itertools
from unittest import mock

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.execute import mpi_hosts
from tests.builders import places


class TestSlots(testtools.TestCase):
    def test_ranks_fill_machines_evenly(self):
        self.assertEqual((8, 8), mpi_hosts.slots(16, [8, 8]))
        self.assertEqual((1, 1), mpi_hosts.slots(2, [8, 8]))
        self.assertEqual((6, 5, 5), mpi_hosts.slots(16, [8, 8, 8]))
        self.assertEqual((8, 4), mpi_hosts.slots(12, [8, 4]))

    @hypothesis.settings(max_examples=40)
    @hypothesis.given(strategies.integers(1, 9),
                      strategies.lists(strategies.integers(1, 8),
                                       min_size=1, max_size=3))
    def test_no_other_distribution_has_a_lower_maximum(self, ranks, cpus):
        try:
            counts = mpi_hosts.slots(ranks, cpus)
        except exception.InvalidInput:
            # A small machine among large ones may be left without a rank;
            # of equal ones none is, if there are ranks enough.
            assert len(set(cpus)) > 1 or ranks < len(cpus)
            return
        assert sum(counts) == ranks

        def fullest(shares):
            return max(share / cpu for share, cpu
                       in zip(shares, cpus, strict=True))
        ways = (way for way in itertools.product(range(ranks + 1),
                                                 repeat=len(cpus))
                if sum(way) == ranks)
        assert fullest(counts) - min(map(fullest, ways)) <= 1 / min(cpus)

    @hypothesis.given(strategies.lists(strategies.integers(1, 128),
                                       min_size=1, max_size=6))
    def test_as_many_ranks_as_cpus_are_one_on_each(self, cpus):
        assert mpi_hosts.slots(sum(cpus), cpus) == tuple(cpus)


class TestProbe(testtools.TestCase):
    def probe(self, **changes):
        """Probe a machine with other values."""
        values = {'cpus': '0-7', 'online': '0-7', 'memory': '16777216',
                  'size': '16384K', 'level': '3', **changes}
        files = {
            machine_facts.STATUS: f'Cpus_allowed_list:\t{values["cpus"]}',
            machine_facts.CPUS_ONLINE: values['online'],
            machine_facts.MEMORY: f'MemTotal: {values["memory"]} kB',
            'sys/devices/system/node/node0/cpulist': '0-3',
            'sys/devices/system/node/node1/cpulist': '4-7',
            # A cell with memory alone.
            'sys/devices/system/node/node2/cpulist': ''}
        for number in range(4):
            files[f'proc/driver/nvidia/gpus/{number}/information'] = 'H200'
        for number, (level, kind, size, cpus) in enumerate((
                ('1', 'Instruction', '32K', '0'), ('1', 'Data', '32K', '0'),
                ('2', 'Unified', '512K', '0'),
                (values['level'], 'Unified', values['size'], '0-3'),
                # Each CPU shows it.
                (values['level'], 'Unified', values['size'], '0-3'),
                (values['level'], 'Unified', values['size'], '4-7'))):
            here = f'sys/devices/system/cpu/cpu0/cache/index{number}'
            files.update({f'{here}/level': level, f'{here}/type': kind,
                          f'{here}/size': size,
                          f'{here}/shared_cpu_list': cpus})
        place = mock.Mock(spec_set=executor.Executor)
        place.name = 'a guest'
        place.run.return_value = executor.Completed(
            0, places.print_files(files), b'')
        return mpi_hosts.probe(place)

    def test_the_sizes_are_those_of_the_last_cache(self):
        self.assertEqual(sizing.Machine(8, 16384, 2, 32768, 4), self.probe())

    def test_cpus_that_are_only_possible_do_not_count(self):
        self.assertEqual(8, self.probe(cpus='0-63').cpus)
        self.assertEqual(4, self.probe(cpus='4-7', online='0-63').cpus)

    def test_several_machines_have_the_sum_of_their_sizes(self):
        found = self.probe()
        self.assertEqual(sizing.Machine(16, 32768, 4, 65536, 8, 2),
                         mpi_hosts.whole([found, found]))
        unknown = sizing.Machine(8, 16384)
        self.assertIsNone(mpi_hosts.whole([found, unknown]).gpus)

    def test_no_answer_of_a_guest_is_more_than_an_error(self):
        for changes in (
                {'memory': '9' * 400}, {'memory': '9' * 5000},
                {'size': f'{"9" * 400}K'}, {'cpus': ''}, {'cpus': '-1'},
                {'cpus': '9' * 400}, {'online': 'x'}, {'memory': ''},
                {'size': '-1K'}, {'level': 'x'}, {'cpus': '64-71'}):
            error = self.assertRaises(exception.Unreachable, self.probe,
                                      **changes)
            self.assertIn('cannot count its CPUs', str(error))


class TestHosts(testtools.TestCase):
    def test_a_single_machine_needs_no_list(self):
        self.assertEqual((), mpi_hosts.hosts(['a'], [4], ['X']))

    def test_the_options_are_those_of_open_mpi(self):
        self.assertEqual(
            ('--host', 'a:4,10.0.0.6:2', '-x', 'OMP_NUM_THREADS'),
            mpi_hosts.hosts(['a', '10.0.0.6'], [4, 2], ['OMP_NUM_THREADS']))


class TestReach(testtools.TestCase):
    def test_each_machine_is_tried(self):
        place = places.Machine('a')
        mpi_hosts.reach(place, ['b', 'c'])
        self.assertEqual([['b', 'true'], ['c', 'true']],
                         [argv[-2:] for argv, _ in place.commands])
