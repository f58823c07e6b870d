# SPDX-License-Identifier: Apache-2.0

"""Run the commands of the operator's guide.

bash runs each line ``$ command`` of a console block in order, with the lines
that continue it after a backslash, in a clone of this repository. The command
must succeed and print the lines that the page shows below it. If the page
shows an error of the API, the command must fail with it; if it shows that an
instance fits nowhere, the command has the exit status of that answer. ``...``
stands for any text, and for any lines if it is alone on its line; white space
is not significant. Names from an operator's machine, such as /opt/nova, are
replaced by those of this cloud. The ``nova.conf`` of the pages is compared
with that of nova-scheduler. Of the page on packages, only the command that
makes the wheel is run: ``tests/system/install.py`` runs the others.
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

from tests.system.cloud import cloud as clouds
from tests.system.cloud import environment
from tests.system.cloud import errors
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

#: The page whose first command makes the wheel that the others install.
WHEEL = 'install/packages.rst'
PAGES = ('install/scheduler.rst', 'quickstart.rst')
CONSOLE = '.. code-block:: console'
INI = '.. code-block:: ini'
PROMPT = '$ '
ANY = '...'
API_ERRORS = (' 400: ', 'Error creating server')
NO_HOST = ' fits on 0 of '
#: The host of this cloud that stands for the operator's own.
HOST = 'opteron1'
TOPOLOGY = 'etc/hpcvirt/topologies/opteron-4s-12c.json'

Options = dict[tuple[str, str], list[str]]


@dataclasses.dataclass(frozen=True)
class Step:
    """A command and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]

    @property
    def fails(self) -> bool:
        """Whether the API must refuse the command."""
        return any(error in line for line in self.shown
                   for error in API_ERRORS)

    @property
    def status(self) -> int:
        """The exit status that the command must have."""
        return int(self.fails or any(NO_HOST in line for line in self.shown))


def check(cloud: clouds.Cloud) -> None:
    """Run the commands of all pages.

    :raises CloudError: if a command fails or prints something else
    """
    settings = cloud.settings
    written = options((settings.etc / 'nova' / 'nova-scheduler.conf')
                      .read_text().splitlines())
    with tempfile.TemporaryDirectory(dir=settings.run) as scratch:
        clone = pathlib.Path(scratch) / 'hpcvirt'
        subprocess.run(['git', 'clone', '--quiet',
                        str(cloud_settings.REPOSITORY), str(clone)],
                       check=True)
        _run(settings, clone, WHEEL, next(steps(page(WHEEL).read_text())))
        for name in PAGES:
            text = page(name).read_text()
            _compare(name, text, written)
            page_steps = list(steps(text))
            for step in page_steps:
                _run(settings, clone, name, step)
            progress.say(f'{len(page_steps)} commands of {name} print what '
                         'it shows')


def page(name: str) -> pathlib.Path:
    """Return the path of a page of the documentation."""
    return cloud_settings.REPOSITORY / 'doc' / 'source' / name


def steps(text: str) -> Iterator[Step]:
    """Read the commands of a page."""
    for block in _blocks(text, CONSOLE):
        command = ''
        shown: list[str] = []
        for line in block:
            if command.endswith('\\') and not shown:
                command += '\n' + line
            elif line.startswith(PROMPT):
                if command:
                    yield Step(command, tuple(shown))
                command, shown = line[len(PROMPT):], []
            elif command and line.strip():
                shown.append(line)
        if command:
            yield Step(command, tuple(shown))


def options(lines: Sequence[str]) -> Options:
    """Read a configuration file, in which an option may have several lines.

    A line that begins with a space continues the value before it.
    """
    values: Options = {}
    section = name = 'DEFAULT'
    for line in lines:
        if line.startswith(' ') and (section, name) in values:
            values[section, name][-1] += line.strip()
            continue
        name, equals, value = (part.strip() for part in line.partition('='))
        if line.startswith('['):
            section = line.strip(' []')
        elif equals and not line.startswith('#'):
            values.setdefault((section, name), []).append(value)
    return values


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Tell whether a command printed what the page shows."""
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
    block: list[str] | None = None
    margin = ''
    # A line after the last one ends the last block.
    for line in (*text.splitlines(), '.'):
        if block is not None and line.strip() and not line.startswith(' '):
            yield block
            block = None
        if line.strip() == kind:
            block, margin = [], ''
        elif block is not None:
            margin = margin or line[:len(line) - len(line.lstrip())]
            block.append(line.removeprefix(margin))


def _compare(name: str, text: str, written: Options) -> None:
    for block in _blocks(text, INI):
        shown = options(block)
        # The cloud does not use shadow mode, which needs other filters.
        if ('hpcvirt', 'filter_mode') in shown:
            continue
        for option, values in shown.items():
            # The file of the cloud has no options with default values.
            if option in written and written[option] != values:
                raise errors.CloudError(
                    f'{name} shows {option} = {values}; nova-scheduler in the '
                    f'cloud has {written[option]}')


def _localize(settings: cloud_settings.Settings, text: str) -> str:
    """Replace names from an operator's machine by those of this cloud."""
    restart = ' && '.join(
        f'(cd {shlex.quote(str(cloud_settings.REPOSITORY))} && '
        f'{shlex.quote(sys.executable)} -m tests.system.cloud restart {name})'
        for name in ('nova-scheduler', 'nova-api'))
    conf = settings.etc / 'nova' / 'nova-scheduler.conf'
    for name, here in (
            ('/opt/nova', str(settings.venv)),
            ('upper-constraints.txt', str(environment.CONSTRAINTS)),
            ('sudo ', ''),
            ('"$(hostname)=/"', f'{HOST}={TOPOLOGY}'),
            ('$(hostname)', HOST),
            ('--image cirros', '--image simulated'),
            ('explain --flavor', f'explain --config-file {conf} --flavor'),
            ('/var/log/nova', str(settings.log)),
            ('~/', '"$SCRATCH"/'),
            ('systemctl restart nova-scheduler nova-api', restart)):
        text = text.replace(name, here)
    return text


def _run(settings: cloud_settings.Settings, clone: pathlib.Path,
         name: str, step: Step) -> None:
    done = subprocess.run(
        ['bash', '-e', '-u', '-o', 'pipefail', '-c',
         _localize(settings, step.command)],
        cwd=clone, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, **settings.credentials(), 'COLUMNS': '100',
             'SCRATCH': str(clone.parent),
             'PATH': f'{settings.venv / "bin"}:{os.environ["PATH"]}'})
    if done.returncode != step.status:
        raise errors.CloudError(
            f'{name}: {step.command!r} ended with status '
            f'{done.returncode}: {done.stderr[-1000:]}')
    output = done.stderr if step.fails else done.stdout
    printed = [line for line in output.splitlines() if line.strip()]
    shown = [_localize(settings, line) for line in step.shown]
    # A command without lines below it may print anything.
    if shown and not matches(shown, printed):
        raise errors.CloudError(
            f'{name}: {step.command!r} printed\n{output[-2000:]}')
