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

"""Whether machines were as a case of a study wants them.

Nested paging, SMT and transparent huge pages are set by hand, and decide what
a study is about: a figure that was taken without them is another figure.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study

#: The fact that tells, by its name in the environment of a sample.
_SWITCHES = {'nested_paging': ('kvm.ept', 'kvm.npt'), 'smt': ('cpu.smt',)}
_WORDS = {'nested_paging': 'nested paging', 'smt': 'SMT'}
_STATES = {'1': 'on', 'Y': 'on', '0': 'off', 'N': 'off'}
#: What stands in ``transparent_hugepage/enabled``, by the pages of a case.
THP = {'small': 'never', 'large': 'always'}


def unmet(*runs: record.Run) -> tuple[str, ...]:
    """What was otherwise than the cases of the study want it.

    :returns: one clause each; what a machine does not tell is left out, and
        so are cases that no study has any more
    """
    return tuple(dict.fromkeys(
        clause for run in runs for case in _cases(run)
        for sample in run.samples
        for clause in _of_sample(case, sample.arm, sample.environment)))


def of_result(result: record.Result) -> list[str]:
    """The same of all runs of a result, one line for each run."""
    return [f'{run.label}: not as {run.study}/{run.case} wants it: '
            f'{"; ".join(clauses)}'
            for run in result.runs if (clauses := unmet(run))]


def _cases(run: record.Run) -> list[study.Case]:
    return [case for made in study_catalogue.every() if made.id == run.study
            for case in made.cases if case.id == run.case]


def _of_sample(case: study.Case, arm: record.Arm,
               environment: Mapping[str, str]) -> Iterator[str]:
    if arm is record.Arm.NATIVE:
        for name, wanted in case.host_settings.items():
            for fact in _SWITCHES.get(name, ()):
                for value in aggregation.values(environment, fact):
                    state = _STATES.get(value, wanted)
                    if state != wanted:
                        yield f'{_WORDS[name]} was {state}'
    wanted = THP.get(case.guests.pages, '')
    for value in aggregation.values(environment, 'pages.thp'):
        chosen = re.search(r'\[(\w+)\]', value)
        if wanted and chosen and chosen[1] != wanted:
            yield (f'transparent huge pages were "{chosen[1]}" in the '
                   f'{arm.value} arm')
