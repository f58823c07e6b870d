# SPDX-License-Identifier: Apache-2.0

"""Run programs to their end, with their output in the cloud's logs."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import waiting
from tests.system.cloud import errors
from tests.system.cloud import settings as cloud_settings

#: Runs the script whose arguments are on standard input, as JSON. The
#: arguments of a process are visible to every user of the machine.
_UNSEEN = ('import json, runpy, sys; sys.argv = json.load(sys.stdin); '
           'runpy.run_path(sys.argv[0], run_name="__main__")')


def as_user(name: str) -> list[str]:
    """Return the words that run a program as another user."""
    return ['setpriv', f'--reuid={name}', f'--regid={name}', '--init-groups']


def run_unseen(settings: cloud_settings.Settings, name: str,
               argv: Sequence[str]) -> None:
    """Run a script of the Python environment whose arguments are secret."""
    run(settings, name, [settings.program('python'), '-c', _UNSEEN],
        text=json.dumps(list(argv)))


def run(settings: cloud_settings.Settings, name: str, argv: Sequence[str],
        environment: Mapping[str, str] | None = None,
        limit_s: float = 900, text: str | None = None,
        watch: Callable[[], None] | None = None) -> None:
    """Run a program; its output is appended to ``log/NAME.log``.

    :param text: standard input
    :param watch: called about twice a second; its exception ends the program
    :raises ServiceError: if the program fails or takes too long
    """
    # Packages are installed before the other directories exist.
    settings.log.mkdir(parents=True, exist_ok=True)
    path = settings.log / f'{name}.log'
    with open(path, 'ab') as log, tempfile.TemporaryFile() as stdin:
        start = log.tell()
        stdin.write((text or '').encode())
        stdin.seek(0)
        process = subprocess.Popen(
            list(argv), env={**os.environ, **(environment or {})},
            stdin=stdin, stdout=log, stderr=subprocess.STDOUT)
        try:
            failure = _wait(process, limit_s, watch)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if not failure:
        return
    with open(path, 'rb') as log:
        log.seek(start)
        tail = log.read().decode(errors='replace').splitlines()[-20:]
    raise errors.ServiceError(name, failure, '\n'.join(tail))


def _wait(process: subprocess.Popen[bytes], limit_s: float,
          watch: Callable[[], None] | None) -> str:
    """Wait for the end of a program.

    :returns: the fault; empty if there is none
    """
    def look() -> int | None:
        try:
            return process.wait(0.5)
        except subprocess.TimeoutExpired:
            if watch is not None:
                watch()
            return None

    status = waiting.poll(look, lambda status: status is not None, limit_s, 0)
    if status is None:
        return f'did not end within {limit_s:.0f} s'
    return f'failed with status {status}' if status else ''


def output(argv: Sequence[str], limit_s: float = 120) -> str:
    """Run a program and return what it prints.

    :raises CloudError: if it fails
    """
    done = subprocess.run(list(argv), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=limit_s,
                          check=False)
    if done.returncode != 0:
        raise errors.CloudError(
            f'{argv[0]} failed: {done.stderr.strip()[-2000:]}')
    return done.stdout
