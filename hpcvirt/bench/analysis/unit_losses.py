# SPDX-License-Identifier: Apache-2.0

"""Convert the values of a figure to losses of pairs, launches or boots."""

import operator
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.model import outcome


def find_units(values: sample_pairs.MetricValues, *,
               of_launch: bool) -> Sequence[str]:
    """Return the launch of each value if each launch counts once, else none.

    Samples of one launch share its memory and placement, and say nothing
    about the next launch. If launches are unknown, boots count, but only from
    MIN_PAIRS boots on, because a guest may restart by accident.
    """
    units, least = ((values.launches, 2) if values.launches
                    else (values.boots, sample_pairs.MIN_PAIRS))
    return () if of_launch or len(set(units)) < least else units


def estimate(values: sample_pairs.MetricValues, direction: outcome.Direction,
             units: Sequence[str], context: losses.JudgingContext,
             before: int = 0, share: float = 1.0) -> losses.Losses:
    """Estimate the loss of a guest; each of the units counts by its mean.

    :param units: see :func:`find_units`
    :param before: number of pairs of earlier attempts, which are left out
        when the correlation is checked
    :param share: the share of a single run's chance of an error
    """
    native, guest = find_times(values, direction)
    if not values.pairs:
        return losses.Losses(stats.estimate_unpaired(native,
                                                     _means(guest, units)))
    native, guest = stragglers.replace(native, guest)
    usual = [*map(operator.sub, guest, native)]
    return losses.estimate(
        _means(find_losses(values, direction), units), _means(usual, units),
        stragglers.compare_means(native, guest), context,
        losses.explain_correlation(_means(usual[before:], units[before:]),
                                   context), share,
        varies_more=not units and losses.varies_more(native, guest))


def find_times(values: sample_pairs.MetricValues, direction: outcome.Direction,
               ) -> tuple[list[float], list[float]]:
    """Return the logarithms of the time per work of both sides."""
    native, guest = (
        [stats.loss_of_ratio(value, direction) for value in side]
        for side in (values.native, values.guest))
    return native, guest


def _means(values: Sequence[float],
           launches: Sequence[str]) -> Sequence[float]:
    """Return the mean of each launch, or the values without launches."""
    if not launches:
        return values
    return list(map(statistics.fmean, group(values, launches)))


def group(values: Sequence[float],
          launches: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return the values of each launch."""
    groups: dict[str, list[float]] = {}
    for value, launch in zip(values, launches, strict=True):
        groups.setdefault(launch, []).append(value)
    return [*groups.values()]


def find_losses(values: sample_pairs.MetricValues,
                direction: outcome.Direction) -> list[float]:
    """Return the loss of each pair."""
    native, guest = find_times(values, direction)
    return [*map(operator.sub, guest, native)]
