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

"""Ask ``hpcvirt make-room`` for its plan, in a process of its own.

Watcher's model of the cluster has no cells, pinned CPUs and pages. The command
reads them as nova-scheduler does, with the configuration of Nova, which must
not be mixed with that of Watcher in one process.
"""

import dataclasses
import json
import shlex
import subprocess
from collections.abc import Mapping

from hpcvirt import exception

#: Seconds for reading the cloud and searching.
PATIENCE_S = 600


@dataclasses.dataclass(frozen=True)
class Move:
    """One migration of the plan.

    :ivar kind: ``live`` or ``cold``
    """

    id: str
    source: str
    target: str
    kind: str


def read(command: str, parameters: Mapping[str, object]) -> list[Move]:
    """Run the command.

    :param command: the command with the arguments that describe the fleet
    :param parameters: those of the audit
    :raises Unreachable: if it fails, or no moves are enough
    """
    words = [*shlex.split(command), '--format', 'json',
             '--flavor', str(parameters['flavor']),
             '--count', str(parameters.get('count', 1)),
             '--moves', str(parameters.get('moves', 2)),
             *(['--cold'] if parameters.get('cold') else [])]
    try:
        done = subprocess.run(words, check=False, capture_output=True,
                              text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise exception.Unreachable(f'{words[0]}: {exc}') from exc
    if done.returncode not in (0, 1):
        raise exception.Unreachable(
            done.stderr.strip() or f'{words[0]} ended with the status '
            f'{done.returncode}')
    try:
        document = json.loads(done.stdout)
        if not document['fits']:
            raise exception.Unreachable(
                f'{parameters["flavor"]} does not fit, and would not after '
                f'{parameters.get("moves", 2)} moves either')
        return [Move(move['id'], move['from'], move['to'], move['kind'])
                for move in document['moves']]
    except (KeyError, TypeError, ValueError) as exc:
        raise exception.Unreachable(
            f'{words[0]} printed no plan of make-room ({exc})') from exc
