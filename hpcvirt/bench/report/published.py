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

"""What studies published of the figures of a result.

Only a bound that a study measured is a published figure. A bound that was
transferred from another figure, or that somebody expects, is named so.
"""

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: The default bounds of figures, by the label of the run and the metric.
Bounds = dict[tuple[str, str], judgement.Bound]


def of_result(result: record.Result) -> Bounds:
    """Find the default bounds of the figures, whatever bounds they have."""
    return {(run.label, metric): bound for run in result.runs
            for metric, bound in bounds.of_run(run).items()}


def ratio(bound: judgement.Bound | None) -> float | None:
    """Return the published ratio, None if the bound is no published one."""
    if bound is None or bound.kind is not judgement.BoundKind.MEASURED:
        return None
    return bound.ratio


def word(bound: judgement.Bound | None) -> str:
    """Write the published ratio, or what the bound is instead."""
    if bound is None or bound.kind is None:
        return '-'
    found = ratio(bound)
    return bound.kind.value if found is None else f'{found:.3f}'


def source(bound: judgement.Bound) -> str:
    """Say where a bound is from, empty for one that the user gave."""
    if not bound.source:
        return ''
    parts = (f'{bound.ratio:.3f}', bound.kind, bound.source)
    text = ', '.join(part for part in parts if part)
    return f'{text}; {bound.conditions}' if bound.conditions else text
