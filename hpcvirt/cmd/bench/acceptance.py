# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run`` with an acceptance document: prove a host."""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import shlex
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_document
from hpcvirt.bench.model import host_pattern
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
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import documents
from hpcvirt.cmd.bench import targets
from hpcvirt.model import quarantine

if typing.TYPE_CHECKING:
    from hpcvirt.audit import finding
    from hpcvirt.cloud import accepted_host

_MAX_BYTES = 64 * 1024 * 1024
#: Samples that are taken by default to compare a host with its class.
_SAMPLES = 10
#: A bound is only of single metrics here.
_ADVICE = decidable.Advice(documents.PAIRS, 'set bounds')


@dataclasses.dataclass(frozen=True)
class _Request:
    """What a document asks for one host.

    :ivar native: the target to compare with; empty for the class
    :ivar gate: the target of the quick gate; empty for none
    :ivar benchmarks: what runs in the instances
    :ivar bounds: the bounds for these
    :ivar of_gate: what the gate runs
    :ivar gate_bounds: the bounds for these
    :ivar figures: number of figures that are judged together
    """

    args: argparse.Namespace
    document: class_document.AcceptanceDocument
    host: str
    asked: acceptance.Acceptance
    native: str
    gate: str
    benchmarks: tuple[requests.RunRequest, ...]
    bounds: Mapping[str, judgement.Bound]
    of_gate: tuple[requests.RunRequest, ...]
    gate_bounds: Mapping[str, judgement.Bound]
    figures: int

    @property
    def pairs(self) -> int:
        return _count_pairs(self.document)

    @property
    def purpose(self) -> record.Purpose:
        return _find_purpose(self.document)


def _count_pairs(document: class_document.AcceptanceDocument) -> int:
    return document.pairs or (
        plans.STUDY_PAIRS if document.native else _SAMPLES)


def _find_purpose(document: class_document.AcceptanceDocument,
                  ) -> record.Purpose:
    return (record.Purpose.COMPARE if document.native
            else record.Purpose.UNPAIRED)


def answer(args: argparse.Namespace,
           given: documents.RunDocument) -> command.CommandResult:
    """Print the steps, and with --apply take them."""
    from hpcvirt.acceptance import records
    host = _find_name(args)
    records.check_host(host)
    request = _read(args, given, host)
    found_host = None if args.quick else _find_host(request)
    documents.print_steps(args, _list_steps(
        request, found_host.left() if found_host else ()))
    if not args.apply:
        return command.CommandResult(serialization.dump(request.asked), str)
    from hpcvirt.acceptance import report
    try:
        with command.interrupting_signals():
            found = _accept(request, found_host)
    except KeyboardInterrupt:
        output.complain('hpcvirt: interrupted; finished samples are kept, '
                        'and the same command continues')
        raise
    kept = records.Records(args.data)
    plain = serialization.dump(found)
    text = report.render(found, args.data, kept.count_hosts())
    if request.document.json_lines is not None:
        line = json.dumps(plain, allow_nan=False) + '\n'
        with output_file.appending(given.locate(request.document.json_lines),
                                   0o644) as stream:
            output_file.append(stream, line.encode())
    return command.CommandResult(
        plain, lambda: f'\n{text}\nThe record is in '
                       f'{printable.escape(kept.path(found))}.\n',
        found.result.exit_status if found.result else 1,
        {'junit': lambda: report.make_junit(found)})


def _find_name(args: argparse.Namespace) -> str:
    """Return the name of the one host that the arguments name."""
    hosts: list[str] = args.what[1:]
    if not hosts:
        raise exception.InvalidInput(
            'HOST', f'is missing; name the host after {args.what[0]}')
    if len(hosts) > 1:
        raise exception.InvalidInput(
            hosts[1][:64], 'is too much; one host is accepted at a time')
    return hosts[0]


def _find_host(request: _Request) -> 'accepted_host.AcceptedHost':
    """Find the host in the cloud."""
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.cloud import accepted_host
    return accepted_host.find(
        cloud_arguments.connect_quarantine(request.args), request.host,
        [part.flavor for part in request.asked.parts],
        request.document.image or '', request.document.network or '')


def _accept(request: _Request,
            host: 'accepted_host.AcceptedHost | None',
            ) -> acceptance.Acceptance:
    """Accept the host, and return the acceptance with its result."""
    with extras.bench():
        from hpcvirt.acceptance import host_acceptance
        from hpcvirt.acceptance import measurement
        from hpcvirt.acceptance import records
        from hpcvirt.cmd.bench import progress
    args, document = request.args, request.document
    with contextlib.closing(store_arguments.open_store(args)) as store:
        gate = host_acceptance.GateAcceptance(
            store=store, records=records.Records(args.data), data=args.data,
            time_limit_min=document.time_limit_minutes,
            show=lambda: progress.Terminal(args.data),
            connect_host=(lambda: targets.find_named(args, request.gate))
            if request.gate else None,
            wanted=request.of_gate, bounds=request.gate_bounds)
        if host is None:
            return gate.accept(request.asked)
        from hpcvirt.cloud import benchmark_instances
        client = host

        def make_plan(pairs: Sequence[sides.Pair]) -> plans.RunPlan:
            return plans.make(request.benchmarks, pairs, request.purpose,
                              request.pairs, launch=record.Launch.WARM,
                              relaunch=True, bounds=request.bounds,
                              figures=request.figures)

        def measure(ids: Sequence[str], flavor: str, key_file: str,
                    shown: measurement.TimeLimit) -> str:
            guests = [targets.find_server(args, document.user, server_id,
                                          flavor, key_file)
                      for server_id in ids]
            natives = [targets.find_named(args, request.native)
                       for _ in ids] if request.native else []
            return measurement.measure(
                make_plan, store,
                any(each.variant.spans for each in request.benchmarks),
                guests, natives, shown, key_file)

        def hold(reason: str, since: str) -> None:
            client.cloud.hold(request.host, cloud_arguments.make_hold(
                quarantine.ACCEPT, reason, since))

        return host_acceptance.HostAcceptance(
            **vars(gate), host=client, measure=measure, hold=hold,
            release=lambda: client.cloud.release(request.host,
                                                 quarantine.ACCEPT),
            not_started=benchmark_instances.InstancesNotStarted,
            complain=output.complain).accept(request.asked)


def _read(args: argparse.Namespace, given: documents.RunDocument,
          host: str) -> _Request:
    """Read the document for a host, and all files that it names."""
    document = class_document.read(given.plain, given.path)
    _check_complete(args, document, given)
    native = host_pattern.fill(document.native or '', host)
    gate = host_pattern.fill(document.gate or '', host) or native
    for key, target in (('native', native), ('gate', gate)):
        if target:
            given.check_target(key, target)
    of_gate: tuple[requests.RunRequest, ...] = ()
    gate_bounds = documents.make_bounds(document.gate_bounds)
    if document.gate_benchmarks or args.quick:
        of_gate = given.find_requests(
            'gate_benchmarks', document.gate_benchmarks,
            document.gate_settings, gate_bounds)
    benchmarks: tuple[requests.RunRequest, ...] = ()
    parts: tuple[acceptance.AcceptancePart, ...] = ()
    own_bounds = documents.make_bounds(document.bounds)
    figures = 1
    if not args.quick:
        benchmarks = tuple(
            dataclasses.replace(each, launch=record.Launch.WARM)
            for each in given.find_requests('benchmarks', document.benchmarks,
                                            document.settings, own_bounds))
        parts, figures = _read_plan(given, document, host, benchmarks,
                                    own_bounds)
    if args.apply and document.json_lines is not None:
        with output_file.appending(given.locate(document.json_lines), 0o644):
            pass  # It can be written.
    asked = acceptance.Acceptance(
        host=host, request=_identify(args, document, host, parts), began_at='',
        command=_make_command(args), native='' if args.quick else native,
        benchmarks=(document.gate_benchmarks if args.quick
                    else document.benchmarks),
        parts=parts, repaired=args.repaired or '',
        audit=_read_audit(args, given, document, host))
    return _Request(args, document, host, asked, native, gate, benchmarks,
                    own_bounds, of_gate, gate_bounds, figures)


def _check_complete(args: argparse.Namespace,
                    document: class_document.AcceptanceDocument,
                    given: documents.RunDocument) -> None:
    """Check that the document has the keys that this call needs."""
    if args.quick and not (document.gate or document.native):
        raise exception.InvalidInput(given.place('gate'),
                                     'is missing, and native is as well')
    for key in () if args.quick else ('flavors', 'plan', 'image', 'network'):
        if not getattr(document, key):
            raise exception.InvalidInput(
                given.place(key), 'is missing; only --quick can do without')


def _read_audit(args: argparse.Namespace, given: documents.RunDocument,
                document: class_document.AcceptanceDocument,
                host: str) -> 'tuple[finding.Finding, ...] | None':
    """Read the audit of the host, on which the traits depend."""
    if document.audit is None or args.quick:
        return None
    from hpcvirt.cmd.host import audit
    return audit.read_findings(given.locate(host_pattern.fill(document.audit,
                                                              host)))


def _identify(args: argparse.Namespace,
              document: class_document.AcceptanceDocument, host: str,
              parts: tuple[acceptance.AcceptancePart, ...]) -> str:
    """Return the digest of what is asked; the same is continued.

    Everything else that the results depend on is recorded with them.
    """
    depends = {
        key: value for key, value in serialization.dump(document).items()
        if key not in ('plan', 'flavors', 'time_limit_minutes', 'audit',
                       'json_lines')}
    identity = json.dumps([
        host, serialization.dump(parts), depends, _count_pairs(document),
        args.repaired or '', args.quick], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def _read_plan(given: documents.RunDocument,
               document: class_document.AcceptanceDocument, host: str,
               wanted: Sequence[requests.RunRequest],
               own_bounds: Mapping[str, judgement.Bound],
               ) -> tuple[tuple[acceptance.AcceptancePart, ...], int]:
    """Read the plan, and check that its instances can be decided.

    :returns: the parts of the acceptance, and the number of figures that are
        compared in the first of them
    """
    from hpcvirt.cmd import hosts
    from hpcvirt.flavors import plan_document
    where = given.locate(document.plan or '')
    plan = plan_document.load(serialization.json_value(
        input_file.content(where, _MAX_BYTES), where), where)
    parts = acceptance.find_parts(plan, host, document.flavors, where)
    cpus = {flavor.name: flavor.vcpus for flavor in plan.flavors}
    foreseen = decidable.foresee(wanted, [
        decidable.Instances(part.flavor, cpus[part.flavor],
                            [host] * part.instances)
        for part in parts], _find_purpose(document), _count_pairs(document),
        own_bounds)
    decidable.check(foreseen, _ADVICE)
    hosts.warn(item for item in plan.warnings if not item.subjects
               or {host, *document.flavors} & {*item.subjects})
    return parts, foreseen[0].planned_figures


def _make_command(args: argparse.Namespace) -> str:
    """Return the command that repeats the acceptance."""
    words = ['hpcvirt', 'bench', 'run', *args.what]
    if args.quick:
        words.append('--quick')
    for name in ('repaired', 'os_cloud', 'data', 'host_key'):
        value = getattr(args, name)
        if value is not None:
            # A value may begin with a hyphen.
            words.append(f'--{name.replace("_", "-")}={value}')
    words += [f'--catalogue={folder}' for folder in args.catalogue]
    return shlex.join([*words, '--apply'])


def _list_steps(request: _Request, left: tuple[str, ...]) -> list[str]:
    """List the steps."""
    args, asked, host = request.args, request.asked, request.host
    lines = [f'An interrupted acceptance left {what}' for what in left]
    if not args.quick:
        lines.append(f'Hold {host} in quarantine')
    if request.gate:
        lines.append(
            f'Run the quick gate on {request.gate}: benchmarks on '
            'all cores, links, clocks and error counters; stop if it fails')
    lines += [
        f'Start {part.instances} x {part.flavor} on {host}; run '
        f'{", ".join(asked.benchmarks)} in all of them at once, '
        f'{request.pairs} times over several launches, against '
        f'{asked.against}; delete them'
        for part in asked.parts]
    if asked.parts:
        lines += ['PASS: set its traits and release it',
                  'FAIL: remove its traits and leave it in quarantine',
                  'INCONCLUSIVE: keep its traits and leave it in quarantine']
    return lines
