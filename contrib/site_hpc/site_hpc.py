# SPDX-License-Identifier: Apache-2.0

"""A parser, an executor and a rule of the audit that a site adds.

``pip install contrib/site_hpc`` adds them to the environment of hpcvirt, which
finds them by the entry points of pyproject.toml. The parser computes the mean
of all steps of the benchmark in steps.yaml, the executor runs programs in a
container that runs already, and the rule finds hosts with one NUMA cell.
"""

import re
import subprocess
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.audit import finding
from hpcvirt.audit import rule
from hpcvirt.bench.execute import executor
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (expectation.whole('steps', 'number of steps'),)
STEP = re.compile(r'^step \d+: (\S+) s$', re.MULTILINE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the time of each step."""
    reading.require(text.endswith('all steps done\n'),
                    'the output is not complete', reading.Missing)
    times = [reading.figure(word, 'time of a step')
             for word in STEP.findall(text)]
    reading.require(times, 'no steps', reading.Missing)
    return reading.Reading({'step_s': sum(times) / len(times)},
                           {'steps': str(len(times))})


class Container:
    """Run programs in a container that runs already."""

    def __init__(self, container: str) -> None:
        self.name = f'container:{container}'
        self._command = ['podman', 'exec', '-i', container]

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        """Run a program to its end."""
        ended = subprocess.run(
            [*self._command, *argv], input=stdin, capture_output=True,
            timeout=timeout_s, check=False)
        return executor.Completed(ended.returncode, ended.stdout,
                                  ended.stderr)

    def expect_restart(self) -> None:
        """Do nothing, because a container is not rebooted."""

    def close(self) -> None:
        """Do nothing, because nothing is open."""


def find_one_cell(subject: rule.AuditSubject) -> Iterator[rule.Violation]:
    """Find hosts whose firmware hides the NUMA cells."""
    if len(subject.host.cells) == 1:
        yield rule.Violation('1 NUMA cell', '2 NUMA cells',
                             ('# set NPS1 in the firmware',))


CELLS = rule.Rule(
    'site-cells', finding.Severity.WARNING,
    'The host has two NUMA cells.',
    'all hosts that we buy have two sockets', (), find_one_cell)
