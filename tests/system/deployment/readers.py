# SPDX-License-Identifier: Apache-2.0

"""Run a program that reads a file, and return its output."""

import os
import pathlib
import subprocess
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.deployment import tree

LIMIT_S = 600


class Fault(Exception):
    """A program does not read the values of the plan from a file."""


def run(*words: str | pathlib.Path, env: Mapping[str, str] | None = None,
        status: int | None = 0) -> str:
    """Run a program, and return what it prints on both outputs.

    :param status: the exit status that it must have; None for any
    :raises Fault: if it has another status, or cannot be run
    """
    try:
        done = subprocess.run(
            [str(word) for word in words], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise Fault(f'{words[0]} cannot be run: {exc}') from exc
    if status is not None and done.returncode != status:
        raise Fault(f'{words[0]} ended with {done.returncode}: '
                    f'{done.stdout[-2000:]}')
    return done.stdout


def require(true: bool, what: str) -> None:
    """Require that something holds.

    :raises Fault: if it does not
    """
    if not true:
        raise Fault(what)


def equal(expected: object, found: object, what: str) -> None:
    """Require that two values are equal.

    :raises Fault: if they are not
    """
    require(expected == found, f'{what}: {expected!r} expected, {found!r} '
            'found')


def write(folder: pathlib.Path, files: Iterable[tree.File]) -> None:
    """Write files below a folder."""
    for file in files:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text)
