# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host config``: the configuration that the flavors need."""

import argparse
import collections
import pathlib
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd import planning
from hpcvirt.deployment import ansible
from hpcvirt.deployment import disk
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import read_back
from hpcvirt.deployment import removal
from hpcvirt.deployment import site_settings
from hpcvirt.deployment import site_variables
from hpcvirt.deployment import steps as step_model
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning
from hpcvirt.model import cpuset

_EPILOG = f"""\
{hosts.EPILOG}
Exit status: 2 if the input cannot be used or a file is in the way, and then
nothing is changed; else 0.
"""

HOST_BACKUPS = 'var/lib/hpcvirt/backups'
_FOLDER_BACKUPS = 'hpcvirt-backups'
_IN_PLACEMENT = (
    'Warning: report_in_placement cannot be taken back, and pci_in_placement '
    'holds for the whole cloud: set the first on all hosts with PCI devices, '
    'also on those that are not in this plan, and the second only when all '
    'report them.')
_ISOLATED = (
    'Warning: the scheduler keeps instances off the hosts of {} only once '
    'these are in an aggregate of their own; "hpcvirt flavor apply '
    '--aggregates" creates it. enable_isolated_aggregate_filtering holds for '
    'the whole cloud: it also applies to other aggregates that have '
    'trait:NAME = required in their metadata.')
_CHANGING = (
    'Warning: flavors require {}, which these files do not give to hosts: '
    'only an acceptance sets traits that begin with CUSTOM_HPCVIRT_.')
_CONTROLLERS = (
    'Warning: nova-api, nova-scheduler and nova-conductor need options for '
    'these flavors, too; "--write DIR" writes them into DIR/controllers.')
_UNREAD = ('{} cannot be read, so its settings may conflict; run the command '
           'as root')


class ConfigureHosts(command.Command):
    """Write the configuration that hosts need for their flavors.

    It has files for Nova, the kernel, systemd, TuneD and virtual functions,
    each with reasons and sources. Without --write and --apply the files are
    only printed; those of one host are compared with what is there.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        planning.add_arguments(parser)
        parser.add_argument(
            '--deployer', choices=tuple(formats.FORMATS), default='files',
            help='the files of a host (the default), or those of a deployment '
            'tool')
        parser.add_argument(
            '--write', metavar='DIR', type=pathlib.Path,
            help='write the files into a folder; one that is there and '
            'differs is an error, unless --apply is given')
        parser.add_argument(
            '--root', metavar='DIR', type=pathlib.Path,
            help='the root of the host that is compared and, with --apply, '
            'changed (default: /)')
        parser.add_argument(
            '--apply', action='store_true',
            help='change the files of the host, which must be the one that '
            'the command runs on or that --root holds, or with --write those '
            'in the folder; a copy of each is kept')
        parser.add_argument(
            '--replace', action='store_true',
            help='remove conflicting settings from the files of the site, '
            'instead of leaving the host alone')
        parser.add_argument(
            '--remove', action='store_true',
            help='take back what this command wrote on the host, or in the '
            'folder of --write; needs no hosts')

    def take_action(self, args: argparse.Namespace) -> int:
        """Print the files or, if asked, write or remove them."""
        if args.remove:
            _remove(args)
            return 0
        plan = planning.plan(args)
        _check_hosts(plan)
        one = (args.deployer == 'files' and len(plan.hosts) == 1
               and args.write is None)
        for option, given in (('--root', args.root is not None),
                              ('--replace', args.replace)):
            if given and not one:
                raise exception.InvalidInput(
                    option, 'is for one host, with --deployer files and '
                    'without --write')
        if args.write is not None:
            _write(args.write, args.deployer, plan, args.apply)
        elif one:
            _host(args.root or pathlib.Path('/'), plan, args.apply,
                  args.replace)
            if nova_conf.controller(plan):
                output.warn(_CONTROLLERS)
        elif args.apply:
            raise exception.InvalidInput(
                '--apply', 'changes one host, with --deployer files; give one '
                'host, or a folder with --write')
        else:
            files = formats.FORMATS[args.deployer](plan)
            read_back.check(args.deployer, files, plan)
            _print(step_model.compare(files, {}))
        hosts.warn(plan.warnings)
        changing = nova_conf.list_changing(plan)
        if changing:
            output.warn(_CHANGING.format(', '.join(changing)))
        if plan.has_sets:
            output.warn(_IN_PLACEMENT)
        if plan.isolated:
            noun = 'class' if len(plan.isolated) == 1 else 'classes'
            output.warn(_ISOLATED.format(
                f'the {noun} {", ".join(plan.isolated)}'))
        return 0


def _remove(args: argparse.Namespace) -> None:
    """Print what would be removed and, with --apply, remove it."""
    for option, given in (('PATH', args.path), ('--fleet', args.fleet),
                          ('--replace', args.replace)):
        if given:
            raise exception.InvalidInput(option, 'is not for --remove')
    if args.write is not None:
        if args.root is not None:
            raise exception.InvalidInput('--root', 'is not for --write')
        steps = removal.find_steps(
            removal.list_marked(args.write, _FOLDER_BACKUPS))
        _take(args.write, steps, _FOLDER_BACKUPS, args.apply)
        if steps:
            print('Then run the deployment tool again, and this command with '
                  '--remove on each host that still has such files.')
        return
    root = args.root or pathlib.Path('/')
    present = disk.read_present(root, removal.WRITTEN)
    steps = removal.find_steps(present)
    _take(root, steps, HOST_BACKUPS, args.apply)
    if not steps:
        return
    update_grub = 'update-grub'
    if (root / site_settings.GRUBBY).exists():
        former = site_settings.former_parameters(
            present.get(host_files.COMMAND_LINE, ''))
        update_grub = site_settings.write_grubby('', former)
    _to_do(steps, update_grub)
    print(removal.NOTE)


def _take(root: pathlib.Path, steps: Sequence[step_model.FileChange],
          backups: str, apply: bool) -> None:
    """Print what is removed below a root and, with ``apply``, remove it."""
    if not root.is_dir():
        raise exception.InvalidInput(str(root), 'is not a folder')
    for step in steps:
        print(f'==> {step.file.path} ({step.change})')
    if not steps:
        print(f'No file that hpcvirt wrote is in {root}.')
    elif apply:
        kept = disk.write(root, steps, backups)
        _report(steps, root, 'removed', kept)
    else:
        print(output.NOT_APPLIED)


def _check_hosts(plan: plans.Plan) -> None:
    """Check that each host has a usable name, and takes some flavor."""
    for planned in plan.hosts:
        ansible.check_name(planned.name)
    for item in plan.warnings:
        if item.code is warning.WarningCode.HOST_NOT_SERVED:
            raise exception.InvalidInput(
                ', '.join(item.subjects), 'gets no configuration, because '
                'none of the flavors fits; take the host out, or plan it in '
                'a class of its own')


def _check_target(root: pathlib.Path, planned: plans.PlannedHost) -> None:
    """Check that a root is that of the planned host.

    :raises InvalidInput: if its name or its CPUs are others, or if it does
        not say them
    """
    name, cpus = disk.identify(root)
    if name is None or name.partition('.')[0] != planned.name.partition(
            '.')[0]:
        raise exception.InvalidInput(
            str(root), f'is the root of the host {name or "without a name"}, '
            f'not of {planned.name}, and is left alone; run the command on '
            f'{planned.name}, or give it --root')
    if cpus is not None and cpus != planned.host.cpus:
        raise exception.InvalidInput(
            str(root), f'has the CPUs {cpuset.render(cpus)}, but '
            f'{planned.name} has {cpuset.render(planned.host.cpus)} in its '
            'topology; read the topology again')


def _host(root: pathlib.Path, plan: plans.Plan, apply: bool,
          replace: bool) -> None:
    """Compare the files of a host with what it has, and perhaps change it."""
    (planned,) = plan.hosts
    if not root.is_dir():
        raise exception.InvalidInput(str(root), 'is not a folder')
    if apply:
        _check_target(root, planned)
    files = host_files.files(planned, plan)
    present = disk.read_present(
        root, {*(file.path for file in files), *host_files.OPTIONAL})
    state = kernel_settings.make_state(planned)
    former = (site_settings.former_parameters(
        present.get(host_files.COMMAND_LINE, ''))
        if (root / site_settings.GRUBBY).exists() else None)
    rules = site_settings.list_site_files(state, former is not None)
    found, unread = disk.read_matching(
        root, [*step_model.NOVA, *(item.path for item in rules)])
    site = {path: text for path, text in found.items() if path not in present}
    conflicts = site_settings.find_conflicts(state, site, former)
    for conflict in conflicts:
        print(f'Conflict: {conflict.words}')
    if conflicts and apply and not replace:
        raise exception.InvalidInput(
            str(root), f'has {len(conflicts)} settings that conflict, and is '
            'left alone; remove them, or give --replace')
    read_back.check('files', files, plan)
    steps = [*step_model.compare(files, present), *(
        site_settings.remove(conflicts, site) if replace else ())]
    if not apply:
        _print(steps)
        _report(steps, root, 'to write')
    else:
        kept = disk.write(root, steps, HOST_BACKUPS)
        _report(steps, root, 'written', kept)
        _to_do(steps, 'update-grub' if former is None else
               site_settings.write_grubby(host_files.command_line(state),
                                          former, conflicts))
    for line in (*step_model.conflicts(files[0].text, {
            path: text for path, text in site.items()
            if path.startswith('etc/nova/')}), *map(_UNREAD.format, unread)):
        output.warn(f'Warning: {line}')


def _write(folder: pathlib.Path, deployer: str, plan: plans.Plan,
           apply: bool) -> None:
    """Write the files of a deployment tool into a folder."""
    files = formats.FORMATS[deployer](plan)
    read_back.check(deployer, files, plan)
    found = step_model.compare(files, disk.read_present(
        folder, [file.path for file in files]))
    for step in found:
        lost = step_model.find_lost_hosts(step)
        if lost:
            raise exception.InvalidInput(
                str(folder / step.file.path), 'has hosts that this run does '
                f'not write: {", ".join(lost)}; give all hosts at once, as '
                'with --fleet, or move the file away')
        if step.change is step_model.FileStatus.CHANGED and not apply:
            raise exception.InvalidInput(
                str(folder / step.file.path), 'is there and differs; give '
                '--apply to replace it and keep a copy')
    folder.mkdir(parents=True, exist_ok=True)
    kept = disk.write(folder, found, _FOLDER_BACKUPS)
    _report(found, folder, 'written', kept)
    site, unread = disk.read_matching(folder, site_variables.FOLDERS[deployer])
    warnings = site_variables.find([step.file for step in found], site,
                                   [planned.name for planned in plan.hosts])
    for line in dict.fromkeys((*map(_UNREAD.format, unread), *warnings)):
        output.warn(f'Warning: {line}')


def _print(steps: Iterable[step_model.FileChange]) -> None:
    for step in steps:
        print(f'==> {step.file.path} ({step.change})')
        if step.change is step_model.FileStatus.NEW:
            print(step.file.text)
        elif step.change is not step_model.FileStatus.SAME:
            print(*step.difference(), '', sep='\n')


def _report(steps: Sequence[step_model.FileChange], root: pathlib.Path,
            done: str, kept: pathlib.Path | None = None) -> None:
    """Print how many files change.

    :param kept: the folder with copies of those that were there
    """
    counts = collections.Counter(step.change for step in steps)
    changed = len(steps) - counts[step_model.FileStatus.SAME]
    if changed:
        words = ', '.join(f'{counts[change]} {change}'
                          for change in step_model.FileStatus
                          if counts[change])
        print(f'{changed} of {len(steps)} files {done} in {root}: {words}')
    else:
        print(f'{len(steps)} files in {root}: nothing to change')
    if kept is not None:
        print(f'Copies of the former files: {kept}')


def _to_do(steps: Iterable[step_model.FileChange], update_grub: str) -> None:
    """Print what makes the changed files effective.

    :param update_grub: the command that sets the kernel command line
    """
    to_do: dict[str, None] = {}
    for step in steps:
        if step.change is not step_model.FileStatus.SAME:
            to_do |= dict.fromkeys(step.file.activate)
    if to_do:
        print('To make them effective:')
    for words in sorted(to_do, key=lambda word: word == 'reboot'):
        print(f'  {update_grub if words == "update-grub" else words}')
