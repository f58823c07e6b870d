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

"""Run what is planned, sample by sample, and keep each as it is finished.

Nothing here decides: what is run is a :class:`Plan`, in which order is said
by :mod:`hpcvirt.bench.run.schedule`, what an output is worth by the parsers. A
plan that was interrupted, by whatever, goes on where it stopped when the same
plan is run again.
"""

import dataclasses
import datetime
import hashlib
import json
import posixpath
import uuid
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import Protocol

from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import binaries
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule

#: Argument lists that make binaries.
Builds = tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run of a plan.

    :ivar parts: what each arm starts for a sample, at once; an unpaired run
        needs the guest's alone
    :ivar launch: state that the guest has to be in
    :ivar bounds: the user's own; the definition's hold for other metrics
    """

    parts: Mapping[record.Arm, tuple[sampler.Part, ...]]
    pairs: int
    warm_ups: int
    purpose: record.Purpose
    host: str = ''
    shape: str = ''
    bounds: Mapping[str, judgement.Bound] = dataclasses.field(
        default_factory=dict)
    launch: record.Launch | None = None
    study: str | None = None
    case: str | None = None

    @property
    def guests(self) -> tuple[sampler.Part, ...]:
        return self.parts[record.Arm.GUEST]

    @property
    def task(self) -> run_spec.Task:
        """What is run, in the first guest if there are several."""
        return self.guests[0].task

    @property
    def every_part(self) -> tuple[sampler.Part, ...]:
        """Of both arms, native first."""
        return (*self.parts.get(record.Arm.NATIVE, ()), *self.guests)


class Watcher(Protocol):
    """Who is told how a plan goes."""

    def entry(self, entry: stores.Entry, continued: bool) -> None:
        """A result was begun, or is gone on with."""

    def sample(self, run: record.Run, slot: schedule.Slot,
               total: int) -> None:
        """A sample is begun; the run has so many in all."""

    def tick(self, elapsed_s: float) -> None:
        """The sample still runs."""

    def done(self, sample: record.Sample) -> None:
        """The sample is finished and kept."""

    def left(self, what: str) -> None:
        """Something could not be removed."""


def execute(plan: tuple[Planned, ...], store: stores.Store,
            software: Mapping[str, str], watcher: Watcher) -> str:
    """Run a plan to its end.

    :returns: the id of the entry in the store
    :raises Unreachable: if a place or the store is gone for good; finished
        samples are kept
    """
    fresh = stores.Entry(uuid.uuid4().hex[:16], fingerprint(plan), _now(),
                         None)
    entry = store.open_entry(fresh, software)
    watcher.entry(entry, continued=entry.id != fresh.id)
    for number, planned in enumerate(plan):
        run = _run(planned, f'{entry.id}-{number}')
        store.add_run(entry.id, number, run)
        taken = store.result(entry.id).runs[number].samples
        run = dataclasses.replace(run, samples=taken)
        for sample in _samples(planned, run, store, watcher):
            run = dataclasses.replace(run, samples=(*run.samples, sample))
        for part in planned.every_part:
            for left in sampler.clean(part, run.id):
                watcher.left(left)
    store.finish(entry.id, _now())
    return entry.id


def fingerprint(plan: tuple[Planned, ...]) -> str:
    """Digest what is asked for: the same digest is the same question."""
    asked = [{
        'benchmark': planned.task.made.name,
        'parts': {arm: [_asked(part) for part in parts]
                  for arm, parts in planned.parts.items()},
        'pairs': planned.pairs,
        'warm_ups': planned.warm_ups,
        'purpose': planned.purpose,
        'host': planned.host,
        'shape': planned.shape,
        'launch': planned.launch,
        'bounds': serialization.to_plain(planned.bounds),
        'case': [planned.study, planned.case],
    } for planned in plan]
    text = json.dumps(asked, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _asked(part: sampler.Part) -> dict[str, Any]:
    return {
        'command': part.command,
        'parameters': part.task.parameters,
        'products': part.task.builds,
        'places': [seat.place.name for seat in part.seats],
    }


def _samples(planned: Planned, run: record.Run, store: stores.Store,
             watcher: Watcher) -> Iterator[record.Sample]:
    missing = schedule.missing(run)
    if not missing:
        return
    total = len(missing) + len(run.samples)
    beside = _binaries(planned, run)
    for slot in missing:
        watcher.sample(run, slot, total)

        def keep(name: str, content: bytes,
                 position: int = slot.position) -> record.RawOutput:
            return store.keep_raw(run.id, position, name, content)
        parts = planned.parts[slot.arm]
        launch = planned.launch
        if slot.warm_up or slot.arm is record.Arm.NATIVE:
            launch = None
        sample = sampler.take(
            parts, run.id, slot, [beside[part.task.builds] for part in parts],
            keep, watcher.tick, launch)
        store.add_sample(run.id, sample)
        watcher.done(sample)
        yield sample


def _binaries(planned: Planned,
              run: record.Run) -> dict[Builds, dict[str, bytes]]:
    """Build what is the same once, and put it wherever it is run.

    :returns: what lies beside the programs, by how it was built
    """
    users: dict[Builds, list[sampler.Part]] = {}
    for part in planned.every_part:
        users.setdefault(part.task.builds, []).append(part)
    beside = {}
    for builds, parts in users.items():
        builder = parts[0].seat
        products = binaries.build(
            parts[0].task, builder.place,
            posixpath.join(builder.directory, run.id, 'build'))
        beside[builds] = binaries.distribute(products, [
            seat.place for part in parts for seat in part.seats])
    return beside


def _run(planned: Planned, run_id: str) -> record.Run:
    task, guests = planned.task, planned.guests
    parameters = aggregation.merge([part.label for part in guests],
                                   [part.task.parameters for part in guests])
    return record.Run(
        id=run_id, benchmark=task.made.name, variant=task.variant.name,
        samples=(), parameters=parameters, host=planned.host,
        shape=planned.shape, purpose=planned.purpose,
        planned_pairs=planned.pairs, planned_warm_ups=planned.warm_ups,
        bounds=dict(planned.bounds), launch=planned.launch,
        study=planned.study, case=planned.case, started_at=_now())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
