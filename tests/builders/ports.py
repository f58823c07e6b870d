# SPDX-License-Identifier: Apache-2.0

"""Ports for the servers that tests start."""

import socket


def find_ports(number: int) -> list[int]:
    """Find unused ports of the loopback address."""
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(number)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
