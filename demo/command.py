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

"""``hpcvirt flavor``, run in this process against the embedded Nova."""

import contextlib
import io
import json
from typing import Any

from demo import fleet
from hpcvirt.cmd import main


class CommandFailed(Exception):
    """The command ended with a status other than 0."""


def plan(which: fleet.Plan) -> dict[str, Any]:
    """Run ``hpcvirt flavor plan``.

    :returns: the document that it prints
    """
    return _run('plan', '--format', 'json', *which.arguments())


def apply(which: fleet.Plan) -> list[dict[str, Any]]:
    """Run ``hpcvirt flavor apply --apply``.

    :returns: its steps: name, action and whether it was done
    """
    steps: list[dict[str, Any]] = _run(
        'apply', '--apply', '--format', 'json', *which.arguments())['steps']
    return steps


def _run(*words: str) -> dict[str, Any]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = main.main(['flavor', *words])
    if status:
        raise CommandFailed(
            f'hpcvirt flavor {" ".join(words)}: status {status}')
    document: dict[str, Any] = json.loads(output.getvalue())
    return document
