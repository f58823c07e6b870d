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

"""The state of a host that an acceptance changes: quarantine and traits."""

import argparse
import os
from typing import Any

from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import decision
from hpcvirt.bench.model import judgement
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement as placements
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.cloud import session
from hpcvirt.health import quarantine


class HostState:
    """Changes the state of the host that is accepted.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    """

    def __init__(self, nova: Any, args: argparse.Namespace) -> None:
        self._nova = nova
        self._placement = placements.Placement(
            session.placement(args.os_cloud))
        self._quarantine = cloud_quarantine.Quarantine(nova, self._placement)

    def begin(self, begun: acceptance.Acceptance) -> None:
        """Hold a host, so that it takes no other work meanwhile.

        :raises Unreachable: if Nova or Placement does not answer
        """
        self._hold(begun, 'is being accepted')

    def end(self, found: acceptance.Acceptance) -> None:
        """Give a host what it has earned.

        An acceptance without a decision leaves the traits as they are.

        :raises Unreachable: if Nova or Placement does not answer
        """
        if found.word is not judgement.Word.INCONCLUSIVE:
            for node in compute_hosts.nodes(self._nova, found.host):
                self._placement.change_traits(
                    node.uuid, found.traits,
                    set(decision.TRAITS) - set(found.traits))
        if found.word is judgement.Word.PASS:
            self._quarantine.release(found.host, quarantine.ACCEPT)
        else:
            self._hold(found, f'acceptance: {found.word}, {found.reason}')

    def _hold(self, found: acceptance.Acceptance, reason: str) -> None:
        self._quarantine.hold(found.host, quarantine.Hold(
            quarantine.ACCEPT, reason, found.ended_at or found.began_at,
            f'hpcvirt@{os.uname().nodename}'))
