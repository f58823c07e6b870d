# SPDX-License-Identifier: Apache-2.0

"""Carry out an experiment on a host of a Nova, and check a profile.

This machine stands in for the guests: what is started in one runs here. Each
guest of a host reaches the same rate, so that two reach twice that of one. A
setting of the host halves it.
"""

import contextlib
import json
import math
import statistics

import fixtures
import yaml

from hpcvirt import exception
from hpcvirt.bench.execute import local
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import placement
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.cloud import session
from hpcvirt.cmd.bench import experiment
from hpcvirt.cmd.bench import progress
from hpcvirt.model import quarantine
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.functional import measured_guests

HOST = 'node1'
SCRIPT = """\
#!/bin/sh
digits=$(pwd | cksum | sed 's/ .*//; s/.*\\(..\\)$/\\1/')
if grep -q ept '{settings}'; then echo "rate: 50.0$digits"
else echo "rate: 100.0$digits"; fi
"""
APPLY = """\
#!/bin/sh
[ "$1" = node1 ] && cp "$2" '{settings}' && echo "$1" >> '{settings}.log'
"""


class TuneRunTest(measured_guests.MeasuringTestCase):
    def setUp(self):
        super().setUp()
        machine = machines.build(HOST, cells=1, cores=4, small_mib=2048,
                                 pages={2048: 3072})
        self.add_machines(machine)
        self.use_as_cloud()
        self.scratch = folders.make(self)
        self.data = self.scratch / 'data'
        self.settings = self.scratch / 'settings'
        self.settings.write_text('')
        for name, text in (('run.sh', SCRIPT), ('apply.sh', APPLY)):
            path = self.scratch / name
            path.write_text(text.format(settings=self.settings))
            path.chmod(0o755)
        self.write_fleet(self.scratch, machine)
        self.document = self.scratch / 'demo.yaml'
        self.document.write_text(json.dumps({
            'kind': 'experiment', 'schema_version': 1, 'name': 'demo',
            'image': 'bench', 'network': 'net', 'fleet': 'fleet.yaml',
            'host_class': 'small', 'programs': {'own': {
                'benchmark': 'site-script', 'minutes': 1, 'metric': 'rate',
                'settings': {'script': str(self.scratch / 'run.sh')}}},
            'choices': {
                'guests': {'two': {'guests_per_host': 2}},
                'shares': {'half': {
                    'extra_specs': {'quota:cpu_shares': '512'}}},
                'paging': {'off': {'host': {'ept': '0'}}}},
            'apply': ['./apply.sh', '{host}', '{settings}'],
            'matters_percent': 3, 'noise_percent': 0.5, 'samples': 2,
            'confirm_boots': 5, 'limits': {'hours': 3, 'reboots': 20},
            'reboot_minutes': 0.1}))
        self.stand_in()
        self.quarantine = cloud_quarantine.Quarantine(
            session.compute(),
            placement.PlacementClient(session.placement()))

    def stand_in(self):
        """Let this machine be the guests, and Glance and Neutron answer."""
        self.answer_for_others()
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cmd.bench.targets._ssh',
            lambda *_: local.LocalExecutor()))
        boot = benchmark_instances.BenchmarkInstances.boot

        def boot_all(*args):
            self.restore_ports()
            return boot(*args)
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.cloud.benchmark_instances.BenchmarkInstances.boot',
            boot_all))

    def tune(self, *words):
        return commands.run('bench', 'run', self.document, '--data',
                            self.data, *words)

    def succeed(self, *words):
        status, out, err = self.tune(*words)
        self.assertEqual(0, status, err)
        return out

    def refuse(self, said, *words):
        status, out, err = self.tune(*words)
        self.assertEqual((2, ''), (status, out))
        self.assertIn(said, err)

    def check_restored(self):
        self.assertEqual((), benchmark_instances.BenchmarkInstances(
            session.compute(), experiment.MARK, HOST).left())
        self.assertEqual([], self.api.get_servers())
        self.assertEqual((), self.quarantine.holds(HOST))
        self.assertIn(self.settings.read_text(), ('', '{}\n'))
        self.assertEqual([], list(self.data.glob('tunes/*.key')))

    def record(self, pattern='demo.json'):
        (path,) = self.data.glob(f'tunes/{pattern}')
        return json.loads(path.read_text())

    def die(self, samples):
        """Return patches: the process is killed after so many samples."""
        kept = []

        def die(shown, sample):
            finished(shown, sample)
            kept.append(sample)
            if len(kept) == samples:
                raise KeyboardInterrupt
        finished = progress.Terminal.sample_finished
        stack = contextlib.ExitStack()
        # A process that is killed cleans up nothing.
        for name, new in (
                ('cmd.bench.progress.Terminal.sample_finished', die),
                ('tune.tuning.Tuning._restore', lambda *_: True)):
            stack.enter_context(fixtures.MonkeyPatch(f'hpcvirt.{name}', new))
        return stack

    def test_periodic_a_killed_experiment_is_continued(self):
        out = self.succeed()
        self.assertIn('Hold node1 in quarantine', out)
        self.assertIn('use --apply', out)
        self.assertFalse(self.data.exists())
        with self.die(samples=8):
            self.assertEqual(130, self.tune('--apply')[0])
        begun = {server['id'] for server in self.api.get_servers()}
        self.assertEqual(2, len(self.record()['trials']))
        self.assertEqual([quarantine.TUNE], [
            hold.holder for hold in self.quarantine.holds(HOST)])
        out = self.succeed()
        for server in begun:
            self.assertIn(f'left server {server}', out)
        self.succeed('--apply')
        self.check_restored()
        trials = self.record()['trials']
        levels = {'guests': 0, 'shares': 1, 'paging': 2}

        def find_effect(choice):
            speeds = [[run['speed'] for made in trials
                       if made['step']['stage'] == 'screen'
                       and made['step']['levels'][levels[choice]] == level
                       for run in made['runs']['own']]
                      for level in (0, 1)]
            return statistics.fmean(speeds[1]) - statistics.fmean(speeds[0])
        for choice, effect in (('guests', math.log(2)), ('shares', 0.0),
                               ('paging', math.log(0.5))):
            self.assertAlmostEqual(effect, find_effect(choice), 2, choice)
        confirmed = [made['step']['levels'] for made in trials
                     if made['step']['stage'] == 'confirm']
        self.assertEqual(10, len(confirmed))
        self.assertEqual(5, confirmed.count([1, 0, 0]))
        for made in trials:
            self.assertEqual(2, len(made['runs']['own']))
        # Nothing is left to do.
        count = len(self.settings.with_suffix('.log').read_text().split())
        self.succeed('--apply')
        self.assertEqual(trials, self.record()['trials'])
        self.assertEqual(count, len(
            self.settings.with_suffix('.log').read_text().split()))

    def test_periodic_a_killed_experiment_is_given_up(self):
        with self.die(samples=20):
            self.assertEqual(130, self.tune('--apply')[0])
        self.settings.write_text('ept: left')
        record = self.record()
        state = self.data / f'tunes/{HOST}.settings'
        state.write_text('"changing"')
        self.succeed('--restore')
        self.assertEqual('ept: left', self.settings.read_text())
        self.succeed('--restore', '--apply')
        self.check_restored()
        self.assertEqual(record['trials'], self.record()['trials'])

    def test_periodic_an_experiment_is_continued_as_it_was_begun(self):
        with self.die(samples=1):
            self.assertEqual(130, self.tune('--apply')[0])
        document = yaml.safe_load(self.document.read_text())
        for changed in ({'confirm_boots': 6}, {'user': 'other'}):
            self.document.write_text(json.dumps({**document, **changed}))
            self.refuse('is the record of another document')
        self.document.write_text(json.dumps(document))
        self.succeed('--restore', '--apply')
        self.check_restored()

    def test_periodic_a_host_that_is_in_use_is_refused(self):
        self.boot(self.create_hpc_flavor(pcpus=1), host=HOST)
        self.refuse('has 1 instance of others', '--apply')
        self.assertEqual((), self.quarantine.holds(HOST))

    def test_an_outage_leaves_the_host_in_quarantine(self):
        def fail(*_):
            raise exception.Unreachable('no Placement')
        with self.die(samples=1):
            self.tune('--apply')
        with fixtures.MonkeyPatch('hpcvirt.cloud.benchmark_instances'
                                  '.BenchmarkInstances.clear', fail):
            status, _, err = self.tune('--restore', '--apply')
        self.assertEqual(2, status)
        self.assertIn('node1 could not be restored: no Placement', err)
        self.assertEqual(1, len(self.quarantine.holds(HOST)))
        self.succeed('--restore', '--apply')
        self.check_restored()

    def test_periodic_a_profile_is_checked(self):
        profile = self.scratch / 'profile.yaml'
        profile.write_text('base: dense\ndisk_gib: 0\n')
        out = self.succeed('--check', profile, '--apply')
        self.assertRegex(out, r'\nPASS: .* against today in 5 pairs of boots')
        self.check_restored()
        self.assertEqual(10, len(self.record('demo-check-*.json')['trials']))
