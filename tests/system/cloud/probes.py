# SPDX-License-Identifier: Apache-2.0

"""Probe whether services answer, and wait until they do."""

import contextlib
import http.client
import socket
import subprocess
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt import waiting
from tests.system.cloud import errors
from tests.system.cloud import processes
from tests.system.cloud import settings


def wait_for_service(running: processes.Processes, name: str,
                     probe: Callable[[], bool], limit_s: float = 180) -> None:
    """Wait until a service answers.

    :raises ServiceError: if it ends, or does not answer in time
    """
    def answers() -> bool:
        if probe():
            return True
        if not running.alive(name):
            raise errors.ServiceError(name, 'ended', running.tail(name))
        return False

    if not waiting.poll(answers, bool, limit_s, 0.2):
        raise errors.ServiceError(
            name, f'did not answer within {limit_s:.0f} s', running.tail(name))


def port_open(port: int) -> bool:
    """Tell whether a program listens on a port."""
    with contextlib.suppress(OSError):
        socket.create_connection((settings.IP, port), 2).close()
        return True
    return False


def http_answers(port: int) -> bool:
    """Tell whether an HTTP server answers with a status below 500.

    uWSGI answers 500 until it has loaded the application.
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
