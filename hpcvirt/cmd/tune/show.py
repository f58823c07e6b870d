# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt tune show`` and ``hpcvirt tune export``: what was found."""

import argparse
import datetime
import sys
import typing

from hpcvirt import exception
from hpcvirt.bench.results import location
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import terminal
from hpcvirt.cmd.tune import documents

if typing.TYPE_CHECKING:
    from hpcvirt.tune import report


class ShowExperiment(command.Report):
    """Show what an experiment has found so far.

    Show the recommended profile with its gain, the effect of each value
    compared with today's, its cost, and what was published about it.
    """

    rows = 'values'
    fields = ('choice', 'value', 'decision', 'trials', 'guard')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add(parser)
        parser.add_argument(
            '--html', metavar='FILE', help='write a self-contained page; an '
            'existing file is replaced only if it is such a page')

    def answer(self,
               args: argparse.Namespace) -> command.CommandResult | None:
        """Show the findings, or write the page."""
        shown = _read(args)
        if args.html is None:
            return command.CommandResult(
                shown.document(), lambda: shown.text(terminal.width()))
        if args.formatter != 'table':
            raise exception.InvalidInput('--format', 'is not for --html')
        from hpcvirt.tune import report
        now = datetime.datetime.now(datetime.UTC)
        html_file.write(args.html, report.page(
            shown, f'{now:%Y-%m-%d %H:%M} UTC'), report.TITLE)
        print(args.html)
        return None


class ExportProfile(command.Command):
    """Print the recommended profile of an experiment.

    The profile is for "hpcvirt flavor plan --profile". The comment of each
    choice has its effect with the interval, the number of trials, the dates
    and the class of hosts.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add(parser)

    def take_action(self, args: argparse.Namespace) -> int:
        """Print the profile."""
        shown = _read(args)
        from hpcvirt.tune import report
        sys.stdout.write(report.profile(shown))
        return 0


def _add(parser: argparse.ArgumentParser) -> None:
    documents.add_experiment(parser)
    parser.add_argument(
        '--data', metavar='DIR', default=location.default_directory(),
        help='directory of raw outputs (default: %(default)s)')


def _read(args: argparse.Namespace) -> 'report.TuneReport':
    with extras.bench():
        from hpcvirt.tune import analysis
        from hpcvirt.tune import records
        from hpcvirt.tune import report
    document = documents.read(args.experiment)
    name = document.space.experiment.name
    trials = records.find(args.data, records.make(document, name)).trials
    if not trials:
        raise exception.InvalidInput(
            records.path(args.data, name), 'has no trial: "hpcvirt '
            'tune run --apply" has made none of this experiment here')
    return report.TuneReport(
        document, analysis.analyse(document.space, trials), trials)
