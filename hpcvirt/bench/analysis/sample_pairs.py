# SPDX-License-Identifier: Apache-2.0

"""Turn the samples of a run into pairs of values, or say why not."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.analysis import confounders
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import expectation

#: With fewer pairs the t interval is wider than any bound worth testing.
MIN_PAIRS = 5
#: Pairs if the user does not give a number, and one that decides what there is
#: to decide.
USUAL_PAIRS = 10


@dataclasses.dataclass(frozen=True)
class MetricValues:
    """The values of one metric in both sides.

    :ivar pairs: numbers of the pairs, empty if the sides are not paired
    :ivar launches: the launch of the guest for each of its values, as named
        when it was measured; empty if at least one is unknown
    :ivar boots: the same as the guest itself tells them apart
    """

    native: tuple[float, ...]
    guest: tuple[float, ...]
    pairs: tuple[int, ...]
    launches: tuple[str, ...] = ()
    boots: tuple[str, ...] = ()


def explain_invalid(run: record.Run) -> str | None:
    """Say why a run does not count at all; None if it does.

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
    """Collect both sides of a metric, pair by pair; only complete pairs.

    :raises InvalidInput: if a pair has two samples in the same side
    """
    sides: dict[record.Side,
               dict[int, float]] = {side: {} for side in record.Side}
    launches: dict[int, str] = {}
    boots: dict[int, str] = {}
    for sample in run.samples:
        if (sample.warm_up or sample.control
                or metric not in sample.outcome.metrics):
            continue
        if sample.pair in sides[sample.side]:
            raise exception.InvalidInput(
                run.label, f'pair {sample.pair} has two {sample.side} samples')
        sides[sample.side][sample.pair] = sample.outcome.metrics[metric].value
        if sample.side is record.Side.GUEST:
            launches[sample.pair] = sample.launch_id
            boots[sample.pair] = boot(sample.environment)
    native, guest = sides[record.Side.NATIVE], sides[record.Side.GUEST]
    if run.purpose is record.Purpose.UNPAIRED:
        return MetricValues(tuple(native.values()), tuple(guest.values()), (),
                            _known(launches, guest), _known(boots, guest))
    # The number of pairs was fixed in advance: pairs that were added later,
    # until the result looked right, do not count.
    complete = sorted(pair for pair in set(native) & set(guest)
                      if pair < run.planned_pairs)
    return MetricValues(tuple(native[pair] for pair in complete),
                        tuple(guest[pair] for pair in complete),
                        tuple(complete),
                        _known(launches, complete), _known(boots, complete))


def controls(run: record.Run, metric: str) -> MetricValues:
    """Collect the controls of a run with the native samples next to them.

    :returns: the first of each two native samples as native, and the second
        one as guest
    """
    found: dict[int, list[record.Sample]] = {}
    for sample in sorted(run.samples, key=lambda sample: sample.position):
        if sample.side is record.Side.NATIVE and not sample.warm_up and (
                metric in sample.outcome.metrics):
            found.setdefault(sample.pair, []).append(sample)
    both = {pair: [sample.outcome.metrics[metric].value for sample in samples]
            for pair, samples in found.items()
            if [sample.control for sample in samples] in ([True, False],
                                                          [False, True])}
    return MetricValues(tuple(first for first, _ in both.values()),
                        tuple(second for _, second in both.values()),
                        tuple(both))


def _known(launches: Mapping[int, str],
           pairs: Iterable[int]) -> tuple[str, ...]:
    found = tuple(launches[pair] for pair in pairs)
    return found if all(found) else ()


def boot(environment: Mapping[str, str]) -> str:
    """Return the boot ids of all guests of a sample, empty if unknown."""
    return ' '.join(environment[name] for name in sorted(environment)
                    if name.partition('@')[0] == 'boot_id')


def explain_too_few(run: record.Run, found: MetricValues) -> str | None:
    """Say why there are not enough values for a verdict; None if enough."""
    count = min(len(found.native), len(found.guest))
    what = 'samples in an side' if not found.pairs and count else 'pairs'
    if count < MIN_PAIRS:
        return f'{count} {what}, at least {MIN_PAIRS} are needed'
    if run.interim_analyses:
        first = run.interim_analyses[0]
        return None if count >= first else (
            f'{count} pairs, the first verdict is after {first}')
    if run.purpose is not record.Purpose.UNPAIRED and (
            count < run.planned_pairs):
        return f'only {count} of the {run.planned_pairs} planned pairs exist'
    return None


def disagreement(samples: Sequence[record.Sample]) -> str | None:
    """Say in what samples did not run the same thing; None if they did."""
    return _disagreement(samples) or _other_unit(samples)


def _disagreement(samples: Sequence[record.Sample]) -> str | None:
    for sample in samples[1:]:
        first = samples[0]
        for name in _differing(first.outcome, sample.outcome):
            return (f'not the same run: {name} is '
                    f'{first.outcome.parameters.get(name)} in {first.side} '
                    f'pair {first.pair} and '
                    f'{sample.outcome.parameters.get(name)} in {sample.side} '
                    f'pair {sample.pair}')
    return None


def _differing(left: outcome.Outcome,
               right: outcome.Outcome) -> Iterator[str]:
    for name in dict.fromkeys([*left.parameters, *right.parameters]):
        one = left.parameters.get(name)
        other = right.parameters.get(name)
        if one is None or other is None or not expectation.is_same(
                _kind(left.kinds, name), one, other):
            yield name


def _other_unit(samples: Sequence[record.Sample]) -> str | None:
    """Say which figure has two units or directions; None if none has."""
    first: dict[str, tuple[record.Sample, outcome.Metric]] = {}
    for sample in samples:
        for name, metric in sample.outcome.metrics.items():
            before, figure = first.setdefault(name, (sample, metric))
            if (figure.unit, figure.direction) != (metric.unit,
                                                   metric.direction):
                return (f'not the same figure: {name} is {figure.unit} '
                        f'({figure.direction}) in {before.side} pair '
                        f'{before.pair} and {metric.unit} '
                        f'({metric.direction}) in {sample.side} pair '
                        f'{sample.pair}')
    return None


def _kind(kinds: Mapping[str, outcome.ParameterType],
          name: str) -> outcome.ParameterType | None:
    """Find the kind of a parameter, which may be of one guest: ``N@GUEST``."""
    return kinds.get(name.partition('@')[0])
