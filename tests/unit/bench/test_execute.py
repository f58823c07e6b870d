# SPDX-License-Identifier: Apache-2.0

import itertools
import unittest
from unittest import mock

import hypothesis
import paramiko
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.execute import ssh
from tests.builders import places

MPIRUN = ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'core',
          'hpcc')


class BoundTest(unittest.TestCase):
    def test_ranks_bind_themselves_instead_of_mpirun(self):
        self.assertEqual(
            ('mpirun', '-np', '4', '--map-by', 'numa', '--bind-to', 'none',
             'sh', './bind', 'hpcc'), cpu_affinity.bind_ranks(MPIRUN))

    def test_a_command_that_binds_nothing_is_unchanged(self):
        command = ('mpirun', '-np', '4', '--bind-to', 'none', 'hpcc')
        self.assertEqual(command, cpu_affinity.bind_ranks(command))


OLD, NEW = paramiko.ECDSAKey.generate(), paramiko.RSAKey.generate(2048)
BEGIN = '-----BEGIN SSH HOST KEY KEYS-----'
END = '-----END SSH HOST KEY KEYS-----'


def line(key: paramiko.PKey) -> str:
    return f'{key.get_name()} {key.get_base64()}'


class ConsoleTest(unittest.TestCase):
    def read(self, *lines: str) -> list[paramiko.PKey]:
        return list(host_keys.parse_console('\r\n'.join(lines)))

    def test_the_keys_of_cloud_init_are_read(self) -> None:
        self.assertEqual([OLD, NEW], self.read(
            '[   12.3] cloud-init[700]: done', f'<14>{BEGIN}',
            f'{line(OLD)} root@hpc-1', f'cloud-init[7]: {line(NEW)}', END,
            'login: '))

    def test_the_last_boot_counts(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, line(OLD), END, 'booting', BEGIN, line(NEW), END))

    def test_what_is_not_finished_does_not_count(self) -> None:
        self.assertEqual([OLD], self.read(
            BEGIN, line(OLD), END, BEGIN, line(NEW)[:50]))

    def test_keys_elsewhere_do_not_count(self) -> None:
        self.assertEqual([], self.read(line(NEW), BEGIN, END, line(NEW)))

    def test_damaged_keys_do_not_count(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, line(OLD)[:60], 'ssh-rsa AAAA', 'ssh-rsa !', 'ssh-x AAAAB3',
            line(NEW), END))


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


class Place:
    """Raises the errors, one for each command, then answers."""

    name = 'ssh://n17'

    def __init__(self, *errors):
        self._errors = list(errors)
        self.commands = []

    def run(self, argv, stdin=b'', timeout_s=executor.SHORT_S):
        self.commands.append((list(argv), stdin, timeout_s))
        if self._errors:
            raise self._errors.pop(0)
        return executor.Completed(0, b'done', b'')


class RetryingExecutorTest(unittest.TestCase):
    """What is repeated at a place that does not answer, and what is not."""

    def setUp(self):
        self.enterContext(mock.patch.object(executor, 'PAUSE_S', 0.01))

    def test_a_command_is_repeated_as_it_was(self):
        place = Place(*[exception.ConnectionLost('no route')] * 2)
        done = executor.RetryingExecutor(place).run(['cat'], b'x', 7)
        self.assertEqual(b'done', done.stdout)
        self.assertEqual([(['cat'], b'x', 7)] * 3, place.commands)

    def test_what_would_be_no_better_the_next_time_is_run_once(self):
        for error in (exception.TimedOut('too slow'),
                      exception.NotInstalled('no cat'),
                      exception.Unreachable('the host key differs'),
                      exception.InvalidInput('x', 'is bad')):
            place = Place(error)
            with self.assertRaises(type(error)):
                executor.RetryingExecutor(place).run(['cat'])
            self.assertEqual(1, len(place.commands))

    def test_patience_ends(self):
        place = Place(*[exception.ConnectionLost('no route')] * 1000)
        with self.assertRaisesRegex(exception.ConnectionLost, 'no route'):
            executor.RetryingExecutor(place, 0.05).run(['cat'])
        self.assertLess(len(place.commands), 1000)

    def test_the_name_is_that_of_the_place(self):
        self.assertEqual('ssh://n17', executor.RetryingExecutor(Place()).name)


class URLTest(unittest.TestCase):
    """URLs of SSH, and what is refused in them."""

    def test_what_is_not_an_ssh_url_is_refused(self):
        for url in ('http://host', 'ssh://', 'ssh://h:x', 'ssh://h:99999',
                    'ssh://h/path', 'ssh://u:p@h', 'ssh://h?color=red',
                    'ssh://h?key=/does/not/exist', 'ssh://[::1',
                    'ssh://u:@h', 'ssh://[x]:y', 'ssh://u:pa55@h:x',
                    'ssh:/u:pa55@h'):
            with self.subTest(url):
                with self.assertRaises(exception.InvalidInput) as caught:
                    ssh.SSHExecutor.from_url(url)
                self.assertNotIn('pa55', str(caught.exception))

    def test_the_name_leaves_out_the_key(self):
        place = ssh.SSHExecutor.from_url(f'ssh://me@n17:2222?key={__file__}')
        self.assertEqual('ssh://me@n17:2222', place.name)
