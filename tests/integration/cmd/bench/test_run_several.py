# SPDX-License-Identifier: Apache-2.0

"""Several guests as one side, end to end: in step, or spanned by one job."""

import dataclasses
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest.mock

from hpcvirt.bench.catalogue import catalogue
from tests.builders import commands
from tests.integration.bench import run_case
from tests.integration.bench import ssh_server

#: Tells where and when it runs, and prints what a real run printed.
PROGRAM = """\
#!/bin/sh
""" + run_case.VARY + """\
echo "begin $PWD $(date +%s.%N)" >> '{trace}'
sleep {seconds}
echo "end $PWD $(date +%s.%N)" >> '{trace}'
if [ -e '{broken}' ] && [ "${{PWD##*.}}" = 1 ]; then
  head -c 300 '{native}'
elif grep -q 'Cpus_allowed_list:[^0-9]*0$' /proc/self/status; then
  vary '{native}'
else
  vary '{guest}'
fi
"""

#: Goes to the other hosts as Open MPI does, and starts the program here.
MPIRUN = """\
#!/bin/sh
case "$1" in --version) exit;; esac
echo "$* $(cat cpus)" >> '{trace}'
for word; do
  case "$word" in
    --host) next=1;;
    *) [ -z "$next" ] || hosts=$word; next=;;
  esac
done
for host in $(echo "$hosts" | tr , ' ' | cut -d ' ' -f 2-); do
  ssh -x "${{host%:*}}" "test -x $PWD/marker" || exit 3
done
cp '{np_out}' np.out
"""

#: Gets to what is listed, and says of anything else what ssh says.
SSH = """\
#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in -x) shift;; -o) shift 2;; *) break;; esac
done
if ! grep -qx "$1" '{known}'; then
  echo 'Warning: a banner' >&2
  echo 'Host key verification failed.' >&2
  exit 255
fi
shift
exec sh -c "$*"
"""


class InStepTest(run_case.RunCase):
    """Every guest runs the same at the same moment."""

    def setUp(self):
        super().setUp()
        self.other = self.enterContext(ssh_server.running())

    def words(self, seconds=0.0, pairs=5, native='local'):
        words = super().words(seconds, pairs, native)
        (self.source / 'program.sh').write_text(PROGRAM.format(
            trace=self.trace, seconds=seconds, broken=self.broken,
            native=run_case.DATA / 'native_np1' / 'npb_ep.S.out',
            guest=run_case.DATA / 'guest_tcg_np1' / 'npb_ep.S.out'))
        where = words.index('--where')
        return [*words[:where], '--where', self.other.url, *words[where:]]

    def spells(self):
        """When each job ran: sample to a list of (begin, end)."""
        begun, spells = {}, {}
        for line in self.trace.read_text().splitlines():
            word, path, second = line.split()
            sample, attempt, _ = os.path.basename(path).split('.')
            if word == 'begin':
                begun[path] = float(second)
            else:
                spells.setdefault((sample, attempt), []).append(
                    (begun[path], float(second)))
        return spells

    def test_rates_add_up_in_both_arms(self):
        """Jobs of a sample run at once, and samples in turn."""
        one = self.result(*super().words(pairs=1), status=1)
        self.trace.unlink()
        two = self.result(*self.words(seconds=1.5, pairs=1), status=1)

        def rates(result):
            return sorted(
                sample['outcome']['metrics']['mops_total']['value']
                for sample in result['runs'][0]['samples'])
        for alone, added in zip(rates(one), rates(two), strict=True):
            # The last digits vary from run to run.
            self.assertAlmostEqual(2 * alone, added, delta=0.02)
        self.assertEqual('2x' + str(len(os.sched_getaffinity(0))),
                         two['runs'][0]['shape'])
        self.check_spells()

    def test_periodic_times_are_those_of_the_slowest(self):
        result = self.result(*self.words(pairs=1), status=1)
        times = [sample['outcome']['metrics']['time_s']['value']
                 for sample in result['runs'][0]['samples']]
        single = self.result(*super().words(pairs=1), status=1)
        self.assertCountEqual(
            [sample['outcome']['metrics']['time_s']['value']
             for sample in single['runs'][0]['samples']], times)

    def check_spells(self):
        spells = self.spells()
        self.assertEqual(4, len(spells))
        ends = 0.0
        for _, jobs in sorted(spells.items()):
            self.assertEqual(2, len(jobs))
            self.assertLess(max(begin for begin, _ in jobs),
                            min(end for _, end in jobs))
            self.assertLess(ends, min(begin for begin, _ in jobs))
            ends = max(end for _, end in jobs)

    def test_each_native_copy_is_confined_to_the_cpus_of_its_guest(self):
        words = [*self.words(pairs=1), '--native-cpus', '1']
        result = self.result(*words, status=1)
        native = result['runs'][0]['samples'][0]
        # One is on CPU 0, where the program is fast, one on CPU 1.
        fast, slow = (self.printed(native, f'127.0.0.1-{number}.stdout')
                      for number in (1, 2))
        self.assertIn('119.93', fast)
        self.assertNotIn('119.93', slow)

    def printed(self, sample, name):
        path = next(raw['path'] for raw in sample['outputs']
                    if raw['name'] == name)
        return (self.scratch / 'data' / path).read_text()

    def test_periodic_output_and_environment_of_each_guest_are_kept(self):
        result = self.result(*self.words(pairs=1), status=1)
        sample = result['runs'][0]['samples'][1]
        self.assertEqual('guest', sample['side'])
        names = {raw['name'] for raw in sample['outputs']}
        self.assertEqual({f'127.0.0.1-{number}.{name}' for number in (1, 2)
                          for name in ('stdout', 'stderr')}, names)
        places = [sample['environment'][f'place@127.0.0.1-{number}']
                  for number in (1, 2)]
        self.assertEqual([f':{self.other.port}', f':{self.server.port}'],
                         [place[place.rindex(':'):] for place in places])
        self.assertIn('kernel', sample['environment'])
        self.assertLess(float(sample['environment']['launched_within_s']), 60)

    def test_periodic_one_broken_output_makes_a_sample_invalid(self):
        self.broken.touch()
        result = self.result(*self.words(pairs=1), status=1)
        self.assertEqual('INVALID', result['verdict']['result'])
        reason = result['runs'][0]['samples'][0]['outcome']['reason']
        self.assertTrue(reason.startswith('127.0.0.1-2: '), reason)
        self.assertNotIn('127.0.0.1-1', reason)

    def test_periodic_a_killed_run_is_continued(self):
        words = self.words(seconds=0.5, pairs=2)
        self.killed_and_resumed(words, 3, 6)
        # No job ran without its fellow.
        self.assertEqual({2}, {len(jobs) for jobs in self.spells().values()})

    def test_periodic_both_jobs_are_started_again_if_one_is_lost(self):
        words = self.words(seconds=8, pairs=1, native=None)
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        while not (self.trace.exists()
                   and len(self.trace.read_text().splitlines()) == 2):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        path = next(line.split()[1]
                    for line in self.trace.read_text().splitlines()
                    if re.search(r'\.0 ', line))
        with open(os.path.join(path, 'pid'), encoding='ascii') as pid:
            os.killpg(int(pid.read().split()[0]), signal.SIGKILL)
        self.assertEqual(0, process.wait())
        # Neither of the first attempt came to its end.
        self.assertEqual({('0000', '1'): 2, ('0001', '0'): 2},
                         {name: len(jobs)
                          for name, jobs in self.spells().items()})

    def test_numbers_that_do_not_fit_are_one_line(self):
        for more, message in (
                (['--native', 'local', '--native', 'local'],
                 '--native: is given 3 times'),
                (['--native-cpus', '1', '--native-cpus', '1'],
                 '--native-cpus: is given 3 times')):
            with self.subTest(more=more):
                commands.check_refused(
                    self, message, self.run_(*self.words(), *more))
        self.assertFalse((self.scratch / 'data').exists())


class SpanTest(run_case.RunCase):
    """mpirun is started once, in the first place."""

    def setUp(self):
        super().setUp()
        self.other = self.enterContext(ssh_server.running())
        self.known = self.scratch / 'known'
        self.known.write_text('127.0.0.1\n')
        mpi, ssh = self.scratch / 'mpi', self.scratch / 'ssh'
        for folder, name, text in ((mpi, 'mpirun', MPIRUN), (ssh, 'ssh', SSH)):
            folder.mkdir()
            (folder / name).write_text(text.format(
                trace=self.trace, known=self.known,
                np_out=run_case.DATA / 'netpipe' / 'np.out'))
            (folder / name).chmod(0o755)
        self.enterContext(unittest.mock.patch.dict(
            os.environ, PATH=f'{mpi}:{os.environ["PATH"]}'))
        for server in (self.server, self.other):
            server.login['PATH'] = f'{ssh}:{os.environ["PATH"]}'
            server.write()
        self.enterContext(unittest.mock.patch.object(
            catalogue, 'get', self.with_a_file))

    @staticmethod
    def with_a_file(name, get=catalogue.get):
        """A benchmark with a file that has to be in every place."""
        return dataclasses.replace(get(name), files={'marker': 'here'})

    def words(self, *more):
        return ['bench', 'run', 'netpipe', '--where', self.server.url,
                '--where', self.other.url, '--pairs', '1',
                '--host-key', 'accept-new', '--data',
                str(self.scratch / 'data'), '--format', 'json',
                '--set', 'max_size=65536',
                *(['--no-verdict'] if '--native' in more else []), *more]

    def commands(self):
        """The command lines of mpirun, except that for its version."""
        return [line for line in self.trace.read_text().splitlines()
                if 'NPopenmpi' in line]

    def test_ranks_are_distributed(self):
        result = self.result(*self.words(), status=0)
        self.assertEqual(2, len(result['runs'][0]['samples']))
        commands = self.commands()
        self.assertEqual(2, len(commands))
        self.assertIn(f'-np 2 --host {os.uname().nodename}:1,127.0.0.1:1 '
                      '-x HPCVIRT_NETWORK_DEVICE --bind-to none sh ./bind '
                      'NPopenmpi', commands[0])

    def test_one_native_machine_stands_for_all_and_is_not_spanned(self):
        self.result(*self.words('--native', 'local', '--native-cpus', '0'),
                    status=1)
        commands = self.commands()
        self.assertEqual(2, sum('--host' in line for line in commands))
        self.assertEqual(4, len(commands))
        # Natively, ranks bind themselves to the CPUs of the guest: mpirun
        # would ignore the CPUs that it is confined to.
        self.assertEqual(
            [True, True, False, False],
            [line.endswith(' np.out 0') for line in sorted(
                commands, key=lambda line: '--host' in line)])

    def test_a_place_that_is_not_reached_is_named_before_anything_runs(self):
        self.known.write_text('other\n')
        err = commands.check_refused(
            self, f'{self.server.port} cannot log in to 127.0.0.1',
            self.run_(*self.words()))
        self.assertIn('Host key verification failed.', err)
        self.assertFalse(self.trace.exists())

    def test_fewer_ranks_than_places_are_refused(self):
        commands.check_refused(
            self, '2 ranks: cannot span 3 machines',
            self.run_(*self.words('--where', self.other.url)))


#: Connects as the real program does, and prints what it printed.
WRITE_BW = """\
#!{python}
import socket
import sys
import time
is_client = not sys.argv[-1].startswith('-')
with open('{trace}', 'a') as trace:
    print('client' if is_client else 'server', *sys.argv[1:], file=trace)
if '{fails}' == 'client' and is_client:
    sys.exit("Couldn't connect")
if '{fails}' == 'server' and not is_client:
    sys.exit('IB device mlx5_0 not found')
if is_client:
    with socket.create_connection((sys.argv[-1], 18515)) as connection:
        connection.recv(1)
else:
    with socket.create_server(('', 18515)) as server:
        server.accept()[0].send(b'x')
    if '{fails}' == 'transfer':
        sys.exit('Completion with error at server')
    if '{fails}' == 'end':
        time.sleep(600)
print(open('{output}').read())
"""


class PairTest(run_case.RunCase):
    """A server on the second guest, and its client on the first."""

    def setUp(self):
        super().setUp()
        # The programs of perftest have one port: one test at a time.
        lock = self.enterContext(open(__file__, 'rb'))
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.other = self.enterContext(ssh_server.running())
        known = self.scratch / 'known'
        known.write_text('127.0.0.1\n')
        bin_ = self.scratch / 'bin'
        bin_.mkdir()
        (bin_ / 'ssh').write_text(SSH.format(known=known))
        (bin_ / 'ssh').chmod(0o755)
        for server in (self.server, self.other):
            server.login['PATH'] = f'{bin_}:{os.environ["PATH"]}'
            server.write()

    def words(self, *more):
        where = ['--where', self.other.url] if '--alone' not in more else []
        return ['bench', 'run', 'perftest', '--where', self.server.url, *where,
                '--pairs', '1', '--warm-ups', '0', '--host-key', 'accept-new',
                '--data', str(self.scratch / 'data'), '--format', 'json',
                *(word for word in more if word != '--alone')]

    def write_bw(self, fails=''):
        program = self.scratch / 'bin/ib_write_bw'
        program.write_text(WRITE_BW.format(
            python=sys.executable, trace=self.trace, fails=fails,
            output=run_case.DATA / 'perftest/write_bw_ib.txt'))
        program.chmod(0o755)

    def sample(self, *more, status=0):
        (sample,) = self.result(*self.words(*more),
                                status=status)['runs'][0]['samples']
        # Nothing goes on.
        found = subprocess.run(['pgrep', '-f', f'{self.scratch}/bin/ib_'],
                               check=False, capture_output=True)
        self.assertEqual(b'', found.stdout)
        return sample

    def test_the_client_of_the_first_guest_has_the_result(self):
        self.write_bw()
        for more, server in ((), '127.0.0.1'), (('--alone',), 'localhost'):
            self.trace.write_text('')
            sample = self.sample(*more)
            self.assertIn('bandwidth_gbit_s[8388608]',
                          sample['outcome']['metrics'])
            self.assertEqual('none', sample['outcome']['parameters']['gpu'])
            options = '-d mlx5_0 -a -F --report_gbits'
            self.assertEqual(
                [f'server {options}', f'client {options} {server}'],
                self.trace.read_text().splitlines())

    def test_the_gpu_with_the_messages_is_that_of_both_and_is_checked(self):
        self.write_bw()
        sample = self.sample('--set', 'gpu=cuda=1,dmabuf', status=1)
        self.assertIn('gpu=cuda=1,dmabuf was requested, but the output says '
                      'none', sample['outcome']['reason'])
        for line in self.trace.read_text().splitlines():
            self.assertIn('--use_cuda=1 --use_cuda_dmabuf', line)

    def test_a_failure_of_either_is_one_of_the_sample(self):
        for fails, status, *lines in (
                ('client', '1, of the server: 137', "Couldn't connect"),
                ('server', 'none, of the server: 1',
                 'IB device mlx5_0 not found')):
            self.write_bw(fails)
            with self.subTest(fails):
                reason = self.sample(status=1)['outcome']['reason']
                for text in (f'exit status of the client: {status}', *lines):
                    self.assertIn(text, reason)

    def test_periodic_a_server_that_fails_last_is_one_of_the_sample(self):
        self.write_bw('transfer')
        reason = self.sample(status=1)['outcome']['reason']
        self.assertIn('client: 0, of the server: 1', reason)
        self.assertIn('Completion with error at server', reason)

    def test_periodic_a_server_that_stays_is_ended(self):
        self.write_bw('end')
        self.assertIn('client: 0, of the server: 137',
                      self.sample(status=1)['outcome']['reason'])

    def test_a_port_that_is_in_use_is_named(self):
        self.write_bw()
        with socket.create_server(('', 18515)):
            reason = self.sample(status=1)['outcome']['reason']
        self.assertIn('another program listens on port 18515', reason)

    def test_a_program_that_is_not_installed_is_named(self):
        status, _out, err = self.run_(*self.words())
        self.assertEqual(2, status)
        self.assertIn('perftest could not be started: exit status of the '
                      'client: none, of the server: 127', err)
