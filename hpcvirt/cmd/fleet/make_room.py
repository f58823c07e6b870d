# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt make-room``: move the fewest instances so that others fit."""

import argparse
import collections
import re
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import arguments
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.model import flavor as flavor_model

#: Two moves cannot make room for more instances.
MAX_INSTANCES = 1000

_count = command.whole_number(1, MAX_INSTANCES)
_HOUR = r'([01]\d|2[0-3]):[0-5]\d'
_PART_OF_DAY = re.compile(f'{_HOUR}-{_HOUR}', re.ASCII)


class MakeRoom(command.Report):
    """Find the fewest moves that make room for an instance.

    Find the fewest instances to move to other hosts so that instances of a
    flavor fit. With --apply, make the moves one after the other.
    """

    epilog = arguments.EPILOG + """
Exit status: 0 if the instances fit, now or after the moves; 1 if no moves
suffice; 2 if the input or the cloud cannot be used; 3 if a move failed. To
empty whole hosts, see drain.
"""
    rows = 'moves'
    fields = ('id', 'from', 'to', 'cells', 'kind')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        wanted = parser.add_mutually_exclusive_group(required=True)
        arguments.add_flavor(wanted)
        wanted.add_argument(
            '--standing', metavar='NAME=N', action='append', default=[],
            nargs='?', const=(), type=_read_wanted, help='keep room for N '
            'instances of this flavor, or for one of any of the three largest '
            'that are usually requested; may be repeated')
        parser.add_argument(
            '--count', metavar='N', type=_count, default=1,
            help='the number of instances that must fit (default: 1)')
        parser.add_argument(
            '--moves', metavar='K', type=int, default=2, choices=range(3),
            help='the most moves, 0 to 2 (default: 2)')
        parser.add_argument(
            '--cold', action='store_true', help='allow cold migrations, as '
            'few as possible')
        _add_standing(parser)
        cloud_arguments.add_apply(parser, 'moves')
        arguments.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Find the moves, and carry them out with --apply."""
        args = parsed_args
        _check(args)
        plan, document, text = _search(args)
        moves = plan.moves if args.apply else ()
        made: list[moving.MoveAttempt] = []
        if moves:
            # The format table prints the plan before its progress.
            text = '' if arguments.show(args, text) else text
            # The client libraries take half a second to load.
            from hpcvirt.cloud import migrations
            made = migrations.Migrator(
                cloud_arguments.connect(args)).carry_out_all(
                    moves, lambda: not is_quiet(args),
                    lambda done: arguments.show(
                        args, move_report.progress(done)))
        document['moves'][:len(made)] = move_report.list_made(made)
        failed = any(attempt.failure for attempt in made)
        if failed or len(made) < len(moves):
            document['fits'] = False
            text += move_report.ADVICE if failed else (
                'The other moves must wait: these are quiet hours.\n')
        if args.textfile:
            _write_metrics(args.textfile, plan, made)
        status = 0 if document['fits'] else 1
        return command.CommandResult(document, lambda: text,
                                     3 if failed else status)


def _add_standing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--requests', metavar='FILE', help='what is requested, for --standing '
        '(default: the requests of four weeks)')
    parser.add_argument(
        '--budget', metavar='N', type=command.whole_number(1, 10_000),
        help='the most migrations in an hour, those of others included')
    parser.add_argument(
        '--quiet-hours', metavar='FROM-TO', action='append', default=[],
        type=_part_of_day, help='begin no move then, such as 08:00-18:00 in '
        'local time; may be repeated')
    parser.add_argument(
        '--exclude-project', metavar='ID', action='append', default=[],
        help='move no instance of this project; may be repeated')
    parser.add_argument(
        '--textfile', metavar='FILE', help='write metrics to this file for '
        'node_exporter (FILE.prom)')


def _read_wanted(word: str) -> tuple[str, int]:
    name, _, number = word.rpartition('=')
    if not name:
        raise argparse.ArgumentTypeError(
            f'{word[:64]!r} is not NAME=N, such as hpc.16c1n.2m=2')
    return name, _count(number)


def _part_of_day(word: str) -> str:
    if not _PART_OF_DAY.fullmatch(word) or word[:5] == word[6:]:
        raise argparse.ArgumentTypeError(
            f'must be like 08:00-18:00, not {word[:20]!r}')
    return word


def _check(args: argparse.Namespace) -> None:
    """Raise InvalidInput if an option would have no effect."""
    if args.requests and all(args.standing):
        raise exception.InvalidInput(
            '--requests', 'belongs to --standing without NAME=N')
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


def _search(args: argparse.Namespace,
            ) -> tuple[make_room.ReservePlan, dict[str, Any], str]:
    """Search for the moves.

    :returns: the plan, its document and its text
    :raises InvalidInput: for an invalid file or argument
    :raises Unreachable: if the cloud cannot be read
    """
    fleet, flavors = arguments.read(args)
    targets = [_make_target(arguments.find_flavor(
        one[0], flavors, fleet, args.fleet, '--standing'), one[1])
        for one in args.standing if one]
    if args.flavor:
        targets = [_make_target(arguments.find_flavor(
            args.flavor, flavors, fleet, args.fleet), args.count)]
    elif not all(args.standing):
        requested = _count_requests(args)
        counts = [requested.get(flavor.name, 0) for flavor in flavors]
        guests = list(map(compiled_flavor.make, flavors))
        targets += [make_room.RoomTarget(guests[index], 1)
                    for index in make_room.find_usual(guests, counts)]
        if not targets:
            raise exception.InvalidInput(
                args.requests or 'the cloud', 'has no request for a flavor '
                'that exists; name flavors with --standing NAME=N')
    most, why = None, ''
    if is_quiet(args):
        most, why = 0, 'these are quiet hours'
    elif args.budget:
        from hpcvirt.nova_live import recent
        most, why = recent.find_budget(args.budget)
    asked = move_report.MoveRequest(
        args.moves, args.cold, not args.flavor and all(args.standing),
        bool(args.flavor))
    plan = make_room.limit(make_room.keep_room(
        targets, make_room.exclude_projects(fleet.hosts, args.exclude_project),
        args.moves, args.cold, asked.together), most, why)
    return plan, move_report.document(fleet, plan, asked), move_report.text(
        fleet, plan, asked, output.width())


def _make_target(flavor: flavor_model.Flavor,
                 count: int) -> make_room.RoomTarget:
    return make_room.RoomTarget(compiled_flavor.make(flavor), count)


def _count_requests(args: argparse.Namespace) -> Mapping[str, int]:
    """Count the requested instances of each flavor, by its name."""
    if args.requests is None and args.fleet is None:
        from hpcvirt.nova_live import recent
        return recent.count_requests()
    if args.requests is None:
        raise exception.InvalidInput(
            '--standing', 'without NAME=N needs --requests or the live '
            'cloud')
    from hpcvirt.simulate import read
    found = collections.Counter[str]()
    for job in read.workload(args.requests).jobs:
        found[job.flavor] += job.count
    return found


def _write_metrics(path: str, plan: make_room.ReservePlan,
                   made: Sequence[moving.MoveAttempt]) -> None:
    """Write the metrics of a pass.

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
    done = {attempt.move for attempt in made if attempt.failure is None}
    for kept in plan.found:
        room.labels(kept.target.guest.name).set(
            kept.plan is not None and done.issuperset(kept.plan.moves))
    for state_of, number in (('made', len(done)),
                             ('failed', len(made) - len(done)),
                             ('waiting', plan.waiting)):
        moves.labels(state_of).set(number)
    last.set_to_current_time()
    output_file.write(path, prometheus_client.generate_latest(registry))
