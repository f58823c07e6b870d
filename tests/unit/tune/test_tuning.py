# SPDX-License-Identifier: Apache-2.0

"""Experiments on hosts of a world that stands in for a cloud."""

import collections
import dataclasses
import json
import math
import os
import pathlib
import signal

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt.bench.execute import executor
from hpcvirt.bench.run import target as targets
from hpcvirt.cmd import command
from hpcvirt.model import quarantine
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model
from hpcvirt.tune import tuning
from tests.builders import folders
from tests.builders import hosts

NAMES = ('n1', 'n2')
DOCUMENT = {
    'kind': 'experiment', 'schema_version': 1,
    'name': 'demo', 'fleet': 'fleet.yaml',
    'host_class': 'n',
    'programs': {'npb-ep': {'benchmark': 'npb-ep', 'minutes': 1}},
    'choices': {
        'quota': {'half': {'extra_specs': {'quota:cpu_shares': '512'}}},
        'paging': {'off': {'host': {'ept': '0'}}}},
    'limits': {'hours': 1, 'reboots': 20},
    'native': 'ssh://{host}',
    'apply': ['./apply.sh', '{host}', '{profile}', '{settings}']}
#: Both stages on both hosts, whole plots together, and a native trial.
STEPS = (
    model.Step(model.Stage.NATIVE, 0, (0, 0)),
    model.Step(model.Stage.SCREEN, 0, (0, 1)),
    model.Step(model.Stage.SCREEN, 0, (1, 1)),
    model.Step(model.Stage.SCREEN, 0, (1, 0)),
    model.Step(model.Stage.SCREEN, 1, (1, 1)),
    model.Step(model.Stage.CONFIRM, 0, (0, 1)))
APPLY = """\
#!/bin/sh
echo "$1 $(cat "$3")" >> applied
grep -q base "$2" || exit 9
if [ -e broken ]; then exit 3; fi
cp "$3" "settings.$1"
"""


save = saved_document.save


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

    def hold(self, host, hold):
        self.act('hold')
        self.holders[host].add(hold.holder)

    def release(self, host, holder):
        self.act('release')
        self.holders[host].discard(holder)

    def write(self, path, found):
        self.act('write')
        save(path, found)

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
        self.world, self.owner = world, name
        #: Errors of the next guests.
        self.errors = []

    def check_host(self, host):
        assert host == self.owner
        self.world.act('check')

    def add_flavor(self, flavor):
        self.world.act('flavor')
        self.world.created[self.owner].add(flavor.name)
        return flavor

    def boot(self, label, flavor, hosts, public_key):
        assert public_key.startswith('ecdsa-')
        assert self.world.holders[self.owner] == {quarantine.TUNE}
        assert {self.owner} == set(hosts)
        if self.errors:
            raise self.errors.pop(0)
        own = self.world.instances[self.owner]
        wanted = [f'{label}-{number}' for number in range(len(hosts))]
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

    def clear(self):
        self.world.act('clear')
        self.world.instances[self.owner].clear()
        self.world.created[self.owner].clear()


class Bench:
    """Measures the world as it is."""

    def __init__(self, world):
        self._world = world
        self.measured = []
        self.disturb = lambda: None

    def measure(self, _experiment, _store, guests, shape, shown, _key_file,
                shares):
        self._world.act('measure')
        shown.tick(0.0)
        self.disturb()
        self.measured.append(shape)
        if shares:
            assert not any(self._world.instances.values())
            return {'npb-ep': (model.TrialRun(1.0, 9.0),)}
        (host,) = {name for name in NAMES
                   for number, _ in self._world.instances[name].values()
                   if number in guests}
        specs = [each for _, each in self._world.instances[host].values()]
        assert len(specs) == len(guests)
        speed = math.log(len(guests)) - 0.5 * (
            'quota:cpu_shares' in specs[0]) - 0.25 * (
            'ept' in self._world.settings(host))
        self._world.act('measured')
        return {'npb-ep': (model.TrialRun(speed, 9.0),
                           model.TrialRun(None))}


class Shown:
    def __getattr__(self, name):
        return lambda *_: None


class Place:
    """A host that counts shoot-downs: 1000 more at each look."""

    count = 0

    def run(self, *_call):
        Place.count += 1000
        return executor.Completed(
            0, b'proc/interrupts= TLB: %d  TLB shootdowns\n' % Place.count,
            b'')

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
        folder = str(folders.make(self))
        script = pathlib.Path(folder, 'apply.sh')
        script.write_text(APPLY)
        script.chmod(0o755)
        self.world, self.lines = World(folder), []
        self.data = str(pathlib.Path(folder, 'data'))
        self.space = configurations.plan(
            experiments.read(DOCUMENT, 'demo.yaml'),
            (hosts.build(cores=4),) * 2, {'base': 'default'}, 'demo.yaml')
        self.found = tuning.TuneRecord('demo', 'd')
        self.process()

    def process(self, killed_at=None):
        """Start a process."""
        self.world.actions, self.world.killed_at = [], killed_at
        self.clients = [Client(self.world, name) for name in NAMES]
        self.bench = Bench(self.world)
        for name, new in (('saved_document.save',
                           self.world.write),
                          ('tune.trial_measurement.measure',
                           self.bench.measure),
                          ('tune.analysis.next_steps',
                           lambda _, trials: STEPS[len(trials):])):
            self.useFixture(fixtures.MonkeyPatch(f'hpcvirt.{name}', new))
        self.tuning = tuning.Tuning(
            space=self.space, folder=str(self.world.folder),
            cloud=self.world, hosts=self.clients, store=None,
            data=self.data, record=self.found,
            connect=lambda server_id, *_: server_id,
            connect_native=lambda host: targets.Target(Place(), host),
            show=Shown, say=self.lines.append)

    def run_(self):
        trials = self.tuning.run()
        self.assertEqual([], self.world.left())
        self.assertEqual(['demo.json'],
                         os.listdir(pathlib.Path(self.data, 'tunes')))
        return trials

    def recorded(self):
        return tuning.find_record(
            self.data, tuning.TuneRecord('demo', 'd')).trials

    def count_reboots(self):
        return tuning.find_record(self.data, self.found).reboots

    def figures(self, trials):
        return [(made.step, made.runs) for made in trials]

    def applied(self):
        path = self.world.folder / 'applied'
        return path.read_text().splitlines() if path.exists() else []

    def test_damaged_settings_of_a_host_leave_it_in_quarantine(self):
        self.run_()
        path = pathlib.Path(tuning.locate(self.data, 'n1', 'settings'))
        path.write_text('{')
        self.assertRaisesRegex(exception.Unreachable, 'not restored: n1$',
                               self.tuning.run, only_restore=True)
        line, = self.lines[-1:]
        self.assertIn('is not valid JSON', line)
        self.assertEqual('{', path.read_text())

    def test_the_trials_are_made_and_everything_is_restored(self):
        found = self.run_()
        self.assertEqual(self.recorded(), found)
        self.assertEqual(STEPS, tuple(made.step for made in found))
        for made in found[1:]:
            quota, paging = made.step.levels
            speed, failed = made.runs['npb-ep']
            self.assertAlmostEqual(
                -0.5 * quota - 0.25 * paging,
                speed.speed)
            self.assertIsNone(failed.speed)
            self.assertGreater(made.shootdowns, 0)
        # Once for each whole plot, and at the end.
        self.assertEqual(
            ["n1 ept: '0'", 'n1 {}', "n2 ept: '0'", "n1 ept: '0'", 'n1 {}',
             'n2 {}'], self.applied())
        self.assertEqual(len(STEPS), len(set(self.bench.measured)))
        self.assertEqual(len(self.applied()), self.count_reboots())
        # Nothing is left to do.
        self.process()
        self.assertEqual(self.figures(found), self.figures(self.run_()))
        self.assertEqual([], self.bench.measured)

    def test_a_killed_process_is_continued_or_given_up(self):
        # At some steps of each kind, by turns.
        self.assert_continued_or_given_up(13)

    def test_periodic_a_process_killed_at_any_step_is_continued(self):
        self.assert_continued_or_given_up(1)

    def assert_continued_or_given_up(self, step):
        whole = self.figures(self.run_())
        for killed_at in range(0, len(self.world.actions), step):
            self.begin()
            self.process(killed_at)
            self.assertRaises(KilledError, self.tuning.run)
            self.process()
            self.assertGreaterEqual(self.count_reboots(), len(self.applied()))
            if killed_at % 2:
                self.assertEqual(whole, self.figures(self.run_()), killed_at)
                continue
            self.tuning.run(only_restore=True)
            self.assertEqual([], self.world.left(), killed_at)
            self.assertEqual([], self.bench.measured)

    def test_a_trial_may_fail_twice(self):
        self.clients[0].errors = [NotStartedError('no host'),
                                  exception.ConnectionLost('no route')]
        self.assertEqual(len(STEPS), len(self.run_()))

    def test_guests_that_never_start_end_the_run(self):
        self.clients[1].errors = [NotStartedError('no page')] * 9
        self.assertRaises(NotStartedError, self.tuning.run)
        self.assertEqual(['trial 5, screen, n2, quota=half, paging=off'] * 3,
                         [line for line in self.lines if 'n2, ' in line])
        self.assertEqual([], self.world.left())
        self.assertEqual(4, len(self.recorded()))
        self.process()
        self.assertEqual(len(STEPS), len(self.run_()))

    def test_a_missing_program_ends_the_run_at_once(self):
        self.clients[0].errors = [exception.NotInstalled('no ep.C.x')]
        self.assertRaises(exception.NotInstalled, self.tuning.run)
        self.assertEqual([], self.world.left())

    def test_a_host_that_is_not_changed_ends_the_run(self):
        broken = self.world.folder / 'broken'
        self.bench.disturb = broken.touch
        error = self.assertRaises(exception.Unreachable, self.tuning.run)
        self.assertEqual('apply: the settings of n1 are not changed: '
                         './apply.sh ended with the status 3', str(error))
        # A host with unknown settings must not take work.
        self.assertEqual([quarantine.TUNE], self.world.left())
        self.assertEqual('changing', json.loads(pathlib.Path(
            tuning.locate(self.data, 'n1', 'settings')).read_text()))
        self.assertIn('n1 could not be restored', self.lines[-1])
        self.process()
        error = self.assertRaises(exception.Unreachable, self.tuning.run,
                                  only_restore=True)
        self.assertEqual('not restored: n1', str(error))
        broken.unlink()
        # Another experiment cannot restore it without a command.
        self.tuning.space = dataclasses.replace(
            self.space, experiment=dataclasses.replace(
                self.space.experiment, apply=()))
        self.assertRaises(exception.Unreachable, self.tuning.run,
                          only_restore=True)
        self.assertIn('n1 has settings that another experiment must restore',
                      self.lines[-1])
        self.process()
        self.tuning.run(only_restore=True)
        self.assertEqual([], self.world.left())
        self.process()
        self.assertEqual(len(STEPS), len(self.run_()))

    def test_signals_restore_the_hosts(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.begin()

            def disturb(number=number):
                if len(self.bench.measured) == 2:
                    os.kill(os.getpid(), number)
            self.bench.disturb = disturb
            with command.interrupting_signals():
                self.assertRaises(KeyboardInterrupt, self.tuning.run)
            self.assertEqual([], self.world.left())
            self.assertEqual(2, len(self.recorded()))
            self.process()
            self.assertEqual(len(STEPS), len(self.run_()))
            # The trial that was interrupted has new guests.
            self.assertNotEqual('2', self.bench.measured[0][-1:])

    def test_the_time_is_limited_over_all_invocations(self):
        self.found = dataclasses.replace(self.found, trials=(model.Trial(
            STEPS[0], {'npb-ep': (model.TrialRun(1.0),)},
            seconds=3600.0),))
        self.process()
        self.assertEqual(1, len(self.run_()))
        self.assertEqual([
            'The limit of 1 hours or 20 reboots was reached.'], self.lines)

    def test_the_reboots_are_limited(self):
        space = self.space
        self.tuning.space = dataclasses.replace(
            space, experiment=dataclasses.replace(
                space.experiment, limits=dataclasses.replace(
                    space.experiment.limits, reboots=2)))
        self.assertEqual(5, len(self.run_()))
        self.assertIn('or 2 reboots was reached', self.lines[-2])

    def test_a_second_process_is_refused(self):
        self.bench.disturb = lambda: self.assertRaises(
            exception.Unreachable, self.tuning.run)
        self.run_()


class TuneRecordTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.data = str(folders.make(self))
        self.found = tuning.TuneRecord(
            'demo', 'd', (model.Trial(
                STEPS[1], {'npb-ep': (model.TrialRun(1.5, 2.0),
                                      model.TrialRun(None))},
                0.5, 'now', 60.0),))
        self.path = pathlib.Path(tuning.locate(self.data, 'demo'))
        self.path.parent.mkdir()

    def find(self, *wanted):
        return tuning.find_record(
            self.data, tuning.TuneRecord('demo', *wanted))

    def test_what_is_written_is_read(self):
        self.assertEqual((), self.find('d').trials)
        save(str(self.path), self.found)
        self.assertEqual(self.found, self.find('d'))

    def test_another_document_of_the_same_name_is_refused(self):
        save(str(self.path), self.found)
        error = self.assertRaises(exception.InvalidInput, self.find, 'other')
        self.assertIn('is the record of another document', str(error))

    def test_a_damaged_record_is_refused(self):
        save(str(self.path), self.found)
        self.path.write_text(self.path.read_text().replace(
            '"screen"', '"other"'))
        self.assertRaises(exception.InvalidInput, self.find, 'd')

    def test_the_record_of_an_earlier_version_is_refused_in_one_line(self):
        save(str(self.path), self.found)
        self.path.write_text(self.path.read_text().replace(
            '"block"', '"host": "n1", "block"'))
        error = self.assertRaises(exception.InvalidInput, self.find, 'd')
        self.assertEqual(
            f"{self.path}: trials[0].step: unknown key 'host'; known: stage, "
            'block, levels', str(error))
