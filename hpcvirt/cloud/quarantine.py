# SPDX-License-Identifier: Apache-2.0

"""Put hosts in quarantine, and release them.

The scheduler observes the aggregates. The trait informs other programs; a host
has it as long as it is in one of the aggregates. Every operation can be
repeated after an interruption: it is no error to add a host that is in the
aggregate, or to remove one that is not. Nova changes each key of the metadata
separately, so that several programs can write different keys at the same time.
"""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement as placements
from hpcvirt.cloud import session
from hpcvirt.model import quarantine

#: The most times that the trait is adjusted to aggregates that others change.
_MAX_CHANGES = 10


@dataclasses.dataclass(frozen=True)
class Quarantine:
    """The quarantine of a cloud.

    :ivar nova: a client of :func:`hpcvirt.cloud.session.compute`
    """

    nova: Any
    placement: placements.PlacementClient

    @session.one_line_errors()
    def holds(self, host: str) -> tuple[quarantine.Hold, ...]:
        """Read the holds on a host.

        :raises Unreachable: if Nova does not answer
        """
        return quarantine.read_holds(host, (
            each.metadata for each in self.nova.aggregates.list()
            if host in each.hosts))

    def is_marked(self, host: str) -> bool:
        """Whether the host has the trait.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer
        """
        return all(
            quarantine.TRAIT in self.placement.traits(provider).names
            for provider in compute_hosts.find_providers(self.nova, host))

    @session.one_line_errors()
    def hold(self, host: str, hold: quarantine.Hold) -> None:
        """Put a host in quarantine.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer; completed
            steps are not undone
        """
        providers = compute_hosts.find_providers(self.nova, host)
        aggregate = _ensure_aggregate(
            self.nova, quarantine.aggregate_name(hold.holder))
        _set_metadata(self.nova, aggregate, {
            quarantine.MARK: hold.holder,
            quarantine.key(host): quarantine.entry(hold)})
        _place_host(self.nova, aggregate, host, True)
        self._mark(host, providers)

    @session.one_line_errors()
    def release(self, host: str, holder: str) -> None:
        """Let a holder release a host, which others may still hold.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer; completed
            steps are not undone
        """
        providers = compute_hosts.find_providers(self.nova, host)
        for aggregate in self.nova.aggregates.list():
            if aggregate.metadata.get(quarantine.MARK) == holder:
                _place_host(self.nova, aggregate, host, False)
                _set_metadata(
                    self.nova, aggregate, {quarantine.key(host): None})
        self._mark(host, providers)

    def _mark(self, host: str, providers: tuple[str, ...]) -> None:
        """Make the trait agree with the aggregates."""
        trait = (quarantine.TRAIT,)
        for _ in range(_MAX_CHANGES):
            held = bool(self.holds(host))
            try:
                for provider in providers:
                    self.placement.change_traits(
                        provider, add=trait if held else (),
                        remove=() if held else trait)
            except exception.Unreachable as exc:
                raise exception.Unreachable(
                    f'{host} {"is" if held else "is not"} in quarantine, but '
                    f'its trait {quarantine.TRAIT} may be wrong; run the '
                    f'command again: {exc}') from exc
            # Another program may have changed the aggregates meanwhile.
            if bool(self.holds(host)) is held:
                return
        raise exception.Unreachable(
            f'other programs keep changing the quarantine of {host}')


def _ensure_aggregate(nova: Any, name: str) -> Any:
    for _ in range(2):
        for found in nova.aggregates.list():
            if found.name == name:
                return found
        # If there is a conflict, another program was faster.
        with contextlib.suppress(nova_exceptions.Conflict):
            nova.aggregates.create(name, None)
    raise exception.Unreachable(
        f'the aggregate {name} does not exist after its creation')


def _set_metadata(nova: Any, aggregate: Any,
                  changes: Mapping[str, str | None]) -> None:
    """Set keys of the metadata; a key with None is deleted."""
    needed = {key: value for key, value in changes.items()
              if aggregate.metadata.get(key) != value}
    if needed:
        nova.aggregates.set_metadata(aggregate.id, needed)


def _place_host(nova: Any, aggregate: Any, host: str, is_in: bool) -> None:
    """Add a host to an aggregate or remove it, if that is needed."""
    if (host in aggregate.hosts) is is_in:
        return
    change = (nova.aggregates.add_host if is_in
              else nova.aggregates.remove_host)
    try:
        change(aggregate.id, host)
    except (nova_exceptions.Conflict, nova_exceptions.NotFound):
        # Another program may have been faster.
        if (host in nova.aggregates.get(aggregate.id).hosts) is not is_in:
            raise
