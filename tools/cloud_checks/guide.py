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

"""Follow the operator's guide word by word.

Every line ``$ command`` of a console block is run by bash, in order, in a
clone of this repository. It must succeed, and the lines shown below it must be
what it prints; a command that shows `` 400: `` must fail with that.
``...`` stands for any text, alone on its line for any lines, and runs of white
space are equal. What a page calls by the name that it has on an operator's
machine, such as /opt/nova, is called as this cloud has it. The ``nova.conf``
that the pages show is compared with the one that nova-scheduler reads.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence

from tools.cloud import cloud as clouds
from tools.cloud import environment
from tools.cloud import errors
from tools.cloud import progress
from tools.cloud import settings as cloud_settings

PAGES = ('install.rst', 'filter.rst', 'walkthrough.rst')
CONSOLE = '.. code-block:: console'
INI = '.. code-block:: ini'
PROMPT = '$ '
ANY = '...'
REFUSED = ' 400: '

Options = dict[tuple[str, str], list[str]]


@dataclasses.dataclass(frozen=True)
class Step:
    """A command and what the page shows below it."""

    command: str
    shown: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether the API must refuse it."""
        return any(REFUSED in line for line in self.shown)


def check(cloud: clouds.Cloud) -> None:
    """Follow the pages.

    :raises CloudError: a command failed, or printed something else
    """
    settings = cloud.settings
    written = options((settings.etc / 'nova' / 'nova-scheduler.conf')
                      .read_text().splitlines())
    with tempfile.TemporaryDirectory(dir=settings.run) as scratch:
        clone = pathlib.Path(scratch) / 'hpcvirt'
        subprocess.run(['git', 'clone', '--quiet',
                        str(cloud_settings.REPOSITORY), str(clone)],
                       check=True)
        for name in PAGES:
            text = page(name).read_text()
            _compare(name, text, written)
            found = list(steps(text))
            for step in found:
                _follow(settings, clone, name, step)
            progress.say(f'{len(found)} commands of {name} do what it says')


def page(name: str) -> pathlib.Path:
    """Where a page of the documentation is."""
    return cloud_settings.REPOSITORY / 'docs' / 'source' / name


def steps(text: str) -> Iterator[Step]:
    """Read the commands out of a page."""
    for block in _blocks(text, CONSOLE):
        command = ''
        shown: list[str] = []
        for line in block:
            if line.startswith(PROMPT):
                if command:
                    yield Step(command, tuple(shown))
                command, shown = line[len(PROMPT):], []
            elif command and line.strip():
                shown.append(line)
        if command:
            yield Step(command, tuple(shown))


def options(lines: Sequence[str]) -> Options:
    """Read a configuration file; an option may stand there several times."""
    found: Options = {}
    section = 'DEFAULT'
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition('='))
        if line.startswith('['):
            section = line.strip(' []')
        elif equals and not line.startswith('#'):
            found.setdefault((section, name), []).append(value)
    return found


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Compare what a page shows with what was printed."""
    if not shown:
        return not printed
    if shown[0].strip() == ANY:
        return any(matches(shown[1:], printed[start:])
                   for start in range(len(printed) + 1))
    pattern = re.escape(' '.join(shown[0].split())).replace(
        re.escape(ANY), '.*')
    return (bool(printed)
            and re.fullmatch(pattern, ' '.join(printed[0].split())) is not None
            and matches(shown[1:], printed[1:]))


def _blocks(text: str, kind: str) -> Iterator[list[str]]:
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip() != kind:
            continue
        block: list[str] = []
        margin = ''
        for inner in lines:
            if inner.strip() and not inner.startswith(' '):
                break
            margin = margin or inner[:len(inner) - len(inner.lstrip())]
            block.append(inner.removeprefix(margin))
        yield block


def _compare(name: str, text: str, written: Options) -> None:
    for block in _blocks(text, INI):
        for option, values in options(block).items():
            # What the cloud leaves at the default is not in its file.
            if option in written and written[option] != values:
                raise errors.CloudError(
                    f'{name}: shows {option} = {values}; the nova-scheduler '
                    f'of the cloud has {written[option]}')


def _here(settings: cloud_settings.Settings, text: str) -> str:
    """Call things as they are called in this cloud."""
    restart = ' && '.join(
        f'(cd {shlex.quote(str(cloud_settings.REPOSITORY))} && '
        f'{shlex.quote(sys.executable)} -m tools.cloud restart {name})'
        for name in ('nova-scheduler', 'nova-api'))
    for name, ours in (
            ('/opt/nova', str(settings.venv)),
            ('upper-constraints.txt', str(environment.CONSTRAINTS)),
            ('/var/log/nova', str(settings.log)),
            ('~/', '"$SCRATCH"/'),
            ('systemctl restart nova-scheduler nova-api', restart)):
        text = text.replace(name, ours)
    return text


def _follow(settings: cloud_settings.Settings, clone: pathlib.Path,
            name: str, step: Step) -> None:
    done = subprocess.run(
        ['bash', '-e', '-u', '-o', 'pipefail', '-c',
         _here(settings, step.command)],
        cwd=clone, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, **settings.credentials(), 'COLUMNS': '100',
             'SCRATCH': str(clone.parent),
             'PATH': f'{settings.venv / "bin"}:{os.environ["PATH"]}'})
    if bool(done.returncode) is not step.refused:
        raise errors.CloudError(
            f'{name}: {step.command!r} ended with status '
            f'{done.returncode}: {done.stderr[-1000:]}')
    output = done.stderr if step.refused else done.stdout
    printed = [line for line in output.splitlines() if line.strip()]
    shown = [_here(settings, line) for line in step.shown]
    # A command without a line below it may print what it likes.
    if shown and not matches(shown, printed):
        raise errors.CloudError(
            f'{name}: {step.command!r} printed\n{output[-2000:]}')
