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

"""Follow a page of the documentation word by word.

Every line ``$ command`` of a console block is run by bash, in order; it must
succeed, and the lines shown below it must be what it prints. ``...`` stands
for any lines, and runs of white space are equal.
"""

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from collections.abc import Sequence

from tools.cloud import cloud as one_cloud
from tools.cloud import errors
from tools.cloud import progress
from tools.cloud import settings as cloud_settings

PAGE = cloud_settings.REPOSITORY / 'docs' / 'source' / 'walkthrough.rst'
BLOCK = '.. code-block:: console'
PROMPT = '$ '
ANY = '...'


@dataclasses.dataclass(frozen=True)
class Step:
    """A command and what the page shows below it."""

    command: str
    shown: tuple[str, ...]


def check(cloud: one_cloud.Cloud) -> None:
    """Follow the page.

    :raises CloudError: a command failed, or printed something else
    """
    found = list(steps(PAGE.read_text()))
    if not found:
        raise errors.CloudError(f'{PAGE} has no commands')
    for step in found:
        _follow(cloud.settings, step)
    progress.say(f'{len(found)} commands of {PAGE.name} do what it says')


def steps(text: str) -> Iterator[Step]:
    """Read the commands out of a page."""
    lines = iter(text.splitlines())
    for line in lines:
        if line != BLOCK:
            continue
        command = ''
        shown: list[str] = []
        started = False
        for inner in lines:
            if inner and not inner.startswith('   '):
                break
            body = inner[3:]
            if body.startswith(PROMPT):
                if command:
                    yield Step(command, tuple(shown))
                command, shown, started = body[len(PROMPT):], [], True
            elif started and body.strip():
                shown.append(body)
        if command:
            yield Step(command, tuple(shown))


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Compare what a page shows with what was printed."""
    if not shown:
        return not printed
    if shown[0].strip() == ANY:
        return any(matches(shown[1:], printed[start:])
                   for start in range(len(printed) + 1))
    return (bool(printed) and shown[0].split() == printed[0].split()
            and matches(shown[1:], printed[1:]))


def _follow(settings: cloud_settings.Settings, step: Step) -> None:
    done = subprocess.run(
        ['bash', '-e', '-u', '-o', 'pipefail', '-c', step.command],
        cwd=cloud_settings.REPOSITORY, capture_output=True, text=True,
        check=False, timeout=600,
        env={**os.environ, **settings.credentials(), 'COLUMNS': '100',
             'PATH': f'{settings.venv / "bin"}:{os.environ["PATH"]}'})
    printed = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        raise errors.CloudError(
            f'{PAGE.name}: {step.command!r} ended with status '
            f'{done.returncode}: {done.stderr[-1000:]}')
    # A command without a line below it may print what it likes.
    if step.shown and not matches(step.shown, printed):
        raise errors.CloudError(
            f'{PAGE.name}: {step.command!r} printed\n{done.stdout[-2000:]}')
