# SPDX-License-Identifier: Apache-2.0

"""The ``hpcvirt`` command.

Exit status: 0 if the command succeeded, 1 if the answer is no (a lint finding,
a verdict FAIL), 2 if there is no answer (invalid input, a service that cannot
be reached), 3 if "make-room --apply" or "drain --apply" did not make all
moves.
"""

import argparse
import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

from cliff import app
from cliff import command as cliff_command
from cliff import commandmanager

from hpcvirt import words
from hpcvirt.cmd import command
from hpcvirt.cmd import output

#: Name to the class of the command. Its module is imported when it is needed,
#: which keeps the start fast. OpenStackClient gets the same classes from the
#: entry points openstack.hpc.v1 in setup.cfg.
COMMANDS = {
    'host show': 'hpcvirt.cmd.host.topology:ShowHost',
    'host group': 'hpcvirt.cmd.host.topology:GroupHosts',
    'host capture': 'hpcvirt.cmd.host.audit:CaptureHost',
    'host audit': 'hpcvirt.cmd.host.audit:AuditHost',
    'host config': 'hpcvirt.cmd.host.config:ConfigureHosts',
    'host report': 'hpcvirt.cmd.host.report:ReportHosts',
    'host supervise': 'hpcvirt.cmd.host.supervise:SuperviseHosts',
    'host watch': 'hpcvirt.cmd.host.watch:WatchHost',
    'host quarantine': 'hpcvirt.cmd.host.quarantine:QuarantineHost',
    'flavor plan': 'hpcvirt.cmd.flavor.plan:PlanFlavors',
    'flavor lint': 'hpcvirt.cmd.flavor.lint:LintFlavors',
    'flavor apply': 'hpcvirt.cmd.flavor.apply:ApplyFlavors',
    'fleet dump': 'hpcvirt.cmd.fleet.documents:DumpFleet',
    'fleet show': 'hpcvirt.cmd.fleet.documents:ShowFleet',
    'fleet instance-topology':
        'hpcvirt.cmd.instance.topology:WriteInstanceTopology',
    'explain': 'hpcvirt.cmd.fleet.explain:ExplainRefusal',
    'capacity': 'hpcvirt.cmd.fleet.capacity:CountCapacity',
    'make-room': 'hpcvirt.cmd.fleet.make_room:MakeRoom',
    'drain': 'hpcvirt.cmd.fleet.drain:DrainHosts',
    'simulate': 'hpcvirt.cmd.simulate.simulate:SimulateWorkload',
    'bench list': 'hpcvirt.cmd.bench.list:ListBenchmarks',
    'bench run': 'hpcvirt.cmd.bench.run:RunBenchmarks',
    'bench parse': 'hpcvirt.cmd.bench.compare:ParseOutput',
    'bench compare': 'hpcvirt.cmd.bench.compare:CompareOutputs',
    'bench report': 'hpcvirt.cmd.bench.report:ReportResults',
    'bench study show': 'hpcvirt.cmd.study.show:ShowStudy',
    'bench study compare': 'hpcvirt.cmd.study.show:CompareStudy',
    'bench tune plan': 'hpcvirt.cmd.tune.experiment:PlanTuning',
    'bench tune show': 'hpcvirt.cmd.tune.experiment:ShowExperiment',
}

#: The first words of commands to their summary, in the order of use.
GROUPS = {
    'host': 'read, audit, configure and watch compute hosts',
    'flavor': 'plan, check and create the flavors of hosts',
    'fleet': 'write and summarize fleet documents',
    'explain': 'explain why an instance fits on no host',
    'capacity': 'count the instances that still fit on a fleet',
    'make-room': 'find the fewest moves that make room for an instance',
    'drain': 'empty hosts by migrations',
    'simulate': 'replay a workload over a fleet',
    'bench': 'measure guests against native; accept hosts; run studies',
    'bench study': 'show published studies and compare with them',
    'bench tune': 'find out which choices of a profile pay',
}


class _Version(argparse.Action):
    """Print the version; looking it up at every start would take long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f'hpcvirt {importlib.metadata.version("hpcvirt")}')
        parser.exit()


class CommandTable(commandmanager.CommandManager):
    """The table of commands, which does not search entry points."""

    def _load_commands(self) -> None:
        self.commands = {
            name: importlib.metadata.EntryPoint(name, value, 'hpcvirt')
            for name, value in COMMANDS.items()}

    def add_command(self, name: str,
                    command_class: type[cliff_command.Command]) -> None:
        """Leave out the commands that cliff adds."""


class HpcvirtApp(app.App):
    """The program ``hpcvirt``."""

    NAME = 'hpcvirt'

    def __init__(self) -> None:
        super().__init__('Near-native HPC instances on OpenStack Nova: '
                         'generate, place, prove.', None,
                         CommandTable('hpcvirt'))

    def build_option_parser(self, description: str | None,
                            version: str | None,
                            argparse_kwargs: dict[str, Any] | None = None,
                            ) -> argparse.ArgumentParser:
        """Return the parser of the options that all commands share."""
        del version, argparse_kwargs
        lines = [f'  {name:<12}  {summary}'
                 for name, summary in GROUPS.items() if ' ' not in name]
        parser = command.CommandParser(
            prog=self.NAME, usage='hpcvirt [--debug] COMMAND ...',
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=description, epilog='\n'.join([
                'commands:', *lines, '',
                'hpcvirt COMMAND --help describes a command.']),
            add_help=False, allow_abbrev=False)
        parser.add_argument('--version', action=_Version, nargs=0,
                            help='print the version')
        parser.add_argument('--completion', action='store_true',
                            help='print the completion of the commands for '
                            'bash')
        parser.add_argument('--debug', action='store_true',
                            help='print a traceback with an error message')
        return parser

    def run(self, argv: Sequence[str]) -> int:
        """Run the command that the arguments name; return the exit status."""
        end = _find_end(argv)
        self.options, rest = self.parser.parse_known_args(argv[:end])
        rest += argv[end:]
        if self.options.completion:
            return self._run(command.PrintCompletion, '--completion', rest)
        asks_for_help = not set(rest).isdisjoint(['-h', '--help'])
        name = ' '.join(word for word in rest if not word.startswith('-'))
        if asks_for_help and not name:
            self.parser.print_help()
            return 0
        if asks_for_help and name in GROUPS and name not in COMMANDS:
            self._print_group(name)
            return 0
        try:
            factory, name, rest = self._find_command(rest)
        except ValueError:
            self._refuse(rest)
        return self._run(factory, name, rest)

    def _run(self, factory: type[cliff_command.Command], name: str,
             rest: Sequence[str]) -> int:
        chosen = factory(self, self.options)
        parser = chosen.get_parser(f'{self.NAME} {name}')
        return chosen.run(parser.parse_args(rest))

    def _find_command(
            self, given: Sequence[str],
    ) -> tuple[type[cliff_command.Command], str, list[str]]:
        """Find the command; its options may precede its name.

        :raises ValueError: if there is no such command
        """
        for place, word in enumerate(given):
            if not word.startswith('-'):
                with contextlib.suppress(ValueError):
                    factory, name, rest = self.command_manager.find_command(
                        list(given[place:]))
                    return factory, name, [*given[:place], *rest]
            if not given[0].startswith('-'):
                break
        raise ValueError(given)

    def _print_group(self, group: str) -> None:
        """Print the commands that begin with the words of a group."""
        print(f'usage: hpcvirt {group} VERB ...\n\n{GROUPS[group]}\n')
        for name, entry in self.command_manager:
            if name.startswith(f'{group} '):
                verb = name.removeprefix(f'{group} ')
                print(f'  {verb:<20}  {command.get_summary(entry.load())}')

    def _refuse(self, given: Sequence[str]) -> NoReturn:
        """Exit with an error that lists or suggests commands."""
        group, rest = _split_group(given)
        prefix = f'{group} ' if group else ''
        known = list(dict.fromkeys(
            name.removeprefix(prefix).partition(' ')[0]
            for name in COMMANDS if name.startswith(prefix)))
        word = rest[0] if rest else ''
        self.parser.prog = f'{self.NAME} {group}'.rstrip()
        if not word or word.startswith('-'):
            self.parser.error(f'a command is missing: {", ".join(known)}')
        self.parser.error(f'{word!r} is not a command'
                          + words.suggest(word, known))


def _split_group(given: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the words of a command line after the longest group of commands.

    For example, ``['bench', 'study', 'shwo']`` is split into ``'bench study'``
    and ``['shwo']``.
    """
    for count in range(len(given), 0, -1):
        group = ' '.join(given[:count])
        if group in GROUPS:
            return group, given[count:]
    return '', given


def build_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, for the documentation."""
    program = HpcvirtApp()
    factory, _, _ = program.command_manager.find_command(name.split())
    return factory(program, None).get_parser(f'{program.NAME} {name}')


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :param argv: the arguments without the name of the program; those of
        sys.argv if None
    :returns: the exit status
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, 'w', encoding='utf-8')  # noqa: SIM115
    return output.run_safely(lambda: HpcvirtApp().run(given),
                             HpcvirtApp.NAME,
                             debug='--debug' in given[:_find_end(given)])


def _find_end(argv: Sequence[str]) -> int:
    """Return the index of ``--``, after which no word is an option."""
    return argv.index('--') if '--' in argv else len(argv)


if __name__ == '__main__':
    sys.exit(main())
