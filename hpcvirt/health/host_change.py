# SPDX-License-Identifier: Apache-2.0

"""Change the quarantine of a host, and say what became of it."""

import socket
from collections.abc import Callable

from hpcvirt import exception
from hpcvirt.model import quarantine


def make_hold(holder: str, reason: str, time: str) -> quarantine.Hold:
    """Describe a hold by the supervisor.

    :param time: in UTC and ISO 8601
    """
    return quarantine.Hold(holder, reason, time,
                           f'hpcvirt-supervise@{socket.gethostname()}')


def attempt(change: Callable[[], None], say: Callable[[str], None],
            where: str, what: str, made: str) -> bool:
    """Make a change, or say that it failed and is tried again.

    :param say: prints a line
    :param where: the time and the host, with which the line begins
    :param what: the words for the change if it fails
    :param made: the words for the change if it is made
    :returns: whether it was made
    """
    try:
        change()
    except exception.HpcvirtError as exc:
        say(f'{where}: {what} failed, and is tried again: {exc}')
        return False
    say(f'{where}: {made} is done')
    return True
