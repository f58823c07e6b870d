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

"""Give a stored result its bounds and its verdict.

Which figures a benchmark prints is known only when it has run, so the bounds
of its definition are looked up here; the user's own go before them.
"""

import dataclasses

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record


def judge(result: record.Result) -> record.Result:
    """Judge all runs of a result together.

    A result of nothing but A/A runs is judged as if the second arm were a
    guest: what it says is what the machine can tell apart.
    """
    runs = tuple(with_bounds(run) for run in result.runs)
    judged = runs
    if all(run.purpose is record.Purpose.AA for run in runs):
        judged = tuple(dataclasses.replace(
            run, purpose=record.Purpose.COMPARE) for run in runs)
    return dataclasses.replace(result, runs=runs,
                               verdict=verdict.judge(judged))


def with_bounds(run: record.Run) -> record.Run:
    """Add the bounds of the metrics that the run measured."""
    return dataclasses.replace(run, bounds={**published(run), **run.bounds})


def published(run: record.Run) -> dict[str, judgement.Bound]:
    """The bounds that the definition takes from the studies."""
    metrics = dict.fromkeys(name for sample in run.samples
                            for name in sample.outcome.metrics)
    return bounds.of_definition(catalogue.get(run.benchmark), metrics,
                                context(run))


def context(run: record.Run) -> dict[str, str]:
    """What the bounds of a definition may depend on."""
    told = {'shape': run.shape}
    for sample in run.samples:
        if sample.arm is record.Arm.GUEST and 'pages' in sample.environment:
            told['pages'] = sample.environment['pages']
    return told


def status(result: record.Result) -> int:
    """Exit status of a judged result.

    :returns: 0 for PASS, or for unpaired samples that are all valid, which
        nobody judges; else 1
    """
    if result.runs and all(run.purpose is record.Purpose.UNPAIRED
                           for run in result.runs):
        valid = all(sample.outcome.valid for run in result.runs
                    for sample in run.samples)
        return 0 if valid else 1
    word = result.verdict.word if result.verdict else None
    return 0 if word is judgement.Word.PASS else 1
