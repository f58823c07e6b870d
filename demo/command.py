# SPDX-License-Identifier: Apache-2.0

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
