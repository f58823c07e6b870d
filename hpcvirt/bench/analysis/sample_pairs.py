# SPDX-License-Identifier: Apache-2.0

"""Convert the samples of a run to pairs of values, if they are valid."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.analysis import confounders
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import expectation

#: Fewer losses cannot decide anything.
MIN_PAIRS = 5
#: Fewer pairs do not pass: a guest that is fast at first and slow later still
#: passes after five pairs.
MIN_PASS_PAIRS = 10


@dataclasses.dataclass(frozen=True)
class MetricValues:
    """The values of one metric on both sides.

    :ivar pairs: numbers of the pairs, empty if the sides are not paired
    :ivar launches: the launch id of each guest value; empty if at least one is
        unknown
    :ivar boots: the boot id that the guest itself reported for each value;
        empty if at least one is unknown
    """

    native: tuple[float, ...]
    guest: tuple[float, ...]
    pairs: tuple[int, ...]
    launches: tuple[str, ...] = ()
    boots: tuple[str, ...] = ()


def explain_invalid(run: record.Run) -> str | None:
    """Return why a run is invalid, None if it is valid.

    A run is invalid if any sample, warm-ups included, failed its own check,
    or if the samples did not run the same thing on the same kind of machine.
    """
    failed = [sample for sample in run.samples if not sample.outcome.valid]
    if failed:
        first = failed[0]
        kind = 'warm-up' if first.warm_up else 'pair'
        return (f'{len(failed)} of {len(run.samples)} samples failed their '
                f'own check; the first, {first.side} {kind} {first.pair}: '
                f'{first.outcome.reason or "no reason given"}')
    return disagreement(run.samples) or confounders.find_obstacle(run)


def metrics(run: record.Run) -> tuple[str, ...]:
    """List the metrics that all samples have, in the order of the first."""
    samples = [sample for sample in run.samples if not sample.warm_up]
    if not samples:
        return ()
    return tuple(name for name in samples[0].outcome.metrics
                 if all(name in sample.outcome.metrics
                        for sample in samples))


def values(run: record.Run, metric: str) -> MetricValues:
    """Collect the values of a metric from complete pairs.

    :raises InvalidInput: if a pair has two samples on one side
    """
    sides: dict[record.Side, dict[int, record.Sample]] = {
        side: {} for side in record.Side}
    for sample in run.samples:
        if (sample.warm_up or sample.control
                or metric not in sample.outcome.metrics):
            continue
        if sample.pair in sides[sample.side]:
            raise exception.InvalidInput(
                run.label, f'pair {sample.pair} has two {sample.side} samples')
        sides[sample.side][sample.pair] = sample
    native, guest = sides[record.Side.NATIVE], sides[record.Side.GUEST]
    pairs: tuple[int, ...] = ()
    if run.purpose is not record.Purpose.UNPAIRED:
        # The number of pairs is fixed in advance. Pairs beyond it, which may
        # have been added until the result looked right, do not count.
        pairs = tuple(sorted(pair for pair in native.keys() & guest.keys()
                             if pair < run.planned_pairs))
        native, guest = ({pair: side[pair] for pair in pairs}
                         for side in (native, guest))
    launches = tuple(sample.launch_id for sample in guest.values())
    boots = tuple(boot(sample.environment) for sample in guest.values())
    measured = [tuple(sample.outcome.metrics[metric].value
                      for sample in side.values()) for side in (native, guest)]
    return MetricValues(
        measured[0], measured[1], pairs,
        launches if all(launches) else (), boots if all(boots) else ())


def controls(run: record.Run, metric: str) -> MetricValues:
    """Collect the controls of a run with the native samples next to them.

    :returns: the first of each two native samples as native, the second as
        guest
    """
    found: dict[int, list[record.Sample]] = {}
    for sample in sorted(run.samples, key=lambda sample: sample.position):
        if sample.side is record.Side.NATIVE and not sample.warm_up and (
                metric in sample.outcome.metrics):
            found.setdefault(sample.pair, []).append(sample)
    both = {pair: [sample.outcome.metrics[metric].value for sample in samples]
            for pair, samples in found.items()
            if sorted(sample.control for sample in samples) == [False, True]}
    return MetricValues(tuple(first for first, _ in both.values()),
                        tuple(second for _, second in both.values()),
                        tuple(both))


def boot(environment: Mapping[str, str]) -> str:
    """Return the boot ids of all guests of a sample, empty if unknown."""
    return ' '.join(environment[name] for name in sorted(environment)
                    if name.partition('@')[0] == 'boot_id')


def explain_too_few(run: record.Run, found: MetricValues) -> str | None:
    """Return why there are too few values for a verdict, None if enough."""
    count = min(len(found.native), len(found.guest))
    what = 'samples on a side' if not found.pairs and count else 'pairs'
    if count < MIN_PAIRS:
        return f'{count} {what}, at least {MIN_PAIRS} are needed'
    if run.purpose is not record.Purpose.UNPAIRED and (
            count < run.planned_pairs):
        return f'only {count} of the {run.planned_pairs} planned pairs exist'
    return None


def disagreement(samples: Sequence[record.Sample]) -> str | None:
    """Return how samples did not run the same thing, None if they did."""
    def differ(what: str, one: object, first: record.Sample, other: object,
               second: record.Sample) -> str:
        return (f'not the same {what} is {one} in {first.side} pair '
                f'{first.pair} and {other} in {second.side} pair '
                f'{second.pair}')
    for second in samples[1:]:
        first = samples[0]
        before, now = first.outcome.parameters, second.outcome.parameters
        for name in {**before, **now}:
            one, other = before.get(name), now.get(name)
            # The name may have a guest as its suffix: ``N@GUEST``.
            kind = first.outcome.kinds.get(name.partition('@')[0])
            if one is None or other is None or not expectation.is_same(
                    kind, one, other):
                return differ(f'run: {name}', one, first, other, second)
    figures: dict[str, tuple[str, record.Sample]] = {}
    for sample in samples:
        for name, metric in sample.outcome.metrics.items():
            shown = f'{metric.unit} ({metric.direction})'
            unit, first = figures.setdefault(name, (shown, sample))
            if unit != shown:
                return differ(f'figure: {name}', unit, first, shown, sample)
    return None
