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

"""Describe what a sample was taken in: every machine that it used."""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_spec

Facts = Mapping[str, str]


def facts(specs: Sequence[run_spec.JobSpec],
          places: Sequence[executor.Executor]) -> list[dict[str, str]]:
    """Capture what stays the same during a sample, for each place.

    :param places: those of the targets of the jobs, in their order
    :raises Unreachable: if a place does not answer
    """
    commands = [spec.run.command for spec in specs for _ in spec.targets]
    return [environment.facts(place, command)
            for place, command in zip(places, commands, strict=True)]


def describe(specs: Sequence[run_spec.JobSpec], fixed: Sequence[Facts],
             before: Sequence[Facts],
             after: Sequence[Facts]) -> dict[str, str]:
    """Merge the facts of all targets of a sample.

    :param fixed: from :func:`facts`
    :param before: from :func:`hpcvirt.bench.execute.environment.load`
    :param after: from the same
    """
    used = [target for spec in specs for target in spec.targets]
    merged = aggregation.merge([target.label for target in used], [
        {**same, **environment.around(early, late), **target.facts,
         'place': target.place.name}
        for same, early, late, target
        in zip(fixed, before, after, used, strict=True)])
    cores = [spec.cores_used for spec in specs]
    known = [count for count in cores if count is not None]
    if len(known) == len(cores):
        merged['cores.used'] = str(sum(known))
    return merged
