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

"""Read from a plan how many instances of a flavor fill a host."""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.acceptance import acceptance


def of_plan(plan: object, host: str, names: Sequence[str],
            where: str) -> tuple[acceptance.Part, ...]:
    """Find out what fills a host.

    :param plan: the document of ``hpcvirt flavor plan --format json``
    :param names: the flavors that are to fill it, one after the other
    :param where: the file, for errors
    :raises InvalidInput: if it is no plan, or not for this host and flavors
    """
    per_host = _per_host(plan, where)
    unknown = [name for name in names if name not in per_host]
    if unknown:
        raise exception.InvalidInput(
            where, f'has no flavor {unknown[0][:64]!r}; it has '
            + ', '.join(list(per_host)[:20]))
    parts = []
    for name in dict.fromkeys(names):
        count = per_host[name].get(host)
        if count is None:
            raise exception.InvalidInput(
                where, f'is not for the host {host}, but for '
                f'{", ".join(list(per_host[name])[:20])}: plan it with '
                f'"hpcvirt flavor plan --format json {host}=TOPOLOGY"')
        if not count:
            raise exception.InvalidInput(
                where, f'says that the host {host} takes no instance of '
                f'{name}')
        parts.append(acceptance.Part(name, count))
    return tuple(parts)


def _per_host(plan: object, where: str) -> dict[str, Mapping[str, int]]:
    flavors = plan.get('flavors') if isinstance(plan, Mapping) else None
    if not isinstance(flavors, list):
        raise exception.InvalidInput(
            where, 'is no plan of "hpcvirt flavor plan --format json"')
    found = {}
    for number, flavor in enumerate(flavors, 1):
        name = flavor.get('name') if isinstance(flavor, Mapping) else None
        counts = flavor.get('per_host') if name else None
        if not isinstance(name, str) or not isinstance(counts, Mapping) or (
                not all(type(count) is int and count >= 0
                        for count in counts.values())):
            raise exception.InvalidInput(
                where, f'flavor {number} has no name, or no "per_host" with '
                'the numbers of instances')
        found[name] = counts
    return found
