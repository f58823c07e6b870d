# SPDX-License-Identifier: Apache-2.0

"""Ports for the servers that tests start."""

import contextlib
import random
import socket

#: Below those that Linux gives to whoever asks for any port. One of these
#: could be given to another process before the server of the test listens.
_CHOICE = range(20_000, 32_000)


def find_ports(number: int) -> list[int]:
    """Find unused ports of the loopback address."""
    with contextlib.ExitStack() as tried:
        found: list[int] = []
        for port in random.sample(_CHOICE, len(_CHOICE)):
            with contextlib.suppress(OSError):
                tried.enter_context(
                    socket.create_server(('127.0.0.1', port)))
                found.append(port)
            if len(found) == number:
                return found
    raise RuntimeError(f'there are no {number} unused ports')
