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

"""Run a program to its end, with its output in a log of its own."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from tools.cloud import errors
from tools.cloud import settings as cloud_settings


def run(settings: cloud_settings.Settings, name: str, argv: Sequence[str],
        environment: Mapping[str, str] | None = None,
        seconds: float = 900, text: str | None = None,
        watch: Callable[[], None] | None = None) -> None:
    """Run a program; its output is appended to ``log/NAME.log``.

    :param text: standard input
    :param watch: called while it runs; what it raises ends the program
    :raises ServiceError: it failed or took too long
    """
    # Packages are installed before anything else of the cloud is made.
    settings.log.mkdir(parents=True, exist_ok=True)
    path = settings.log / f'{name}.log'
    deadline = time.monotonic() + seconds
    with open(path, 'ab') as log, tempfile.TemporaryFile() as given:
        start = log.tell()
        given.write((text or '').encode())
        given.seek(0)
        process = subprocess.Popen(
            list(argv), env={**os.environ, **(environment or {})},
            stdin=given, stdout=log, stderr=subprocess.STDOUT)
        try:
            failure = _wait(process, deadline, watch)
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


def _wait(process: subprocess.Popen[bytes], deadline: float,
          watch: Callable[[], None] | None) -> str:
    """Wait for the end; give what went wrong, an empty text if nothing."""
    while True:
        try:
            status = process.wait(0.5)
        except subprocess.TimeoutExpired:
            if watch is not None:
                watch()
            if time.monotonic() > deadline:
                return 'did not end in time'
        else:
            return f'failed with status {status}' if status else ''


def output(argv: Sequence[str], seconds: float = 120) -> str:
    """Run a program and give what it prints.

    :raises CloudError: it failed
    """
    done = subprocess.run(list(argv), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=seconds,
                          check=False)
    if done.returncode != 0:
        raise errors.CloudError(
            f'{argv[0]} failed: {done.stderr.strip()[-2000:]}')
    return done.stdout
