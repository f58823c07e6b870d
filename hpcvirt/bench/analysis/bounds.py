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

"""Find the bound of a metric: the definition's, or the user's own."""

import math
import re
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.analysis import conditions
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: ``latency_us[128]``
SIZED = re.compile(r'(?P<name>[^\[\]]+)\[(?P<size>[0-9]{1,15})\]')


def of_run(run: record.Run) -> dict[str, judgement.Bound]:
    """Find the default bounds of all metrics that a run measured.

    Which figures a benchmark prints is known only after it has run.

    :raises InvalidInput: if there is no definition of its benchmark
    """
    metrics = dict.fromkeys(name for sample in run.samples
                            for name in sample.outcome.metrics)
    definition = catalogue.get(run.benchmark)
    return of_definition(definition, metrics,
                         conditions.of_run(run, definition))


def of_definition(definition: definitions.Definition, metrics: Iterable[str],
                  context: Mapping[str, str]) -> dict[str, judgement.Bound]:
    """Find the default bound of each metric that has one.

    :param metrics: names as the parser gives them, with message sizes
    :param context: facts about the run, as in
        :mod:`hpcvirt.bench.analysis.conditions`
    """
    directions = {figure.name: figure.direction
                  for figure in definition.metrics}
    bounds = {}
    for metric in metrics:
        name, size = split(metric)
        for rule in definition.bounds:
            if rule.metric == name and _applies(rule, size, context):
                bounds[metric] = _bound(rule, directions[name])
                break
    return bounds


def split(metric: str) -> tuple[str, int | None]:
    """Split a metric into its name and message size, None if it has none."""
    match = SIZED.fullmatch(metric)
    if match is None:
        return metric, None
    return match['name'], int(match['size'])


def parse(text: str) -> tuple[str, judgement.Bound]:
    """Read ``METRIC=RATIO``, as a user writes it.

    :raises InvalidInput: for anything else
    """
    metric, equals, ratio = text.rpartition('=')
    if not equals or not metric.strip():
        raise exception.InvalidInput(text, 'is not METRIC=RATIO')
    return metric.strip(), judgement.Bound(_number(ratio, text),
                                           source='given by the user')


def of_overhead(text: str, direction: outcome.Direction) -> judgement.Bound:
    """Read an overhead in per cent, which slows down every metric alike.

    :param text: ``5`` or ``5%``: the guest may take 1.05 times as long
    :raises InvalidInput: if it is not a number of at least 0
    """
    slowdown = 1 + _number(text.strip().removesuffix('%'), text, 0) / 100
    up = direction is outcome.Direction.UP
    return judgement.Bound(1 / slowdown if up else slowdown,
                           source='given by the user')


def _bound(rule: definitions.BoundRule,
           direction: outcome.Direction) -> judgement.Bound:
    document = bibliography.get(rule.source)
    return judgement.Bound(
        _ratio(rule, direction), rule.margin,
        f'{document.citation}, {rule.line}', rule.kind, rule.conditions)


def _ratio(rule: definitions.BoundRule,
           direction: outcome.Direction) -> float:
    slowdown = rule.slowdown_at_most
    if slowdown is not None:
        return 1 / slowdown if direction is outcome.Direction.UP else slowdown
    limits = (rule.at_least, rule.at_most)
    return next(limit for limit in limits if limit is not None)


def _applies(rule: definitions.BoundRule, size: int | None,
             context: Mapping[str, str]) -> bool:
    if rule.below_bytes is not None and (
            size is None or size >= rule.below_bytes):
        return False
    if rule.above_bytes is not None and (
            size is None or size <= rule.above_bytes):
        return False
    return all(context.get(key) == value for key, value in rule.when.items())


def _number(text: str, where: str,
            least: float = judgement.SMALLEST) -> float:
    try:
        number = float(text)
    except ValueError as exc:
        raise exception.InvalidInput(
            where, f'{text!r} is not a number') from exc
    if not math.isfinite(number) or not (
            least <= number <= judgement.LARGEST):
        raise exception.InvalidInput(where, f'{text!r} is out of range')
    return number
