# SPDX-License-Identifier: Apache-2.0

"""A cloud with a host that is accepted, and a process that may fail."""

import dataclasses
import datetime
import functools
import os

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import host_acceptance
from hpcvirt.acceptance import records
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import target as targets
from hpcvirt.model import quarantine
from tests.builders import places
from tests.builders import runs

HOST = 'n1'
#: How many instances of a flavor fill the host.
FILLING = {'hpc.8c': 4, 'hpc.16c': 2}
NATIVE = (100, 104, 99, 103, 98, 105, 97, 102, 101, 96)
#: One program that needs no source of its own.
REQUEST = run_request.find(['stream'], run_request.read_settings(
    ['source=/opt/stream.c'], '--set'))[0]
#: What a host prints of itself: a link, and the time since it was booted.
_PORT, _CARD = (f'sys/bus/pci/devices/0000:{address}'
                for address in ('40:01.0', '41:00.0'))
FILES = {
    'proc/uptime': '1000.00 900.0',
    f'{_PORT}/class': '0x060400', f'{_PORT}/secondary_bus_number': '65',
    f'{_PORT}/max_link_speed': '16.0 GT/s PCIe',
    f'{_PORT}/max_link_width': '16',
    f'{_CARD}/class': '0x020000',
    f'{_CARD}/current_link_speed': '16.0 GT/s PCIe',
    f'{_CARD}/current_link_width': '16',
    f'{_CARD}/max_link_speed': '16.0 GT/s PCIe',
    f'{_CARD}/max_link_width': '16'}
WIDTH = f'{_CARD}/current_link_width'

save = saved_document.save


class KilledError(BaseException):
    """The process does nothing any more."""


class NotStartedError(exception.HpcvirtError):
    """Nova did not start the instances."""


class Store:
    """Results in memory, with their earlier attempts.

    :ivar omitted: number of attempts that are too old to be known
    """

    def __init__(self, read_clock):
        self.omitted, self._read_clock = 0, read_clock
        self._entries, self._runs = {}, {}

    def open_entry(self, plan):
        """Return the unfinished entry of a plan, or a new one.

        :returns: the entry, and whether it is continued
        """
        for entry in self._entries.values():
            if entry.plan == plan and entry.finished_at is None:
                return entry, True
        number = len(self._entries)
        entry = stores.Entry(f'result{number}', plan, self._read_clock(),
                             None)
        self._entries[entry.id] = entry
        return entry, False

    def add_run(self, entry, run):
        before = [self._runs[other.id] for other in self._entries.values()
                  if other.plan == entry.plan and other.finished_at]
        self._runs[entry.id] = dataclasses.replace(
            run, id=entry.id, started_at=entry.started_at,
            omitted=self.omitted, earlier=tuple(
                record.Attempt(each.id, each.started_at, each.planned_pairs,
                               each.samples) for each in before))

    def finish(self, entry):
        self._entries[entry.id] = dataclasses.replace(
            entry, finished_at=self._read_clock())

    def result(self, entry_id):
        return record.Result(tuple(
            run for run in self._runs.values() if run.id == entry_id))

    def entries(self):
        return tuple(self._entries.values())

    def results(self, entries):
        for entry in entries:
            yield entry, self.result(entry.id)


class World:
    """A host in its cloud, and a process that may end at each operation.

    :ivar actions: names of the operations of the process, in their order
    :ivar fails: the number of the operation that fails, and its exception
    :ivar holds: who holds the host in quarantine -> why, since when
    :ivar traits: the traits of the host
    :ivar instances: the instances of the acceptance -> their flavor
    :ivar created: what else the acceptance has created
    :ivar foreign: number of instances of others
    :ivar files: what the host says of its hardware
    :ivar speed: the speed of a guest, 1 is as fast as native
    :ivar own_speed: the speed of the host, 1 is as fast as others of its class
    :ivar measured: what was measured, in order
    :ivar samples: number of samples after which a measurement is interrupted
        by :attr:`interrupt`
    """

    def __init__(self, data):
        self.data, self.store = data, Store(self.read_clock)
        self.actions, self.fails = [], None
        self.holds, self.traits = {}, {'HW_CPU_X86_VMX'}
        self.instances, self.created, self.foreign = {}, set(), 0
        self.files, self.speed, self.own_speed = dict(FILES), 1.0, 1.0
        self.measured, self.interrupt = [], lambda: None
        self._number, self._public_key = 0, ''
        self._now = datetime.datetime(2026, 11, 28, tzinfo=datetime.UTC)

    def read_clock(self):
        """Return the time, which passes between any two looks at it."""
        self._now += datetime.timedelta(seconds=1)
        return self._now.isoformat(timespec='seconds')

    def act(self, name):
        if self.fails is not None and len(self.actions) >= self.fails[0]:
            error = self.fails[1]
            if not isinstance(error, KilledError):
                # An outage ends; a process that was killed does nothing more.
                self.fails = None
            raise error
        self.actions.append(name)

    def write(self, path, found):
        self.act('write')
        save(path, found)

    def hold(self, reason, since):
        self.act('hold')
        self.holds[quarantine.ACCEPT] = (reason, since)

    def release(self):
        self.act('release')
        assert not self.instances
        self.holds.pop(quarantine.ACCEPT, None)

    def left(self):
        """What an acceptance that ended should not have left."""
        return [*self.instances, *self.created, *(
            name for name in os.listdir(os.path.join(self.data, 'acceptances'))
            if not name.endswith('.json'))]

    def check_free(self, host):
        self.act('check')
        assert host == HOST
        # Later instances of others cannot get here.
        assert quarantine.ACCEPT in self.holds
        if self.foreign:
            raise exception.InvalidInput(
                f'host {host}', f'has {self.foreign} instance of others')

    def fill(self, flavor, count, without, public_key):
        self.act('fill')
        assert set(without) == set(acceptance.TRAITS)
        assert public_key.startswith('ecdsa-')
        self.created.add('key pair')
        for name in [name for name, other in self.instances.items()
                     if other != flavor]:
            self.act('delete')
            del self.instances[name]
        for _ in range(count - len(self.instances)):
            self.act('boot')
            self._number += 1
            self.instances[f'i{self._number}'] = flavor
            self._public_key = public_key
        # An instance has the key with which it was started.
        assert public_key == self._public_key
        return tuple(self.instances)

    def stop(self):
        self.act('stop')
        self.instances.clear()

    def clear(self):
        self.act('clear')
        self.instances.clear()
        self.created.clear()

    def set_traits(self, earned, of):
        self.act('traits')
        self.traits = self.traits - set(of) | set(earned)

    def measure(self, native, ids, flavor, key_file, shown):
        """Measure in instances, as :func:`measurement.measure` does.

        :param native: whether they are compared with native
        """
        self.act('measure')
        assert os.path.exists(key_file)
        assert list(ids) == list(self.instances)
        assert len(ids) == FILLING[flavor]
        entry, is_continued = self.store.open_entry(flavor)
        shown.opened(entry, is_continued)
        # No two attempts have the same figures.
        attempt = 1 + len(self.store.entries()) / 1e5
        guest = [value * self.speed * attempt * (1 + 0.002 * (-1) ** number)
                 for number, value in enumerate(NATIVE)]
        self._run(entry, shown, runs.run(
            [value * attempt for value in NATIVE], guest) if native else
            make_class_run(HOST, self.own_speed * self.speed, flavor))
        self.measured.append(flavor)
        return entry.id

    def _run(self, entry, shown, whole):
        """Add the samples of a run, half of them before the rest."""
        half = len(whole.samples) // 2
        for samples in (whole.samples[:half], whole.samples):
            shown.tick(0.0)
            self.store.add_run(entry, dataclasses.replace(
                whole, samples=samples))
            self.interrupt()
        self.act('measured')
        self.store.finish(entry)

    def execute(self, plan, _store, shown):
        """Measure the host itself, as :func:`measurement.execute` does."""
        self.act('gate')
        assert not self.instances
        planned, = plan.runs
        entry, is_continued = self.store.open_entry('gate')
        shown.opened(entry, is_continued)
        self._run(entry, shown, dataclasses.replace(
            make_class_run(HOST, self.own_speed, 'host'), launch=None,
            bounds=planned.run.bounds))
        self.measured.append('gate')
        return entry.id

    def pass_minute(self):
        """Let a minute pass on the host."""
        up_s = float(self.files['proc/uptime'].split()[0]) + 60
        self.files['proc/uptime'] = f'{up_s} 900.0'

    def connect_host(self):
        return targets.Target(HostPlace(self), 'ssh://n1')

    def add_class(self, shape, launch, levels=(0.99, 0.995, 1, 1.005, 1.01)):
        """Store the results of other hosts of the class."""
        for number, level in enumerate(levels):
            entry, _ = self.store.open_entry(f'{shape} peer{number}')
            self.store.add_run(entry, dataclasses.replace(
                make_class_run(f'peer{number}', level, shape), launch=launch))
            self.store.finish(entry)


class HostPlace(places.Machine):
    """The host of a world, for its gate."""

    def __init__(self, world):
        super().__init__('ssh://n1', 8)
        self._world = world
        self.guests = b''

    def run(self, argv, stdin=b'', *limits):
        files = argv[4] if machine_facts.READ in argv else ''
        if files.startswith('proc/uptime'):
            self._world.pass_minute()
            return executor.Completed(
                0, places.print_files(self._world.files), b'')
        if files == 'proc/[0-9]*/comm':
            return executor.Completed(0, places.print_files({
                f'proc/{number}/comm': 'qemu-system-x86'
                for number in range(len(self._world.instances))}), b'')
        return super().run(argv, stdin, *limits)


def make_class_run(host, speed, shape):
    """A run without native samples, in ten launches."""
    run = runs.run((), [100 * speed * (1 + number / 5000)
                        for number in range(10)], metric='triad_mb_s')
    return dataclasses.replace(
        run, benchmark='stream', variant='openmp', host=host, shape=shape,
        planned_pairs=10, bounds={}, purpose=record.Purpose.UNPAIRED,
        launch=record.Launch.WARM, samples=tuple(
            dataclasses.replace(sample, launch_id=f'boot {sample.pair}')
            for sample in run.samples))


def make_acceptance(flavors=('hpc.8c',), **fields):
    """The acceptance of the host that is asked for."""
    return acceptance.Acceptance(**{
        'host': HOST, 'request': ' '.join(flavors), 'began_at': '',
        'command': 'hpcvirt bench run a.yaml n1', 'native': 'ssh://n1',
        'benchmarks': ('stream',), 'audit': (), 'parts': tuple(
            acceptance.AcceptancePart(name, FILLING[name])
            for name in flavors), **fields})


def _parts_of_gate(world, time_limit_min, gate):
    return (world.store, records.Records(world.data), world.data,
            time_limit_min, _Shown, world.connect_host if gate else None,
            [REQUEST] if gate else (), {})


def make_gate(world):
    """A process that takes only the gate of the host of a world."""
    return host_acceptance.GateAcceptance(*_parts_of_gate(world, 60, True))


def make_process(world, asked, complain, time_limit_min=60, gate=False):
    """A process that accepts the host of a world.

    :param gate: whether it takes the gate
    """
    return host_acceptance.HostAcceptance(
        *_parts_of_gate(world, time_limit_min, gate), world,
        functools.partial(world.measure, bool(asked.native)), world.hold,
        world.release, NotStartedError, complain)


class _Shown:
    """A display that shows nothing."""

    def __getattr__(self, name):
        return lambda *_: None
