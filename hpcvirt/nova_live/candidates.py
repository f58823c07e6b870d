# SPDX-License-Identifier: Apache-2.0

"""Ask Placement for allocation candidates, and explain why hosts are none.

nova-scheduler sends one request for allocation candidates. The answer does not
explain why a host is not among them. A query for each condition of the request
therefore lists the hosts that meet it.
"""

import collections
import dataclasses
import typing
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from urllib import parse

import nova.conf
from nova import exception as nova_exception
from nova.scheduler import request_filter
from nova.scheduler import utils

from hpcvirt.fit import reasons
from hpcvirt.fleet import verdict
from hpcvirt.nova_live import boot_request as boot_requests
from hpcvirt.nova_live import cell_hosts
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import providers

#: The resource classes of which a smaller flavor needs less.
_SUMS = ('PCPU', 'VCPU', 'MEMORY_MB')

_DISABLED = 'COMPUTE_STATUS_DISABLED'


@dataclasses.dataclass(frozen=True)
class CandidateRefusal:
    """Why Placement has no candidate on a host.

    :ivar code: the kind of the first condition that is not met
    """

    code: verdict.AnyCode
    reason: str


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of Placement.

    :ivar by_host: UUID of a host -> its allocation candidates
    :ivar hosts: the UUIDs of all providers in the answer
    :ivar resource_requests: the requests that were sent
    :ivar failed: why none was sent, or why Placement refuses it; None if it
        answered
    """

    by_host: Mapping[str, list[typing.Any]]
    hosts: frozenset[str] = frozenset()
    resource_requests: tuple[typing.Any, ...] = ()
    failed: str | None = None


def ask(context: typing.Any, placement: typing.Any,
        manager: cell_hosts.CellHostManager, spec: typing.Any) -> Answer:
    """Ask for candidates as nova-scheduler does, but without a limit.

    Nova's request filters add their traits and aggregates to the RequestSpec.

    :raises Unreachable: if Placement does not answer
    """
    by_host: dict[str, list[typing.Any]] = collections.defaultdict(list)
    try:
        request_filter.process_reqspec(context, spec)
        asked = [utils.resources_from_request_spec(
            context, spec, manager, enable_pinning_translate=True)]
    except (nova_exception.RequestFilterFailed,
            nova_exception.NoValidHost) as exc:
        return Answer(by_host, failed=masking.mask(exc))
    hosts: set[str] = set()
    # Nova still supports hosts that report no PCPUs.
    if asked[0].cpu_pinning_requested and not (
            nova.conf.CONF.workarounds.disable_fallback_pcpu_query):
        asked.append(utils.resources_from_request_spec(
            context, spec, manager, enable_pinning_translate=False))
    for resources in asked:
        resources._limit = None
        found, summaries, _ = placement.get_allocation_candidates(
            context, resources)
        if found is None:
            return Answer(by_host, failed=providers.refusal(
                placement, '/allocation_candidates?'
                + resources.to_querystring()))
        hosts.update(summaries)
        for candidate in found:
            for uuid in candidate['allocations']:
                by_host[uuid].append(candidate)
    return Answer(by_host, frozenset(hosts), tuple(asked))


@dataclasses.dataclass(frozen=True)
class _Condition:
    """A condition of the request.

    :ivar query: the query by which Placement lists the providers that meet it
    :ivar on_root: whether the root provider of the host must meet it
    :ivar resource: the resource class and the amount that it requires
    """

    code: verdict.AnyCode
    reason: str
    query: str
    on_root: bool = False
    resource: tuple[str, int] | None = None


class CandidateExplainer:
    """Finds the conditions that hosts do not meet.

    :param own: UUID of a host -> its resource provider
    """

    def __init__(self, placement: typing.Any,
                 manager: cell_hosts.CellHostManager,
                 request: boot_requests.BootRequest, answer: Answer,
                 own: Mapping[str, providers.Provider]) -> None:
        self._own = own
        self._failed = answer.failed
        self._met = [
            (condition, _that_meet(placement, condition))
            for condition in _conditions(
                answer.resource_requests[0], request.spec, manager)
        ] if answer.resource_requests else []

    def explain(self, uuid: str) -> CandidateRefusal:
        """Say why a host is no candidate."""
        if self._failed is not None:
            return CandidateRefusal(verdict.Barrier.REQUEST, self._failed)
        missed = [self._missed(uuid, condition)
                  for condition, met in self._met if uuid not in met]
        if not missed:
            return CandidateRefusal(
                verdict.Barrier.COMBINATION, 'the host meets each condition '
                'of the request, but no providers meet all of them together')
        # A smaller flavor does not help if another condition is not met.
        codes = sorted((refusal.code for refusal in missed),
                       key=lambda code: code is reasons.Code.RESOURCES)
        return CandidateRefusal(codes[0], '; '.join(
            refusal.reason for refusal in missed))

    def _missed(self, uuid: str, condition: _Condition) -> CandidateRefusal:
        if condition.resource is None:
            return CandidateRefusal(condition.code, condition.reason)
        name, needed = condition.resource
        provider = self._own.get(uuid)
        free = provider.free.get(name, 0) if provider else 0
        if free >= needed:
            return CandidateRefusal(
                verdict.Barrier.OTHER_RESOURCE, f'the host has {free} {name} '
                f'free, but does not give {needed} to one instance '
                '(min_unit, max_unit or step_size)')
        return CandidateRefusal(condition.code, reasons.Misfit(
            reasons.Code.RESOURCES, {
                'resource': name, 'free': max(free, 0), 'which': 'free',
                'needed': needed}).message)


def _that_meet(placement: typing.Any, condition: _Condition) -> set[str]:
    found = providers.get(placement,
                          f'/resource_providers?{condition.query}')
    return {item['uuid' if condition.on_root else 'root_provider_uuid']
            for item in found['resource_providers']}


def _conditions(resources: typing.Any, spec: typing.Any,
                manager: cell_hosts.CellHostManager) -> Iterator[_Condition]:
    """Split the request into conditions, the least changeable first."""
    groups = resources._rg_by_id
    root = groups.get(None)
    forbidden = set(resources._root_forbidden)
    required = set(resources._root_required)
    if root is not None:
        forbidden |= root.forbidden_traits
        required |= root.required_traits
        yield from _membership(root, spec, manager)
    for trait in sorted(forbidden):
        yield _Condition(
            reasons.Code.FORBIDDEN_TRAIT,
            'its nova-compute is disabled' if trait == _DISABLED
            else reasons.Misfit(reasons.Code.FORBIDDEN_TRAIT,
                                {'trait': trait}).message,
            parse.urlencode({'required': f'!{trait}'}), on_root=True)
    for trait in sorted(required):
        yield _Condition(
            reasons.Code.TRAIT,
            reasons.Misfit(reasons.Code.TRAIT, {'trait': trait}).message,
            parse.urlencode({'required': trait}))
    for suffix, group in groups.items():
        if suffix is None:
            for name, amount in sorted(group.resources.items()):
                yield _Condition(
                    reasons.Code.RESOURCES if name in _SUMS
                    else verdict.Barrier.OTHER_RESOURCE, '',
                    parse.urlencode({'resources': f'{name}:{amount}'}),
                    resource=(name, amount))
        elif group.resources:
            yield _group(group)


def _group(group: typing.Any) -> _Condition:
    """Make the condition of a request group: a device or a port."""
    what = ', '.join(f'{amount} {name}' for name, amount
                     in sorted(group.resources.items()))
    traits = [*sorted(group.required_traits),
              *(f'!{trait}' for trait in sorted(group.forbidden_traits))]
    query = [('resources', ','.join(
        f'{name}:{amount}' for name, amount
        in sorted(group.resources.items())))]
    if traits:
        what += f' with the traits {", ".join(traits)}'
        query.append(('required', ','.join(traits)))
    return _Condition(
        verdict.Barrier.GROUP, f'no device of the host has {what} free',
        parse.urlencode(query))


def _membership(group: typing.Any, spec: typing.Any,
                manager: cell_hosts.CellHostManager) -> Iterator[_Condition]:
    names = {aggregate.uuid: aggregate
             for aggregate in manager.aggs_by_id.values()}
    zone = spec.availability_zone
    for uuids in group.aggregates or ():
        known = [names[uuid] for uuid in uuids if uuid in names]
        if zone and known and all(
                aggregate.metadata.get('availability_zone') == zone
                for aggregate in known):
            reason = f'the host is not in the availability zone {zone}'
        else:
            reason = ('the host is in none of the aggregates '
                      + _named(uuids, names))
        yield _Condition(
            reasons.Code.AGGREGATE, reason, parse.urlencode(
                {'member_of': 'in:' + ','.join(uuids)}), on_root=True)
    if group.forbidden_aggregates:
        uuids = sorted(group.forbidden_aggregates)
        yield _Condition(
            reasons.Code.AGGREGATE, 'the host is in an aggregate that is '
            f'kept for instances with other traits ({_named(uuids, names)})',
            parse.urlencode({'member_of': '!in:' + ','.join(uuids)}),
            on_root=True)
    if group.in_tree:
        yield _Condition(
            verdict.Barrier.NOT_WANTED, 'the request is for another host',
            parse.urlencode({'in_tree': group.in_tree}))


def _named(uuids: Iterable[str], names: Mapping[str, typing.Any]) -> str:
    return ', '.join(sorted(
        names[uuid].name if uuid in names else uuid for uuid in uuids))
