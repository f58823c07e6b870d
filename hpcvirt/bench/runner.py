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
by :mod:`hpcvirt.bench.schedule`, what an output is worth by the parsers. A
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
from typing import Protocol

from hpcvirt.bench import binaries
from hpcvirt.bench import executor
from hpcvirt.bench import judgement
from hpcvirt.bench import record
from hpcvirt.bench import record_json
from hpcvirt.bench import schedule
from hpcvirt.bench import store as stores
from hpcvirt.bench import taking
from hpcvirt.bench import task as tasks


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run of a plan.

    :ivar bounds: the user's own; the definition's hold for other metrics
    """

    task: tasks.Task
    pairs: int
    warm_ups: int
    purpose: record.Purpose
    host: str = ''
    shape: str = ''
    bounds: Mapping[str, judgement.Bound] = dataclasses.field(
        default_factory=dict)
    study: str | None = None
    case: str | None = None


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


def execute(plan: tuple[Planned, ...],
            arms: Mapping[record.Arm, taking.Arm], store: stores.Store,
            software: Mapping[str, str], watcher: Watcher) -> str:
    """Run a plan to its end.

    :param arms: the places; an unpaired plan needs the guest's alone
    :returns: the id of the entry in the store
    :raises Unreachable: if a place or the store is gone for good; finished
        samples are kept
    """
    fresh = stores.Entry(uuid.uuid4().hex[:16], fingerprint(plan, arms),
                         _now(), None)
    entry = store.open_entry(fresh, software)
    watcher.entry(entry, continued=entry.id != fresh.id)
    for number, planned in enumerate(plan):
        run = _run(planned, f'{entry.id}-{number}')
        store.add_run(entry.id, number, run)
        taken = store.result(entry.id).runs[number].samples
        run = dataclasses.replace(run, samples=taken)
        for sample in _samples(planned, run, arms, store, watcher):
            run = dataclasses.replace(run, samples=(*run.samples, sample))
        for arm in arms.values():
            taking.clean(arm, run.id)
    store.finish(entry.id, _now())
    return entry.id


def fingerprint(plan: tuple[Planned, ...],
                arms: Mapping[record.Arm, taking.Arm]) -> str:
    """Digest what is asked for: the same digest is the same question."""
    asked = [{
        'benchmark': planned.task.made.name,
        'command': planned.task.command,
        'parameters': planned.task.parameters,
        'products': planned.task.builds,
        'pairs': planned.pairs,
        'warm_ups': planned.warm_ups,
        'purpose': planned.purpose,
        'host': planned.host,
        'shape': planned.shape,
        'bounds': record_json.to_plain(planned.bounds),
        'case': [planned.study, planned.case],
    } for planned in plan]
    places = {arm: [where.place.name, where.prefix]
              for arm, where in arms.items()}
    text = json.dumps([asked, places], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _samples(planned: Planned, run: record.Run,
             arms: Mapping[record.Arm, taking.Arm], store: stores.Store,
             watcher: Watcher) -> Iterator[record.Sample]:
    missing = schedule.missing(run)
    if not missing:
        return
    total = len(missing) + len(run.samples)
    beside = _binaries(planned, run, arms)
    for slot in missing:
        watcher.sample(run, slot, total)

        def keep(name: str, content: bytes,
                 position: int = slot.position) -> record.RawOutput:
            return store.keep_raw(run.id, position, name, content)
        sample = taking.take(planned.task, arms[slot.arm], run.id, slot,
                             beside, keep, watcher.tick)
        store.add_sample(run.id, sample)
        watcher.done(sample)
        yield sample


def _binaries(planned: Planned, run: record.Run,
              arms: Mapping[record.Arm, taking.Arm]) -> dict[str, bytes]:
    builder = arms.get(record.Arm.NATIVE, arms[record.Arm.GUEST])
    products = binaries.build(
        planned.task, builder.place,
        posixpath.join(builder.directory, run.id, 'build'))
    places: list[executor.Executor] = [arm.place for arm in arms.values()]
    return binaries.distribute(products, places)


def _run(planned: Planned, run_id: str) -> record.Run:
    task = planned.task
    return record.Run(
        id=run_id, benchmark=task.made.name, variant=task.variant.name,
        samples=(), parameters=task.parameters, host=planned.host,
        shape=planned.shape, purpose=planned.purpose,
        planned_pairs=planned.pairs, planned_warm_ups=planned.warm_ups,
        bounds=dict(planned.bounds), study=planned.study, case=planned.case,
        started_at=_now())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
