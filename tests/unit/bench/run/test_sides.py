# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import record
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import sides
from tests.builders import targets


def jobs(pairs, name, *settings):
    (wanted,) = run_request.find([name], run_request.read_settings(
        ['source=/opt/stream.c', *settings], '--set'))
    return sides.jobs(pairs, wanted)


def numactl(cpus):
    return ('numactl', f'--physcpubind={cpus}', '--localalloc', 'env')


class PairTest(unittest.TestCase):
    def test_guests_of_one_name_are_numbered(self):
        pairs = sides.pair([targets.guest('vm'), targets.guest('vm')])
        self.assertEqual(['vm-1', 'vm-2'],
                         [pair.guest.label for pair in pairs])

    def test_cpus_are_those_of_the_pins_unless_they_are_given(self):
        guests = [targets.guest('a', host_cpus=frozenset({2, 3})),
                  targets.guest('b', host_cpus=None)]
        self.assertEqual([{2, 3}, None],
                         [pair.cpus for pair in sides.pair(guests)])
        pairs = sides.pair(guests, cpus=[frozenset({0}), frozenset({1})])
        self.assertEqual([{0}, {1}], [pair.cpus for pair in pairs])

    def test_sizes_add_up(self):
        pairs = sides.pair([targets.guest('a', 4), targets.guest('b', 4)])
        self.assertEqual(sizing.Machine(8, 8192, 2, None, 0, 2),
                         sides.whole(pairs))
        self.assertEqual('2x4', sides.instances(pairs))

    def test_guests_that_differ_have_no_common_shape(self):
        self.assertEqual('', sides.instances(sides.pair(
            [targets.guest('a', 4), targets.guest('b', 8)])))

    def test_a_host_without_a_name_in_the_cloud_names_itself(self):
        known, unknown = sides.pair(
            [targets.guest('a', host='n17'), targets.guest('b')],
            [targets.native(), targets.native()])
        self.assertEqual('n17', known.host)
        self.assertEqual('host-kernel', unknown.host)


class JobsInStepTest(unittest.TestCase):
    def test_without_a_native_target_there_is_one_arm(self):
        found = jobs(sides.pair([targets.guest()]), 'stream')
        self.assertEqual([record.Side.GUEST], list(found))

    def test_each_guest_has_a_native_copy_of_its_size_on_its_cpus(self):
        pairs = sides.pair(
            [targets.guest('a', 2, frozenset({0, 1})),
             targets.guest('b', 4, frozenset({4, 5, 6, 7}))],
            [targets.native(), targets.native()])
        found = jobs(pairs, 'stream')
        guests, natives = (found[record.Side.GUEST], found[record.Side.NATIVE])
        self.assertEqual(['2', '4'],
                         [job.run.values['threads'] for job in guests])
        self.assertEqual([job.run for job in guests],
                         [job.run for job in natives])
        self.assertEqual([numactl('0-1'), numactl('4-7')],
                         [job.command[:4] for job in natives])
        self.assertEqual(['a', 'b'], [job.label for job in natives])
        self.assertNotIn('numactl', guests[0].command)

    def test_without_known_cpus_the_native_copy_is_not_confined(self):
        found = jobs(sides.pair([targets.guest(host_cpus=None)],
                                [targets.native()]), 'stream')
        (job,) = found[record.Side.NATIVE]
        self.assertEqual((), job.target.prefix)


class JobsThatSpanTest(unittest.TestCase):
    def pairs(self, natives):
        return sides.pair(
            [targets.guest('a', 4, frozenset(range(4))),
             targets.guest('b', 8, frozenset(range(8, 16)))], natives)

    def test_one_job_has_the_ranks_of_all_guests(self):
        found = jobs(self.pairs([]), 'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=6')
        (job,) = found[record.Side.GUEST]
        self.assertIn('--host a-kernel:2,b.net:4', ' '.join(job.command))
        self.assertEqual(['a', 'b'], [target.label for target in job.targets])

    def test_one_host_has_all_ranks_on_the_cpus_of_all_guests(self):
        found = jobs(self.pairs([targets.native(), targets.native()]),
                     'npb-ep/mpi', 'npb_mpi=/opt')
        (job,) = found[record.Side.NATIVE]
        self.assertEqual((), job.others)
        self.assertNotIn('--host', job.command)
        self.assertEqual(numactl('0-3,8-15'), job.command[:4])
        self.assertTrue(job.binds_ranks)
        self.assertFalse(found[record.Side.GUEST][0].binds_ranks)

    def test_two_hosts_are_spanned_as_the_guests_are(self):
        found = jobs(self.pairs([targets.native('x'), targets.native('y')]),
                     'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=6')
        (job,) = found[record.Side.NATIVE]
        self.assertIn('--host x-kernel:2,y.net:4', ' '.join(job.command))
        self.assertEqual([frozenset(range(4)), frozenset(range(8, 16))],
                         [target.cpus for target in job.targets])

    def test_cpus_of_one_guest_that_are_unknown_confine_none(self):
        pairs = sides.pair(
            [targets.guest('a'), targets.guest('b', host_cpus=None)],
            [targets.native(), targets.native()])
        (job,) = jobs(pairs, 'npb-ep/mpi', 'npb_mpi=/opt')[record.Side.NATIVE]
        self.assertEqual(frozenset(), job.target.cpus)
        self.assertFalse(job.binds_ranks)

    def test_each_guest_has_a_rank_for_each_of_its_gpus(self):
        pairs = [dataclasses.replace(pair, size=dataclasses.replace(
            pair.size, gpus=gpus)) for pair, gpus
            in zip(self.pairs([targets.native(), targets.native()]), (4, 2),
                   strict=True)]
        found = jobs(pairs, 'nccl-tests', 'nccl=/opt')
        (job,) = found[record.Side.GUEST]
        self.assertIn('-np 6 --host a-kernel:4,b.net:2 ',
                      ' '.join(job.command))
        self.assertEqual(('6', '2'), (job.run.expect['gpus'],
                                      job.run.expect['hosts']))
        (job,) = found[record.Side.NATIVE]
        self.assertEqual(('6', '1'), (job.run.expect['gpus'],
                                      job.run.expect['hosts']))

    def test_gpus_that_were_not_found_need_their_number(self):
        pairs = self.pairs([])
        with self.assertRaisesRegex(exception.InvalidInput, 'no GPU was'):
            jobs(pairs, 'nccl-tests', 'nccl=/opt')
        (job,) = jobs(pairs, 'nccl-tests', 'nccl=/opt',
                      'ranks=8')[record.Side.GUEST]
        self.assertIn('--host a-kernel:4,b.net:4 ', ' '.join(job.command))

    def test_each_machine_has_the_command_for_its_own_cpus(self):
        pairs = self.pairs([targets.native('x'), targets.native('y')])
        (job,) = jobs(pairs, 'perftest')[record.Side.NATIVE]
        for target, cpus in zip(job.targets, ('0-3', '8-15'), strict=True):
            command = job.command_on(target)
            self.assertEqual(numactl(cpus), command[:4])
            self.assertEqual(('sh', './pair', 'none', '--host',
                              'x-kernel:1,y.net:1', 'ib_write_bw'),
                             command[4:10])

    def test_fewer_ranks_than_guests_are_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'span 2'):
            jobs(self.pairs([]), 'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=1')
