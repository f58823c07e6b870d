# SPDX-License-Identifier: Apache-2.0

"""Run programs on a machine behind ssh.

A broken connection is replaced, since guests are rebooted and networks fail
while a benchmark runs for hours. This never runs a command twice: only a
command that was not sent yet is sent over the new connection.
"""

import logging
import math
import os
import shlex
import socket
import time
import urllib.parse
from collections.abc import Sequence
from typing import Self

import paramiko

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys

CONNECT_S = 20.0
#: Pause between two keepalive messages.
KEEPALIVE_S = 15
CHUNK = 65536
#: Pauses while a program neither reads nor prints; each is longer.
FIRST_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.02
#: How long to wait for the end of the output after the exit status. A process
#: that the program leaves behind may keep the output open for ever.
LINGER_S = 2.0
#: How much longer than its limit a program runs if this machine has gone.
GRACE_S = 2.0

#: Runs a program, and kills it with its process group when its time is up,
#: even if the connection is lost by then. A detached job has left the group.
_LIMIT = """
limit=$1
shift
if command -v timeout > /dev/null 2>&1; then
  exec timeout -s KILL "$limit" "$@"
fi
exec "$@"
"""


class SSHExecutor:
    """A machine behind ssh.

    :param host: name or address
    :param user: login name, None for the current user's
    :param key_file: file of a private key, None for the agent and the default
        files
    :param trust: the trusted host keys, None for those of known_hosts
    """

    def __init__(self, host: str, user: str | None = None, port: int = 22,
                 key_file: str | None = None,
                 trust: host_keys.Trust | None = None) -> None:
        self._host = host
        self._user = user
        self._port = port
        self._key_file = key_file
        self._trust = trust or host_keys.Trust()
        self._client: paramiko.SSHClient | None = None
        logging.getLogger('paramiko').setLevel(logging.CRITICAL)

    @classmethod
    def from_url(cls, url: str,
                 trust: host_keys.Trust | None = None) -> Self:
        """Create an executor from ``ssh://[user@]host[:port][?key=FILE]``.

        :raises InvalidInput: for any other form
        """
        where = printable.hide_user(url)
        try:
            parts = urllib.parse.urlsplit(url)
            query = urllib.parse.parse_qs(parts.query)
            port = parts.port or 22
        except ValueError as exc:
            raise exception.InvalidInput(
                where, 'has no valid address or port') from exc
        if parts.password is not None:
            raise exception.InvalidInput(
                where, 'has a password, which every user of this machine '
                'can see; log in with a key (?key=FILE) or an agent')
        if (parts.scheme != 'ssh' or not parts.hostname
                or parts.path not in ('', '/') or set(query) - {'key'}):
            raise exception.InvalidInput(
                where, 'not of the form ssh://[user@]host[:port][?key=FILE]')
        key_file = query.get('key', [None])[-1]
        if key_file is not None and not os.path.isfile(key_file):
            raise exception.InvalidInput(
                where, f'there is no key file {key_file}')
        return cls(parts.hostname, parts.username, port, key_file, trust)

    @property
    def name(self) -> str:
        user = f'{self._user}@' if self._user else ''
        port = '' if self._port == 22 else f':{self._port}'
        host = f'[{self._host}]' if ':' in self._host else self._host
        return f'ssh://{user}{host}{port}'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        channel = self._open_session()
        deadline = time.monotonic() + timeout_s
        try:
            channel.settimeout(timeout_s)
            channel.exec_command(shlex.join([
                'sh', '-c', _LIMIT, 'sh',
                str(math.ceil(timeout_s + GRACE_S)), *argv]))
            return self._talk(channel, argv[0], stdin, deadline)
        except TimeoutError as exc:
            self._check(channel)
            raise exception.TimedOut(
                f'{self.name}: {argv[0]} did not end within {timeout_s:g} s'
            ) from exc
        except (paramiko.SSHException, OSError, EOFError) as exc:
            self.close()
            raise exception.ConnectionLost(f'{self.name}: {exc}') from exc
        finally:
            channel.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def expect_restart(self) -> None:
        self._trust.expect_restart()

    def _talk(self, channel: paramiko.Channel, program: str, stdin: bytes,
              deadline: float) -> executor.Completed:
        stdout, stderr = bytearray(), bytearray()
        rest = memoryview(stdin)
        ended: float | None = None
        pause_s = FIRST_PAUSE_S
        while True:
            moved = False
            # Check this first, so that all output before the end is read.
            complete = channel.eof_received or channel.closed
            if rest and channel.send_ready():
                rest = rest[channel.send(rest[:CHUNK].tobytes()):]
                moved = True
            if not rest:
                channel.shutdown_write()
            if channel.recv_ready():
                stdout += channel.recv(CHUNK)
                moved = True
            if channel.recv_stderr_ready():
                stderr += channel.recv_stderr(CHUNK)
                moved = True
            executor.check_output(self.name, program, stdout, stderr)
            now = time.monotonic()
            if now > deadline and not (complete and moved):
                raise TimeoutError
            if moved:
                pause_s = FIRST_PAUSE_S
            else:
                if channel.exit_status_ready():
                    ended = ended or now
                    if complete or now > ended + LINGER_S:
                        break
                transport = channel.get_transport()
                if not transport.is_active():
                    raise EOFError('the connection was lost')
                time.sleep(pause_s)
                pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        status = channel.recv_exit_status()
        if status < 0:
            # The machine went down before the program ended.
            raise EOFError('the connection was lost')
        return executor.Completed(status, bytes(stdout), bytes(stderr))

    def _check(self, channel: paramiko.Channel) -> None:
        """Check that the server still answers, so that the program was slow.

        :raises ConnectionLost: if it does not answer
        """
        try:
            channel.get_transport().open_session(timeout=CONNECT_S).close()
        except (paramiko.SSHException, OSError, EOFError) as exc:
            self.close()
            raise exception.ConnectionLost(
                f'{self.name}: the connection was lost') from exc

    def _open_session(self) -> paramiko.Channel:
        for last in (False, True):
            client = self._client or self._connect()
            transport = client.get_transport()
            try:
                if transport is None:
                    raise paramiko.SSHException('no connection')
                return transport.open_session(timeout=CONNECT_S)
            except (paramiko.SSHException, OSError, EOFError) as exc:
                self.close()
                if last:
                    raise exception.ConnectionLost(
                        f'{self.name}: {exc}') from exc
        raise AssertionError('unreachable')

    def _connect(self) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        self._trust.install(client, self._host if self._port == 22 else
                            f'[{self._host}]:{self._port}')
        try:
            client.connect(
                self._host, port=self._port, username=self._user,
                key_filename=self._key_file, timeout=CONNECT_S,
                banner_timeout=CONNECT_S, auth_timeout=CONNECT_S,
                allow_agent=self._key_file is None,
                look_for_keys=self._key_file is None)
        except paramiko.BadHostKeyException as exc:
            client.close()
            raise exception.Unreachable(
                f'{self.name}: the host key {host_keys.format_key(exc.key)} '
                'differs from the known one, '
                f'{host_keys.format_key(exc.expected_key)}') from exc
        except exception.Unreachable:
            client.close()
            raise
        except (paramiko.SSHException, OSError, EOFError) as exc:
            client.close()
            raise exception.ConnectionLost(
                f'{self.name}: {_why(exc)}') from exc
        transport = client.get_transport()
        if transport is not None:
            transport.set_keepalive(KEEPALIVE_S)
            self._trust.connected(transport.get_remote_server_key())
        self._client = client
        return client


def _why(exc: Exception) -> str:
    if isinstance(exc, socket.gaierror):
        return 'the name cannot be resolved'
    return str(exc) or type(exc).__name__
