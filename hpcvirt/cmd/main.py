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
    'topology show': 'hpcvirt.cmd.topology:ShowTopology',
    'topology group': 'hpcvirt.cmd.topology:GroupTopologies',
    'host audit': 'hpcvirt.cmd.host.audit:AuditHost',
    'host capture': 'hpcvirt.cmd.host.audit:CaptureHost',
    'host config': 'hpcvirt.cmd.host.config:ConfigureHosts',
    'host accept': 'hpcvirt.cmd.host.accept:AcceptHost',
    'host pairs': 'hpcvirt.cmd.host.report:PairHosts',
    'host report': 'hpcvirt.cmd.host.report:ReportHosts',
    'host supervise': 'hpcvirt.cmd.host.supervise:SuperviseHosts',
    'host watch': 'hpcvirt.cmd.host.watch:WatchHost',
    'host quarantine': 'hpcvirt.cmd.host.quarantine:QuarantineHost',
    'host release': 'hpcvirt.cmd.host.quarantine:ReleaseHost',
    'flavor plan': 'hpcvirt.cmd.flavor.plan:PlanFlavors',
    'flavor apply': 'hpcvirt.cmd.flavor.apply:ApplyFlavors',
    'flavor lint': 'hpcvirt.cmd.flavor.lint:LintFlavors',
    'capacity': 'hpcvirt.cmd.fleet.capacity:CountCapacity',
    'explain': 'hpcvirt.cmd.fleet.explain:ExplainRefusal',
    'make-room': 'hpcvirt.cmd.fleet.make_room:MakeRoom',
    'drain': 'hpcvirt.cmd.fleet.drain:DrainHosts',
    'fleet dump': 'hpcvirt.cmd.fleet.documents:DumpFleet',
    'fleet show': 'hpcvirt.cmd.fleet.documents:ShowFleet',
    'fleet inventory': 'hpcvirt.cmd.fleet.documents:WriteInventory',
    'instance topology': 'hpcvirt.cmd.instance.topology:WriteInstanceTopology',
    'simulate': 'hpcvirt.cmd.simulate.simulate:SimulateWorkload',
    'bench list': 'hpcvirt.cmd.bench.describe:ListBenchmarks',
    'bench describe': 'hpcvirt.cmd.bench.describe:DescribeBenchmark',
    'bench run': 'hpcvirt.cmd.bench.run:RunBenchmarks',
    'bench runs': 'hpcvirt.cmd.bench.runs:ListRuns',
    'bench stop': 'hpcvirt.cmd.bench.runs:StopRun',
    'bench parse': 'hpcvirt.cmd.bench.compare:ParseOutput',
    'bench compare': 'hpcvirt.cmd.bench.compare:CompareOutputs',
    'bench report': 'hpcvirt.cmd.bench.report:ReportResults',
    'study list': 'hpcvirt.cmd.study.show:ListStudies',
    'study show': 'hpcvirt.cmd.study.show:ShowStudy',
    'study scale': 'hpcvirt.cmd.study.show:ScaleStudy',
    'study run': 'hpcvirt.cmd.study.run:RunStudy',
    'study compare': 'hpcvirt.cmd.study.show:CompareStudy',
    'tune plan': 'hpcvirt.cmd.tune.experiment:PlanTuning',
    'tune run': 'hpcvirt.cmd.tune.run:RunExperiment',
    'tune show': 'hpcvirt.cmd.tune.experiment:ShowExperiment',
    'tune export': 'hpcvirt.cmd.tune.experiment:ExportProfile',
    'tune check': 'hpcvirt.cmd.tune.run:CheckProfile',
    'complete': 'hpcvirt.cmd.command:PrintCompletion',
}

#: The first word of commands to its summary.
NOUNS = {
    'topology': 'read, draw and group topologies of hosts',
    'host': 'check, configure and accept compute hosts',
    'flavor': 'plan, create and check flavors for hosts',
    'capacity': 'count the instances that still fit on a fleet',
    'explain': 'explain why an instance fits on no host',
    'make-room': 'find the fewest moves that make room for an instance',
    'drain': 'empty hosts by migrations',
    'fleet': 'write, summarize and convert fleet documents',
    'instance': 'write the topology of an instance for programs in it',
    'simulate': 'replay a workload over a fleet',
    'bench': 'run benchmarks and compare guest and native',
    'study': 'show published studies and run them again',
    'tune': 'measure which choices of a profile pay',
    'complete': 'print the completion of this command for bash',
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
        nouns = '\n'.join(f'  {noun:<20}  {line}'
                          for noun, line in NOUNS.items())
        parser = command.CommandParser(
            prog=self.NAME, usage='hpcvirt [--debug] COMMAND ...',
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=description, epilog=f'commands:\n{nouns}\n\n'
            'hpcvirt COMMAND --help describes a command.',
            add_help=False, allow_abbrev=False)
        parser.add_argument('--version', action=_Version, nargs=0,
                            help='print the version')
        parser.add_argument('--debug', action='store_true',
                            help='print a traceback with an error message')
        return parser

    def run(self, argv: Sequence[str]) -> int:
        """Run the command that the arguments name; return the exit status."""
        end = _find_end(argv)
        self.options, rest = self.parser.parse_known_args(argv[:end])
        rest += argv[end:]
        help_words = set(rest) & {'-h', '--help'}
        nouns = [word for word in rest if not word.startswith('-')]
        if help_words and not nouns:
            self.parser.print_help()
            return 0
        try:
            factory, name, rest = self._find_command(rest)
        except ValueError:
            if help_words and len(nouns) == 1 and nouns[0] in NOUNS:
                self._print_verbs(nouns[0])
                return 0
            self._refuse(rest)
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

    def _print_verbs(self, noun: str) -> None:
        print(f'usage: hpcvirt {noun} VERB ...\n\n{NOUNS[noun]}\n')
        for name, entry in self.command_manager:
            first, _, verb = name.partition(' ')
            if first == noun:
                print(f'  {verb:<20}  '
                      f'{command.get_summary(entry.load())}')

    def _refuse(self, given: Sequence[str]) -> NoReturn:
        """Exit with an error that lists or suggests commands."""
        first, second = [*given, '', ''][:2]
        known = list(NOUNS)
        prog = self.NAME
        if first in NOUNS:
            prog, first = f'{prog} {first}', second
            known = [name.partition(' ')[2] for name in COMMANDS
                     if name.startswith(f'{given[0]} ')]
        self.parser.prog = prog
        if not first or first.startswith('-'):
            self.parser.error(f'a command is missing: {", ".join(known)}')
        self.parser.error(f'{first!r} is not a command'
                          + words.suggest(first, known))


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
