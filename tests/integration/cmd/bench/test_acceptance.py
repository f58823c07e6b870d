# SPDX-License-Identifier: Apache-2.0

"""The quick gate, and ``host report``, on this machine."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys

import fixtures
import testtools

from hpcvirt import waiting
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from tests.builders import commands
from tests.builders import folders
from tests.integration.bench import ssh_server

#: Prints the rate of a file, with another last digit each time.
SCRIPT = """\
#!/bin/sh
read -r rate < '{rate}'
echo "rate: $rate.$(pwd | cksum | cut -c 1-3)"
"""

#: Starts a process that leaves its group, as mpirun does, and both go on as
#: long as there is a file.
ENDLESS = """\
#!/bin/sh
go_on() {{ while [ -e '{slow}' ]; do sleep 0.1; done; }}
export slow='{slow}'
setsid sh -c 'while [ -e "$slow" ]; do sleep 0.1; done' &
go_on
echo "rate: 1000.$(pwd | cksum | cut -c 1-3)"
"""
#: The command; guests of other tests may run here.
ACCEPT = """\
import sys
from hpcvirt.acceptance import hardware
from hpcvirt.cmd import main
hardware.count_guests = lambda _: 0
sys.exit(main.main(sys.argv[1:]))
"""
END_S = 60


class EndCase(testtools.TestCase):
    """Acceptances that end while a benchmark runs: real processes."""

    def setUp(self):
        super().setUp()
        self.scratch = folders.make(self)
        self.state = self.scratch / 'state'
        self.useFixture(fixtures.EnvironmentVariable('XDG_STATE_HOME',
                                                     str(self.state)))
        self.slow = self.scratch / 'slow'
        self.addCleanup(self.slow.unlink, missing_ok=True)
        self.data = self.scratch / 'data'

    def words(self, target, name='script'):
        script = self.scratch / name
        script.write_text(ENDLESS.format(slow=self.slow))
        script.chmod(0o755)
        document = self.scratch / f'{name}.yaml'
        document.write_text(json.dumps({
            'kind': 'acceptance', 'schema_version': 1, 'gate': target,
            'gate_benchmarks': ['site-script'],
            'gate_settings': {'script': str(script)}}))
        return ['bench', 'run', str(document), 'n1', '--quick', '--host-key',
                'accept-new', '--data', str(self.data), '--format', 'json',
                '--apply']

    def run_until_it_measures(self, target):
        self.slow.touch()
        process = subprocess.Popen(
            [sys.executable, '-c', ACCEPT, *self.words(target)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        found = waiting.poll(self.list_running, lambda pids: len(pids) > 2,
                             END_S, 0.2)
        self.assertGreater(len(found), 2)
        return process

    def list_running(self):
        """List the processes in the directories of runs."""
        found = []
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                where = os.readlink(process / 'cwd')
            except OSError:
                continue
            if where.startswith(f'{self.state}/hpcvirt/run-'):
                found.append(process.name)
        return found

    def assert_signal_leaves_nothing(self, target, *numbers):
        """Send signals to an acceptance that measures."""
        process = self.run_until_it_measures(target)
        for number in numbers:
            process.send_signal(number)
        err = process.communicate(timeout=END_S)[1]
        self.assertEqual(130, process.returncode, err)
        self.assertIn('the same command continues', err)
        self.assertEqual([], self.list_running())
        self.assertEqual([], list(self.state.glob('hpcvirt/run-*')))

    def assert_the_next_ends_it(self, target):
        process = self.run_until_it_measures(target)
        left = self.list_running()
        process.kill()
        process.wait()
        # Another benchmark does not continue it.
        words = self.words(target, 'other')
        other = self.scratch / 'other'
        lines = ['#!/bin/sh']
        lines += [f'[ ! -e /proc/{pid}/cwd ] || exit 3' for pid in left]
        lines += ['echo "rate: 1000.$(pwd | cksum | cut -c 1-3)"', '']
        other.write_text('\n'.join(lines))
        with fixtures.MonkeyPatch(
                'hpcvirt.acceptance.hardware.count_guests', lambda _: 0):
            status, out, err = commands.run(*words)
        self.assertEqual(1, status, err)
        self.assertIn('peer hosts are known', json.loads(out)['reason'])
        self.assertEqual([], self.list_running())


class EndTest(EndCase):
    """However an acceptance ends, no benchmark runs on."""

    def test_a_signal_leaves_nothing(self):
        # As timeout(1) does.
        self.assert_signal_leaves_nothing('local', signal.SIGTERM,
                                          signal.SIGTERM)
        with ssh_server.running() as server:
            self.assert_signal_leaves_nothing(server.url, signal.SIGINT)

    def test_periodic_so_does_the_other_signal(self):
        self.assert_signal_leaves_nothing('local', signal.SIGINT)
        with ssh_server.running() as server:
            self.assert_signal_leaves_nothing(server.url, signal.SIGTERM,
                                              signal.SIGTERM)

    def test_the_next_acceptance_ends_what_a_killed_one_left(self):
        with ssh_server.running() as server:
            self.assert_the_next_ends_it(server.url)

    def test_periodic_it_does_so_on_this_machine(self):
        self.assert_the_next_ends_it('local')


class QuickTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = folders.make(self)
        self.data = self.scratch / 'data'
        self.lines = self.scratch / 'lines.jsonl'
        self.script = self.scratch / 'script'
        rate = self.scratch / 'rate'
        self.script.write_text(SCRIPT.format(rate=rate))
        self.script.chmod(0o755)
        self.set_rate = rate.write_text
        self.set_rate('1000\n')
        # Guests of other tests may run here.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.acceptance.hardware.count_guests', lambda _: 0))

    def run_gate(self, **keys):
        """Take the gate by a document of these keys, too."""
        document = self.scratch / 'gate.json'
        document.write_text(json.dumps({
            'kind': 'acceptance', 'schema_version': 1, 'gate': 'local',
            **keys}))
        return commands.run(
            'bench', 'run', document, 'n1', '--quick', '--data', self.data,
            '--format', 'json', '--apply')

    def accept(self, **keys):
        """Take the gate; return its status and its record."""
        status, out, err = self.run_gate(
            gate_benchmarks=['site-script'],
            gate_settings={'script': str(self.script)},
            json_lines=self.lines.name, **keys)
        self.assertIn(status, (0, 1), err)
        last = json.loads(self.lines.read_text().splitlines()[-1])
        self.assertEqual(json.loads(out), last)
        return status, last

    def add_peers(self, result):
        """Store what was measured as that of five other hosts."""
        store = stores.Store(None, str(self.data))
        self.addCleanup(store.close)
        (run,) = store.result(result).runs
        for number, level in enumerate((0.99, 0.995, 1.0, 1.005, 1.01)):
            name = f'peer{number}'
            store.open_entry(stores.Entry(name, 'p', run.started_at, None), {})
            store.add_run(name, 0, dataclasses.replace(
                run, id=name, host=name))
            for sample in run.samples:
                store.add_sample(name, dataclasses.replace(
                    sample, outcome=dataclasses.replace(
                        sample.outcome, metrics={
                            key: dataclasses.replace(
                                figure, value=figure.value * level)
                            for key, figure in
                            sample.outcome.metrics.items()})))
            store.finish(name, run.started_at)
        return run

    def test_a_class_builds_its_reference_and_finds_a_slow_host(self):
        status, first = self.accept()
        self.assertEqual((1, 'INCONCLUSIVE'), (status, first['result']))
        self.assertIn('0 peer hosts are known', first['reason'])
        self.assertIn('CPU', first['machine'])
        checks = {each['name']: each['passed']
                  for each in first['gate']['checks']}
        self.assertIs(True, checks['reboots'])
        run = self.add_peers(*first['gate']['results'])
        self.assertEqual(('n1', 'host', None, record.Purpose.UNPAIRED, 6),
                         (run.host, run.shape, run.launch, run.purpose,
                          len(run.samples)))
        # Other hosts have made the reference.
        if False in checks.values():
            self.skipTest(f'the hardware of this machine fails: {checks}')
        self.assertEqual((0, 'PASS'), tuple(
            found if number == 0 else found['result']
            for number, found in enumerate(self.accept())))
        self.set_rate('800\n')
        status, slow = self.accept()
        self.assertEqual((1, 'FAIL'), (status, slow['result']))
        status, out, _ = commands.run('host', 'report', '--data', self.data,
                                      '--format', 'json')
        worst, *others = json.loads(out)
        self.assertEqual((1, 'n1', 'FAIL'),
                         (status, worst['host'], worst['result']))
        self.assertAlmostEqual(25, worst['slower'], delta=1)
        self.assertEqual({f'peer{n}' for n in range(5)},
                         {each['host'] for each in others})

    def test_a_program_that_is_missing_is_named(self):
        self.script.unlink()
        status, found = self.accept()
        self.assertEqual((1, 'INCONCLUSIVE', []), (
            status, found['result'], found['gate']['results']))
        self.assertIn('could not be started', found['gate']['unable'][0])

    def test_a_time_limit_ends_it(self):
        pid = self.scratch / 'pid'
        self.script.write_text(
            f'#!/bin/sh\necho $$ > {pid}\nexec sleep 600\n')
        with fixtures.MonkeyPatch(
                'hpcvirt.acceptance.host_acceptance._MINUTE_S', 1):
            status, found = self.accept(time_limit_minutes=2)
        self.assertEqual((1, 'INCONCLUSIVE'), (status, found['result']))
        self.assertIn('the time limit was reached', found['reason'])
        # One that has ended has no working directory.
        self.assertFalse(pathlib.Path('/proc', pid.read_text().strip(),
                                      'cwd').exists())

    def test_guests_on_the_host_are_refused(self):
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.acceptance.hardware.count_guests', lambda _: 3))
        commands.check_refused(self, 'runs 3 guests', self.run_gate())
