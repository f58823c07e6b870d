# SPDX-License-Identifier: Apache-2.0

"""Carry out an experiment, and restore the hosts.

Each trial is recorded before the next one begins. If the process is killed,
the same command finds the record, the instances and the samples, and
continues. In all other cases the instances, flavors and key pairs are removed
at the end, hosts with other settings get today's, and all are released from
quarantine. A host that could not be restored stays in quarantine.

The record of an experiment is a file in ``tunes``, which is replaced
atomically at each reboot and after each trial. Beside it are files for each
host: the private key of its guests, its settings if they are not today's, and
a lock while ``apply`` runs. Nothing that ``apply`` has started outlives it,
and no host is restored while something of it runs.
"""

import dataclasses
import hashlib
import json
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import yaml

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import host_lock
from hpcvirt import saved_document
from hpcvirt import serialization
from hpcvirt import waiting
from hpcvirt.acceptance import measurement
from hpcvirt.bench.results import location
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import target as targets
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.model import quarantine
from hpcvirt.tune import analysis
from hpcvirt.tune import model
from hpcvirt.tune import trial_measurement

#: How often a trial is tried whose guests do not start or answer.
ATTEMPTS = 3

#: The descriptor to which the output of ``apply`` goes.
STDERR = 2

#: The most that ``apply`` may print.
MAX_APPLY_BYTES = 64 * 2 ** 20

_Host = benchmark_instances.BenchmarkInstances


@dataclasses.dataclass(frozen=True)
class TuneRecord:
    """What an experiment has measured so far.

    :ivar digest: digest of the document and the names of its hosts
    """

    name: str
    digest: str
    trials: tuple[model.Trial, ...] = ()
    reboots: int = 0
    schema_version: int = 1


def locate(data: str, name: str, kind: str = 'json') -> str:
    """Return the file of an experiment, or one of a host.

    :param kind: ``key``, ``settings``, or ``apply`` for the lock of a host
        while it is changed
    """
    return os.path.join(data, 'tunes', f'{name}.{kind}')


def find_record(data: str, wanted: TuneRecord) -> TuneRecord:
    """Read the record of an experiment.

    :param wanted: returned if there is none
    :raises InvalidInput: if it is damaged, or was begun with another document
    """
    where = locate(data, wanted.name)
    found = saved_document.find(TuneRecord, wanted.schema_version, where)
    if found is None:
        return wanted
    if found.digest != wanted.digest:
        raise exception.InvalidInput(
            where, 'is the record of another document of the name '
            f'{wanted.name}; give the document another name')
    return found


def make_record(space: model.Space, name: str) -> TuneRecord:
    """Make the record of an experiment that has no trial yet."""
    today = space.configurations[space.today]
    text = json.dumps(serialization.dump([
        space.experiment, today.content, today.flavor, today.guests,
        [host.name for host in space.hosts]]), sort_keys=True)
    return TuneRecord(name, hashlib.sha256(text.encode()).hexdigest())


@dataclasses.dataclass(kw_only=True)
class Tuning:
    """An experiment, ready to be carried out.

    :ivar folder: the folder of the document, where ``apply`` is run
    :ivar hosts: those of the space, in its order
    :ivar data: directory of raw outputs
    :ivar connect: makes a target from the id of an instance, its flavor and
        the file of its private key
    :ivar connect_native: makes the native target of a host
    :ivar show: makes the progress display of a measurement
    :ivar say: called with a line on each step
    """

    space: model.Space
    folder: str
    cloud: cloud_quarantine.Quarantine
    hosts: Sequence[_Host]
    store: stores.Store
    data: str
    record: TuneRecord
    connect: Callable[[str, str, str], targets.Target]
    connect_native: Callable[[str], targets.Target]
    show: Callable[[], runner.Progress]
    say: Callable[[str], None]

    def run(self, only_restore: bool = False) -> tuple[model.Trial, ...]:
        """Make all trials that are missing, and restore the hosts.

        :param only_restore: make no trials
        :returns: the trials at the end, or at a limit
        :raises HpcvirtError: if a trial cannot be made or a host could not be
            restored; the record is kept
        """
        folder = os.path.dirname(locate(self.data, self.record.name))
        location.make_directory(folder)
        with saved_document.lock(
                os.path.join(folder, self.record.name),
                f'the experiment {self.record.name} runs'):
            # Another process may have continued meanwhile.
            self.record = find_record(self.data, self.record)
            self._write()
            self._end_former()
            try:
                if not only_restore:
                    self._make_trials()
            finally:
                left = [host.owner for host in self.hosts
                        if not self._restore(host)]
            if left:
                raise exception.Unreachable(f'not restored: {", ".join(left)}')
            return self.record.trials

    def _end_former(self) -> None:
        """End what a process that was killed has left of ``apply``."""
        for host in self.hosts:
            path = self._locate_lock(host.owner)
            if os.path.exists(path):
                with host_lock.lock(path, host.owner):
                    pass

    def _write(self, **changes: Any) -> None:
        """Write the record with these changes."""
        self.record = dataclasses.replace(self.record, **changes)
        saved_document.save(locate(self.data, self.record.name), self.record)

    def _make_trials(self) -> None:
        limits = self.space.experiment.limits
        deadline = time.monotonic() + 3600 * limits.hours - sum(
            made.seconds for made in self.record.trials)
        for host in self.hosts:
            self.cloud.hold(host.owner, quarantine.Hold(
                quarantine.TUNE, f'runs the experiment {self.record.name}',
                sampler.read_clock(), f'hpcvirt@{os.uname().nodename}'))
            # An instance may have started before the quarantine.
            host.check_host(host.owner)
        try:
            while due := analysis.next_steps(self.space, self.record.trials):
                if (time.monotonic() > deadline
                        or self.record.reboots > limits.reboots):
                    raise measurement.TimeUp
                self._make(due[0], deadline)
        except measurement.TimeUp:
            self.say(f'The limit of {limits.hours:g} hours or '
                     f'{limits.reboots} reboots was reached.')

    def _make(self, step: model.Step, deadline: float) -> None:
        host = self.hosts[step.block % len(self.hosts)]
        values = self.space.experiment.format_levels(step.levels)
        began = time.monotonic()
        self._set(host, step.levels)
        for left in reversed(range(ATTEMPTS)):
            self.say(f'trial {len(self.record.trials) + 1}, {step.stage}, '
                     f'{host.owner}, {values}')
            try:
                made = self._measure(host, step, began, deadline)
                break
            except exception.HpcvirtError as exc:
                host.clear()
                if not left or isinstance(exc, (
                        exception.InvalidInput, exception.NotInstalled,
                        measurement.TimeUp)):
                    raise
        self._write(trials=(*self.record.trials, made))
        host.clear()

    def _measure(self, host: _Host, step: model.Step, began: float,
                 deadline: float) -> model.Trial:
        """Start the guests or native copies of a trial, and measure."""
        wanted = self.space.configurations[step.levels]
        name = f'{self.record.name}-{len(self.record.trials)}'
        shape, shares = f'tune:{name}', tuple[frozenset[int], ...]()
        key_file = locate(self.data, host.owner, 'key')
        if step.stage is model.Stage.NATIVE:
            host.clear()
            shares = trial_measurement.split_cpus(self.space.hosts[0],
                                                  wanted.guests)
            places = [self.connect_native(host.owner) for _ in shares]
        else:
            ids = host.boot(
                name, host.add_flavor(dataclasses.replace(
                    wanted.flavor, name=name)), [host.owner] * wanted.guests,
                measurement.read_public_key(key_file, host.clear))
            places = [self.connect(each, shape, key_file) for each in ids]
            # Guests that were booted again are measured anew.
            shape = f'{shape}:{ids[0]}'
        before, begin = self._count_tlb(host), time.monotonic()
        runs = trial_measurement.measure(
            self.space.experiment, self.store, places, shape,
            measurement.TimeLimit(self.show(), deadline), key_file, shares)
        rate = (self._count_tlb(host) - before) / (time.monotonic() - begin)
        return model.Trial(step, runs, rate if rate >= 0 else None,
                           sampler.read_clock(), time.monotonic() - began)

    def _count_tlb(self, host: _Host) -> float:
        return (math.nan if self.space.experiment.native is None else
                trial_measurement.count_shootdowns(
                    self.connect_native(host.owner)))

    def _set(self, host: _Host, levels: model.Levels) -> None:
        """Give a host the settings of a configuration, if it lacks them."""
        today, settings = (
            serialization.dump(self.space.configurations[each].host_state)
            for each in (self.space.today, levels))
        path = pathlib.Path(locate(self.data, host.owner, 'settings'))
        before = saved_document.find_plain(str(path))
        if (before or today) == settings:
            return
        if not self.space.experiment.apply:
            raise exception.Unreachable(
                f'{host.owner} has settings that another experiment must '
                'restore, since this one has no key apply')
        # Guests do not survive a change of their host.
        host.clear()
        saved_document.save(str(path), 'changing')
        self._write(reboots=self.record.reboots + 1)
        self.say(f'The settings of {host.owner} are changed')
        self._apply(host.owner, self.space.configurations[levels])
        waiting.retry(lambda: host.check_host(host.owner),
                      exception.InvalidInput, measurement.SSH_S,
                      measurement.PAUSE_S)
        if settings == today:
            path.unlink()
        else:
            saved_document.save(str(path), settings)

    def _apply(self, host: str, wanted: model.Configuration) -> None:
        """Run ``apply``, which may take ten times as long as a reboot."""
        words = [word.replace('{host}', host)
                 for word in self.space.experiment.apply]
        with tempfile.TemporaryDirectory(prefix='hpcvirt-') as scratch:
            for name, plain in (('profile', wanted.content),
                                ('settings', wanted.host_values)):
                path = pathlib.Path(scratch, f'{name}.yaml')
                path.write_text(yaml.safe_dump(serialization.dump(plain)),
                                encoding='utf-8')
                words = [word.replace(f'{{{name}}}', str(path))
                         for word in words]
            try:
                with host_lock.lock(self._locate_lock(host), host) as lock:
                    status, _, _ = child_process.run(
                        words, where='apply', folder=self.folder or None,
                        limit_s=600 * self.space.experiment.reboot_minutes,
                        environment=child_environment.choose(
                            *child_environment.SITE),
                        grace_s=host_lock.GRACE_S, relay=STDERR, lock=lock,
                        most_bytes=MAX_APPLY_BYTES)
            except exception.Unreachable as exc:
                raise exception.Unreachable(
                    f'apply: the settings of {host} are not changed: {exc}',
                ) from exc
            if status:
                raise exception.Unreachable(
                    f'apply: the settings of {host} are not changed: '
                    f'{words[0]} ended with the status {status}')

    def _locate_lock(self, host: str) -> str:
        return locate(self.data, host, 'apply')

    def _restore(self, host: _Host) -> bool:
        """Restore a host, or say why that failed."""
        try:
            host.clear()
            self._set(host, self.space.today)
            self.cloud.release(host.owner, quarantine.TUNE)
        except exception.HpcvirtError as exc:
            self.say(f'{host.owner} could not be restored: {exc}; repeat the '
                     'command with --restore')
            return False
        pathlib.Path(locate(self.data, host.owner, 'key')).unlink(
            missing_ok=True)
        return True
