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

"""``hpcvirt host config``: the configuration that the flavors need."""

import argparse
import pathlib
import re
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.cmd import fleet_arguments
from hpcvirt.deployment import disk
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps as step_model
from hpcvirt.deployment import tree
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner

_ABOUT = """\
Write the configuration that hosts need for the flavors of their plan: Nova,
the kernel, systemd, TuneD and virtual functions, each file with reasons and
sources. Without --write and --apply the files are only printed; those of one
host are compared with what is there.
"""

_EPILOG = f"""\
{fleet_arguments.EPILOG}
Exit status: 0 if the files were printed or written, or are there already; 2 if
the input cannot be used or a file is in the way, and then nothing is changed.
"""

#: A host name that is safe as a folder, in YAML and in an inventory.
_NAME = re.compile('[A-Za-z0-9][A-Za-z0-9._-]{0,252}')

_HOST_BACKUPS = 'var/lib/hpcvirt/backups'
_FOLDER_BACKUPS = 'hpcvirt-backups'


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'config', help='write the configuration that hosts need',
        description=_ABOUT, epilog=_EPILOG)
    fleet_arguments.add(parser)
    parser.add_argument(
        '--format', choices=tuple(formats.FORMATS), default='files',
        help='the files of a host (the default), or those of a deployment '
        'tool')
    parser.add_argument(
        '--write', metavar='DIR', type=pathlib.Path,
        help='write the files into a folder; one that is there and differs is '
        'an error, unless --apply is given')
    parser.add_argument(
        '--root', metavar='DIR', type=pathlib.Path,
        help='the root of the host that is compared and, with --apply, '
        'changed (default: /)')
    parser.add_argument(
        '--apply', action='store_true',
        help='change the files of the host or, with --write, those in the '
        'folder; a copy of each is kept')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the files or, if asked, write them."""
    hosts, profile, part = fleet_arguments.read(args)
    for host in hosts:
        if not _NAME.fullmatch(host.name):
            raise exception.InvalidInput(
                host.name, 'cannot be the name of a folder or of a host in an '
                'inventory; write NAME=PATH to give the host another name')
    plan = planner.plan(hosts, profile, part)
    one = args.format == 'files' and len(hosts) == 1 and args.write is None
    if args.root is not None and not one:
        raise exception.InvalidInput(
            '--root', 'is for one host, with --format files and without '
            '--write')
    if args.write is not None:
        _write(args.write, formats.FORMATS[args.format](plan), args.apply)
    elif one:
        _host(args.root or pathlib.Path('/'), plan, args.apply)
    elif args.apply:
        raise exception.InvalidInput(
            '--apply', 'changes one host, with --format files; give one host, '
            'or a folder with --write')
    else:
        _print(step_model.compare(formats.FORMATS[args.format](plan), {}))
    return 0


def _host(root: pathlib.Path, plan: plans.Plan, apply: bool) -> None:
    """Compare the files of a host with what it has, and perhaps change it."""
    if not root.is_dir():
        raise exception.InvalidInput(str(root), 'is not a folder')
    files = host_files.files(plan.hosts[0], plan)
    found = step_model.compare(files, disk.present(
        root, {*(file.path for file in files), *host_files.OPTIONAL}))
    others, unread = disk.nova_files(root, files[0].path)
    warnings = [*step_model.conflicts(files[0].text, others),
                *(f'{path} cannot be read, so it may set the same options; '
                  'run the command as root' for path in unread)]
    if not apply:
        _print(found)
        _report(found, root, 'to write')
    else:
        kept = disk.write(root, found, _HOST_BACKUPS)
        _report(found, root, 'written')
        _to_do(found, kept)
    for line in warnings:
        print(f'Warning: {line}')


def _write(folder: pathlib.Path, files: Sequence[tree.File],
           apply: bool) -> None:
    """Write the files into a folder."""
    found = step_model.compare(files, disk.present(
        folder, [file.path for file in files]))
    for step in found:
        if step.change is step_model.Change.CHANGED and not apply:
            raise exception.InvalidInput(
                str(folder / step.file.path), 'is there and differs; give '
                '--apply to replace it and keep a copy')
    folder.mkdir(parents=True, exist_ok=True)
    kept = disk.write(folder, found, _FOLDER_BACKUPS)
    _report(found, folder, 'written')
    if kept is not None:
        print(f'Copies of the former files: {kept}')


def _print(found: Iterable[step_model.Step]) -> None:
    for step in found:
        print(f'==> {step.file.path} ({step.change})')
        if step.change is step_model.Change.NEW:
            sys.stdout.write(step.file.text)
            print()
        elif step.change is not step_model.Change.SAME:
            for line in step.difference():
                print(line)
            print()


def _report(found: Sequence[step_model.Step], root: pathlib.Path,
            done: str) -> None:
    changed = [step for step in found
               if step.change is not step_model.Change.SAME]
    if not changed:
        print(f'{len(found)} files in {root}: nothing to change')
        return
    words = ', '.join(f'{number} {change}'
                      for change, number in _counts(found))
    print(f'{len(changed)} of {len(found)} files {done} in {root}: {words}')


def _counts(found: Iterable[step_model.Step],
            ) -> Iterator[tuple[step_model.Change, int]]:
    changes = [step.change for step in found]
    for change in step_model.Change:
        if number := changes.count(change):
            yield change, number


def _to_do(found: Iterable[step_model.Step],
           kept: pathlib.Path | None) -> None:
    if kept is not None:
        print(f'Copies of the former files: {kept}')
    to_do = dict.fromkeys(
        words for step in found for words in step.file.activate
        if step.change is not step_model.Change.SAME)
    if to_do:
        print('To make them effective:')
    for words in sorted(to_do, key=lambda word: word == 'reboot'):
        print(f'  {words}')
