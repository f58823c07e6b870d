# SPDX-License-Identifier: Apache-2.0

"""Measure the programs of an experiment in all guests of a full host."""

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.acceptance import measurement
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target as targets
from hpcvirt.model import host as host_model
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model

#: The TLB shoot-downs since the boot: a number for each CPU, and words.
_INTERRUPTS = 'proc/interrupts'
_SHOOTDOWNS = f'{_INTERRUPTS}:^ *TLB:'


def measure(experiment: experiments.Experiment, store: stores.Store,
            guests: Sequence[targets.Target], shape: str,
            shown: measurement.TimeLimit, key_file: str,
            shares: Sequence[frozenset[int]] = (),
            ) -> dict[str, tuple[model.TrialRun, ...]]:
    """Measure all programs, or continue to measure.

    :param shape: identifies these guests among those of all trials
    :param shares: for native copies, the CPUs that each is confined to
    :returns: program -> its runs
    :raises TimeUp: at the time limit
    :raises Unreachable: if a guest does not answer
    """
    wanted = [make_request(program, experiment.never.slower_than)
              for program in experiment.programs.values()]

    def make_plan(pairs: Sequence[sides.Pair]) -> plans.RunPlan:
        copies = [_confine(pair, cpus, len(shares)) for pair, cpus
                  in zip(pairs, shares, strict=True)] if shares else pairs
        runs: list[plans.PlannedRun] = []
        for request in wanted:
            # A program that spans machines runs once on the whole host.
            own = pairs[:1] if shares and request.variant.spans else copies
            runs += plans.make([request], own, record.Purpose.UNPAIRED,
                               experiment.samples, shape=shape).runs
        return plans.RunPlan(tuple(runs))
    spans = not shares and any(request.variant.spans for request in wanted)
    entry = measurement.measure(make_plan, store, spans, guests, (), shown,
                                key_file)
    return {
        name: find_runs(run, program.metric,
                        1 if request.variant.spans else len(guests))
        for (name, program), request, run in zip(
            experiment.programs.items(), wanted, store.result(entry).runs,
            strict=True)}


def make_request(program: experiments.TunedProgram,
                 slower_than: float) -> requests.RunRequest:
    """Request the runs of a program, and stop those that hang."""
    definition, variant = catalogue.find(program.benchmark)
    # A run hangs that takes ten times as long as the document says, or twice
    # as long as must never happen, and at least a minute.
    limit_s = math.ceil(60 * max(1, program.minutes * max(
        10, 2 * slower_than)))
    return requests.RunRequest(dataclasses.replace(
        definition, time_limit_s=min(definition.time_limit_s, limit_s)),
        variant, program.settings)


def find_runs(run: record.Run, metric: str | None,
              copies: int) -> tuple[model.TrialRun, ...]:
    """Find the speed and the time of each run of a program.

    :param metric: the figure that counts; None for the only primary one
    :param copies: how often the program ran at the same time
    """
    name = metric or next(
        figure.name for figure in catalogue.get(run.benchmark).metrics
        if figure.primary)
    found = []
    for sample in run.samples:
        if sample.warm_up:
            continue
        figure = sample.outcome.metrics.get(name)
        if figure is None:
            found.append(model.TrialRun(None))
            continue
        speed = (figure.value if figure.direction is outcome.Direction.UP
                 else copies / figure.value)
        found.append(model.TrialRun(math.log(speed), sample.elapsed_s))
    return tuple(found)


def split_cpus(host: host_model.Host,
               copies: int) -> tuple[frozenset[int], ...]:
    """Split all CPUs of a host into equal parts of neighbours."""
    cpus: list[int] = []
    for cell in host.cells:
        for core in sorted(cell.siblings, key=min):
            cpus += core
    return tuple(frozenset(cpus[
        len(cpus) * number // copies:len(cpus) * (number + 1) // copies])
        for number in range(copies))


def count_shootdowns(host: targets.Target) -> float:
    """Count the TLB shoot-downs for each CPU since boot, NaN if unknown."""
    numbers: list[int] = []
    with (contextlib.closing(host.place) as place,
          contextlib.suppress(exception.Unreachable)):
        found = machine_facts.read(place, _SHOOTDOWNS)
        counts = map(words.read_whole,
                     found.row(_INTERRUPTS, 'TLB').split())
        numbers = [count for count in counts if count is not None]
    return statistics.fmean(numbers) if numbers else math.nan


def _confine(pair: sides.Pair, cpus: frozenset[int],
             copies: int) -> sides.Pair:
    """Confine a native copy to its part of the host."""
    size = pair.size
    return sides.Pair(
        dataclasses.replace(
            pair.guest, cpus=cpus, cpu_count=len(cpus),
            prefix=cpu_affinity.confine(pair.guest.place, cpus)),
        dataclasses.replace(
            size, cpus=len(cpus), memory_mib=size.memory_mib // copies,
            cells=max(1, size.cells // copies),
            llc_kib=size.llc_kib and size.llc_kib // copies))
