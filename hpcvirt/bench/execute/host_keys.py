# SPDX-License-Identifier: Apache-2.0

"""Decide which host keys of an ssh server are trusted.

``known``, the default, trusts the keys in ``~/.ssh/known_hosts`` and
``/etc/ssh/ssh_known_hosts``. ``accept-new`` also trusts the first key of a
server that has no known key, and no other key for the rest of the run. If an
instance prints its keys on its console, as cloud-init does, only those keys
are trusted.
"""

import enum
import os
import re
from collections.abc import Callable
from collections.abc import Sequence

import paramiko
from paramiko import hostkeys

from hpcvirt import exception

FILES = ('~/.ssh/known_hosts', '/etc/ssh/ssh_known_hosts')

#: The markers that cloud-init prints around the host keys on the console.
_BLOCK = re.compile('-----BEGIN SSH HOST KEY KEYS-----(.*?)'
                    '-----END SSH HOST KEY KEYS-----', re.DOTALL)
_KEY = re.compile(r'\b(?:ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/]+=*')


class HostKeys(enum.StrEnum):
    """The values of ``--host-key``."""

    KNOWN = 'known'
    ACCEPT_NEW = 'accept-new'


class Trust:
    """The trusted keys of one server.

    :param announce: returns the keys that the server has printed on its
        console so far
    """

    def __init__(self, mode: HostKeys = HostKeys.KNOWN,
                 announce: Callable[[], Sequence[paramiko.PKey]] = tuple,
                 ) -> None:
        self._mode = mode
        self._announce = announce
        self._announced: Sequence[paramiko.PKey] = ()
        self._pinned: paramiko.PKey | None = None

    def install(self, client: paramiko.SSHClient, server: str) -> None:
        """Make a client accept the trusted keys only, before it connects.

        :param server: its name in known_hosts
        """
        known = client.get_host_keys()
        keys: Sequence[paramiko.PKey] = ()
        if self._pinned is not None:
            keys = (self._pinned,)
        else:
            self._announced = tuple(self._announce()) or self._announced
            keys = self._announced
        for key in keys:
            known.add(server, key.get_name(), key)
        if not keys:
            _load(known)
        # paramiko calls the policy only for a server without a known key of
        # any type.
        client.set_missing_host_key_policy(
            _Policy(self._mode is HostKeys.ACCEPT_NEW))

    def connected(self, key: paramiko.PKey) -> None:
        """Remember the key of the server after a connection."""
        if self._mode is HostKeys.ACCEPT_NEW:
            self._pinned = key

    def expect_restart(self) -> None:
        """Forget the key of the server, whose restart may create new ones."""
        self._pinned = None


class _Policy:
    """The policy that paramiko calls for a server without a known key."""

    def __init__(self, accept: bool) -> None:
        self._accept = accept

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str,
                         key: paramiko.PKey) -> None:
        """Accept the key or raise."""
        del client
        if not self._accept:
            raise exception.Unreachable(
                f'ssh://{hostname}: the host key {format_key(key)} is not '
                'known; verify it and log in once with ssh, which adds it to '
                'known_hosts, or accept any key with --host-key accept-new')


def format_key(key: paramiko.PKey) -> str:
    """Format a key as ssh does: ``ssh-ed25519 SHA256:...``."""
    return f'{key.get_name()} {key.fingerprint}'


def parse_console(console: str) -> tuple[paramiko.PKey, ...]:
    """Parse the host keys that an instance printed at its last boot."""
    blocks = _BLOCK.findall(console)
    keys = []
    for line in _KEY.findall(blocks[-1] if blocks else ''):
        try:
            entry = hostkeys.HostKeyEntry.from_line(f'console {line}')
        except (paramiko.SSHException, hostkeys.InvalidHostKey):
            continue
        if entry is not None and entry.key is not None:
            keys.append(entry.key)
    return tuple(keys)


def _load(known: paramiko.HostKeys) -> None:
    for name in FILES:
        path = os.path.expanduser(name)
        try:
            if os.path.isfile(path):
                known.load(path)
        except (OSError, ValueError, hostkeys.InvalidHostKey) as exc:
            raise exception.Unreachable(
                f'{path}: cannot be read as known_hosts ({exc})') from exc
