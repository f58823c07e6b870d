# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Read and change the traits of compute hosts through the Placement API.

Each change names the generation of the resource provider that it is based on.
Placement refuses it if somebody else, such as nova-compute, has changed the
provider since; it is then read again, and only the difference is applied
anew. Traits of others are never removed: a trait that is to be removed must
be one of hpcvirt's own.

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

#: What the names of hpcvirt's own traits begin with.
OWN = 'CUSTOM_HPCVIRT_'

#: Seconds during which changes of others are waited for.
CONFLICTS_S = 30.0
PAUSE_S = 0.2

_CUSTOM = re.compile('CUSTOM_[A-Z0-9_]+')


class _Conflict(exception.Unreachable):
    """A provider that was changed between reading and writing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Traits:
    """The traits of a resource provider.

    :ivar generation: of the provider, when they were read
    """

    names: frozenset[str]
    generation: int


@dataclasses.dataclass(frozen=True)
class Placement:
    """A Placement API.

    :ivar adapter: of :func:`hpcvirt.cloud.session.placement`
    """

    adapter: Any
    conflicts_s: float = CONFLICTS_S
    pause_s: float = PAUSE_S

    def traits(self, provider: str) -> Traits:
        """Read the traits of a resource provider.

        :param provider: its UUID
        :raises Unreachable: if Placement does not answer, or has none such
        """
        found = self._ask('GET', f'/resource_providers/{provider}/traits')
        return Traits(frozenset(found['traits']),
                      found['resource_provider_generation'])

    def aggregates(self, provider: str) -> frozenset[str]:
        """Read the UUIDs of the aggregates that a resource provider is in.

        :raises Unreachable: if Placement does not answer, or has none such
        """
        return frozenset(self._ask(
            'GET', f'/resource_providers/{provider}/aggregates')[
                'aggregates'])

    def change_traits(self, provider: str, add: Iterable[str] = (),
                      remove: Iterable[str] = ()) -> bool:
        """Add traits to a resource provider, and remove some of hpcvirt's.

        Custom traits that Placement does not know are created.

        :returns: whether anything had to be changed
        :raises InvalidInput: if a trait of others would be removed, or the
            name of a custom trait is malformed
        :raises Unreachable: if Placement does not answer, or others change
            the provider all the time
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
    """Read what Placement says about an error."""
    try:
        return str(answer.json()['errors'][0]['detail'])
    except (ValueError, LookupError, TypeError):
        return str(answer.reason or 'no reason')
