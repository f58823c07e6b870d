# SPDX-License-Identifier: Apache-2.0

"""Experiments on hosts of a world that stands in for a cloud."""

import collections
import dataclasses
import math
import os
import pathlib
import signal

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.bench.run import target as targets
from hpcvirt.cmd import command
from hpcvirt.model import quarantine
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import records
from hpcvirt.tune import trial
from hpcvirt.tune import tuning
from tests.builders import hosts

NAMES = ('n1', 'n2')
DOCUMENT = {
    'schema_version': 1, 'name': 'demo', 'fleet': 'fleet.yaml', 'class': 'n',
    'programs': {'npb-ep': {'benchmark': 'npb-ep', 'minutes': 1}},
    'choices': {
        'quota': {'half': {'extra_specs': {'quota:cpu_shares': '512'}}},
        'paging': {'off': {'host': {'ept': '0'}}}},
    'limits': {'hours': 1, 'reboots': 20},
    'apply': ['./apply.sh', '{host}', '{profile}', '{settings}']}
#: Both stages on both hosts, whole plots together, and a native trial.
STEPS = (
    trial.Step(trial.Stage.NATIVE, 0, 0, (0, 0)),
    trial.Step(trial.Stage.SCREEN, 0, 0, (0, 1)),
    trial.Step(trial.Stage.SCREEN, 0, 0, (1, 1)),
    trial.Step(trial.Stage.SCREEN, 0, 0, (1, 0)),
    trial.Step(trial.Stage.SCREEN, 1, 1, (1, 1)),
    trial.Step(trial.Stage.CONFIRM, 0, 0, (0, 1)))
APPLY = """\
#!/bin/sh
echo "$1 $(cat "$3")" >> applied
grep -q base "$2" || exit 9
if [ -e broken ]; then echo; echo no ssh; exit 3; fi
cp "$3" "settings.$1"
"""


class KilledError(BaseException):
    """The process does nothing any more."""


class NotStartedError(exception.HpcvirtError):
    """Guests that do not start."""


class World:
    """Hosts, and a process that may be killed before each operation.

    :ivar actions: names of the operations of the process, in their order
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.actions, self.killed_at = [], None
        self.instances = {name: {} for name in NAMES}
        self.created = {name: set() for name in NAMES}
        self.holders = collections.defaultdict(set)
        self.number = 0

    def act(self, name):
        if self.killed_at is not None and len(self.actions) >= self.killed_at:
            raise KilledError
        self.actions.append(name)

    def settings(self, host):
        path = self.folder / f'settings.{host}'
        text = path.read_text() if path.exists() else ''
        return '' if text == '{}\n' else text

    def left(self):
        return [what for name in NAMES for what in (
            *self.instances[name], *self.created[name], *self.holders[name],
            self.settings(name)) if what]


class Client:
    """A host of the world."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        #: Errors of the next guests.
        self.errors = []

    def check_free(self, host):
        assert host == self.name

    def fill(self, flavor, count, public_key):
        assert public_key.startswith('ecdsa-')
        assert self.world.holders[self.name] == {quarantine.TUNE}
        self.world.act('flavor')
        self.world.created[self.name].add(flavor.name)
        if self.errors:
            raise self.errors.pop(0)
        own = self.world.instances[self.name]
        wanted = [f'{flavor.name}-{number}' for number in range(count)]
        for name in set(own) - set(wanted):
            self.world.act('delete')
            del own[name]
        for name in wanted:
            if name not in own:
                self.world.act('boot')
                self.world.number += 1
                own[name] = (str(self.world.number),
                             dict(flavor.extra_specs))
        return [own[name][0] for name in wanted]

    def wait_ready(self):
        self.world.act('wait')

    def clear(self):
        self.world.act('clear')
        self.world.instances[self.name].clear()
        self.world.created[self.name].clear()

    def hold(self, hold):
        self.world.act('hold')
        self.world.holders[self.name].add(hold.holder)

    def release(self, holder):
        self.world.act('release')
        self.world.holders[self.name].discard(holder)


class Records(records.TuneRecords):
    """Records of a process that may be killed."""

    def __init__(self, data, world):
        super().__init__(data)
        self._world = world

    def write(self, found):
        self._world.act('write')
        super().write(found)

    def write_settings(self, host, settings):
        self._world.act('write settings')
        super().write_settings(host, settings)


class Bench:
    """Measures the world as it is."""

    def __init__(self, world):
        self._world = world
        self.measured = []
        self.disturb = lambda: None

    def measure(self, guests, shape, shown, _key_file='', shares=()):
        self._world.act('measure')
        shown.tick(0.0)
        self.disturb()
        self.measured.append(shape)
        if shares:
            assert not any(self._world.instances.values())
            return 'native', {'npb-ep': (trial.TrialRun(1.0, 9.0),)}
        (host,) = {name for name in NAMES
                   for number, _ in self._world.instances[name].values()
                   if number in guests}
        specs = [each for _, each in self._world.instances[host].values()]
        assert len(specs) == len(guests)
        speed = math.log(len(guests)) - 0.5 * (
            'quota:cpu_shares' in specs[0]) - 0.25 * (
            'ept' in self._world.settings(host))
        self._world.act('measured')
        return shape, {'npb-ep': (trial.TrialRun(speed, 9.0),
                                  trial.TrialRun(None))}


class Shown:
    def __getattr__(self, name):
        return lambda *_: None


class Place:
    """A host that counts shoot-downs: 1000 more at each look."""

    count = 0

    def run(self, _argv):
        Place.count += 1000
        return executor.Completed(0, b'%d' % Place.count, b'')

    def close(self):
        pass


class TuningTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # No test loses its machine.
        self.useFixture(fixtures.MonkeyPatch('os.fsync', lambda _: None))
        self.begin()

    def begin(self):
        """Begin with an empty world."""
        folder = self.useFixture(fixtures.TempDir()).path
        script = pathlib.Path(folder, 'apply.sh')
        script.write_text(APPLY)
        script.chmod(0o755)
        self.world, self.lines = World(folder), []
        self.data = str(pathlib.Path(folder, 'data'))
        self.experiment = experiments.read(DOCUMENT, 'demo.yaml')
        self.hosts = [dataclasses.replace(hosts.build(cores=4), name=name)
                      for name in NAMES]
        self.planned, _ = configurations.plan(
            self.experiment, self.hosts[0], {'base': 'default'}, 'demo.yaml')
        self.found = records.TuneRecord('demo', 'd', {})
        self.process()

    def process(self, killed_at=None):
        """Start a process."""
        self.world.actions, self.world.killed_at = [], killed_at
        self.clients = [Client(self.world, name) for name in NAMES]
        self.bench = Bench(self.world)
        self.tuning = tuning.Tuning(
            experiment=self.experiment, folder=str(self.world.folder),
            hosts=self.hosts, clients=self.clients, planned=self.planned,
            next_steps=lambda trials: STEPS[len(trials):], bench=self.bench,
            records=Records(self.data, self.world), data=self.data,
            connect=lambda server_id, *_: server_id,
            connect_native=lambda host: targets.Target(Place(), host),
            show=Shown, not_started=NotStartedError, say=self.lines.append,
            by='test')

    def run_(self):
        found = self.tuning.run(self.found)
        self.assertEqual([], self.world.left())
        return found

    def recorded(self):
        return records.TuneRecords(self.data).find('demo', 'd')

    def figures(self, found):
        return [(made.step, made.runs, made.guests) for made in found.trials]

    def applied(self):
        path = self.world.folder / 'applied'
        return path.read_text().splitlines() if path.exists() else []

    def test_the_trials_are_made_and_everything_is_restored(self):
        found = self.run_()
        self.assertEqual(self.recorded(), found)
        self.assertEqual(STEPS, tuple(made.step for made in found.trials))
        self.assertNotEqual('', found.ended_at)
        for made in found.trials[1:]:
            quota, paging = made.step.levels
            speed, failed = made.runs['npb-ep']
            self.assertAlmostEqual(
                math.log(made.guests) - 0.5 * quota - 0.25 * paging,
                speed.speed)
            self.assertIsNone(failed.speed)
            self.assertGreater(made.shootdowns, 0)
        self.assertIsNone(found.trials[0].shootdowns)
        # Once for each whole plot, and at the end.
        self.assertEqual(
            ["n1 ept: '0'", 'n1 {}', "n2 ept: '0'", "n1 ept: '0'", 'n1 {}',
             'n2 {}'], self.applied())
        self.assertEqual(len(STEPS), len(set(self.bench.measured)))
        # Nothing is left to do.
        self.process()
        self.assertEqual(self.figures(found), self.figures(self.run_()))
        self.assertEqual([], self.bench.measured)

    def test_a_process_killed_at_any_step_is_continued_or_given_up(self):
        whole = self.figures(self.run_())
        for killed_at in range(len(self.world.actions)):
            self.begin()
            self.process(killed_at)
            self.assertRaises(KilledError, self.tuning.run, self.found)
            self.process()
            if killed_at % 2:
                self.assertEqual(whole, self.figures(self.run_()), killed_at)
                continue
            self.tuning.run(self.found, only_restore=True)
            self.assertEqual([], self.world.left(), killed_at)
            self.assertEqual([], self.bench.measured)

    def test_a_trial_may_fail_twice(self):
        self.clients[0].errors = [NotStartedError('no host'),
                                  exception.ConnectionLost('no route')]
        found = self.run_()
        self.assertEqual(len(STEPS), len(found.trials))

    def test_guests_that_never_start_end_the_run(self):
        self.clients[1].errors = [NotStartedError('no page')] * 9
        error = self.assertRaises(exception.Unreachable, self.tuning.run,
                                  self.found)
        self.assertEqual('trial 5, screen, n2, quota=half, paging=off: failed '
                         '3 times: no page', str(error))
        self.assertEqual([], self.world.left())
        self.assertEqual(4, len(self.recorded().trials))
        self.assertEqual('', self.recorded().ended_at)
        self.process()
        self.assertEqual(len(STEPS), len(self.run_().trials))

    def test_a_missing_program_ends_the_run_at_once(self):
        self.clients[0].errors = [exception.NotInstalled('no ep.C.x')]
        self.assertRaises(exception.NotInstalled, self.tuning.run, self.found)
        self.assertEqual([], self.world.left())

    def test_a_host_that_is_not_changed_ends_the_run(self):
        broken = self.world.folder / 'broken'
        self.bench.disturb = broken.touch
        error = self.assertRaises(exception.Unreachable, self.tuning.run,
                                  self.found)
        self.assertEqual(
            'apply: the settings of n1 are not changed: ./apply.sh ended with '
            'status 3: no ssh', str(error))
        # A host with unknown settings must not take work.
        self.assertEqual([quarantine.TUNE], self.world.left())
        self.assertEqual('', self.tuning.records.read_settings('n1'))
        self.assertIn('n1 could not be restored', self.lines[-1])
        self.process()
        error = self.assertRaises(exception.Unreachable, self.tuning.run,
                                  self.found, only_restore=True)
        self.assertIn('not restored: n1: apply: ', str(error))
        broken.unlink()
        self.tuning.run(self.found, only_restore=True)
        self.assertEqual([], self.world.left())
        self.process()
        self.assertEqual(len(STEPS), len(self.run_().trials))

    def test_signals_restore_the_hosts(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.begin()

            def disturb(number=number):
                if len(self.bench.measured) == 2:
                    os.kill(os.getpid(), number)
            self.bench.disturb = disturb
            with command.interrupting_sigterm():
                self.assertRaises(KeyboardInterrupt, self.tuning.run,
                                  self.found)
            self.assertEqual([], self.world.left())
            self.assertEqual(2, len(self.recorded().trials))
            self.process()
            self.assertEqual(len(STEPS), len(self.run_().trials))
            # The trial that was interrupted has new guests.
            self.assertNotEqual('2', self.bench.measured[0][-1:])

    def test_the_time_is_limited_over_all_invocations(self):
        self.found = dataclasses.replace(self.found, trials=(trial.Trial(
            STEPS[0], {'npb-ep': (trial.TrialRun(1.0),)},
            began_at='2026-11-27T10:00:00+00:00',
            ended_at='2026-11-27T11:00:00+00:00'),))
        found = self.run_()
        self.assertEqual(1, len(found.trials))
        self.assertEqual(['The limit of 1 hours was reached.'], self.lines)
        self.assertNotEqual('', found.ended_at)

    def test_a_second_process_is_refused(self):
        self.bench.disturb = lambda: self.assertRaises(
            exception.Unreachable, self.tuning.run, self.found)
        self.run_()


class TuneRecordsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.data = self.useFixture(fixtures.TempDir()).path
        self.records = records.TuneRecords(self.data)
        self.found = records.TuneRecord(
            'demo', 'd', {'--user': 'root'}, (trial.Trial(
                STEPS[1], {'npb-ep': (trial.TrialRun(1.5, 2.0),
                                      trial.TrialRun(None))}, 2, 'r', 0.5,
                'then', 'now'),))

    def test_what_is_written_is_read(self):
        self.assertIsNone(self.records.find('demo', 'd'))
        self.records.write(self.found)
        self.assertEqual(self.found, self.records.find('demo', 'd'))

    def test_another_document_of_the_same_name_is_refused(self):
        self.records.write(self.found)
        error = self.assertRaises(exception.InvalidInput, self.records.find,
                                  'demo', 'other')
        self.assertIn('is the record of another document', str(error))

    def test_a_damaged_record_is_refused(self):
        self.records.write(self.found)
        path = pathlib.Path(self.records.path('demo'))
        path.write_text(path.read_text().replace('"screen"', '"other"'))
        self.assertRaises(exception.InvalidInput, self.records.find, 'demo',
                          'd')

    def test_other_options_are_refused(self):
        self.records.write(self.found)
        options = {'--user': 'root'}
        self.assertEqual(self.found, self.records.find('demo', 'd', options))
        error = self.assertRaises(exception.InvalidInput, self.records.find,
                                  'demo', 'd', {'--user': 'other'})
        self.assertIn('was begun with --user root', str(error))

    def test_the_settings_of_a_host_are_kept(self):
        self.records.write(self.found)
        for settings in (None, '', 'k', None):
            self.records.write_settings('n1', settings)
            self.assertEqual(settings, self.records.read_settings('n1'))
