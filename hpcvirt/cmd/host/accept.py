# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host accept``: prove a host before it takes work."""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import shlex
import sys
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import sides
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import targets
from hpcvirt.model import quarantine

if typing.TYPE_CHECKING:
    from hpcvirt.acceptance import acceptance
    from hpcvirt.cloud import accepted_host

_MAX_BYTES = 64 * 1024 * 1024
_MAX_MINUTES = 7 * 24 * 60
_MAX_PAIRS = 1000
#: Samples that are taken by default to compare a host with its class.
_SAMPLES = 10
_ADVICE = decidable.Advice('give --pairs {}', 'give --bound METRIC=RATIO')


@dataclasses.dataclass(frozen=True)
class _Request:
    """What the arguments ask for.

    :ivar figures: number of figures that are judged together
    """

    asked: 'acceptance.Acceptance'
    wanted: tuple[requests.RunRequest, ...]
    bounds: Mapping[str, judgement.Bound]
    figures: int


class AcceptHost(command.Report):
    """Prove a host before it takes work.

    Fill the host with instances of one flavor after the other, run benchmarks
    in all of them at once, and compare with native runs or with hosts of the
    class. The host must be empty, and is in quarantine until it passes. The
    quick gate comes first. If the command is killed, repeat it to continue.
    """

    epilog = f"""\
A TARGET is {targets.FORMS}.
Status 0: PASS, or the steps can be taken; 1: FAIL or INCONCLUSIVE; 2: the
input, the cloud or the host cannot be used.
"""
    rows = 'parts'
    fields = ('flavor', 'instances', 'result')
    more_formats = ('junit',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='HOST',
                            help='the name of a compute host')
        parser.add_argument('--flavor', metavar='NAME', action='append',
                            default=[], dest='flavors',
                            help='a flavor to fill the host with; may be '
                            'repeated')
        parser.add_argument('--plan', metavar='FILE',
                            help='the output of "hpcvirt flavor plan -f json"')
        parser.add_argument('--image', metavar='NAME|UUID',
                            help='an image with the benchmarks')
        parser.add_argument('--network', metavar='NAME',
                            help='a network on which instances are reached')
        parser.add_argument('--benchmarks', type=_names,
                            metavar='LIST', help='(default: hpcc; with '
                            '--quick hpcc,fio)')
        parser.add_argument('--quick', action='store_true',
                            help='take only the quick gate, without a cloud')
        parser.add_argument('--gate', metavar='TARGET',
                            help='where the gate is taken (default: --native)')
        parser.add_argument('--native', metavar='TARGET',
                            help='the host itself (default: compare with the '
                            'class)')
        parser.add_argument('--pairs', metavar='N',
                            type=command.whole_number(1, _MAX_PAIRS),
                            help='the pairs (default: '
                            f'{plans.STUDY_PAIRS}) or samples ({_SAMPLES})')
        parser.add_argument('--bound', action='append', default=[],
                            metavar='METRIC=RATIO', dest='bounds',
                            help='the worst ratio that passes')
        parser.add_argument('--audit', metavar='FILE',
                            help='the output of "hpcvirt host audit -f json"')
        parser.add_argument('--repaired', default='', metavar='TEXT',
                            help='what was repaired since the last time')
        parser.add_argument('--time-limit', default=480, metavar='MINUTES',
                            type=command.whole_number(1, _MAX_MINUTES),
                            help='stop measuring after this time '
                            '(default: %(default)s)')
        parser.add_argument('--json-lines', metavar='FILE',
                            help='also append the JSON to this file')
        targets.add_instances(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Print the steps, and with --apply take them."""
        if args.pairs is None:
            args.pairs = plans.STUDY_PAIRS if args.native else _SAMPLES
        with extras.bench():
            from hpcvirt.acceptance import records
        records.check_host(args.host)
        request = _read(args)
        asked = request.asked
        host = None if args.quick else _find_host(args, asked)
        if args.formatter == 'table':
            sys.stdout.write(printable.lines(
                _steps(args, asked, host.left() if host else ())))
            sys.stdout.flush()
        if not args.apply:
            return command.CommandResult(serialization.dump(asked), str)
        from hpcvirt.acceptance import report
        try:
            with command.interrupting_signals():
                found = _accept(args, host, request)
        except KeyboardInterrupt:
            output.complain('hpcvirt: interrupted; finished samples are kept, '
                            'and the same command continues')
            raise
        kept = records.Records(args.data)
        plain = serialization.dump(found)
        text = report.render(found, args.data, kept.count_hosts())
        if args.json_lines is not None:
            line = json.dumps(plain, allow_nan=False) + '\n'
            with output_file.appending(args.json_lines, 0o644) as stream:
                output_file.append(stream, line.encode())
        return command.CommandResult(
            plain, lambda: f'\n{text}\nThe record is in '
                           f'{printable.escape(kept.path(found))}.\n',
            found.result.exit_status if found.result else 1,
            {'junit': lambda: report.make_junit(found)})


def _find_host(args: argparse.Namespace,
               asked: 'acceptance.Acceptance') -> 'accepted_host.AcceptedHost':
    """Find the host in the cloud."""
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.cloud import accepted_host
    return accepted_host.find(
        cloud_arguments.connect_quarantine(args), args.host,
        [part.flavor for part in asked.parts], args.image, args.network)


def _accept(args: argparse.Namespace,
            host: 'accepted_host.AcceptedHost | None',
            request: _Request) -> 'acceptance.Acceptance':
    """Accept the host, and return the acceptance with its result."""
    from hpcvirt.acceptance import host_acceptance
    from hpcvirt.acceptance import measurement
    from hpcvirt.acceptance import records
    from hpcvirt.cmd.bench import progress
    where = args.gate or args.native
    wanted = request.wanted
    of_gate, gate_bounds = (wanted, request.bounds) if args.quick else (
        requests.find(host_acceptance.GATE_BENCHMARKS, ()), {})
    with contextlib.closing(store_arguments.open_store(args)) as store:
        gate = host_acceptance.GateAcceptance(
            store=store, records=records.Records(args.data), data=args.data,
            time_limit_min=args.time_limit,
            show=lambda: progress.Terminal(args.data),
            connect_host=(lambda: targets.find_named(args, where))
            if where else None,
            wanted=of_gate, bounds=gate_bounds)
        if host is None:
            return gate.accept(request.asked)
        from hpcvirt.cloud import benchmark_instances
        client = host

        def make_plan(pairs: Sequence[sides.Pair]) -> plans.RunPlan:
            return plans.make(wanted, pairs, _purpose(args), args.pairs,
                              launch=record.Launch.WARM, relaunch=True,
                              bounds=request.bounds, figures=request.figures)

        def measure(ids: Sequence[str], flavor: str, key_file: str,
                    shown: measurement.TimeLimit) -> str:
            guests = [targets.find_server(args, server_id, flavor, key_file)
                      for server_id in ids]
            natives = [targets.find_named(args, args.native)
                       for _ in ids] if args.native else []
            return measurement.measure(
                make_plan, store,
                any(request.variant.spans for request in wanted), guests,
                natives, shown, key_file)

        def hold(reason: str, since: str) -> None:
            client.cloud.hold(args.host, cloud_arguments.make_hold(
                quarantine.ACCEPT, reason, since))

        return host_acceptance.HostAcceptance(
            **vars(gate), host=client, measure=measure, hold=hold,
            release=lambda: client.cloud.release(args.host, quarantine.ACCEPT),
            not_started=benchmark_instances.InstancesNotStarted,
            complain=output.complain).accept(request.asked)


def _purpose(args: argparse.Namespace) -> record.Purpose:
    return record.Purpose.COMPARE if args.native else record.Purpose.UNPAIRED


def _read(args: argparse.Namespace) -> _Request:
    # These modules load all that plans a host.
    from hpcvirt.acceptance import acceptance
    from hpcvirt.acceptance import host_acceptance
    from hpcvirt.cmd.host import audit
    given = {'--gate or --native': args.gate or args.native} if (
        args.quick) else {'--flavor': args.flavors, '--plan': args.plan,
                          '--image': args.image, '--network': args.network}
    for name, value in given.items():
        if not value:
            raise exception.InvalidInput(name, 'is missing')
    args.benchmarks = args.benchmarks or list(
        host_acceptance.GATE_BENCHMARKS if args.quick else ['hpcc'])
    own_bounds = dict(bounds.parse(word) for word in args.bounds)
    settings = requests.read_settings(args.settings, targets.SET)
    wanted = requests.find(args.benchmarks, settings,
                           None if args.quick else record.Launch.WARM)
    definitions = [each.definition for each in wanted]
    requests.check_used(definitions, settings, targets.SET)
    requests.check_bounds(definitions, own_bounds)
    parts: tuple[acceptance.AcceptancePart, ...] = ()
    figures = 1
    if not args.quick:
        parts, figures = _read_plan(args, wanted, own_bounds)
    if args.json_lines is not None:
        with output_file.appending(args.json_lines, 0o644):
            pass  # It can be written.
    # Everything else that the results depend on is recorded with them.
    identity = json.dumps([
        args.host, serialization.dump(parts), args.benchmarks,
        args.settings, args.bounds, args.native, args.pairs, args.image,
        args.network, args.user, args.repaired, *filter(None, [args.gate])])
    asked = acceptance.Acceptance(
        host=args.host, request=hashlib.sha256(identity.encode()).hexdigest(),
        began_at='', command=_command(args),
        native='' if args.quick else args.native or '',
        benchmarks=tuple(args.benchmarks), parts=parts,
        repaired=args.repaired,
        audit=(None if args.audit is None
               else audit.read_findings(args.audit)))
    return _Request(asked, wanted, own_bounds, figures)


def _read_plan(args: argparse.Namespace,
               wanted: Sequence[requests.RunRequest],
               own_bounds: Mapping[str, judgement.Bound],
               ) -> tuple[tuple['acceptance.AcceptancePart', ...], int]:
    """Read the plan, and check that its instances can be decided.

    :returns: the parts of the acceptance, and the number of figures that are
        compared in the first of them
    """
    from hpcvirt.acceptance import acceptance
    from hpcvirt.cmd import hosts
    from hpcvirt.flavors import plan_document
    where = input_file.name(args.plan)
    plan = plan_document.load(serialization.json_value(
        input_file.content(args.plan, _MAX_BYTES), where), where)
    parts = acceptance.find_parts(plan, args.host, args.flavors, where)
    cpus = {flavor.name: flavor.vcpus for flavor in plan.flavors}
    foreseen = decidable.foresee(wanted, [
        decidable.Instances(part.flavor, cpus[part.flavor],
                            [args.host] * part.instances)
        for part in parts], _purpose(args), args.pairs, own_bounds)
    decidable.check(foreseen, _ADVICE)
    hosts.warn(item for item in plan.warnings if not item.subjects
               or {args.host, *args.flavors} & {*item.subjects})
    return parts, foreseen[0].planned_figures


def _command(args: argparse.Namespace) -> str:
    words = ['hpcvirt', 'host', 'accept', args.host, '--benchmarks',
             ','.join(args.benchmarks)]
    for name in ('plan', 'image', 'network', 'user', 'native', 'gate',
                 'pairs', 'audit', 'os_cloud', 'data', 'host_key'):
        value = getattr(args, name)
        if value is not None:
            words += [f'--{name.replace("_", "-")}', str(value)]
    if args.quick:
        words.append('--quick')
    if args.repaired:
        words += ['--repaired', args.repaired]
    for option, values in (('--flavor', args.flavors),
                           (targets.SET, args.settings),
                           ('--bound', args.bounds)):
        for value in values:
            words += [option, value]
    return shlex.join([*words, '--apply'])


def _steps(args: argparse.Namespace, asked: 'acceptance.Acceptance',
           left: tuple[str, ...]) -> list[str]:
    """List the steps."""
    lines = [f'An interrupted acceptance left {what}' for what in left]
    if not args.quick:
        lines.append(f'Hold {args.host} in quarantine')
    if args.gate or args.native:
        lines.append(
            f'Run the quick gate on {args.gate or args.native}: benchmarks on '
            'all cores, links, clocks and error counters; stop if it fails')
    lines += [
        f'Start {part.instances} x {part.flavor} on {args.host}; run '
        f'{", ".join(asked.benchmarks)} in all of them at once, {args.pairs} '
        f'times over several launches, against {asked.against}; delete them'
        for part in asked.parts]
    if asked.parts:
        lines += ['PASS: set its traits and release it',
                  'FAIL: remove its traits and leave it in quarantine',
                  'INCONCLUSIVE: keep its traits and leave it in quarantine']
    if not args.apply:
        lines.append(output.NOT_APPLIED)
    return lines


def _names(word: str) -> list[str]:
    names = [name.strip() for name in word.split(',')]
    if not all(names):
        raise argparse.ArgumentTypeError('has an empty name')
    return names
