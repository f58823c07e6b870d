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


class SimulateWorkload(command.Report):
    """Replay a workload over a fleet.

    Replay the requests of a workload over a fleet, which is empty at first,
    once for each strategy of choosing hosts. Print what each strategy loses:
    the core-hours of the requests that it refuses, and the causes. Several
    --fleet are compared with the same requests.
    """

    epilog = hosts.EPILOG + """
Several fleets get the requests at the same times: --load is relative to the
CPUs of the first one. Jobs that are too large for every flavor of a fleet are
lost in it, and core-hours are those of the jobs.

The same files and arguments always print the same document.
"""
    rows = 'strategies'
    fields = ('name', 'lost_percent', 'local_percent', 'refused',
              'largest_accepted_percent',
              'utilisation_percent', 'stranded_cpus_percent',
              'across_sockets_percent', 'moves')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--workload', metavar='FILE|cloud:N', required=True,
            help='the requests with their times: a log, whose format is '
            'detected, or the model of a cloud with a number of requests, '
            'as in cloud:20000')
        hosts.add_hosts(parser)
        hosts.add_fleet(parser, '; several are compared with the same '
                        'requests, each by the name of its file without '
                        'suffix', 'append')
        hosts.add_division(parser)
        parser.add_argument(
            '--flavors', metavar='FILE', action='append', default=[],
            help='the flavors that can be requested, as "openstack flavor '
            'list --long -f json" or "hpcvirt flavor plan -f json" prints '
            'them; may be given several times (default: the flavors that the '
            'workload describes, and those of the fleet; if the fleet has '
            'none, they are planned as by "hpcvirt flavor plan")')
        parser.add_argument(
            '--compare', metavar='LIST',
            help='the strategies, separated by commas: nova, packing, '
            'best-fit and hpcvirt; add +NAME=NUMBER to change an option of a '
            'weigher, as in packing+pci=0 or hpcvirt+far=inf, +fullest to let '
            'the claim use the fullest host cells first, +moves to let other '
            'guests move for a '
            'refused request, and +standing or +standing:N to make room after '
            f'every request or every Nth (default: {_STRATEGIES}; with '
            'several fleets, hpcvirt)')
        parser.add_argument(
            '--load', metavar='X', type=_number(1000, above_zero=True),
            help='scale the times of the requests so that they request X '
            'times the CPUs of the fleet on average (default: keep the times)')
        parser.add_argument(
            '--vf-share', metavar='X', type=_number(1), default=0.0,
            help='add a virtual function to this share, from 0 to 1, of the '
            'requests without one (default: 0)')
        parser.add_argument(
            '--in-use', action='store_true', help='begin with the instances '
            'of --fleet, each of which ends after the rest of a life of the '
            'workload (default: begin with an empty fleet)')
        parser.add_argument(
            '--warm-up', metavar='X', type=_number(0.9), default=0.0,
            help='do not count this share, from 0 to 0.9, of the requests, '
            'from the first one on, which fill the fleet (default: 0)')
        parser.add_argument(
            '--moves', metavar='K', type=int, default=2, choices=(1, 2),
            help='how many other guests may move for a request in a strategy '
            'with +moves or +standing, 1 or 2 (default: %(default)s)')
        parser.add_argument(
            '--copy-rate', metavar='MIB', type=command.whole_number(1, 10**6),
            default=strategies.COPY_MIB_PER_S,
            help='the memory in MiB that a move copies in a '
            'second in a strategy with +standing (default: %(default)s)')
        parser.add_argument(
            '--windows', metavar='N', default=10,
            type=command.whole_number(1, 1000),
            help='number of parts of a replay, from which intervals are '
            'computed (default: %(default)s)')
        parser.add_argument(
            '--seeds', metavar='N', default=1,
            type=command.whole_number(1, 1000),
            help='number of replays of the model with different seeds, from '
            'which intervals are computed (default: %(default)s)')
        parser.add_argument(
            '--html', metavar='FILE', help='also write a self-contained page '
            'with drawings; an existing file is replaced only if it is such a '
            'page')

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
            args.compare or ('hpcvirt' if several else _STRATEGIES),
            args.moves, args.copy_rate)
        choices = fleet_choices.read_choices(args)
        tasks = simulation.list_tasks(choices, compared)
        with _show_percent() as show:
            outcomes = simulation.run([*tasks.values()], show)
        document = report.document(simulation.gather(
            choices, args.windows, dict(zip(tasks, outcomes, strict=True))))
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
