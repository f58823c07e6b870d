# SPDX-License-Identifier: Apache-2.0

"""Decide which host keys of an ssh server are trusted.

``known``, the default, leaves that to ssh and its configuration, which trust
the keys in ``~/.ssh/known_hosts`` and ``/etc/ssh/ssh_known_hosts``.
``accept-new`` also trusts the first key of a server that has no known key, and
no other key for the rest of the run. If an instance prints its keys on its
console, as cloud-init does, only those keys are trusted.

Keys of the latter two kinds are in a file of their own: the addresses of
instances soon belong to others.
"""

import base64
import binascii
import enum
import itertools
import os
import re
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt.bench.execute import executor

#: The file of trusted keys in the folder of a connection.
FILE = 'known_hosts'

#: The markers that cloud-init prints around the host keys on the console.
_BLOCK = re.compile('-----BEGIN SSH HOST KEY KEYS-----(.*?)'
                    '-----END SSH HOST KEY KEYS-----', re.DOTALL)
_KEY = re.compile(r'\b((?:ssh|ecdsa)-[a-z0-9-]+) ([A-Za-z0-9+/]+=*)')

STRICT = '-oStrictHostKeyChecking=yes'
_ACCEPT = '-oStrictHostKeyChecking=accept-new'
#: Nothing but the file of a connection gives trust.
_ALONE = ('-oGlobalKnownHostsFile=/dev/null', '-oVerifyHostKeyDNS=no',
          '-oNoHostAuthenticationForLocalhost=no', '-oCheckHostIP=no')
#: Older releases than 8.5 do not know this option.
_COMMAND = 'KnownHostsCommand'
_PORT = '22'


class HostKeys(enum.StrEnum):
    """The values of ``--host-key``."""

    KNOWN = 'known'
    ACCEPT_NEW = 'accept-new'


class Trust:
    """The trusted keys of one server.

    :param announce: returns the keys that the server has printed on its
        console so far, each with its kind, as in known_hosts
    """

    def __init__(self, mode: HostKeys = HostKeys.KNOWN,
                 announce: Callable[[], Sequence[str]] = tuple) -> None:
        self._mode = mode
        self._announce = announce
        self._announced: Sequence[str] = ()
        self._pinned = ''

    def choose(self, folder: str,
               settings: Mapping[str, str]) -> list[str]:
        """Return the options with which ssh trusts the right keys only.

        :param folder: where a file of keys may be written
        :param settings: those of ssh for the server
        :returns: none if its configuration decides
        """
        lines = self._pinned
        if not lines:
            self._announced = tuple(self._announce()) or self._announced
            lines = ''.join(f'* {key}\n' for key in self._announced)
        if not lines and self._mode is HostKeys.KNOWN:
            return []
        if not lines and _is_known(settings):
            return [STRICT]
        path = os.path.join(folder, FILE)
        with open(path, 'w', encoding='ascii') as stream:
            stream.write(lines)
        options = [f'-oUserKnownHostsFile={path}', *_ALONE,
                   STRICT if lines else _ACCEPT]
        if settings.get(_COMMAND.lower(), 'none') != 'none':
            options.append(f'-o{_COMMAND}=none')
        return options

    def connected(self, folder: str) -> None:
        """Trust no other keys than now, after a connection."""
        path = os.path.join(folder, FILE)
        if self._mode is HostKeys.ACCEPT_NEW and os.path.exists(path):
            with open(path, encoding='ascii') as stream:
                self._pinned = stream.read()

    def expect_restart(self) -> None:
        """Forget the key of the server, whose restart may create new ones."""
        self._pinned = ''


def parse_console(console: str) -> tuple[str, ...]:
    """Parse the host keys that an instance printed at its last boot."""
    blocks = _BLOCK.findall(console)
    return tuple(f'{kind} {text}' for kind, text
                 in _KEY.findall(blocks[-1] if blocks else '')
                 if _is_key(kind, text))


def _is_key(kind: str, text: str) -> bool:
    """Whether a key is whole: fields with their lengths, first its kind."""
    try:
        rest = base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    fields = []
    while rest:
        size = int.from_bytes(rest[:4])
        field, rest = rest[4:4 + size], rest[4 + size:]
        if len(field) != size:
            return False
        fields.append(field)
    return len(fields) > 1 and fields[0] == kind.encode()


def parse_settings(printed: str) -> dict[str, str]:
    """Parse the settings of ssh for a server, as ``ssh -G`` prints them."""
    pairs = (line.partition(' ') for line in printed.splitlines())
    return {name: value for name, _, value in pairs}


def _is_known(settings: Mapping[str, str]) -> bool:
    """Whether the files of known keys have any key of a server.

    ssh does not read them when new keys go to a file of their own.
    """
    host, port = settings.get('hostname', ''), settings.get('port', _PORT)
    if port != _PORT:
        host = f'[{host}]:{port}'
    host = settings.get('hostkeyalias', host)
    files = []
    for name in ('userknownhostsfile', 'globalknownhostsfile'):
        files += _list_files(settings.get(name, ''))
    return any(_has_key(path, host) for path in files)


def _list_files(text: str) -> list[str]:
    """List the files of a setting; spaces may be in a name or between two."""
    words = text.split(' ')
    spans = itertools.combinations(range(len(words) + 1), 2)
    paths = [' '.join(words[begin:end]) for begin, end in spans]
    return [path for path in paths if os.path.isfile(path)]


def _has_key(path: str, host: str) -> bool:
    status, _, _ = child_process.run(
        ['ssh-keygen', '-F', host, '-f', path], where='local',
        limit_s=executor.SHORT_S, environment=child_environment.choose())
    return status == 0
