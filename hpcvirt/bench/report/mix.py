# SPDX-License-Identifier: Apache-2.0

"""Say what a site loses that has guests of several flavors.

The loss of a mix is the mean of the losses of its flavors, each weighted by
the cores that its guests have: study S4 calls it effective. A loss is the part
of the native work in a given time that the guests do not do.
"""

import collections
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.report import summary


def describe(parts: Sequence[tuple[summary.Shown, float]]) -> Iterator[str]:
    """Write a line for each figure that all results of a mix have.

    :param parts: each result, and its part of the cores
    """
    total = sum(part for _, part in parts)
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = (
        collections.defaultdict(list))
    for shown, part in parts:
        for key, loss in _find_losses(shown).items():
            found[key].append((loss, part))
    whole = {key: losses for key, losses in found.items()
             if len(losses) == len(parts)}
    for (benchmark, variant, metric), losses in whole.items():
        mean = sum(loss * part for loss, part in losses) / total
        each = ', '.join(f'{100 * loss:.1f}' for loss, _ in losses)
        yield (f'{benchmark} {variant} {metric}: this mix loses '
               f'{100 * mean:.1f} % (its results {each} %).')
    if not whole:
        yield 'The results of this mix have no figure in common.'


def _find_losses(shown: summary.Shown) -> dict[tuple[str, str, str], float]:
    """Find the loss of each figure that was compared with native.

    A figure that a result has of several flavors says nothing about one.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    runs = {run.label: run for run in shown.result.runs}
    judged: Sequence[judgement.Judgement] = (
        shown.result.verdict.judgements if shown.result.verdict else ())
    for item in judged:
        interval = item.mean or item.interval
        if interval is None:
            continue
        ratio = interval.ratio
        if item.direction is outcome.Direction.DOWN:
            ratio = 1 / ratio
        run = runs[item.label]
        found.setdefault((run.benchmark, run.variant, item.metric),
                         []).append(1 - ratio)
    return {key: losses[0] for key, losses in found.items()
            if len(losses) == 1}
