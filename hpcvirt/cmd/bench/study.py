# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run`` with a study document: run a case of a study.

The guests exist, or are created on hosts of the site, which must have no
others.
"""

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.acceptance import case_plan
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import host_pattern
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import sides
from hpcvirt.bench.studies import case_document
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study as studies
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import documents
from hpcvirt.cmd.bench import guests
from hpcvirt.cmd.bench import targets
from hpcvirt.flavors import profile as profiles

_NATIVE = 'ssh://{host}'


@dataclasses.dataclass(frozen=True)
class _Request:
    """What a document asks.

    :ivar benchmarks: the benchmarks to run for the case
    :ivar settings: settings of the user, which override those of the case
    :ivar bounds: bounds of the user
    """

    given: documents.RunDocument
    document: case_document.StudyDocument
    study: studies.Study
    case: studies.Case
    benchmarks: tuple[studies.StudyBenchmark, ...]
    settings: tuple[requests.Setting, ...]
    bounds: Mapping[str, judgement.Bound]

    @property
    def definitions(self) -> list[definitions.Definition]:
        return [catalogue.get(each.benchmark) for each in self.benchmarks]

    @property
    def native(self) -> str:
        """The native target of a host whose instances are created."""
        return self.document.native[0] if self.document.native else _NATIVE

    @property
    def pairs(self) -> int:
        """The pairs in instances that are created."""
        return self.document.pairs or plans.STUDY_PAIRS

    def make_requests(self, whole: sizing.Machine,
                      ) -> tuple[requests.RunRequest, ...]:
        """Request the benchmarks with the sizes and ranks of the case.

        :param whole: size of all guests together
        """
        return tuple(
            requests.RunRequest(
                definition, definition.variant(benchmark.variant),
                {**scaling.scale_parameters(self.case, benchmark, whole),
                 **requests.settings_of(definition, self.settings)},
                record.Launch(self.case.launch or record.Launch.WARM),
                self.study.id, self.case.id)
            for definition, benchmark in zip(
                self.definitions, self.benchmarks, strict=True))


def answer(args: argparse.Namespace,
           given: documents.RunDocument) -> command.CommandResult:
    """Print the steps, and with --apply take them."""
    documents.refuse_hosts(given, args)
    request = _read(given)
    if request.document.where:
        return _answer_for_guests(args, request)
    planned = _plan(request)
    if isinstance(planned, scaling.CaseRefusal):
        return command.CommandResult(
            {**case_plan.document(planned), 'runs': []},
            lambda: case_plan.table([planned], output.width()), 1)
    if request.document.verdict:
        decidable.check(_foresee(request, planned), documents.ADVICE)
    _check_instances(args, request)
    documents.print_steps(args, _list_steps(request, planned))
    hosts.warn(planned.warnings)
    plain = {**case_plan.document(planned), 'runs': []}
    if not args.apply:
        return command.CommandResult(plain, str)
    from hpcvirt.bench.report import text
    with command.interrupting_signals():
        measured = _measure(args, request, planned)
    judged, status = guests.judge(measured, request.document.verdict)
    return command.CommandResult(
        {**plain, **serialization.dump(judged)},
        lambda: '\n' + text.table(judged, output.width() or 100), status)


def _read(given: documents.RunDocument) -> _Request:
    """Read the document, and check it as far as no other file is needed."""
    document = case_document.read(given.plain, given.path)
    with given.naming('study'):
        study = study_catalogue.get(document.study)
    with given.naming('case'):
        case = study.case(document.case)
    with given.naming('instead'):
        benchmarks = scaling.select_benchmarks(case, document.instead)
    request = _Request(
        given, document, study, case, benchmarks,
        requests.list_settings(document.settings),
        documents.make_bounds(document.bounds))
    requests.check_used(request.definitions, request.settings,
                        given.place('settings'))
    requests.check_bounds(request.definitions, request.bounds,
                          given.place('bounds'))
    for key, own in (('where', document.where), ('native', document.native)):
        for target in own:
            given.check_target(key, host_pattern.fill(target, 'host'))
    return request


def _answer_for_guests(args: argparse.Namespace,
                       request: _Request) -> command.CommandResult:
    """Measure guests that exist."""
    document, given = request.document, request.given
    with given.naming('where'):
        scaling.check_guest_count(request.case, len(document.where))
    wanted = guests.GuestRun(
        definitions=request.definitions,
        make_requests=lambda pairs: request.make_requests(sides.whole(pairs)),
        where=document.where, native=document.native,
        native_cpus=document.native_cpus, pairs=document.pairs,
        warm_ups=document.warm_ups, of_launch=document.this_launch,
        bounds=request.bounds, overhead_percent=document.overhead_percent,
        is_judged=document.verdict, advice=documents.ADVICE, name=given.place)
    guests.check(wanted)
    documents.print_steps(args, _list_guest_steps(request))
    if not args.apply:
        return command.CommandResult(
            {'case': request.case.id, 'where': list(document.where),
             'runs': []}, str)
    return guests.measure(args, wanted)


def _plan(request: _Request) -> case_plan.CasePlan | scaling.CaseRefusal:
    """Plan the case on the hosts of the document."""
    document, given = request.document, request.given
    if document.fleet is None:
        with given.naming('hosts'):
            machines = hosts.read_hosts(document.hosts,
                                        os.path.dirname(given.path))
        return case_plan.CasePlanner(machines, profiles.DENSE).plan(
            request.study, request.case)
    fleet = hosts.read_fleet(given.locate(document.fleet))
    name = document.host_class or ''
    own = fleet.find_class(name, given.place('host_class'))
    where = fleet.locate(name)
    with given.naming('host_class'):
        found = own.list_topologies()[:request.case.hosts]
    return case_plan.CasePlanner(found, own.read_profile(where)).plan(
        request.study, request.case)


def _foresee(request: _Request,
             planned: case_plan.CasePlan) -> tuple[record.Run, ...]:
    """Foresee the runs in the instances of a case."""
    scaled = planned.scaled
    together = sizing.Machine(scaled.guests * scaled.vcpus,
                              scaled.guests * scaled.memory_mib)
    return decidable.foresee(
        request.make_requests(together),
        [decidable.Instances(planned.flavor.name, scaled.vcpus,
                             _list_hosts(scaled))],
        record.Purpose.COMPARE, request.pairs, request.bounds,
        request.document.overhead_percent)


def _list_hosts(scaled: scaling.ScaledCase) -> list[str]:
    """List the host of each instance."""
    names: list[str] = []
    for host in scaled.hosts:
        names += [host] * scaled.per_host
    return names


def _check_instances(args: argparse.Namespace, request: _Request) -> None:
    """Check the keys that only the instances need."""
    document = request.document
    if args.apply and document.image is None:
        raise exception.InvalidInput(request.given.place('image'),
                                     'is missing')
    needed = max(1, request.case.guests.networks)
    if (args.apply or document.networks) and len(document.networks) != needed:
        raise exception.InvalidInput(
            request.given.place('networks'),
            f'has {len(document.networks)}, but the case needs {needed}')


def _list_steps(request: _Request,
                planned: case_plan.CasePlan) -> Iterator[str]:
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
    native = host_pattern.fill(request.native, 'HOST')
    yield (f'Run {_name_programs(request, scaled.find_ranks)} in all '
           f'instances and on {native}, {request.pairs} times')
    yield 'Delete the instances and the flavor'


def _list_guest_steps(request: _Request) -> Iterator[str]:
    """Yield the steps for guests that exist, in lines."""
    document = request.document
    times = 'as often as the bounds need'
    if document.pairs is not None:
        times = f'{document.pairs} times'
    where = ' and on '.join(filter(None, (
        ', '.join(document.where), ', '.join(document.native))))
    programs = _name_programs(request, lambda _: '')
    yield f'Run {programs} in {where}, {times}'


def _name_programs(request: _Request,
                   find_ranks: Callable[[studies.StudyBenchmark], str],
                   ) -> str:
    """Name the programs of the case, with their ranks if they are known."""
    names = []
    for each in request.benchmarks:
        ranks = find_ranks(each)
        names.append(f'{each.benchmark}/{each.variant}' + (
            f' with {words.count_noun(int(ranks), "rank")}' if ranks else ''))
    return ', '.join(dict.fromkeys(names))


def _measure(args: argparse.Namespace, request: _Request,
             planned: case_plan.CasePlan) -> record.Result:
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.acceptance import measurement
        from hpcvirt.cloud import case_instances
        from hpcvirt.cmd.bench import progress
    document = request.document
    name = f'{request.study.id}-{request.case.id}'.lower()
    owners = _list_hosts(planned.scaled)
    instances = case_instances.find(
        cloud_arguments.connect(args), name, planned.flavor, owners,
        document.image or '', document.networks, request.case.guests.device,
        case_plan.make_user_data(request.case))
    key_file = os.path.join(args.data, f'{name}.key')

    def make_plan(pairs: Sequence[sides.Pair]) -> plans.RunPlan:
        return plans.make(
            request.make_requests(sides.whole(pairs)), pairs,
            record.Purpose.COMPARE, request.pairs, warm_ups=document.warm_ups,
            bounds=request.bounds, overhead_percent=document.overhead_percent)

    with (contextlib.closing(store_arguments.open_store(args)) as store,
          saved_document.lock(os.path.join(args.data, name),
                              f'the case {name} is being measured')):
        with measurement.start(instances.start, instances.clear, key_file,
                               output.complain) as ids:
            entry = measurement.measure(
                make_plan, store, len(owners) > 1,
                [targets.find_server(args, document.user or 'root', server_id,
                                     planned.flavor.name, key_file)
                 for server_id in ids],
                [targets.find_named(args, host_pattern.fill(request.native,
                                                            host))
                 for host in owners],
                measurement.TimeLimit(progress.Terminal(args.data)), key_file)
        return store.result(entry)
