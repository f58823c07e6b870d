# SPDX-License-Identifier: Apache-2.0

"""Read the free resources of the hosts from Placement.

Only GET requests are sent, with Nova's own client and the section
``[placement]`` of nova.conf.
"""

import dataclasses
import typing
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping

import nova.conf
from nova.scheduler.client import report

from hpcvirt import exception
from hpcvirt.nova_live import masking
from hpcvirt.specs import codec

#: The microversion with which nova-scheduler asks for candidates.
MICROVERSION = '1.36'


@dataclasses.dataclass(frozen=True)
class Provider:
    """The root resource provider of a host.

    :ivar free: resource class -> the amount that is not used
    :ivar traits: the traits of the whole tree
    :ivar devices: (resource class, the amount that is not used, UUID) of each
        provider of the tree that has vGPUs or resources of a custom class
    :ivar traits_of: UUID -> the traits of each provider of the tree
    """

    free: Mapping[str, int]
    traits: frozenset[str]
    devices: tuple[tuple[str, int, str], ...] = ()
    traits_of: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)


def client() -> typing.Any:
    """Return Nova's client of Placement.

    :raises Unreachable: if it is not configured
    """
    try:
        return report.report_client_singleton()
    except report.ks_exc.ClientException as exc:
        raise _unreachable(exc) from None


def get(placement: typing.Any, url: str,
        missing: typing.Any = None) -> typing.Any:
    """Read a resource of Placement.

    :param missing: the value to return if it does not exist
    :raises Unreachable: if Placement does not answer
    """
    response = _send('Placement', lambda: placement.get(
        url, version=MICROVERSION))
    if response.status_code == 404:
        return missing
    if response.status_code != 200:
        raise _unreachable(f'{response.status_code}: {response.text}')
    return response.json()


def refusal(placement: typing.Any, url: str) -> str:
    """Say why Placement refuses a request as invalid.

    :raises Unreachable: if Placement answers with another error
    """
    response = _send('Placement', lambda: placement.get(
        url, version=MICROVERSION))
    try:
        detail = response.json()['errors'][0]['detail']
    except (LookupError, TypeError, ValueError):
        raise _unreachable(response.status_code) from None
    if response.status_code != 400:
        raise _unreachable(f'{response.status_code}: {detail}')
    # The first paragraph only says that the request is bad.
    said = masking.mask(detail.strip().split('\n')[-1].strip())
    return f'Placement refuses the request: {said.rstrip(". ")}'


def get_of(service: str, url: str) -> typing.Any:
    """Read a resource of another service, with Placement's credentials.

    :param service: its type in the catalogue of Keystone
    :returns: None if it does not exist
    :raises Unreachable: if the service does not answer
    """
    session = client()._client.session
    where = f'the service {service}'
    response = _send(where, lambda: session.get(
        url, endpoint_filter={
            'service_type': service,
            'interface': nova.conf.CONF.placement.valid_interfaces,
            'region_name': nova.conf.CONF.placement.region_name},
        raise_exc=False, headers={'Accept': 'application/json'}))
    if response.status_code == 404:
        return None
    if response.status_code != 200:
        raise _unreachable(response.status_code, where)
    return response.json()


def read(placement: typing.Any,
         uuids: Iterable[str]) -> Mapping[str, Provider]:
    """Read the providers of compute nodes; missing ones are left out.

    A single request returns all hosts that have any memory left.
    """
    found = get(placement, '/allocation_candidates?resources=MEMORY_MB:1')
    summaries = found['provider_summaries']
    devices: dict[str, list[tuple[str, int, str]]] = {}
    traits: dict[str, dict[str, frozenset[str]]] = {}
    for own, summary in summaries.items():
        traits.setdefault(summary['root_provider_uuid'], {})[own] = frozenset(
            summary['traits'])
        devices.setdefault(summary['root_provider_uuid'], []).extend(
            (name, amount['capacity'] - amount['used'], own)
            for name, amount in summary['resources'].items()
            if codec.is_device(name))
    providers = {}
    for uuid in uuids:
        summary = summaries.get(uuid)
        provider = (_of_summary(summary) if summary
                    else _ask(placement, uuid))
        if provider is not None:
            tree = traits.get(uuid, {})
            providers[uuid] = dataclasses.replace(
                provider, devices=tuple(devices.get(uuid, ())),
                traits=provider.traits.union(*tree.values()), traits_of=tree)
    return providers


def _of_summary(summary: Mapping[str, typing.Any]) -> Provider:
    return Provider(
        {name: amount['capacity'] - amount['used']
         for name, amount in summary['resources'].items()},
        frozenset(summary['traits']))


def _ask(placement: typing.Any, uuid: str) -> Provider | None:
    here = f'/resource_providers/{uuid}'
    inventories = get(placement, f'{here}/inventories')
    usages = get(placement, f'{here}/usages')
    traits = get(placement, f'{here}/traits')
    if inventories is None or usages is None or traits is None:
        return None
    return Provider(
        {name: int((item['total'] - item['reserved'])
                   * item['allocation_ratio'])
         - usages['usages'].get(name, 0)
         for name, item in inventories['inventories'].items()},
        frozenset(traits['traits']))


def _send(service: str, send: Callable[[], typing.Any]) -> typing.Any:
    try:
        return send()
    except report.ks_exc.ClientException as exc:
        raise _unreachable(exc, service) from None


def _unreachable(why: object, service: str = 'Placement',
                 ) -> exception.Unreachable:
    return exception.Unreachable(
        f'{service} cannot be used: {masking.mask(why)}')
