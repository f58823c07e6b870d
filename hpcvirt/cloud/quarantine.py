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

"""Put hosts in quarantine, and release them.

The scheduler heeds the aggregates. The trait tells everybody else, and is on
the host as long as one of the aggregates has it. Whatever is interrupted can
be repeated.
"""

import dataclasses
from typing import Any

from hpcvirt import exception
from hpcvirt.cloud import aggregates
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement as placements
from hpcvirt.health import quarantine

#: How often the trait is compared with aggregates that others change.
_MOST_CHANGES = 10


@dataclasses.dataclass(frozen=True)
class Quarantine:
    """The quarantine of a cloud.

    :ivar nova: a client of :func:`hpcvirt.cloud.session.compute`
    """

    nova: Any
    placement: placements.Placement

    def holds(self, host: str) -> tuple[quarantine.Hold, ...]:
        """Read what holds a host.

        :raises Unreachable: if Nova does not answer
        """
        found = (quarantine.read_hold(host, each.metadata)
                 for each in aggregates.read(self.nova)
                 if host in each.hosts)
        return tuple(sorted((hold for hold in found if hold is not None),
                            key=lambda hold: hold.holder))

    def is_marked(self, host: str) -> bool:
        """Whether the host has the trait.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer
        """
        return all(
            quarantine.TRAIT in self.placement.traits(node.uuid).names
            for node in compute_hosts.nodes(self.nova, host))

    def hold(self, host: str, hold: quarantine.Hold) -> None:
        """Put a host in quarantine.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer; what was
            done stays
        """
        nodes = compute_hosts.nodes(self.nova, host)
        aggregate = aggregates.named(
            self.nova, quarantine.aggregate_name(hold.holder))
        aggregates.set_metadata(self.nova, aggregate, {
            quarantine.MARK: hold.holder,
            quarantine.key(host): quarantine.entry(hold)})
        aggregates.add_host(self.nova, aggregate, host)
        self._mark(host, nodes)

    def release(self, host: str, holder: str) -> None:
        """Let a holder release a host, which others may still hold.

        :raises InvalidInput: if there is no such host
        :raises Unreachable: if Nova or Placement does not answer; what was
            done stays
        """
        nodes = compute_hosts.nodes(self.nova, host)
        for aggregate in aggregates.read(self.nova):
            if aggregate.metadata.get(quarantine.MARK) == holder:
                aggregates.remove_host(self.nova, aggregate, host)
                aggregates.set_metadata(
                    self.nova, aggregate, {quarantine.key(host): None})
        self._mark(host, nodes)

    def _mark(self, host: str,
              nodes: tuple[compute_hosts.Node, ...]) -> None:
        """Make the trait agree with the aggregates."""
        held = bool(self.holds(host))
        for _ in range(_MOST_CHANGES):
            try:
                for node in nodes:
                    self.placement.change_traits(
                        node.uuid, *(((quarantine.TRAIT,), ()) if held
                                     else ((), (quarantine.TRAIT,))))
            except exception.Unreachable as exc:
                raise exception.Unreachable(
                    f'{host} {"is" if held else "is not"} in quarantine, but '
                    f'its trait {quarantine.TRAIT} may say otherwise until '
                    f'this is repeated: {exc}') from exc
            # Another holder may have come or gone meanwhile.
            before, held = held, bool(self.holds(host))
            if held is before:
                return
        raise exception.Unreachable(
            f'the quarantine of {host} is changed by others all the time')
