# SPDX-License-Identifier: Apache-2.0

"""Create the host aggregates of the classes of a fleet, and complete them.

The aggregate of an isolated class has ``trait:NAME = required`` in its
metadata. With ``[scheduler]enable_isolated_aggregate_filtering``, Nova then
sends only instances there whose flavors or images require the trait.
"""

import dataclasses
import enum
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt.cloud import session
from hpcvirt.flavors import planned as plans
from hpcvirt.specs import vocabulary


class AggregateAction(enum.StrEnum):
    """What is done to an aggregate."""

    CREATE = 'create'
    COMPLETE = 'complete'
    SAME = 'same'
    FOREIGN = 'foreign'


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """An aggregate that the classes of a fleet want.

    :ivar metadata: the keys that it needs; it may have others
    """

    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class AggregateChange:
    """The difference between an aggregate of the plan and that of the cloud.

    :ivar number: the id of the aggregate in the cloud; None if it has none
    :ivar missing_hosts: the hosts that it lacks
    :ivar missing_metadata: the keys that it lacks or that differ
    :ivar other_hosts: the hosts of the cloud that the plan does not put there
    """

    wanted: Aggregate
    number: int | None
    missing_hosts: tuple[str, ...]
    missing_metadata: Mapping[str, str]
    other_hosts: tuple[str, ...] = ()

    @property
    def action(self) -> AggregateAction:
        """What is to be done.

        Metadata would also keep instances off hosts of others.
        """
        if self.wanted.metadata and self.other_hosts:
            return AggregateAction.FOREIGN
        if self.number is None:
            return AggregateAction.CREATE
        if self.missing_hosts or self.missing_metadata:
            return AggregateAction.COMPLETE
        return AggregateAction.SAME


def list_wanted(plan: plans.Plan) -> list[Aggregate]:
    """List the aggregates of the classes of a plan."""
    hosts: dict[str, list[str]] = {}
    metadata: dict[str, dict[str, str]] = {}
    for host in plan.hosts:
        for name in host.aggregates:
            hosts.setdefault(name, []).append(host.name)
            metadata.setdefault(name, {})
        if host.state.kept_for:
            # The first aggregate of an isolated class is its own.
            metadata[host.aggregates[0]] |= {
                vocabulary.TRAIT.at(group='', trait=trait):
                vocabulary.REQUIRED for trait in sorted(host.state.kept_for)}
    return [Aggregate(name, tuple(own), metadata[name])
            for name, own in hosts.items()]


@session.one_line_errors()
def compare(nova: Any,
            wanted: Iterable[Aggregate]) -> tuple[AggregateChange, ...]:
    """Compare aggregates with those of the cloud.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :raises Unreachable: if the cloud does not answer
    """
    existing = {item.name: item for item in nova.aggregates.list()}
    found = []
    for aggregate in wanted:
        own = existing.get(aggregate.name)
        if own is None:
            found.append(AggregateChange(aggregate, None, aggregate.hosts,
                                         aggregate.metadata))
            continue
        missing = {key: value for key, value in aggregate.metadata.items()
                   if own.metadata.get(key) != value}
        found.append(AggregateChange(
            aggregate, own.id,
            tuple(host for host in aggregate.hosts if host not in own.hosts),
            missing,
            tuple(host for host in own.hosts if host not in aggregate.hosts)))
    return tuple(found)


@session.one_line_errors()
def carry_out(nova: Any, change: AggregateChange) -> None:
    """Create or complete an aggregate; nothing is taken out of it.

    :raises Unreachable: if that fails; the command can be repeated
    """
    number = change.number
    if number is None:
        number = nova.aggregates.create(change.wanted.name, None).id
    for host in change.missing_hosts:
        nova.aggregates.add_host(number, host)
    if change.missing_metadata:
        nova.aggregates.set_metadata(number, dict(change.missing_metadata))
