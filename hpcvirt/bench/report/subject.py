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

"""What a result was measured with: benchmark, flavor, host, machines."""

import dataclasses
import re
from collections.abc import Iterable

from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a result is about.

    :ivar benchmarks: with their variants
    :ivar flavors: names of flavors or shapes, empty if they are unknown
    :ivar machines: CPU, kernel and pages of each arm, or of both if they are
        equal
    """

    benchmarks: str
    flavors: str
    hosts: str
    machines: tuple[str, ...]


def of_result(result: record.Result) -> Subject:
    """Collect what the runs of a result say of themselves."""
    samples = [sample for run in result.runs for sample in run.samples]
    machines = {arm: _machine(sample for sample in samples
                              if sample.arm is arm) for arm in record.Arm}
    native, guest = (machines[arm] for arm in record.Arm)
    return Subject(
        _joined(f'{run.benchmark} {run.variant}' for run in result.runs),
        _joined(flavor for run in result.runs for flavor in (
            run.shape, *(name for sample in run.samples for name in
                         _facts(sample, 'server.flavor')))),
        _joined(run.host for run in result.runs),
        (native,) if native and native == guest else tuple(
            f'{arm.value}: {text}' for arm, text in machines.items() if text))


def _machine(samples: Iterable[record.Sample]) -> str:
    samples = list(samples)
    parts = []
    for name, words in (('cpu.model', '{}'), ('kernel', 'kernel {}'),
                        ('pages', '{} pages')):
        found = _joined(value for sample in samples
                        for value in _facts(sample, name))
        if found:
            parts.append(words.format(found))
    thp = _joined(chosen[1] for sample in samples
                  for value in _facts(sample, 'pages.thp')
                  if (chosen := re.search(r'\[(\w+)\]', value)))
    if thp:
        parts.append(f'transparent huge pages {thp}')
    return ', '.join(parts)


def _facts(sample: record.Sample, name: str) -> Iterable[str]:
    return aggregation.values(sample.environment, name)


def _joined(words: Iterable[str]) -> str:
    return ', '.join(word for word in dict.fromkeys(words) if word)
