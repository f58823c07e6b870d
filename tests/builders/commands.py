# SPDX-License-Identifier: Apache-2.0

"""The command of hpcvirt, run in the process of a test."""

import contextlib
import io
import typing

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
