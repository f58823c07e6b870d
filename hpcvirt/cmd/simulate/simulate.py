# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt simulate``: replay a workload over a fleet."""

import argparse
import math
import typing
import warnings
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.cmd import terminal

if typing.TYPE_CHECKING:
    from hpcvirt.simulate import scenario as scenarios
    from hpcvirt.simulate import simulation as simulations
    from hpcvirt.simulate import totals


class SimulateWorkload(command.Report):
    """Replay a workload over a fleet.

    Replay the requests of a workload over an initially empty fleet, once for
    each strategy of choosing hosts. Print what each strategy loses: the
    core-hours of the requests that it refuses, and the causes.
    """

    epilog = hosts.EPILOG + """
To answer a what-if question, run the command again with other hosts, another
profile or other flavors: with a larger COUNT, or a smaller one for drained
hosts; with a profile that sets smt: leave, page_size, smallest_cores or
devices. --load is relative to the CPUs of the fleet. To send the same requests
to other hosts, omit it, or divide it by the growth of the CPUs for guests.

The same files and arguments always print the same document. The speed in
decisions per second is printed on standard error.
"""
    rows = 'strategies'
    fields = ('name', 'lost_percent', 'refused', 'largest_accepted_percent',
              'utilisation_percent', 'stranded_cpus_percent',
              'across_sockets_percent', 'moves')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--workload', metavar='FILE|MODEL', required=True,
            help='the requests with their times: a log, whose format is '
            'detected, or a model, lublin or cloud, with its number of jobs, '
            'as in cloud:20000')
        hosts.add_hosts(parser)
        hosts.add_fleet(parser)
        hosts.add_division(parser)
        parser.add_argument(
            '--flavors', metavar='FILE', action='append', default=[],
            help='the flavors that can be requested, as "openstack flavor '
            'list --long -f json" or "hpcvirt flavor plan -f json" prints '
            'them; may be given several times (default: the flavors that the '
            'workload describes, and those of the fleet; if the fleet has '
            'none, they are planned as by "hpcvirt flavor plan")')
        parser.add_argument(
            '--compare', metavar='LIST', default='nova,packing,hpcvirt',
            help='the strategies, separated by commas: nova, packing, '
            'best-fit and hpcvirt; add +fullest to let the claim use the '
            'fullest host cells first, +moves to let other guests move for a '
            'refused request, and +standing or +standing:N to make room after '
            'every request or every Nth (default: %(default)s)')
        parser.add_argument(
            '--nova-conf', metavar='FILE', help='also let Nova itself decide, '
            'with the filters, weighers and multipliers of this nova.conf, as '
            'the strategy nova.conf')
        parser.add_argument(
            '--load', metavar='X', type=_positive,
            help='scale the times of the requests so that they request X '
            'times the CPUs of the fleet on average (default: keep the times)')
        parser.add_argument(
            '--vf-share', metavar='X', type=_share, default=0.0,
            help='add a virtual function to this share, from 0 to 1, of the '
            'requests without one (default: 0)')
        parser.add_argument(
            '--moves', metavar='K', type=int, default=2, choices=(1, 2),
            help='how many other guests may move for a request in a strategy '
            'with +moves or +standing, 1 or 2 (default: %(default)s)')
        parser.add_argument(
            '--copy-rate', metavar='MIB', type=command.whole_number(1, 10**6),
            default=1000, help='the memory in MiB that a move copies in a '
            'second in a strategy with +standing (default: %(default)s)')
        parser.add_argument(
            '--windows', metavar='N', default=10,
            type=command.whole_number(1, 1000),
            help='number of parts of a replay, from which intervals are '
            'computed (default: %(default)s)')
        parser.add_argument(
            '--seeds', metavar='N', default=1,
            type=command.whole_number(1, 1000),
            help='number of replays of a model with different seeds, from '
            'which intervals are computed (default: %(default)s)')
        parser.add_argument(
            '--html', metavar='FILE', help='also write a self-contained page '
            'with drawings; an existing file is replaced only if it is such a '
            'page')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Replay the workload."""
        # NumPy and SciPy take half a second to load.
        with extras.require('simulate'):
            from hpcvirt.cmd.simulate import page
            from hpcvirt.cmd.simulate import progress
            from hpcvirt.simulate import report
            from hpcvirt.simulate import simulation
            from hpcvirt.simulate import strategy as strategies
        if args.html is not None:
            html_file.check(args.html, page.TITLE)
        compared = strategies.parse(args.compare, args.moves, args.copy_rate)
        scenario = _make_scenario(args)
        others = ({} if args.nova_conf is None else {
            strategies.NOVA_CONF: _load_nova(args.nova_conf)})
        result = simulation.simulate(scenario, compared, args.windows,
                                     progress.show_bars, others)
        for name, replays in result.replays.items():
            _print_speed(name, replays)
        if args.html is not None:
            html_file.write(args.html, page.page(result), page.TITLE)
        return command.CommandResult(
            report.document(result),
            lambda: report.text(result, terminal.width()))


def _positive(word: str) -> float:
    return _number(word, 1000, 'above 0 and at most 1000', above_zero=True)


def _share(word: str) -> float:
    return _number(word, 1, 'from 0 to 1')


def _number(word: str, most: float, words: str,
            above_zero: bool = False) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most or (above_zero and not value):
        raise argparse.ArgumentTypeError(
            f'must be a number {words}, not {word[:20]!r}')
    return value


def _make_scenario(args: argparse.Namespace) -> 'scenarios.Scenario':
    from hpcvirt.cmd.simulate import empty_fleet
    from hpcvirt.simulate import read
    from hpcvirt.simulate import simulation
    from hpcvirt.simulate import synthetic
    fleet, are_given = empty_fleet.read(args)
    model = synthetic.parse(args.workload)
    if model is not None:
        found = [model.workload(seed, fleet.flavors)
                 for seed in range(args.seeds)]
    elif args.seeds == 1:
        found = [read.workload(args.workload)]
    else:
        raise exception.InvalidInput(
            '--seeds', 'is for models, which are '
            f'{" and ".join(synthetic.MODELS)}; use --windows for a log')
    return simulation.make_scenario(
        input_file.name(args.workload), found, fleet, args.load,
        own=model is not None or not are_given, vf_share=args.vf_share)


def _load_nova(path: str) -> 'simulations.Engine':
    """Return the replay engine that uses a nova.conf."""
    # Nova is optional, and takes seconds to load.
    with extras.require('nova'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from hpcvirt.controller.replay import replay as nova_replay
        from hpcvirt.controller.replay import settings
    settings.load(path)
    return nova_replay.replay


def _print_speed(name: str, replays: 'Sequence[totals.Replay]') -> None:
    number = sum(len(each.outcome.fates) for each in replays)
    seconds = sum(each.outcome.seconds for each in replays)
    output.complain(f'{name}: {number} decisions in {seconds:.1f} s'
                    + (f', {number / seconds:.0f} per second' if seconds
                       else ''))
