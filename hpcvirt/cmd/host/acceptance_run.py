# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Carry out the acceptance of a host, and undo what it needed.

Each step is written to the record before the next one begins. After a kill
the same request finds the record, the instances and the samples, and goes on.
However it ends otherwise, the instances, the key pair and the copies of
flavors are removed.
"""

import argparse
import contextlib
import dataclasses
import datetime
import functools
import importlib.metadata
import os
import platform
import time
import urllib.parse
from collections.abc import Mapping
from collections.abc import Sequence

import paramiko

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import decision
from hpcvirt.acceptance import machine
from hpcvirt.acceptance import records
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import activity
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import arms
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import request as requests
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import stopping
from hpcvirt.bench.run import target as bench_target
from hpcvirt.cloud import flavors as cloud_flavors
from hpcvirt.cloud import guests as cloud_guests
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import progress
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.host import acceptance_state
from hpcvirt.flavors import diff

#: How long instances that run may take until they accept ssh.
SSH_S = 600.0
PAUSE_S = 2.0
_MINUTE_S = 60.0


@dataclasses.dataclass(frozen=True)
class Places:
    """What the cloud has for an acceptance.

    :ivar flavors: by name
    :ivar image: its id
    :ivar network: its id
    """

    flavors: Mapping[str, diff.Existing]
    image: str
    network: str


class _TimeUp(exception.HpcvirtError):
    """The time for the acceptance is over."""


class _Progress(progress.Terminal):
    """Shows the progress, until the time is over."""

    def __init__(self, data: str, deadline: float) -> None:
        super().__init__(data)
        self._deadline = deadline

    def sample_started(self, run: record.Run, due: schedule.PlannedSample,
                       total: int) -> None:
        self._check()
        super().sample_started(run, due, total)

    def tick(self, elapsed_s: float) -> None:
        self._check()
        super().tick(elapsed_s)

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise _TimeUp


def look(guests: cloud_guests.Guests, args: argparse.Namespace,
         parts: Sequence[acceptance.Part]) -> Places:
    """Check that the cloud has what is needed, and that the host is free.

    :raises InvalidInput: if not
    :raises Unreachable: if the cloud does not answer, or has no such image
        or network
    """
    host = guests.find_host()
    if host.obstacle:
        raise exception.InvalidInput(f'host {host.name}', host.obstacle)
    _check_free(guests)
    existing = {each.flavor.name: each
                for each in cloud_flavors.read(guests.nova)}
    for part in parts:
        if part.flavor not in existing:
            raise exception.InvalidInput(
                '--flavors', f'the cloud has no flavor {part.flavor}; '
                '"hpcvirt flavor apply" creates it')
    return Places(existing, guests.image(args.image),
                  guests.network(args.network))


def accept(guests: cloud_guests.Guests, places: Places,
           asked: acceptance.Acceptance,
           wanted: Sequence[requests.Request],
           own_bounds: Mapping[str, judgement.Bound],
           args: argparse.Namespace,
           ) -> tuple[acceptance.Acceptance, str]:
    """Accept a host.

    :returns: what was decided, and the file with it
    :raises HpcvirtError: if it cannot be decided; the record is kept
    """
    kept = records.Records(args.data)
    state = acceptance_state.HostState(guests.nova, args)
    store = store_arguments.open_store(args)
    try:
        with activity.measuring(args.data, f'accept-{args.host}'):
            begun = kept.unfinished(args.host, asked.request)
            found = dataclasses.replace(
                asked, began_at=begun.began_at if begun else _now(),
                parts=begun.parts if begun else asked.parts)
            kept.write(found)
            state.begin(found)
            # Something may have started before the host was held.
            _check_free(guests)
            found = _Acceptance(guests, places, wanted, own_bounds, args,
                                kept, store).carry_out(found)
            state.end(found)
            kept.write(found)
            return found, kept.path(found)
    finally:
        store.close()


def _check_free(guests: cloud_guests.Guests) -> None:
    others = guests.others()
    if others:
        raise exception.InvalidInput(
            f'host {guests.host}', f'has {len(others)} instances of others, '
            f'such as {others[0]}; an acceptance needs the whole host')


@dataclasses.dataclass(frozen=True)
class _Acceptance:
    guests: cloud_guests.Guests
    places: Places
    wanted: Sequence[requests.Request]
    own_bounds: Mapping[str, judgement.Bound]
    args: argparse.Namespace
    records: records.Records
    store: stores.Store

    def carry_out(self, found: acceptance.Acceptance,
                  ) -> acceptance.Acceptance:
        """Measure, clean up, judge."""
        deadline = time.monotonic() + _MINUTE_S * self.args.time_limit
        why = last = ''
        try:
            for number, part in enumerate(found.parts):
                if part.result:
                    continue
                shown = _Progress(self.args.data, deadline)
                try:
                    found = self._measure(found, number, shown)
                except _TimeUp:
                    last = shown.result
                    why = (f'the time limit of {self.args.time_limit} '
                           f'minutes was reached while {part.flavor} was '
                           'measured')
                    break
                except cloud_guests.NotStarted as exc:
                    why = str(exc)
                    break
                finally:
                    shown.stop()
        finally:
            self._clear()
        runs = self._runs([*(part.result for part in found.parts
                             if part.result), *([last] if last else [])])
        return decision.decide(
            found, self._judge(found, runs) if runs else None, why, _now())

    def _measure(self, found: acceptance.Acceptance, number: int,
                 shown: _Progress) -> acceptance.Acceptance:
        """Measure the guests of one flavor."""
        part = found.parts[number]
        with contextlib.ExitStack() as stack:
            pairs = self._pairs(part, stack)
            if pairs[0].native is not None and not found.machine:
                found = dataclasses.replace(
                    found, machine=machine.read(pairs[0].native.place))
            plan = plans.make(
                self.wanted, pairs,
                record.Purpose.COMPARE if self.args.native
                else record.Purpose.UNPAIRED, self.args.pairs,
                launch=record.Launch.WARM, bounds=self.own_bounds)
            try:
                entry = runner.execute(plan, self.store, _software(), shown)
            except (_TimeUp, KeyboardInterrupt):
                _stop(plan, self.store, shown.result)
                raise
        found = dataclasses.replace(found, parts=tuple(
            dataclasses.replace(each, result=entry) if each is part else each
            for each in found.parts))
        self.records.write(found)
        # Guests of the next flavor need the whole host.
        self.guests.stop()
        return found

    def _pairs(self, part: acceptance.Part,
               stack: contextlib.ExitStack) -> tuple[arms.Pair, ...]:
        """Start the guests of a flavor, and pair them with native."""
        key_file = self.records.key_file(self.args.host)
        if not os.path.exists(key_file):
            # Nobody can log in to what was started with a lost key.
            self.guests.clear()
        servers = self.guests.start(
            part.flavor, self.guests.flavor(
                self.places.flavors[part.flavor], decision.TRAITS),
            part.instances, self.places.image, self.places.network,
            _public_key(key_file))
        found = [self._target(server.id, part.flavor, key_file)
                 for server in servers]
        natives = [dataclasses.replace(targets.find(
            self.args.native, self.args.os_cloud, self.args.host_key),
            named=self.args.native)
            for _ in found] if self.args.native else []
        for each in (*found, *natives):
            stack.callback(each.place.close)
        for each in found:
            waiting.retry(functools.partial(each.place.run, ['true']),
                          exception.Unreachable, SSH_S, PAUSE_S)
        return arms.pair(found, natives)

    def _target(self, server_id: str, flavor: str,
                key_file: str) -> bench_target.Target:
        found = targets.find(
            f'server:{self.args.user}@{server_id}?key='
            + urllib.parse.quote(key_file), self.args.os_cloud,
            self.args.host_key)
        # It may run a copy of the flavor.
        return dataclasses.replace(
            found, flavor=flavor,
            facts={**found.facts, 'server.flavor': flavor})

    def _clear(self) -> None:
        """Remove everything; say what could not be removed."""
        try:
            self.guests.clear()
        except exception.HpcvirtError as exc:
            output.complain(
                f'hpcvirt: not everything was removed: {exc}; the same '
                'command removes it')
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.records.key_file(self.args.host))

    def _runs(self, results: Sequence[str]) -> tuple[record.Run, ...]:
        since = self.records.repaired_at(self.args.host)
        return tuple(
            dataclasses.replace(
                run, omitted=0 if since else run.omitted,
                earlier=tuple(attempt for attempt in run.earlier
                              if attempt.started_at >= since))
            for result in results for run in self.store.result(result).runs)

    def _judge(self, found: acceptance.Acceptance,
               runs: Sequence[record.Run]) -> judgement.Verdict | None:
        if found.native:
            return verdict.judge_result(record.Result(tuple(runs))).verdict
        stored = [run for entry in self.store.entries() if entry.finished_at
                  for run in self.store.result(entry.id).runs]
        return class_verdict.judge(runs, stored, self.records.refused())


def _stop(plan: plans.Plan, store: stores.Store, result: str) -> None:
    """Stop what runs at the native targets; the guests are deleted."""
    if not result:
        return
    for run, planned in zip(store.result(result).runs, plan.runs,
                            strict=False):
        for job in planned.jobs.get(record.Arm.NATIVE, ()):
            with contextlib.suppress(exception.Unreachable):
                stopping.stop(job.target.place, run.id, job.target.directory)


def _public_key(path: str) -> str:
    """Return the public part of the key in a file, which may be new.

    :raises Unreachable: if it cannot be read or written
    """
    try:
        if os.path.exists(path):
            key = paramiko.ECDSAKey.from_private_key_file(path)
        else:
            key = paramiko.ECDSAKey.generate()
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                              0o600), 'w', encoding='ascii') as stream:
                key.write_private_key(stream)
    except (OSError, paramiko.SSHException) as exc:
        raise exception.Unreachable(f'{path}: {exc}') from exc
    return f'{key.get_name()} {key.get_base64()}'


def _software() -> dict[str, str]:
    return {'hpcvirt': importlib.metadata.version('hpcvirt'),
            'python': platform.python_version()}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
