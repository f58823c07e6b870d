# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.execute import reboot
from hpcvirt.model import cpuset
from tests.builders import folders
from tests.builders import places
from tests.integration.bench import executor_tests
from tests.integration.bench import rebooting

READ = machine_facts.READ
SOFTWARE = environment.SOFTWARE


class ConfinementTest(unittest.TestCase):
    """Confining native runs to CPUs with the programs that a place has."""

    def setUp(self):
        super().setUp()
        self.programs = folders.make(self)
        self._have('sh', 'true')
        path = mock.patch.dict(os.environ, PATH=str(self.programs))
        path.start()
        self.addCleanup(path.stop)
        self.cpu = frozenset([min(os.sched_getaffinity(0))])

    def _have(self, *names):
        for name in names:
            (self.programs / name).symlink_to(shutil.which(name))

    def test_taskset_where_there_is_no_numactl(self):
        with mock.patch.dict(os.environ, PATH=os.defpath):
            self._have('taskset')
        (cpu,) = self.cpu
        self.assertEqual(('taskset', '-c', str(cpu)),
                         cpu_affinity.confine(local.LocalExecutor(), self.cpu))

    def test_without_either_program_the_error_names_it(self):
        with self.assertRaisesRegex(exception.Unreachable, 'taskset'):
            cpu_affinity.confine(local.LocalExecutor(), self.cpu)

    def test_unknown_cpus_confine_nothing(self):
        self.assertEqual((), cpu_affinity.confine(local.LocalExecutor(), None))


class EnvironmentTest(unittest.TestCase):
    def capture(self, *command):
        return self.environments.capture(self.place, command).facts

    def setUp(self):
        self.environments = environment.Environments()
        self.place = Counting()

    def test_kernel_and_memory_of_this_machine_are_captured(self):
        facts = self.capture()
        self.assertEqual(os.uname().release, facts['kernel'])
        total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        self.assertEqual(total // 1024, int(facts['memory.total_kib']))
        self.assertIn(facts['virtual'], ('yes', 'no'))

    def test_no_fact_is_empty_or_has_a_second_line(self):
        for name, value in self.capture('sh').items():
            with self.subTest(name):
                self.assertTrue(value)
                self.assertNotIn('\n', value)

    def test_load_of_this_machine_is_captured(self):
        load = environment.load(local.LocalExecutor())
        self.assertGreaterEqual(float(load['load']), 0)
        self.assertGreater(float(load['uptime_s']), 0)

    def test_stolen_and_waited_time_are_shares_of_the_time_between(self):
        before = {'load': '0.10', 'ticks': '100 0 50 800 10 0 0 40 0 0'}
        after = {'load': '0.90', 'ticks': '150 0 50 820 20 0 0 60 0 0'}
        change = environment.describe_load(before, after)
        self.assertEqual({'load.before': '0.10', 'load.after': '0.90',
                          'iowait_percent': '10.00',
                          'steal_percent': '20.00'}, change)

    def test_without_counters_there_are_no_shares(self):
        change = environment.describe_load({'load': '1'}, {'load': '2'})
        self.assertEqual({'load.before': '1', 'load.after': '2'}, change)

    def make_program(self, text):
        """Replace a program, as packages do."""
        draft = self.program.with_name('draft')
        draft.write_text(f'#!/bin/sh\n# {text}\n')
        draft.chmod(0o755)
        draft.rename(self.program)

    def test_programs_are_asked_once_and_when_they_are_replaced(self):
        self.program = folders.make(self) / 'my program'
        self.make_program('one')
        first = self.capture('sh', str(self.program))
        self.assertEqual(first, self.capture('sh', str(self.program)))
        self.assertEqual([SOFTWARE, READ, READ], self.place.asked)
        # Of the same size.
        self.make_program('two')
        second = self.capture('sh', str(self.program))
        self.assertEqual({'program.my program'}, {
            name for name, value in second.items() if value != first[name]})
        self.assertEqual([READ, SOFTWARE, READ], self.place.asked[3:])
        self.program.unlink()
        self.assertNotIn('program.my program',
                         self.capture('sh', str(self.program)))

    def test_programs_are_asked_again_after_a_boot(self):
        guest = rebooting.Guest()
        first = self.environments.capture(guest, ['sh']).facts
        guest.reboot()
        with mock.patch.object(environment, 'SOFTWARE',
                               'echo libc=updated\n' + SOFTWARE):
            second = self.environments.capture(guest, ['sh']).facts
            third = self.environments.capture(guest, ['sh']).facts
        self.assertEqual({'libc', 'boot_id'}, {
            name for name, value in second.items() if value != first[name]})
        self.assertEqual(second, third)


class Counting(local.LocalExecutor):
    """A place that keeps what it is asked."""

    def __init__(self):
        self.asked = []

    def run(self, argv, *more, **limits):
        self.asked.append(argv[2])
        return super().run(argv, *more, **limits)


class MachineFactsTest(unittest.TestCase):
    def test_lines_of_another_form_are_ignored(self):
        found = machine_facts.parse('Welcome!\nkernel=6.1\n\xff\xfe\n=x\n')
        self.assertEqual(['kernel'], list(found))
        self.assertEqual('6.1', found.line('kernel'))

    def test_files_are_as_they_are_on_this_machine(self):
        found = machine_facts.read(
            local.LocalExecutor(), 'proc/[s]elf/status', 'proc/cpuinfo:^',
            'proc/stat:^cpu', 'proc/no-such-file', 'proc/no-such:^x',
            'proc/sys/kernel/*name',
            'sys/class/net/*/speed', machine_facts.SIBLINGS)
        self.assertEqual('grep', found.row('proc/self/status', 'Name'))
        self.assertEqual(os.uname().nodename,
                         found.text('proc/sys/kernel/hostname'))
        self.assertEqual(os.cpu_count() + 1, len(found.lines('proc/stat')))
        # The first CPU alone.
        self.assertEqual('0', found.row('proc/cpuinfo', 'processor'))
        self.assertEqual([], [line for line in found.lines('proc/cpuinfo')
                              if not line])
        self.assertIn('stat', found.names('proc'))
        # The loopback has no speed: it cannot be read.
        self.assertEqual(os.cpu_count(),
                         len(list(found.find(machine_facts.SIBLINGS))))
        self.assertEqual([('proc/sys/kernel/hostname', os.uname().nodename)],
                         list(found.find('proc/sys/*/hostname')))

    def test_colons_of_addresses_and_of_values_are_kept(self):
        root = folders.make(self)
        files = {'sys/bus/pci/devices/0000:17:00.0/class': '0x0200:00',
                 'sys/bus/pci/devices/10000:e1:00.0/a_b': 'x: y=z: 1',
                 'proc/cmdline': 'root=/dev/0000:17:00.0/x a:b',
                 'proc/empty': ''}
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f'{content}\n')
        with mock.patch.object(machine_facts, 'READ', machine_facts.READ
                               .replace('cd /', f"cd '{root}'")):
            found = machine_facts.read(
                local.LocalExecutor(), 'sys/bus/pci/devices/*/*', 'proc/*')
        self.assertEqual(files, {name: found.text(name) for name in found})

    def test_the_size_of_an_answer_has_a_limit(self):
        with self.assertRaisesRegex(
                exception.Unreachable, 'local: its facts are longer than 16'):
            machine_facts.ask(local.LocalExecutor(),
                              'head -c 17000000 /dev/zero')

    def test_a_script_that_fails_gives_no_facts(self):
        with self.assertRaisesRegex(
                exception.Unreachable,
                '^local: its facts cannot be read: no disk$'):
            machine_facts.ask(local.LocalExecutor(),
                              'echo a=1; echo no disk >&2; exit 3')

    def test_a_shell_prints_the_same(self):
        name = machine_facts.BOOT_ID
        done = subprocess.run(['sh', '-c', machine_facts.make_command(name)],
                              check=True, text=True, capture_output=True)
        self.assertEqual(machine_facts.parse(done.stdout).line(name),
                         machine_facts.read(local.LocalExecutor(),
                                            name).line(name))


class LocalExecutorTest(executor_tests.ExecutorTests, unittest.TestCase):
    def setUp(self):
        self.place = local.LocalExecutor()

    def test_a_program_that_timed_out_runs_on_nowhere(self):
        with tempfile.TemporaryDirectory() as scratch:
            trace = os.path.join(scratch, 'trace')
            with self.assertRaises(exception.TimedOut):
                self.place.run(['sh', '-c', 'sleep 0.5; echo >> "$1"', 'sh',
                                trace], timeout_s=0.1)
            with self.assertRaises(exception.TimedOut):
                self.place.run(['sh', '-c', '(sleep 0.5; echo >> "$1") & wait',
                                'sh', trace], timeout_s=0.1)
            time.sleep(0.7)
            self.assertFalse(os.path.exists(trace))

    def test_an_interrupt_of_a_program_that_ends_is_an_interrupt(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(
            signal.SIGINT, signal.default_int_handler))
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.place.run(['sleep', '0.2'])

    def test_a_missing_program_is_not_installed(self):
        with self.assertRaisesRegex(exception.NotInstalled, 'no-such'):
            self.place.run(['no-such-program'])

    def test_a_file_that_cannot_be_run_is_installed_all_the_same(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, 'program')
            with open(path, 'w', encoding='ascii'):
                pass
            with self.assertRaises(exception.Unreachable) as caught:
                self.place.run([path])
        self.assertNotIsInstance(caught.exception, exception.NotInstalled)


class ProbeTest(unittest.TestCase):
    def test_this_machine_has_the_cpus_that_this_process_may_use(self):
        machine = mpi_hosts.probe(local.LocalExecutor())
        self.assertEqual(len(os.sched_getaffinity(0)), machine.cpus)
        total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        self.assertEqual(total // 1024 ** 2, machine.memory_mib)

    def test_a_machine_without_cells_and_caches_has_one_cell(self):
        self.assertEqual(sizing.Machine(1, 1024, 1, None, 0),
                         mpi_hosts.probe(places.Machine('a', 1)))

    def test_gpus_are_those_of_the_drivers_of_nvidia_and_amd(self):
        root = folders.make(self)
        nvidia = root / 'proc/driver/nvidia/gpus'
        for address in ('0000:17:00.0', '0000:65:00.0'):
            (nvidia / address).mkdir(parents=True)
            (nvidia / address / 'information').write_text(
                'Model: \t\t NVIDIA H200\n')
        nodes = root / 'sys/class/kfd/kfd/topology/nodes'
        # The first two are cells of the machine.
        for number, gpu in enumerate(('0', '0', '28851', '51499', '57995')):
            (nodes / str(number)).mkdir(parents=True)
            (nodes / str(number) / 'gpu_id').write_text(gpu + '\n')
        for name in (machine_facts.STATUS, machine_facts.MEMORY):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(pathlib.Path('/', name).read_text())
        with mock.patch.object(machine_facts, 'READ', machine_facts.READ
                               .replace('cd /', f"cd '{root}'")):
            machine = mpi_hosts.probe(local.LocalExecutor())
        self.assertEqual(5, machine.gpus)

    def test_an_answer_without_the_counts_names_the_place(self):
        class Place:
            name = 'ssh://router'

            def run(self, *_call):
                return executor.Completed(0, b'% unknown command\n', b'')
        with self.assertRaisesRegex(exception.Unreachable, 'ssh://router'):
            mpi_hosts.probe(Place())


class TestReach(testtools.TestCase):
    """The machines of a parallel run are reached with the ssh of this one."""

    def test_the_message_of_ssh_is_in_the_error(self):
        exc = self.assertRaises(
            exception.Unreachable, mpi_hosts.reach, local.LocalExecutor(),
            ['no-such-host.invalid'])
        self.assertIn('local cannot log in to no-such-host.invalid', str(exc))


class RebootTest(unittest.TestCase):
    def test_it_waits_for_another_kernel(self):
        guest = rebooting.Guest(silent=3)
        reboot.reboot(guest, guest, pause_s=0)
        self.assertEqual(['sync', 'reboot'], guest.done)
        self.assertEqual(0, guest.run(['true']).status)

    def test_the_error_says_whether_the_guest_still_runs_or_is_lost(self):
        for guest, cause in (
                (rebooting.Guest(deaf=True), 'it is still running as before'),
                (rebooting.Guest(silent=10 ** 6), 'no route')):
            with self.assertRaisesRegex(exception.Unreachable,
                                        f'did not reboot.*{cause}'):
                reboot.reboot(guest, guest, 0.05, 0.01)


class ScriptTest(unittest.TestCase):
    """The script, on this machine and on machines that consist of files."""

    def setUp(self):
        self.scratch = folders.make(self)

    def run_(self, rank, cpus, *argv, path=None, root='', **variables):
        files = cpu_affinity.files(cpuset.parse(cpus, '') if cpus
                                   else frozenset())
        for name, content in files.items():
            text = content.decode()
            for folder in ('/sys/', '/proc/net/', '/etc/'):
                text = text.replace(folder, f'{root}{folder}')
            (self.scratch / name).write_text(text)
        return subprocess.run(
            ['sh', './bind', *argv], cwd=self.scratch, check=False, text=True,
            capture_output=True, env={
                'PATH': f'{path}:{os.environ["PATH"]}',
                'OMPI_COMM_WORLD_LOCAL_RANK': str(rank), **variables})

    def rank(self, rank, cpus, *argv, **more):
        done = self.run_(rank, cpus, *argv, **more)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        return done.stdout

    def test_a_rank_runs_on_the_cpu_that_is_given(self):
        for cpu in sorted(os.sched_getaffinity(0)):
            self.assertIn(f'Cpus_allowed_list:\t{cpu}\n', self.rank(
                0, str(cpu), 'cat', '/proc/self/status'))

    def test_without_cpus_a_rank_has_one_of_those_that_it_may_use(self):
        cpus = sorted(os.sched_getaffinity(0))
        self.assertEqual(
            {f'Cpus_allowed_list:\t{cpu}' for cpu in cpus},
            {self.rank(rank, '', 'grep', 'Cpus_allowed_list',
                       '/proc/self/status').strip()
             for rank in range(len(cpus))})

    def test_arguments_and_status_of_the_program_are_kept(self):
        self.assertEqual("a  'b'\n", self.rank(
            0, '0', 'printf', '%s\n', "a  'b'"))

    def machine(self, cells):
        """Make a machine of files.

        :param cells: per cell its cores, per core its CPUs
        """
        for number, cores in enumerate(cells):
            for core in cores:
                for cpu in core:
                    at = self.scratch / f'sys/devices/system/cpu/cpu{cpu}'
                    (at / f'node{number}').mkdir(parents=True)
                    (at / 'topology').mkdir()
                    (at / 'topology/thread_siblings_list').write_text(
                        ','.join(map(str, core)) + '\n')
        bin_ = self.scratch / 'bin'
        bin_.mkdir()
        (bin_ / 'taskset').write_text('#!/bin/sh\necho "$2"\n')
        (bin_ / 'taskset').chmod(0o755)

    def dealt(self, cpus, ranks):
        return [self.rank(rank, cpus, 'true', path=self.scratch / 'bin',
                          root=str(self.scratch)).strip()
                for rank in range(ranks)]

    def test_cores_are_assigned_round_robin_over_the_cells(self):
        # What Open MPI 4.1.4 does on "pack:2 [numa] core:4 pu:1".
        self.machine([[[0], [1], [2], [3]], [[4], [5], [6], [7]]])
        self.assertEqual(['0', '4', '1', '5', '2', '6', '3', '7'],
                         self.dealt('0-7', 8))

    def test_cpus_that_are_off_or_only_possible_are_not_used(self):
        self.machine([[[0, 1], [2, 3]]])
        for cpu in (1, 2, 3):
            (self.scratch / f'sys/devices/system/cpu/cpu{cpu}/online'
             ).write_text('0\n' if cpu == 3 else '1\n')
        self.assertEqual(['0,1', '2', '0,1'], self.dealt('0-127', 3))

    def test_only_cpus_of_the_guest_are_used(self):
        self.machine([[[0], [2], [4], [6]], [[1], [3], [5], [7]]])
        self.assertEqual(['4', '5', '6', '7'], self.dealt('4-7', 4))

    def test_a_rank_has_all_threads_of_its_core(self):
        self.machine([[[0, 8], [1, 9]], [[2, 10], [3, 11]]])
        self.assertEqual(['0,8', '2,10', '1,9', '3,11'],
                         self.dealt('0-3,8-11', 4))
        self.assertEqual(['1', '11'], self.dealt('1,11', 2))

    def device(self, name, cell, kind='net', **files):
        """Make a device of files, such as ``ports/1/state``."""
        folder = self.scratch / 'sys/devices/pci0000:00' / name
        (folder / 'virtio0').mkdir(parents=True)
        (folder / 'numa_node').write_text(f'{cell}\n')
        shown = self.scratch / 'sys/class' / kind / name
        shown.mkdir(parents=True)
        # Its own device has no cell, as that of virtio has none.
        (shown / 'device').symlink_to(folder / 'virtio0')
        for file, text in files.items():
            path = shown / file.replace('__', '/')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + '\n')
        return shown

    def port(self, name, cell, state='4: ACTIVE', rate='100 Gb/sec (4X EDR)'):
        self.device(name, cell, 'infiniband', ports__1__state=state,
                    ports__1__rate=rate)

    def routes(self, *lines):
        path = self.scratch / 'proc/net/route'
        path.parent.mkdir(parents=True)
        path.write_text('\n'.join((
            'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask',
            *lines, '')))

    def near(self, rank=0, device='auto', cpus='0-7'):
        """Return the CPUs of a rank, and what it says."""
        done = self.run_(rank, cpus, 'true', path=self.scratch / 'bin',
                         root=str(self.scratch), HPCVIRT_NETWORK_DEVICE=device)
        self.assertEqual(0, done.returncode, done.stderr)
        said = cpu_affinity.find_first_cells(done.stderr.encode())
        return done.stdout.strip(), said.partition(': ')[2]

    TWO_CELLS = ([[0], [1], [2], [3]], [[4], [5], [6], [7]])

    def test_the_cell_of_the_fastest_active_rdma_device_comes_first(self):
        self.machine(self.TWO_CELLS)
        self.port('mlx5_0', 0, rate='25 Gb/sec (1X EDR)')
        self.port('mlx5_1', 0, state='1: DOWN', rate='400 Gb/sec (4X NDR)')
        self.port('mlx5_2', 1, rate='200 Gb/sec (4X HDR)')
        self.port('mlx5_3', 0, rate='200 Gb/sec (4X HDR)')
        self.routes('eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000')
        self.device('eth0', 0)
        said = 'first rank on cell 1, mlx5_2 on cell 1'
        self.assertEqual(('4', said), self.near())
        # Only the first rank of a machine says it.
        self.assertEqual(('0', ''), self.near(1))
        self.assertEqual(('5', ''), self.near(2))
        self.assertEqual(('0', 'first rank on cell 0, mlx5_3 on cell 0'),
                         self.near(device='mlx5_3'))
        # The guest has no CPU of that cell.
        self.assertEqual(('2', 'first rank on cell 0, mlx5_2 on cell 1'),
                         self.near(cpus='2-3'))

    def test_the_interface_of_the_default_route_is_next(self):
        self.machine(self.TWO_CELLS)
        self.port('mlx5_0', 0, state='2: INIT')
        self.device('eth0', 0)
        self.device('eth1', 1)
        bond = self.scratch / 'sys/class/net/bond0'
        bond.mkdir()
        (bond / 'lower_eth1').symlink_to('../eth1')
        self.routes(
            'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000',
            'bond0\t00000000\t0100000B\t0003\t0\t0\t50\t00000000',
            'eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF')
        self.assertEqual(('4', 'first rank on cell 1, bond0 on cell 1'),
                         self.near())

    def test_without_a_device_or_its_cell_the_first_cell_comes_first(self):
        self.machine(self.TWO_CELLS)
        self.assertEqual(('0', 'first rank on cell 0, no network device'),
                         self.near())
        self.port('mlx5_0', -1)
        said = 'first rank on cell 0, mlx5_0 on an unknown cell'
        self.assertEqual(('0', said), self.near())
        # The cloud told the guest.
        told = self.scratch / 'etc/hpcvirt/ucx-net-devices'
        told.parent.mkdir(parents=True)
        told.write_text('# a comment\ncell 0 mlx5_1:1\n'
                        'cell 1 mlx5_10:1,mlx5_0:1\n'
                        'gpu 0000:05:00.0 mlx5_1:1\n')
        self.assertEqual(('4', 'first rank on cell 1, mlx5_0 on cell 1'),
                         self.near())

    def test_a_device_that_is_not_there_ends_the_rank(self):
        self.machine(self.TWO_CELLS)
        done = self.run_(0, '0', 'true', root=str(self.scratch),
                         HPCVIRT_NETWORK_DEVICE='mlx5_9')
        self.assertEqual((1, ''), (done.returncode, done.stdout))
        self.assertIn('has no network device mlx5_9', done.stderr)

    def test_cells_may_be_uneven_and_ranks_more_than_cores(self):
        self.machine([[[0], [1], [2]], [[10]]])
        self.assertEqual(['0', '10', '1', '2', '0'], self.dealt('0-2,10', 5))
