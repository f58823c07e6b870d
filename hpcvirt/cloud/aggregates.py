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

"""Read and change host aggregates of Nova.

Every function may be repeated: a host that is in an aggregate already, or is
no longer in it, is no error. Nova changes each key of the metadata for
itself, so several programs may write different keys at the same time.
"""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt.cloud import session


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate."""

    id: int
    name: str
    hosts: frozenset[str]
    metadata: Mapping[str, str]


def read(nova: Any) -> tuple[Aggregate, ...]:
    """Read all aggregates.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :raises Unreachable: if the cloud does not answer
    """
    with session.one_line_errors():
        return tuple(map(_of, nova.aggregates.list()))


def named(nova: Any, name: str) -> Aggregate:
    """Look up an aggregate, and create it if there is none.

    :raises Unreachable: if the cloud does not answer
    """
    found = _find(nova, name)
    if found is not None:
        return found
    # If there is a conflict, another program was faster.
    with (session.one_line_errors(),
          contextlib.suppress(nova_exceptions.Conflict)):
        nova.aggregates.create(name, None)
    found = _find(nova, name)
    if found is None:
        raise exception.Unreachable(
            f'the aggregate {name} is gone as soon as it was created')
    return found


def set_metadata(nova: Any, aggregate: Aggregate,
                 changes: Mapping[str, str | None]) -> None:
    """Set keys of the metadata; a key with None is deleted.

    :raises Unreachable: if the cloud does not answer
    """
    needed = {key: value for key, value in changes.items()
              if aggregate.metadata.get(key) != value}
    if needed:
        with session.one_line_errors():
            nova.aggregates.set_metadata(aggregate.id, needed)


def add_host(nova: Any, aggregate: Aggregate, host: str) -> None:
    """Add a host to an aggregate, unless it is in it.

    :raises Unreachable: if the cloud does not answer
    """
    if host in aggregate.hosts:
        return
    with session.one_line_errors():
        try:
            nova.aggregates.add_host(aggregate.id, host)
        except nova_exceptions.Conflict:
            if host not in _get(nova, aggregate).hosts:
                raise


def remove_host(nova: Any, aggregate: Aggregate, host: str) -> None:
    """Remove a host from an aggregate, if it is in it.

    :raises Unreachable: if the cloud does not answer
    """
    if host not in aggregate.hosts:
        return
    with session.one_line_errors():
        try:
            nova.aggregates.remove_host(aggregate.id, host)
        except nova_exceptions.NotFound:
            if host in _get(nova, aggregate).hosts:
                raise


def _find(nova: Any, name: str) -> Aggregate | None:
    return next((each for each in read(nova) if each.name == name), None)


def _get(nova: Any, aggregate: Aggregate) -> Aggregate:
    return _of(nova.aggregates.get(aggregate.id))


def _of(found: Any) -> Aggregate:
    return Aggregate(found.id, found.name, frozenset(found.hosts),
                     dict(found.metadata))
