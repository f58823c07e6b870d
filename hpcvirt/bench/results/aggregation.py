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

"""One arm in several places at once: what their samples are together.

The same program runs in every place at the same moment; together they are one
sample. Rates add up, times and latencies are those of the slowest: who waits
for the guests of a host waits for the last of them.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation


def combine(labels: Sequence[str],
            outcomes: Sequence[outcome.Outcome]) -> outcome.Outcome:
    """Make one outcome of those of the places.

    :param labels: one per outcome, each another
    :returns: the outcome itself if there is one; invalid if any is, naming
        each that is
    """
    if len(outcomes) == 1:
        return outcomes[0]
    told = list(zip(labels, outcomes, strict=True))
    faults = [f'{label}: {made.reason}' for label, made in told
              if not made.valid]
    if faults:
        return outcome.Outcome(valid=False, reason='; '.join(faults))
    names = dict.fromkeys(name for made in outcomes for name in made.metrics)
    metrics = {}
    remarks = [f'{label}: {remark}' for label, made in told
               for remark in made.remarks]
    for name in names:
        without = [label for label, made in told if name not in made.metrics]
        if without:
            remarks.append(f'{", ".join(without)}: no {name}')
        else:
            metrics[name] = _metric([made.metrics[name]
                                     for made in outcomes])
    return outcome.Outcome(
        valid=True, reason=None, metrics=metrics,
        parameters=merge(labels, [made.parameters for made in outcomes]),
        remarks=tuple(remarks))


def merge(labels: Sequence[str],
          facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Make one mapping of those of the places.

    :returns: what all agree on under its name, what they do not under
        ``name@label``
    """
    merged: dict[str, str] = {}
    for name in dict.fromkeys(name for one in facts for name in one):
        if all(name in one and _same(name, one[name], facts[0][name])
               for one in facts):
            merged[name] = facts[0][name]
        else:
            merged.update({f'{name}@{label}': one[name] for label, one
                           in zip(labels, facts, strict=True)
                           if name in one})
    return merged


def told(merged: Mapping[str, str], name: str) -> list[str]:
    """What the places told of a fact, from what :func:`merge` made."""
    return [value for key, value in merged.items()
            if key.partition('@')[0] == name]


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Labels for places: their names, numbered where they are the same."""
    return tuple(
        name if names.count(name) == 1
        else f'{name}-{1 + names[:number].count(name)}'
        for number, name in enumerate(names))


def _metric(found: Sequence[outcome.Metric]) -> outcome.Metric:
    values = [metric.value for metric in found]
    first = found[0]
    up = first.direction is outcome.Direction.UP
    return outcome.Metric(sum(values) if up else max(values), first.unit,
                          first.direction)


def _same(name: str, one: str, other: str) -> bool:
    if name.endswith('energy'):
        return expectation.same(expectation.Kind.ENERGY, one, other)
    return one == other
