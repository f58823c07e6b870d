# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt make-room --standing``: keep room for instances in advance."""

import argparse
import collections
import re
import time
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import history_file
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import standing
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model

#: Two moves cannot make room for more instances.
MAX_INSTANCES = 1000

_HOUR = r'([01]\d|2[0-3]):[0-5]\d'
_PART_OF_DAY = re.compile(f'{_HOUR}-{_HOUR}', re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --standing and the options that belong to it."""
    group = parser.add_argument_group('room in advance')
    group.add_argument(
        '--standing', metavar='NAME=N', action='append', default=[],
        nargs='?', const='', help='instead of --flavor: keep room for N '
        'instances of this flavor, at the same time as for those of other '
        '--standing options; may be given several times; without NAME=N, for '
        'an instance of any of the three largest flavors that are usually '
        'requested')
    group.add_argument(
        '--requests', metavar='FILE', help='what is requested: a table of '
        'instances, as for "hpcvirt simulate", or a log of nova-scheduler '
        'with refusals of HPCTopologyFilter (default: the requests of four '
        'weeks in the live cloud)')
    group.add_argument(
        '--budget', metavar='N', type=command.whole_number(1, 10_000),
        help='the most migrations in an hour, with those that others began; '
        'none for an hour after one has failed; only in the live cloud')
    group.add_argument(
        '--quiet-hours', metavar='FROM-TO', action='append', default=[],
        type=_part_of_day, help='begin no move in this part of the day, in '
        'local time, such as 08:00-18:00; may be given several times')
    group.add_argument(
        '--exclude-project', metavar='ID', action='append', default=[],
        help='move no instance of this project; may be given several times')
    group.add_argument(
        '--textfile', metavar='FILE', help='write the metrics to this file, '
        'which ends with .prom, for the textfile collector of node_exporter')


def _part_of_day(word: str) -> str:
    if not _PART_OF_DAY.fullmatch(word) or word[:5] == word[6:]:
        raise argparse.ArgumentTypeError(
            f'must be like 08:00-18:00, not {word[:20]!r}')
    return word


def check(args: argparse.Namespace) -> None:
    """Raise InvalidInput if an option would have no effect."""
    if bool(args.flavor) == bool(args.standing):
        raise exception.InvalidInput(
            'make-room', 'needs either --flavor or --standing')
    for name in ('requests', 'budget', 'quiet_hours', 'exclude_project',
                 'textfile'):
        if getattr(args, name) and not args.standing:
            raise exception.InvalidInput(f'--{name.replace("_", "-")}',
                                         'belongs to --standing')
    if args.standing and args.count != 1:
        raise exception.InvalidInput('--count', 'belongs to --flavor')
    if args.fleet is not None and args.budget:
        raise exception.InvalidInput(
            '--budget', 'needs the live cloud, whose migrations it counts')


def is_quiet(args: argparse.Namespace) -> bool:
    """Whether these are quiet hours; an end may be of the next day."""
    now = time.strftime('%H:%M')
    return any(
        begin <= now < end if begin < end else now >= begin or now < end
        for begin, end in (part.split('-') for part in args.quiet_hours))


def search(args: argparse.Namespace, fleet: state.Fleet,
           flavors: Sequence[flavor_model.Flavor]) -> standing.StandingPlan:
    """Search for the moves that keep room.

    :raises InvalidInput: for an invalid file or argument
    :raises Unreachable: if the cloud cannot be read
    """
    wanted = [_read_wanted(word, args, flavors)
              for word in args.standing if word]
    if not all(args.standing):
        requested = _count_requests(args)
        wanted += [make_room.Wanted(flavors[index], 1)
                   for index in standing.find_usual(flavors, [
                       requested.get(flavor.name, 0) for flavor in flavors])]
        if not wanted:
            raise exception.InvalidInput(
                args.requests or 'the cloud', 'has no request for a flavor '
                'that exists; name flavors with --standing NAME=N')
    most, why = None, ''
    if is_quiet(args):
        most, why = 0, 'these are quiet hours'
    elif args.budget:
        from hpcvirt.controller import recent
        most, why = recent.find_budget(args.budget)
    return standing.limit(make_room.keep_room(
        wanted, standing.exclude_projects(fleet.hosts, args.exclude_project),
        args.moves, args.cold, all(args.standing)), most, why)


def _read_wanted(word: str, args: argparse.Namespace,
                 flavors: Sequence[flavor_model.Flavor]) -> make_room.Wanted:
    name, equals, number = word.rpartition('=')
    try:
        count = command.whole_number(1, MAX_INSTANCES)(number)
    except argparse.ArgumentTypeError:
        count = 0
    if not equals or not name or not count:
        raise exception.InvalidInput(
            '--standing', f'{word[:64]!r} is not NAME=N, such as '
            'hpc.16c1n.2m=2')
    return make_room.Wanted(
        arguments.find_flavor(name, flavors, args.fleet, '--standing'),
        count)


def _count_requests(args: argparse.Namespace) -> Mapping[str, int]:
    """Count the requested instances of each flavor, by its name."""
    if args.requests is None and args.fleet is None:
        from hpcvirt.controller import recent
        return recent.count_requests()
    if args.requests is None:
        raise exception.InvalidInput(
            '--standing', 'without NAME=N needs --requests or the live '
            'cloud')
    from hpcvirt.simulate.read import boots_csv
    from hpcvirt.simulate.read import log as logs
    found: collections.Counter[str] = collections.Counter()
    log = logs.Log(args.requests)
    if boots_csv.recognizes(log.first):
        for job in boots_csv.read(log).jobs:
            found[job.flavor] += job.count
        return found
    # Standard input cannot be read again; in a file, long lines are cut.
    lines = ((line.encode() for line in log)
             if args.requests == input_file.STDIN
             else history_file.lines(args.requests))
    for first, *_ in log_reading.read(lines, None).refusals.values():
        found[first.flavor] += 1
    return found


def write_metrics(path: str, plan: standing.StandingPlan,
                  made: Collection[moving.Move], failed: bool) -> None:
    """Write the metrics of a pass.

    :param made: the moves that were made
    :param failed: whether another one failed
    :raises InvalidInput: if the file cannot be written
    """
    with extras.require('exporter'):
        import prometheus_client
    registry = prometheus_client.CollectorRegistry()
    room, moves, last = (prometheus_client.Gauge(
        f'hpcvirt_standing_{name}', text, labels, registry=registry)
        for name, text, labels in (
            ('room', 'Whether the last pass left room for this flavor',
             ('flavor_name',)),
            ('moves', 'Moves of the last pass', ('state',)),
            ('last_pass_timestamp_seconds', 'When the last pass ended', ())))
    for kept in plan.found:
        room.labels(kept.wanted.flavor.name).set(
            kept.plan is not None and {*kept.plan.moves} <= {*made})
    for state_of, number in (('made', len(made)), ('failed', failed),
                             ('waiting', plan.waiting)):
        moves.labels(state_of).set(number)
    last.set_to_current_time()
    output_file.write(path, prometheus_client.generate_latest(registry))
