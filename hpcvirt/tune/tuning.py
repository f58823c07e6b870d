# SPDX-License-Identifier: Apache-2.0

"""Carry out an experiment, and restore the hosts.

Each trial is recorded before the next one begins. If the process is killed,
the same command finds the record, the instances and the samples, and
continues. In all other cases the instances, flavors and key pairs are removed
at the end, hosts with other settings get today's, and all are released from
quarantine. A host that could not be restored stays in quarantine.
"""

import contextlib
import dataclasses
import hashlib
import pathlib
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.results import location
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import target as targets
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import quarantine
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import host_command
from hpcvirt.tune import records as tune_records
from hpcvirt.tune import trial
from hpcvirt.tune import trial_measurement

_HOUR_S = 3600.0
#: How often a trial is tried whose guests do not start or answer.
ATTEMPTS = 3


class TrialHost(Protocol):
    """The operations of an experiment on a host in its cloud."""

    def check_free(self, host: str) -> None:
        """Raise InvalidInput if the host has other instances."""

    def fill(self, flavor: flavor_model.Flavor, count: int,
             public_key: str) -> Sequence[str]:
        """Start instances, unless they exist, and return their ids."""

    def wait_ready(self) -> None:
        """Wait until the host can take instances."""

    def clear(self) -> None:
        """Remove everything that was created."""

    def hold(self, hold: quarantine.Hold) -> None:
        """Put the host in quarantine."""

    def release(self, holder: str) -> None:
        """End the quarantine by a holder."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
    """An experiment, ready to be carried out.

    :ivar folder: the folder of the document, where ``apply`` is run
    :ivar hosts: in the order of the experiment
    :ivar clients: a client for each host
    :ivar next_steps: returns the next steps after the trials so far
    :ivar data: directory of raw outputs
    :ivar connect: makes a target from the id of an instance, its flavor and
        the file of its private key
    :ivar connect_native: makes a target of a host itself, None if it is not
        measured
    :ivar show: makes the progress display of a measurement
    :ivar not_started: the exception for instances that Nova did not start
    :ivar say: called with a line on each step
    :ivar by: who puts the hosts in quarantine
    """

    experiment: experiments.Experiment
    folder: str
    hosts: Sequence[host_model.Host]
    clients: Sequence[TrialHost]
    planned: Mapping[trial.Levels, configurations.Configuration]
    next_steps: Callable[[Sequence[trial.Trial]], Sequence[trial.Step]]
    bench: trial_measurement.TrialMeasurement
    records: tune_records.TuneRecords
    data: str
    connect: Callable[[str, str, str], targets.Target]
    connect_native: Callable[[str], targets.Target] | None
    show: Callable[[], runner.Progress]
    not_started: type[exception.HpcvirtError]
    say: Callable[[str], None]
    by: str

    def run(self, found: tune_records.TuneRecord,
            only_restore: bool = False) -> tune_records.TuneRecord:
        """Make all trials that are missing, and restore the hosts.

        :param found: the record so far
        :param only_restore: make no trials
        :returns: the record at the end, or at the time limit
        :raises HpcvirtError: if a trial cannot be made or a host could not be
            restored; the record is kept
        """
        location.make_directory(self.data)
        with location.measure(self.data, f'tune-{found.name}'):
            found = self._read(found)
            self.records.write(found)
            try:
                if not only_restore:
                    self._carry_out(found)
            finally:
                left = self._restore()
            if left:
                raise exception.Unreachable(f'not restored: {left[0]}')
            return self._read(found)

    def _carry_out(self, found: tune_records.TuneRecord) -> None:
        deadline = time.monotonic() + (
            _HOUR_S * self.experiment.limits.hours
            - sum(map(_seconds, found.trials)))
        held: set[int] = set()
        try:
            while due := self.next_steps(found.trials):
                if time.monotonic() > deadline:
                    raise measurement.TimeUp
                if due[0].host not in held:
                    self._hold(due[0].host)
                    held.add(due[0].host)
                found = self._make(found, due[0], deadline)
        except measurement.TimeUp:
            self.say(f'The limit of {self.experiment.limits.hours:g} hours '
                     'was reached.')
        self.records.write(dataclasses.replace(
            found, ended_at=sampler.read_clock()))

    def _hold(self, number: int) -> None:
        name, client = self.hosts[number].name, self.clients[number]
        client.hold(quarantine.Hold(
            quarantine.TUNE, f'runs the experiment {self.experiment.name}',
            sampler.read_clock(), self.by))
        # An instance may have started before the quarantine.
        client.check_free(name)

    def _make(self, found: tune_records.TuneRecord, step: trial.Step,
              deadline: float) -> tune_records.TuneRecord:
        """Make a trial."""
        number, began_at = len(found.trials), sampler.read_clock()
        host, client = self.hosts[step.host].name, self.clients[step.host]
        wanted = self.planned[step.levels]
        what = (f'trial {number + 1}, {step.stage}, {host}, '
                f'{self.experiment.format_levels(step.levels)}')
        self.say(what)
        self._set(step.host, wanted)
        for _ in range(ATTEMPTS):
            try:
                made = self._measure(
                    step, f'{found.name}-{number}', wanted,
                    measurement.TimeLimit(self.show(), deadline))
                break
            except exception.NotInstalled:
                raise
            except (self.not_started, exception.Unreachable) as exc:
                fault = str(exc)
                client.clear()
        else:
            raise exception.Unreachable(
                f'{what}: failed {ATTEMPTS} times: {fault}')
        found = dataclasses.replace(found, trials=(
            *found.trials, dataclasses.replace(
                made, began_at=began_at, ended_at=sampler.read_clock())))
        self.records.write(found)
        client.clear()
        return found

    def _measure(self, step: trial.Step, name: str,
                 wanted: configurations.Configuration,
                 shown: measurement.TimeLimit) -> trial.Trial:
        """Start the guests or native copies of a trial, and measure."""
        host, client = self.hosts[step.host], self.clients[step.host]
        shape, key_file = f'tune:{name}', self.records.key_file(host.name)
        if step.stage is trial.Stage.NATIVE:
            if self.connect_native is None:
                raise ValueError('there is no native target')
            client.clear()
            result, runs = self.bench.measure(
                [self.connect_native(host.name)
                 for _ in range(wanted.guests)], shape, shown, '',
                trial_measurement.split_cpus(host, wanted.guests))
            return trial.Trial(step, runs, wanted.guests, result)
        ids = client.fill(
            dataclasses.replace(wanted.flavor, name=name), wanted.guests,
            measurement.read_public_key(key_file, client.clear))
        guests = [self.connect(each, shape, key_file) for each in ids]
        before, begin = self._count_shootdowns(host.name), time.monotonic()
        # Guests that were booted again are measured anew.
        result, runs = self.bench.measure(guests, f'{shape}:{ids[0]}', shown,
                                          key_file)
        after, spent_s = (self._count_shootdowns(host.name),
                          time.monotonic() - begin)
        return trial.Trial(
            step, runs, wanted.guests, result,
            None if before is None or after is None
            else max(0.0, after - before) / spent_s)

    def _count_shootdowns(self, host: str) -> float | None:
        if self.connect_native is None:
            return None
        with contextlib.closing(self.connect_native(host).place) as place:
            return trial_measurement.count_shootdowns(place)

    def _set(self, number: int,
             wanted: configurations.Configuration) -> None:
        """Bring the settings of a configuration to a host, if it lacks them.

        :raises Unreachable: if that fails
        """
        host, client = self.hosts[number].name, self.clients[number]
        today, key = _make_key(self._today), _make_key(wanted)
        before = self.records.read_settings(host)
        if (today if before is None else before) == key:
            return
        # Guests do not survive a change of their host.
        client.clear()
        self.records.write_settings(host, '')
        self.say(f'{self.experiment.apply[0]}: the settings of {host} are '
                 'changed')
        host_command.apply(self.experiment, self.folder, host, wanted)
        client.wait_ready()
        self.records.write_settings(host, None if key == today else key)

    @property
    def _today(self) -> configurations.Configuration:
        return self.planned[(0,) * len(self.experiment.choices)]

    def _read(self, found: tune_records.TuneRecord) -> tune_records.TuneRecord:
        """Read what is recorded; what the caller has may be older."""
        return self.records.find(found.name, found.digest) or found

    def _restore(self) -> list[str]:
        """Restore all hosts.

        :returns: lines on those that could not be restored
        """
        left = []
        for number, host in enumerate(self.hosts):
            client = self.clients[number]
            try:
                client.clear()
                self._set(number, self._today)
                client.release(quarantine.TUNE)
                pathlib.Path(self.records.key_file(
                    host.name)).unlink(missing_ok=True)
            except exception.HpcvirtError as exc:
                left.append(f'{host.name}: {exc}')
                self.say(f'{host.name} could not be restored: {exc}; repeat '
                         'the command with --restore')
        return left


def _make_key(wanted: configurations.Configuration) -> str:
    return hashlib.sha256(repr(
        (wanted.settings, wanted.host_values)).encode()).hexdigest()


def _seconds(made: trial.Trial) -> float:
    begin, end = map(datetime.fromisoformat, (made.began_at, made.ended_at))
    return (end - begin).total_seconds()
