# SPDX-License-Identifier: Apache-2.0

"""Carry out the acceptance of a host, and clean up.

Each step is recorded before the next one begins. If the process is killed, the
same request finds the record, the instances and the samples, and continues. In
all other cases the instances, the key pair and the copies of flavors are
removed at the end.

The quick gate measures the host itself for some minutes: benchmarks with a
rank on each core, and its hardware meanwhile. Its samples are stored like
those of instances; the gates of other hosts compare with them.
"""

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import hardware
from hpcvirt.acceptance import measurement
from hpcvirt.acceptance import records
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target as targets

_MINUTE_S = 60.0

#: The shape of the runs of a gate.
_SHAPE = 'host'
#: HPCC's matrix fills between a quarter of this part of the memory and all of
#: it. Its order is the same although hosts of a class report a little less or
#: more memory: sizes such as 96, 128 and 160 GiB are not near a step.
_MEMORY_FRACTION = 0.06
_BLOCK = 80


class HostClient(Protocol):
    """The operations of an acceptance on the host in its cloud."""

    def check_free(self, host: str) -> None:
        """Raise InvalidInput if the host has other instances."""

    def fill(self, flavor: str, count: int, without: Collection[str],
             public_key: str) -> Sequence[str]:
        """Start instances, unless they exist, and return their ids."""

    def stop(self) -> None:
        """Delete the instances."""

    def clear(self) -> None:
        """Remove everything that was created."""

    def set_traits(self, earned: Iterable[str], of: Collection[str]) -> None:
        """Set the earned traits, and remove the others of ``of``."""


@dataclasses.dataclass(frozen=True)
class GateAcceptance:
    """The quick gate of a host, ready to be carried out.

    :ivar data: directory of raw outputs
    :ivar time_limit_min: time limit of all measurements together
    :ivar show: makes the progress display of a measurement
    :ivar connect_host: makes a target of the host for the gate, None for an
        acceptance without one
    :ivar wanted: the benchmarks of the gate
    :ivar bounds: bounds of the user for the gate
    """

    store: stores.Store
    records: records.Records
    data: str
    time_limit_min: int
    show: Callable[[], runner.Progress]
    connect_host: Callable[[], targets.Target] | None
    wanted: Sequence[requests.RunRequest]
    bounds: Mapping[str, judgement.Bound]

    def accept(self, asked: acceptance.Acceptance) -> acceptance.Acceptance:
        """Accept the host.

        :returns: the acceptance with its decision, as it is recorded
        :raises HpcvirtError: if there is no decision; the record is kept
        """
        with saved_document.lock(
                os.path.join(self.data, f'accept-{asked.host}'),
                f'{asked.host} is being accepted'):
            begun = self.records.unfinished(asked.host, asked.request)
            found = dataclasses.replace(
                asked, parts=begun.parts if begun else asked.parts,
                gate=begun.gate if begun else None,
                machine=begun.machine if begun else {},
                began_at=begun.began_at if begun else sampler.read_clock())
            self.records.write(found)
            found = self._carry_out(
                found, time.monotonic() + _MINUTE_S * self.time_limit_min)
            self.records.write(found)
            return found

    def _carry_out(self, found: acceptance.Acceptance,
                   deadline: float) -> acceptance.Acceptance:
        """Measure, clean up, judge.

        :param deadline: time of the monotonic clock
        """
        return acceptance.decide(self._take_gate(found, deadline), None, '',
                                 sampler.read_clock())

    def _take_gate(self, found: acceptance.Acceptance,
                   deadline: float) -> acceptance.Acceptance:
        """Take the gate, unless it was taken, and read the machine."""
        if self.connect_host is None or found.gate is not None:
            return found
        target = dataclasses.replace(self.connect_host(), label=found.host,
                                     host=found.host)
        with contextlib.closing(target.place) as place:
            if count := hardware.count_guests(place):
                raise exception.InvalidInput(
                    f'host {found.host}', f'runs {count} guests; the gate '
                    'needs the whole host')
            watch = hardware.HardwareWatch(place)
            pair = _whole_host(target, watch.find_cores())
            entries, unable = [], []
            for request in self.wanted:
                try:
                    entries.append(self._measure_host(request, pair, deadline,
                                                      watch))
                except (exception.NotInstalled, measurement.TimeUp) as exc:
                    unable.append(f'{request.definition.name}: {exc}')
            watch.look()
            machine = watch.describe()
        runs: list[record.Run] = []
        for entry in entries:
            runs += self.store.result(entry).runs
        found = dataclasses.replace(
            found, machine=machine, gate=acceptance.decide_gate(
                target.named, list(watch.check()),
                self._compare(runs) if runs else None, entries, unable))
        self.records.write(found)
        return found

    def _measure_host(self, request: requests.RunRequest, pair: sides.Pair,
                      deadline: float, watch: hardware.HardwareWatch) -> str:
        definition = request.definition
        if definition.name == 'hpcc':
            request = dataclasses.replace(request, settings={
                'N': str(find_order(pair.size.memory_mib)),
                **request.settings})
        plan = plans.make(
            [request], [pair], record.Purpose.UNPAIRED, sample_pairs.MIN_PAIRS,
            shape=_SHAPE, bounds={
                name: bound for name, bound in self.bounds.items()
                if metric_definition.split(name)[0] in [
                    figure.name for figure in definition.metrics]})
        return measurement.execute(plan, self.store, measurement.TimeLimit(
            self.show(), deadline, watch.glance))

    def _compare(self, runs: Sequence[record.Run]) -> judgement.Verdict:
        """Compare the host with its class."""
        return class_verdict.judge(runs, measurement.read_runs(self.store),
                                   self.records.refused())


@dataclasses.dataclass(frozen=True)
class HostAcceptance(GateAcceptance):
    """The acceptance of a host, ready to be carried out.

    :ivar measure: measures in the instances of these ids, of a flavor, with
        the file of their private key; returns the id of the result
    :ivar not_started: the exception for instances that Nova did not start
    :ivar hold: puts the host in quarantine for a reason, since a time
    :ivar release: ends this quarantine
    :ivar complain: called with a line on what could not be removed
    """

    host: HostClient
    measure: Callable[[Sequence[str], str, str, measurement.TimeLimit], str]
    hold: Callable[[str, str], None]
    release: Callable[[], None]
    not_started: type[exception.HpcvirtError]
    complain: Callable[[str], None]

    def _carry_out(self, found: acceptance.Acceptance,
                   deadline: float) -> acceptance.Acceptance:
        self.hold('is being accepted', found.began_at)
        # An instance may have started before the quarantine.
        self.host.check_free(found.host)
        if self.connect_host is not None and found.gate is None:
            # Instances of an acceptance that was interrupted disturb it.
            self.host.stop()
        found = self._take_gate(found, deadline)
        found = (acceptance.decide(found, None, '', sampler.read_clock())
                 if found.is_stopped else self._fill(found, deadline))
        self._close(found)
        return found

    def _fill(self, found: acceptance.Acceptance,
              deadline: float) -> acceptance.Acceptance:
        """Measure instances that fill the host, clean up, judge."""
        why = last = ''
        try:
            for number, part in enumerate(found.parts):
                if part.result:
                    continue
                shown = measurement.TimeLimit(self.show(), deadline)
                try:
                    found = self._measure(found, number, shown)
                except measurement.TimeUp:
                    last = shown.result
                    why = (f'the time limit of {self.time_limit_min} '
                           f'minutes was reached while {part.flavor} was '
                           'measured')
                    break
                except self.not_started as exc:
                    why = str(exc)
                    break
        finally:
            measurement.clear(self.host.clear,
                              self.records.key_file(found.host),
                              self.complain)
        runs = self._read_runs(found, [
            *(part.result for part in found.parts if part.result),
            *([last] if last else [])])
        judged = None
        if runs:
            judged = (verdict.judge_result(record.Result(runs)).verdict
                      if found.native else self._compare(runs))
        return acceptance.decide(found, judged, why, sampler.read_clock())

    def _measure(self, found: acceptance.Acceptance, number: int,
                 shown: measurement.TimeLimit) -> acceptance.Acceptance:
        """Measure the instances of one flavor."""
        part = found.parts[number]
        key_file = self.records.key_file(found.host)
        ids = self.host.fill(part.flavor, part.instances, acceptance.TRAITS,
                             measurement.read_public_key(
                                 key_file, self.host.clear))
        entry = self.measure(ids, part.flavor, key_file, shown)
        found = dataclasses.replace(found, parts=tuple(
            dataclasses.replace(each, result=entry) if each is part else each
            for each in found.parts))
        self.records.write(found)
        # Instances of the next flavor need the whole host.
        self.host.stop()
        return found

    def _read_runs(self, found: acceptance.Acceptance,
                   results: Sequence[str]) -> tuple[record.Run, ...]:
        """Read the runs, without attempts before the last repair."""
        since = self.records.repaired_at(found.host)
        runs: list[record.Run] = []
        for result in results:
            for run in self.store.result(result).runs:
                earlier = tuple(attempt for attempt in run.earlier
                                if attempt.started_at >= since)
                runs.append(dataclasses.replace(
                    run, omitted=0 if since else run.omitted,
                    earlier=earlier))
        return tuple(runs)

    def _close(self, found: acceptance.Acceptance) -> None:
        """Set the quarantine of the host and, if decided, its traits."""
        if found.result is not judgement.VerdictResult.INCONCLUSIVE:
            self.host.set_traits(found.traits, acceptance.TRAITS)
        if found.result is judgement.VerdictResult.PASS:
            self.release()
        else:
            self.hold(f'acceptance: {found.result}, {found.reason}',
                      found.ended_at)


def _whole_host(target: targets.Target, cores: frozenset[int]) -> sides.Pair:
    """Return a host as what is measured: a CPU of each of its cores."""
    size = mpi_hosts.probe(target.place)
    if cores:
        size = dataclasses.replace(size, cpus=len(cores))
    return sides.Pair(dataclasses.replace(
        target, cpus=cores, cpu_count=size.cpus,
        prefix=cpu_affinity.confine(target.place, cores)), size)


def find_order(memory_mib: int) -> int:
    """Return the order of HPCC's matrix for a gate."""
    most = math.isqrt(int(memory_mib * 2 ** 20 * _MEMORY_FRACTION / 8))
    return _BLOCK << max(1, (most // _BLOCK).bit_length()) - 1
