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

"""Choose the bounds that outputs are judged by.

An overhead that the user allows replaces the bounds that a run has, or those
of its definition. A bound that the user gives for a metric replaces all of
these, except an overhead, which then holds for the other metrics. Facts that
the user states select the bounds of the definition anew.
"""

import dataclasses
from collections.abc import Mapping

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import conditions
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record


def with_bounds(run: record.Run, given: Mapping[str, judgement.Bound],
                overhead: str | None,
                context: Mapping[str, str]) -> record.Run:
    """Give a run its bounds.

    :param given: the bounds of the user, by metric
    :param overhead: that the user allows, in per cent
    :param context: facts about the run that its definition's bounds may
        depend on, other than those it shows itself
    :raises InvalidInput: if the overhead is no number
    """
    if overhead is not None:
        chosen = {**_of_overhead(run, overhead), **given}
    elif given or (run.bounds and not context):
        chosen = dict(given or run.bounds)
    else:
        own = {metric: bound for metric, bound in run.bounds.items()
               if bound.kind is None}
        chosen = {**_default(run, context), **own}
    return dataclasses.replace(run, bounds=chosen)


def _default(run: record.Run,
             context: Mapping[str, str]) -> dict[str, judgement.Bound]:
    definition = _definition(run)
    if definition is None:
        return {}
    metrics = sample_pairs.metrics(run) or [
        figure.name for figure in definition.metrics if not figure.per_size]
    return bounds.of_definition(definition, metrics, {
        **conditions.of_run(run, definition), **context})


def _of_overhead(run: record.Run,
                 overhead: str) -> dict[str, judgement.Bound]:
    """Bound the primary metrics; all metrics of an unknown benchmark."""
    definition = _definition(run)
    primary = None if definition is None else {
        figure.name for figure in definition.metrics if figure.primary}
    metrics = {name: metric for sample in run.samples
               for name, metric in sample.outcome.metrics.items()}
    return {name: bounds.of_overhead(overhead, metric.direction)
            for name, metric in metrics.items()
            if primary is None or bounds.split(name)[0] in primary}


def _definition(run: record.Run) -> definitions.Definition | None:
    parameters: Mapping[str, str] = next(
        (sample.outcome.parameters for sample in run.samples
         if sample.outcome.parameters), {})
    return catalogue.member(catalogue.output_source(run.benchmark),
                            parameters)
