# SPDX-License-Identifier: Apache-2.0

"""Read and change the traits of compute hosts through the Placement API.

Each change names the generation of the resource provider on which it is based.
Placement refuses the change if another program, such as nova-compute, has
changed the provider since. The provider is then read again, and only the
difference is applied. hpcvirt removes only its own traits.

The microversion is pinned, so that responses keep their form when the cloud
is upgraded.
"""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.cloud import session

#: Errors with codes and aggregates with generations [Placement 1.0.0, Rocky].
MICROVERSION = '1.23'

#: The beginning of the names of hpcvirt's own traits.
OWN = 'CUSTOM_HPCVIRT_'

#: Seconds for which a change is repeated after conflicts.
CONFLICTS_S = 30.0
PAUSE_S = 0.2

_CUSTOM = re.compile('CUSTOM_[A-Z0-9_]+')

#: The names that Nova gives to the providers of PCI devices
#: [nova.compute.pci_placement_translator].
_PCI_PROVIDER = re.compile(
    r'.*_([0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])')


class _Conflict(exception.Unreachable):
    """A provider that was changed between reading and writing."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderTraits:
    """The traits of a resource provider.

    :ivar generation: the generation of the provider when they were read
    """

    names: frozenset[str]
    generation: int


@dataclasses.dataclass(frozen=True)
class PlacementClient:
    """A client of the Placement API.

    :ivar adapter: an adapter of :func:`hpcvirt.cloud.session.placement`
    """

    adapter: Any
    conflicts_s: float = CONFLICTS_S
    pause_s: float = PAUSE_S

    def traits(self, provider: str) -> ProviderTraits:
        """Read the traits of a resource provider.

        :param provider: its UUID
        :raises Unreachable: if Placement does not answer, or does not have
            the provider
        """
        found = self._ask('GET', f'/resource_providers/{provider}/traits')
        return ProviderTraits(frozenset(found['traits']),
                              found['resource_provider_generation'])

    def list_devices(self, consumer: str) -> list[str]:
        """List the PCI devices that an instance has allocated.

        A device occurs once for each of its virtual functions.

        :param consumer: the UUID of the instance
        :returns: their addresses in the host
        :raises Unreachable: if Placement does not answer
        """
        held = self._ask('GET', f'/allocations/{consumer}')['allocations']
        names: dict[str, str] = {}
        for provider in held:
            if provider not in names:
                tree = self._ask(
                    'GET', f'/resource_providers?in_tree={provider}')
                names.update((each['uuid'], each['name'])
                             for each in tree['resource_providers'])
        addresses: list[str] = []
        for provider, each in held.items():
            match = _PCI_PROVIDER.fullmatch(names.get(provider, ''))
            if match:
                amount = sum(each['resources'].values())
                addresses += [match[1].lower()] * amount
        return sorted(addresses)

    def change_traits(self, provider: str, add: Iterable[str] = (),
                      remove: Iterable[str] = ()) -> bool:
        """Add traits to a resource provider, and remove some of hpcvirt's.

        Custom traits that Placement does not know are created.

        :returns: whether anything had to be changed
        :raises InvalidInput: if a trait of others would be removed, or the
            name of a custom trait is malformed
        :raises Unreachable: if Placement does not answer, or others keep
            changing the provider
        """
        wanted, unwanted = frozenset(add), frozenset(remove)
        for name in sorted(unwanted):
            if not name.startswith(OWN):
                raise exception.InvalidInput(
                    f'trait {name}', 'is not one that hpcvirt may remove')
        for name in sorted(wanted):
            if name.startswith('CUSTOM_') and not _CUSTOM.fullmatch(name):
                raise exception.InvalidInput(
                    f'trait {name}',
                    'may have upper-case letters, digits and _ only')
        return waiting.retry(
            lambda: self._change(provider, wanted, unwanted), _Conflict,
            self.conflicts_s, self.pause_s)

    def _change(self, provider: str, wanted: frozenset[str],
                unwanted: frozenset[str]) -> bool:
        before = self.traits(provider)
        after = (before.names | wanted) - unwanted
        if after == before.names:
            return False
        for name in sorted(after - before.names):
            if name.startswith('CUSTOM_'):
                self._ask('PUT', f'/traits/{name}')
        self._ask('PUT', f'/resource_providers/{provider}/traits', {
            'traits': sorted(after),
            'resource_provider_generation': before.generation})
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        with session.one_line_errors():
            answer = self.adapter.request(
                path, method, json=body, raise_exc=False,
                microversion=MICROVERSION,
                headers={'Accept': 'application/json'})
        if answer.status_code < 300:
            return answer.json() if answer.content else None
        why = _why(answer)
        if answer.status_code == 409:
            raise _Conflict(
                f'Placement refuses {method} {path}, because others change '
                f'the same provider: {why}')
        raise exception.Unreachable(
            f'Placement answers {method} {path} with '
            f'{answer.status_code}: {why}')


def _why(answer: Any) -> str:
    """Read the reason of an error from an answer of Placement."""
    try:
        return str(answer.json()['errors'][0]['detail'])
    except (ValueError, LookupError, TypeError):
        return str(answer.reason or 'no reason')
