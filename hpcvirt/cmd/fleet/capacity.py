# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt capacity``: count the instances that still fit on a fleet."""

import argparse
import contextlib
import datetime
import sys
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import history_file
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import metrics
from hpcvirt.fleet import state


class CountCapacity(command.Report):
    """Count the instances that still fit on a fleet.

    Count how many more instances of each flavor fit on the hosts beside the
    current instances. The rows are the flavors.
    """

    epilog = arguments.EPILOG
    rows = 'flavors'
    fields = ('name', 'total', 'by_sums', 'lost', 'pcpus_left', 'per_host')
    more_formats = ('prometheus',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--flavor', metavar='NAME|FILE', action='append', default=[],
            help='count only this flavor, or that of the file; may be given '
            'several times')
        arguments.add(parser)
        parser.add_argument(
            '--html', metavar='FILE', help='write a self-contained page; an '
            'existing file is replaced only if it is such a page')
        serve = parser.add_argument_group(
            'for Prometheus', 'This needs hpcvirt[exporter]; SIGTERM ends it.')
        serve.add_argument(
            '--serve', metavar='ADDRESS', nargs='?', const='127.0.0.1:9834',
            help='serve the counts as metrics on this host and port (default: '
            '%(const)s), without encryption or authentication')
        serve.add_argument(
            '--interval', metavar='SECONDS', default=60,
            type=command.whole_number(1, 24 * 60 * 60),
            help='read the fleet so often, regardless of scrapes (default: '
            '%(default)s)')
        serve.add_argument(
            '--history', metavar='FILE', help='count the refusals of the last '
            'day that "hpcvirt explain --history" has kept in this file')

    def answer(self, parsed_args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Count the instances, or serve the counts."""
        for option in ('serve', 'html'):
            if (getattr(parsed_args, option) is not None
                    and parsed_args.formatter != 'table'):
                raise exception.InvalidInput('--format',
                                             f'is not for --{option}')
        if parsed_args.serve is not None:
            _serve(parsed_args)
            return None
        if parsed_args.html is not None:
            with extras.bench():
                from hpcvirt.cmd.fleet import capacity_page
        fleet, flavors = arguments.read(parsed_args)
        found = count.count(fleet, flavors if not parsed_args.flavor else [
            arguments.find_flavor(name, flavors, fleet, parsed_args.fleet)
            for name in dict.fromkeys(parsed_args.flavor)])
        if parsed_args.html is not None:
            now = datetime.datetime.now(datetime.UTC)
            html_file.write(parsed_args.html, capacity_page.page(
                fleet, found, f'{now:%Y-%m-%d %H:%M} UTC'),
                capacity_page.TITLE)
            print(parsed_args.html)
            return None
        return command.CommandResult(
            capacity_report.document(fleet, found),
            lambda: capacity_report.text(fleet, found, output.width()),
            others={'prometheus': lambda: _write_metrics(
                parsed_args.history, fleet, found)})


def _serve(args: argparse.Namespace) -> None:
    with extras.require('exporter'):
        from hpcvirt.cmd.fleet import exporter
    if args.html is not None:
        raise exception.InvalidInput('--html', 'is not for --serve')
    if args.fleet == input_file.STDIN:
        raise exception.InvalidInput(
            '--serve', 'reads the fleet repeatedly, so that --fleet must be a '
            'file')

    where = exporter.address(args.serve)
    # -P: no module is imported from the current directory.
    words = [sys.executable, '-Pm', 'hpcvirt.cmd.main', 'capacity',
             '--format=prometheus']
    words += [f'--flavor={value}' for value in args.flavor]
    words += [f'--config-file={value}' for value in args.config_file]
    words += [f'--{name}={getattr(args, name)}'
              for name in ('fleet', 'history')
              if getattr(args, name) is not None]
    reader = exporter.FleetReader(words, args.interval)
    with (contextlib.suppress(KeyboardInterrupt),
          command.interrupting_signals()):
        reader.read()
        with exporter.run_server(reader.answer, where):
            reader.read_again()


def _write_metrics(history: str | None, fleet: state.Fleet,
                   found: Sequence[count.InstanceCount]) -> str:
    with extras.require('exporter'):
        from hpcvirt.cmd.fleet import exporter
    since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(1)
    refused = None if history is None else log_reading.read(
        history_file.lines(history), None, since.isoformat())
    return exporter.write(metrics.families(fleet, found, refused))
