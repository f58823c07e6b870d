# SPDX-License-Identifier: Apache-2.0

"""The command of hpcvirt, run in the process of a test."""

import contextlib
import io
import json
import typing
import unittest
from typing import Any

from hpcvirt.cmd import main


class Ended(typing.NamedTuple):
    status: int
    out: str
    err: str


def run(*words: object) -> Ended:
    """Run the command; its status, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main([str(word) for word in words])
        except SystemExit as exc:
            status = int(exc.code or 0)
    return Ended(status, out.getvalue(), err.getvalue())


def read_document(case: unittest.TestCase, ended: Ended,
                  status: int = 0) -> Any:
    """Return the JSON document that a command has printed.

    :param status: how it must have ended
    """
    case.assertEqual(status, ended.status, ended.err)
    return json.loads(ended.out)


def check_refused(case: unittest.TestCase, said: str,
                  ended: tuple[int, str, str]) -> str:
    """Check that a command refused its input in one line.

    The warnings of a plan may stand before it.

    :param said: what the line must contain
    :returns: the line
    """
    status, out, err = ended
    case.assertEqual((2, ''), (status, out), err)
    lines = [line for line in err.splitlines(keepends=True)
             if not line.startswith('Warning: ')]
    case.assertEqual(1, len(lines), err)
    case.assertIn(said, lines[0])
    return lines[0]


def drop_classes(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only the answers about a fleet document have: classes.

    :param document: the JSON of capacity, explain, make-room or drain; it is
        changed
    """
    document.pop('classes', None)
    for row in document.get('flavors', ()):
        row.pop('per_class', None)
    for row in document.get('hosts', ()):
        row.pop('class', None)
    return document
