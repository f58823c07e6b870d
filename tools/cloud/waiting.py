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

"""Wait for something with a deadline, and say who kept us waiting."""

import contextlib
import http.client
import socket
import subprocess
import time
from collections.abc import Callable
from collections.abc import Sequence

from tools.cloud import errors
from tools.cloud import processes
from tools.cloud import settings


def until(check: Callable[[], bool], what: str, seconds: float,
          pause_s: float = 0.2) -> None:
    """Wait until ``check`` is true.

    :raises CloudError: ``what`` did not happen in time
    """
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise errors.CloudError(f'{what}: not within {seconds:.0f} s')
        time.sleep(pause_s)


def for_service(running: processes.Processes, name: str,
                check: Callable[[], bool], seconds: float = 180) -> None:
    """Wait until a service answers.

    :raises ServiceError: it died, or does not answer in time
    """
    deadline = time.monotonic() + seconds
    while not check():
        if not running.alive(name):
            raise errors.ServiceError(name, 'ended', running.tail(name))
        if time.monotonic() > deadline:
            raise errors.ServiceError(
                name, f'did not answer within {seconds:.0f} s',
                running.tail(name))
        time.sleep(0.2)


def port_open(port: int) -> bool:
    """Tell whether somebody listens on a port of ours."""
    with contextlib.suppress(OSError):
        socket.create_connection((settings.IP, port), 2).close()
        return True
    return False


def http_answers(port: int) -> bool:
    """Tell whether an HTTP server answers, whatever its status below 500.

    uWSGI answers 500 as long as the application cannot be loaded.
    """
    connection = http.client.HTTPConnection(settings.IP, port, timeout=30)
    try:
        connection.request('GET', '/')
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def succeeds(argv: Sequence[str]) -> bool:
    """Tell whether a program ends with status 0."""
    try:
        done = subprocess.run(list(argv), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=30,
                              check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
