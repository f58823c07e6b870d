# SPDX-License-Identifier: Apache-2.0

"""Carry out the quick gate of a host.

The benchmarks run on the host itself, with a rank on each core. The samples
are stored like those of instances; the gates of other hosts compare with them.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import gate
from hpcvirt.acceptance import hardware
from hpcvirt.acceptance import measurement
from hpcvirt.acceptance import records
from hpcvirt.bench.analysis import bounds
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

MINUTE_S = 60.0


@dataclasses.dataclass(frozen=True)
class GateRun:
    """The quick gate of a host, ready to be carried out.

    :ivar wanted: the benchmarks
    :ivar bounds: bounds of the user
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
            found = self.take(
                dataclasses.replace(asked, began_at=sampler.read_clock()),
                time.monotonic() + MINUTE_S * time_limit_min)
            found = acceptance.decide(found, None, '', sampler.read_clock())
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
        target = dataclasses.replace(self.connect(), label=begun.host,
                                     host=begun.host)
        with contextlib.closing(target.place) as place:
            if count := hardware.count_guests(place):
                raise exception.InvalidInput(
                    f'host {begun.host}', f'runs {count} guests; the gate '
                    'needs the whole host')
            watch = hardware.HardwareWatch(place)
            pair = _whole_host(target, watch.find_cores())
            entries, unable = [], []
            for request in self.wanted:
                try:
                    entries.append(self._measure(request, pair, deadline,
                                                 watch))
                except (exception.NotInstalled, measurement.TimeUp) as exc:
                    unable.append(f'{request.definition.name}: {exc}')
            watch.look(at_once=True)
            machine = {**hardware.read_machine(place), **watch.describe()}
        runs = [run for entry in entries
                for run in self.store.result(entry).runs]
        verdict = class_verdict.judge(
            runs, measurement.read_runs(self.store),
            self.records.refused()) if runs else None
        return dataclasses.replace(begun, machine=machine, gate=gate.decide(
            target.named, list(watch.check()), verdict, entries, unable))

    def _measure(self, request: requests.RunRequest, pair: sides.Pair,
                 deadline: float, watch: hardware.HardwareWatch) -> str:
        definition = request.definition
        if definition.name == 'hpcc':
            request = dataclasses.replace(request, settings={
                'N': str(gate.find_order(pair.size.memory_mib)),
                **request.settings})
        plan = plans.make(
            [request], [pair], record.Purpose.UNPAIRED, gate.SAMPLES,
            shape=gate.SHAPE, bounds={
                name: bound for name, bound in self.bounds.items()
                if bounds.split(name)[0] in [
                    figure.name for figure in definition.metrics]})
        # Only a benchmark on all cores says something about their clocks.
        is_on_all = definition.variant(request.variant).ranks is (
            sizing.ProcessCount.PER_CPU)
        shown = measurement.TimeLimit(
            self.show(), deadline, watch.look if is_on_all else None)
        try:
            return runner.execute(plan, self.store,
                                  runner.read_versions('hpcvirt'), shown)
        except (measurement.TimeUp, KeyboardInterrupt):
            for run in (self.store.result(shown.result).runs
                        if shown.result else ()):
                jobs.stop_run(pair.guest.place, run.id, pair.guest.directory)
            raise


def _whole_host(target: targets.Target, cores: frozenset[int]) -> sides.Pair:
    """Return a host as what is measured: a CPU of each of its cores."""
    size = mpi_hosts.probe(target.place)
    if cores:
        size = dataclasses.replace(size, cpus=len(cores))
    return sides.Pair(dataclasses.replace(
        target, cpus=cores, cpu_count=size.cpus,
        prefix=cpu_affinity.confine(target.place, cores)), size)
