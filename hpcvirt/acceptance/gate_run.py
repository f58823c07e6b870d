# SPDX-License-Identifier: Apache-2.0

"""Carry out the quick gate of a host.

The benchmarks run on the host itself, with a rank on each core. The samples
are stored like those of instances; the gates of other hosts compare with them.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import fleet_report
from hpcvirt.acceptance import gate
from hpcvirt.acceptance import hardware
from hpcvirt.acceptance import measurement
from hpcvirt.acceptance import records
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import job as jobs
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import location
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target as targets

#: Seconds between two looks at the hardware.
_LOOK_S = 15.0


class _Watching(measurement.TimeLimit):
    """A progress display that looks at the hardware now and then."""

    def __init__(self, shown: runner.Progress, deadline: float,
                 look: Callable[[], None]) -> None:
        super().__init__(shown, deadline)
        self._look = look
        self._next = time.monotonic() + _LOOK_S

    def tick(self, elapsed_s: float) -> None:
        super().tick(elapsed_s)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOOK_S
            self._look()


@dataclasses.dataclass(frozen=True)
class GateRun:
    """The quick gate of hosts, ready to be carried out.

    :ivar wanted: the benchmarks
    :ivar bounds: the user's bounds
    :ivar connect: makes a target of the host itself
    :ivar show: makes the progress display of a measurement
    """

    wanted: Sequence[requests.RunRequest]
    bounds: Mapping[str, judgement.Bound]
    store: stores.Store
    records: records.Records
    connect: Callable[[], targets.Target]
    show: Callable[[], runner.Progress]

    def accept(self, asked: acceptance.Acceptance, data: str,
               time_limit_min: int) -> acceptance.Acceptance:
        """Take the gate alone, and record it.

        :param data: directory of raw outputs
        """
        with location.measure(data, f'accept-{asked.host}'):
            found = acceptance.decide(self.take(
                dataclasses.replace(asked, began_at=sampler.read_clock()),
                time.monotonic() + 60 * time_limit_min), None, '',
                sampler.read_clock())
            self.records.write(found)
        return found

    def take(self, begun: acceptance.Acceptance,
             deadline: float) -> acceptance.Acceptance:
        """Take the gate.

        :param deadline: time of the monotonic clock
        :returns: the acceptance with the gate and the facts of the machine
        :raises InvalidInput: if guests run on the host
        :raises Unreachable: if the host does not answer
        """
        target = self.connect()
        place = target.place
        with contextlib.closing(place):
            if guests := hardware.count_guests(place):
                raise exception.InvalidInput(
                    f'host {begun.host}', f'runs {guests} guests; the gate '
                    'needs the whole host')
            watch = hardware.HardwareWatch(place)
            pair = _whole_host(target, begun.host, watch.find_cores())
            entries, unable = [], []
            for request in self.wanted:
                try:
                    entries.append(self._measure(request, pair, deadline,
                                                 watch))
                except (exception.NotInstalled, measurement.TimeUp) as exc:
                    unable.append(f'{request.definition.name}: {exc}')
            watch.look()
            machine = {**hardware.read_machine(place), **watch.describe()}
        runs = [run for entry in entries
                for run in self.store.result(entry).runs]
        verdict = class_verdict.judge(
            runs, measurement.read_runs(self.store),
            self.records.refused()) if runs else None
        return dataclasses.replace(begun, machine=machine, gate=gate.decide(
            target.named, list(watch.check()), verdict, entries, unable,
            self._differences(begun.host, machine)))

    def _measure(self, request: requests.RunRequest, pair: sides.Pair,
                 deadline: float, watch: hardware.HardwareWatch) -> str:
        definition = request.definition
        spans = definition.variant(request.variant).ranks is (
            sizing.ProcessCount.PER_CPU)
        if definition.name == 'hpcc':
            request = dataclasses.replace(request, settings={
                'N': str(gate.find_order(pair.size.memory_mib)),
                **request.settings})
        plan = plans.make(
            [request], [pair], record.Purpose.UNPAIRED, gate.SAMPLES,
            shape=gate.SHAPE, bounds=gate.make_bounds(definition, self.bounds))
        # Only a benchmark on all cores says something about their clocks.
        shown = _Watching(self.show(), deadline,
                          watch.look if spans else lambda: None)
        try:
            return runner.execute(plan, self.store,
                                  runner.read_versions('hpcvirt'), shown)
        except (measurement.TimeUp, KeyboardInterrupt):
            if shown.result:
                for run in self.store.result(shown.result).runs:
                    jobs.stop_run(pair.guest.place, run.id,
                                  pair.guest.directory)
            raise

    def _differences(self, host: str,
                     machine: Mapping[str, str]) -> tuple[str, ...]:
        peers = {each.host: each.machine for each in self.records.read()
                 if each.machine.get('CPU') == machine.get('CPU')
                 and each.host != host}
        return tuple(fleet_report.find_differences(
            [machine], list(peers.values()))) if len(
                peers) >= class_verdict.MIN_PEER_HOSTS else ()


def _whole_host(target: targets.Target, host: str,
                cores: frozenset[int]) -> sides.Pair:
    """Return a host as what is measured: a CPU of each of its cores."""
    size = mpi_hosts.probe(target.place)
    if cores:
        size = dataclasses.replace(size, cpus=len(cores))
    return sides.Pair(dataclasses.replace(
        target, label=host, host=host, cpus=cores, cpu_count=size.cpus,
        prefix=cpu_affinity.confine(target.place, cores)), size)
