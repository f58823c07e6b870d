# SPDX-License-Identifier: Apache-2.0

"""Aggregate the outcomes of guests that ran at the same time.

The same program runs in every guest at the same moment. Rates add up; of times
and latencies the largest counts, because the user waits for the slowest guest.
"""

import itertools
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation


def combine(labels: Sequence[str],
            outcomes: Sequence[outcome.Outcome]) -> outcome.Outcome:
    """Combine the outcomes of several guests into one.

    :param labels: unique name of each guest
    :returns: the outcome itself if there is only one; invalid if any outcome
        is, with the reason of each
    """
    if len(outcomes) == 1:
        return outcomes[0]
    by_label = dict(zip(labels, outcomes, strict=True))
    faults = [f'{label}: {result.reason}'
              for label, result in by_label.items() if not result.valid]
    if faults:
        return outcome.Outcome(valid=False, reason='; '.join(faults))
    remarks: list[str] = []
    for label, result in by_label.items():
        remarks += [f'{label}: {remark}' for remark in result.remarks]
    metrics = {}
    for name in dict.fromkeys(itertools.chain.from_iterable(
            result.metrics for result in outcomes)):
        without = [label for label, result in by_label.items()
                   if name not in result.metrics]
        if without:
            remarks.append(f'{", ".join(without)}: no {name}')
        else:
            metrics[name] = _metric([result.metrics[name]
                                     for result in outcomes])
    kinds: dict[str, outcome.ParameterType] = {}
    for result in outcomes:
        kinds.update(result.kinds)
    return outcome.Outcome(
        valid=True, reason=None, metrics=metrics,
        parameters=merge(labels, [result.parameters for result in outcomes],
                         kinds),
        remarks=tuple(remarks), kinds=kinds)


def merge(labels: Sequence[str], facts: Sequence[Mapping[str, str]],
          kinds: Mapping[str, outcome.ParameterType]
          | None = None) -> dict[str, str]:
    """Merge the facts of several guests into one mapping.

    :param kinds: types by which parameters are compared; other facts are
        compared as text
    :returns: a fact on which all guests agree as ``name``, any other as
        ``name@label``
    """
    merged: dict[str, str] = {}
    for name in dict.fromkeys(itertools.chain.from_iterable(facts)):
        kind = (kinds or {}).get(name)
        if all(name in mapping and expectation.is_same(
                kind, mapping[name], facts[0][name]) for mapping in facts):
            merged[name] = facts[0][name]
        else:
            merged.update({
                f'{name}@{label}': mapping[name]
                for label, mapping in zip(labels, facts, strict=True)
                if name in mapping})
    return merged


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Make labels unique by numbering equal names."""
    return tuple(
        name if names.count(name) == 1
        else f'{name}-{1 + names[:number].count(name)}'
        for number, name in enumerate(names))


def _metric(metrics: Sequence[outcome.Metric]) -> outcome.Metric:
    figures = [metric.value for metric in metrics]
    first = metrics[0]
    up = first.direction is outcome.Direction.UP
    return outcome.Metric(sum(figures) if up else max(figures), first.unit,
                          first.direction)
