# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt simulate``: replay a workload over a fleet."""

import argparse
import contextlib
import math
import sys
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.simulate import strategy as strategies

_STRATEGIES = 'nova,packing,hpcvirt'
#: How many other guests may move for a request.
_MOVES = 2
#: The number of parts of a replay, from which intervals are computed.
_WINDOWS = 10


class SimulateWorkload(command.Report):
    """Replay a workload over a fleet.

    Replay the requests of a workload over a fleet, which is empty at first,
    once for each strategy, and print the core-hours that each strategy loses.
    Several fleets are compared with the same requests.
    """

    epilog = hosts.EPILOG + """\
--load is relative to the CPUs of the first fleet. The same arguments always
print the same document.
"""
    rows = 'strategies'
    fields = ('name', 'lost_percent', 'local_percent', 'refused',
              'largest_accepted_percent',
              'utilisation_percent', 'stranded_cpus_percent',
              'across_sockets_percent', 'moves')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--workload', metavar='FILE|cloud:N', required=True,
            help='a log, or the model of a cloud with N requests')
        hosts.add_hosts(parser)
        hosts.add_fleet(parser, '; may be repeated', 'append')
        hosts.add_division(parser)
        parser.add_argument(
            '--flavors', metavar='FILE', action='append', default=[],
            help='the flavors that can be requested; may be repeated')
        parser.add_argument(
            '--compare', metavar='LIST',
            help='strategies: nova, packing, best-fit and hpcvirt, with '
            'additions (packing+pci=0, +fullest, +moves, +standing:N)')
        parser.add_argument(
            '--load', metavar='X', type=_number(1000, above_zero=True),
            help='scale the times to request X times its CPUs')
        parser.add_argument(
            '--vf-share', metavar='X', type=_number(1), default=0.0,
            help='add a VF to this share of the requests (default: 0)')
        parser.add_argument(
            '--in-use', action='store_true', help='begin with the instances '
            'of the fleet document')
        parser.add_argument(
            '--warm-up', metavar='X', type=_number(0.9), default=0.0,
            help='the share of the first requests that does not count')
        parser.add_argument(
            '--seeds', metavar='N', default=1,
            type=command.whole_number(1, 1000),
            help='number of replays of the model (default: %(default)s)')
        parser.add_argument(
            '--html', metavar='FILE', help='also write a page with drawings')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Replay the workload."""
        # NumPy and SciPy take half a second to load.
        with extras.require('simulate'):
            from hpcvirt.cmd.simulate import choices as fleet_choices
            from hpcvirt.cmd.simulate import page
            from hpcvirt.simulate import report
            from hpcvirt.simulate import simulation
        if args.in_use and args.fleet is None:
            raise exception.InvalidInput('--in-use', 'needs --fleet')
        if args.html is not None:
            html_file.check(args.html, page.TITLE)
        several = args.fleet is not None and len(args.fleet) > 1
        compared = strategies.parse(
            args.compare or ('hpcvirt' if several else _STRATEGIES), _MOVES)
        choices = fleet_choices.read_choices(args)
        tasks = simulation.list_tasks(choices, compared)
        with _show_percent() as show:
            outcomes = simulation.run([*tasks.values()], show)
        document = report.document(simulation.gather(
            choices, _WINDOWS, dict(zip(tasks, outcomes, strict=True))))
        for warning in document['warnings']:
            output.warn(f'Warning: {warning}')
        if args.html is not None:
            html_file.write(args.html, page.page(document), page.TITLE)
        return command.CommandResult(
            document, lambda: report.text(document, output.width()))


def _number(most: float, *,
            above_zero: bool = False) -> Callable[[str], float]:
    """Return the argparse type of a number from 0 on."""
    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not 0 <= value <= most or (above_zero and not value):
            raise argparse.ArgumentTypeError(
                'must be a number '
                + ('above 0 and at most ' if above_zero else 'from 0 to ')
                + f'{most:g}, not {word[:20]!r}')
        return value
    return read


@contextlib.contextmanager
def _show_percent() -> Iterator[Callable[[float], None]]:
    """Show the percentage of what is done, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _part: None
        return
    try:
        yield lambda part: print(f'\r{part:4.0%} ', end='', file=sys.stderr,
                                 flush=True)
    finally:
        print('\r      \r', end='', file=sys.stderr, flush=True)
