# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench study run``: run a case of a study on hosts of a site."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import saved_document
from hpcvirt import words
from hpcvirt.acceptance import case_plan
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import sides
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study as studies
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import study_case
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.study import arguments


class RunStudy(command.Report):
    """Run a case of a study on hosts of a site.

    Without --case, print how the first hosts, or the first of each class of a
    fleet, can run each case, or why not. With it, print the settings to make
    by hand and the steps; with --apply, measure in instances that are created
    on the hosts, which must have no others, and natively. If the command is
    killed, the same command continues.
    """

    epilog = hosts.EPILOG + f"""\
The name of a host is that of its compute service. A TARGET is
{targets.FORMS}.
Status 1: these hosts cannot run a case, or its verdict is not PASS.
"""
    fields = ('case', 'hosts', 'per_host', 'launch', 'refused', 'class')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser)
        arguments.add_hosts(parser)
        arguments.add_case(parser)
        parser.add_argument('--image', metavar='NAME|UUID',
                            help='image with the benchmarks')
        parser.add_argument('--network', action='append', default=[],
                            metavar='NAME', dest='networks',
                            help='network in which this machine reaches '
                            'instances by ssh; once for each network of the '
                            'case')
        parser.add_argument('--native', default='ssh://{host}',
                            metavar='TARGET', help='the host; {host} stands '
                            'for its name (default: %(default)s)')
        parser.add_argument('--instead', metavar='NAME',
                            help='a free benchmark that replaces one of the '
                            'case, if the study allows it')
        parser.add_argument('--pairs', type=command.whole_number(1, 1000),
                            default=plans.STUDY_PAIRS, metavar='N',
                            help='number of pairs (default: %(default)s)')
        targets.add_instances(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the cases, and run one with --apply."""
        planners = arguments.make_planners(args)
        if args.case is None:
            if args.apply:
                raise exception.InvalidInput('--apply', 'needs --case')
            return _plan_cases(study_catalogue.get(args.study), planners)
        if len(planners) > 1:
            raise exception.InvalidInput(
                '--case', 'needs hosts that are alike; name one of the '
                f'classes {words.shorten_names([*planners])} after --fleet')
        (planner,) = planners.values()
        study_ = study_catalogue.get(args.study)
        case = study_.case(args.case)
        planned = planner.plan(study_, case)
        if isinstance(planned, scaling.CaseRefusal):
            return command.CommandResult(
                [case_plan.document(planned)],
                lambda: case_plan.table([planned], output.width()), 1)
        chosen = study_case.StudyCase(
            study_, case,
            scaling.select_benchmarks(case, args.instead))
        settings = requests.read_settings(args.settings, targets.SET)
        requests.check_used(chosen.definitions, settings, targets.SET)
        decidable.check(
            _foresee(args, planned, chosen, settings), decidable.Advice(
                'give --pairs {}', f'"hpcvirt bench run --study {study_.id}/'
                f'{case.id}" takes --overhead PERCENT, or --no-verdict to '
                'measure without a verdict'))
        _check(args, max(1, case.guests.networks))
        if args.formatter == 'table':
            sys.stdout.write(printable.lines(_steps(args, planned, chosen)))
            sys.stdout.flush()
        arguments.warn([planned])
        if not args.apply:
            return command.CommandResult([case_plan.document(planned)], str)
        from hpcvirt.bench.report import text
        with command.interrupting_signals():
            measured = _measure(args, planned, chosen, settings)
        judged = verdict.judge_result(measured)
        document = {**case_plan.document(planned),
                    **json.loads(json_format.dumps(judged))}
        return command.CommandResult(
            [document],
            lambda: '\n' + text.table(judged, output.width() or 100),
            verdict.exit_status(judged))


def _plan_cases(study_: studies.Study,
                planners: Mapping[str, case_plan.CasePlanner],
                ) -> command.CommandResult:
    """Describe how the hosts of each class can run each case of a study."""
    documents: list[dict[str, Any]] = []
    tables = []
    every: list[case_plan.CasePlan | scaling.CaseRefusal] = []
    for name, planner in planners.items():
        plans_ = planner.plan_all(study_)
        every += plans_
        for each in plans_:
            own = {'class': name} if name else {}
            documents.append({**own, **case_plan.document(each)})
        heading = f'{printable.one_line(name)}:\n' if name else ''
        tables.append(heading + case_plan.table(plans_, output.width()))
    arguments.warn(every)
    possible = [each for each in every
                if isinstance(each, case_plan.CasePlan)]
    return command.CommandResult(documents, lambda: '\n'.join(tables),
                                 status=int(not possible))


def _foresee(args: argparse.Namespace, planned: case_plan.CasePlan,
             chosen: study_case.StudyCase,
             settings: Sequence[requests.Setting]) -> tuple[record.Run, ...]:
    """Foresee the runs in the instances of a case."""
    scaled = planned.scaled
    together = sizing.Machine(scaled.guests * scaled.vcpus,
                              scaled.guests * scaled.memory_mib)
    return decidable.foresee(
        chosen.requests(together, settings),
        [decidable.Instances(planned.flavor.name, scaled.vcpus,
                             _list_hosts(scaled))],
        record.Purpose.COMPARE, args.pairs)


def _list_hosts(scaled: scaling.ScaledCase) -> list[str]:
    """List the host of each instance."""
    names: list[str] = []
    for host in scaled.hosts:
        names += [host] * scaled.per_host
    return names


def _check(args: argparse.Namespace, networks: int) -> None:
    if args.apply and args.image is None:
        raise exception.InvalidInput('--image', 'is missing')
    if (args.apply or args.networks) and len(args.networks) != networks:
        raise exception.InvalidInput(
            '--network', f'is given {len(args.networks)} times, but the case '
            f'needs {networks} networks')


def _steps(args: argparse.Namespace, planned: case_plan.CasePlan,
           chosen: study_case.StudyCase) -> Iterator[str]:
    """Yield the steps, in lines."""
    yield 'Set by hand before:'
    for line in case_plan.list_settings(planned):
        yield f'  {line}'.rstrip()
    scaled = planned.scaled
    yield (f'Create the flavor {planned.flavor.name}: {scaled.vcpus} VCPUs, '
           f'{scaled.memory_mib} MiB')
    for host in scaled.hosts:
        count = words.count_noun(scaled.per_host, 'instance')
        yield f'Start {count} of it on {host}'
    names = []
    for each in chosen.benchmarks:
        ranks = scaled.find_ranks(each)
        names.append(f'{each.benchmark}/{each.variant}' + (
            f' with {words.count_noun(int(ranks), "rank")}' if ranks else ''))
    yield (f'Run {", ".join(dict.fromkeys(names))} in all instances and on '
           f'{_native(args, "HOST")}, {args.pairs} times')
    yield 'Delete the instances and the flavor'
    if not args.apply:
        yield output.NOT_APPLIED


def _native(args: argparse.Namespace, host: str) -> str:
    return str(args.native).replace('{host}', host)


def _measure(args: argparse.Namespace, planned: case_plan.CasePlan,
             chosen: study_case.StudyCase,
             settings: Sequence[requests.Setting]) -> record.Result:
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.acceptance import measurement
        from hpcvirt.cloud import case_instances
        from hpcvirt.cmd.bench import progress
    name = f'{chosen.study.id}-{chosen.case.id}'.lower()
    hosts = _list_hosts(planned.scaled)
    instances = case_instances.find(
        cloud_arguments.connect(args), name, planned.flavor, hosts,
        args.image, args.networks, chosen.case.guests.device,
        case_plan.make_user_data(chosen.case))
    key_file = os.path.join(args.data, f'{name}.key')
    with (contextlib.closing(store_arguments.open_store(args)) as store,
          saved_document.lock(os.path.join(args.data, name),
                                f'the case {name} is being measured')):
        with measurement.start(instances.start, instances.clear, key_file,
                               output.complain) as ids:
            entry = measurement.measure(
                lambda pairs: plans.make(
                    chosen.requests(sides.whole(pairs), settings), pairs,
                    record.Purpose.COMPARE, args.pairs),
                store, len(hosts) > 1,
                [targets.find_server(args, server_id, planned.flavor.name,
                                     key_file) for server_id in ids],
                [targets.find_named(args, _native(args, host))
                 for host in hosts],
                measurement.TimeLimit(progress.Terminal(args.data)), key_file)
        return store.result(entry)
