# SPDX-License-Identifier: Apache-2.0

"""Run programs on a machine behind ssh, by the program of that name.

What a URL does not say is in ``~/.ssh/config``. The commands share one login:
the first starts a *master*, which lets the others pass. It reads a pipe, and
so ends with this process, even if that is killed.

A broken connection is replaced, since guests are rebooted and networks fail
while a benchmark runs for hours. This never runs a command twice: none is
repeated here, whether it was sent or not.

The status of ssh is 255 both for a program with that status and for a lost
connection. Therefore a shell on the machine says between random words that it
begins, and which status the program had. If it does not, the connection was
lost.
"""

import contextlib
import dataclasses
import math
import os
import re
import selectors
import shlex
import tempfile
import time
import typing
import urllib.parse
import uuid
import weakref
from collections.abc import Callable
from collections.abc import Sequence
from typing import IO
from typing import Self

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys

CONNECT_S = 20
#: How long a login may take, over several machines perhaps.
LOGIN_S = 60.0
#: Pause between two keepalive messages, and how many may stay unanswered.
KEEPALIVE_S = 15
KEEPALIVES = 3
#: How long the master may take to end by itself.
END_S = 3.0
#: How much longer than its limit a program runs if this machine has gone.
GRACE_S = 2.0
CHUNK = 65536

#: Runs a program, and kills it with its process group when its time is up,
#: even if the connection is lost by then. A detached job has left the group.
#: What a login prints by itself comes before the first words. Those here are
#: not the words that are printed, since a shell may print its commands.
_LIMIT = """
word=$1
limit=$2
shift 2
printf '%s%s' "$word" begun
printf '%s%s' "$word" begun >&2
if command -v timeout > /dev/null 2>&1; then
  timeout -s KILL "$limit" "$@"
else
  "$@"
fi
printf '%s%s%d;' "$word" ended "$?" >&2
"""

#: No prompt, no terminal, nothing forwarded, whatever the configuration says.
_OPTIONS = (
    '-T', '-a', '-x', '-oBatchMode=yes', f'-oConnectTimeout={CONNECT_S}',
    f'-oServerAliveInterval={KEEPALIVE_S}',
    f'-oServerAliveCountMax={KEEPALIVES}', '-oClearAllForwardings=yes',
    '-oControlPersist=no', '-oLogLevel=INFO', '-oPermitLocalCommand=no',
    '-oRemoteCommand=none', '-oUpdateHostKeys=no')

_HOST = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*'
                   r'(%[A-Za-z0-9_.-]+)?')
_USER = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.@+\\-]*')
#: What ssh would replace in the name of a file.
_REPLACED = re.compile(r'%|\$\{')
#: The name of a socket is short, and ssh would replace other characters.
_FOLDER = re.compile(r'[A-Za-z0-9/._-]{1,60}')
_TMP = '/tmp'  # noqa: S108

#: Commands only use the login of the master. Otherwise ssh would log in itself
#: and send a command again if the master ends before it says that it has sent
#: it. Errors of ssh are not among those of the program.
_ONLY_SHARED = ('-oControlMaster=no', '-oProxyCommand=false',
                '-oLogLevel=ERROR')

_LOST = 'the connection was lost'
_TOO_MANY = b'refused by peer'
_REFUSED = 'Host key verification failed.'
_SHOWN = re.compile(r'Server host key: (\S+ \S+)')
_OFFENDING = re.compile(r'Offending .*?key in (.*:\d+)')


@dataclasses.dataclass(frozen=True, slots=True)
class _Connection:
    """A login that commands share.

    :ivar master: what holds it
    :ivar folder: files of this connection alone
    :ivar options: those with which a command uses it
    """

    master: child_process.Child
    folder: tempfile.TemporaryDirectory[str]
    options: tuple[str, ...]

    def close(self) -> None:
        with self.folder:
            self.master.end(END_S)


class SSHExecutor:
    """A machine behind ssh.

    :param host: name, address, or a host of ssh's configuration
    :param user: login name, None for that of the configuration
    :param port: None for that of the configuration
    :param key_file: file of a private key, None for the agent and the files
        of the configuration
    :param trust: the trusted host keys, None for those that are known
    :raises InvalidInput: if ssh might take one of them for something else
    """

    def __init__(self, host: str, user: str | None = None,
                 port: int | None = None, key_file: str | None = None,
                 trust: host_keys.Trust | None = None) -> None:
        self._host = host
        self._user = user
        self._port = port
        self._trust = trust or host_keys.Trust()
        self._connection: _Connection | None = None
        # Closes the connection once: a command may end without doing so.
        self._end: Callable[[], object] = lambda: None
        self._login = self._list_options(key_file)

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
            port = parts.port
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
        # In the configuration, capital letters count.
        begin = parts.netloc.lower().rindex(parts.hostname.lower())
        host = parts.netloc[begin:begin + len(parts.hostname)]
        return cls(host, parts.username, port, key_file, trust)

    @property
    def name(self) -> str:
        user = f'{self._user}@' if self._user else ''
        port = '' if self._port in (None, 22) else f':{self._port}'
        host = f'[{self._host}]' if ':' in self._host else self._host
        return f'ssh://{user}{host}{port}'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        connection = self._connection
        if connection is None or connection.master.has_ended():
            connection = self._connect()
        try:
            return self._run(connection, argv, stdin, timeout_s)
        except exception.TimedOut:
            self._check(connection)
            raise
        except exception.Unreachable:
            # A program that prints without end stops if nobody can read it.
            self.close()
            raise

    def close(self) -> None:
        self._connection = None
        self._end()

    def expect_restart(self) -> None:
        self._trust.expect_restart()

    def _list_options(self, key_file: str | None) -> tuple[str, ...]:
        """List the options that say where to log in, and as whom."""
        if not _HOST.fullmatch(self._host):
            raise exception.InvalidInput(
                f'ssh://{self._host}', 'not a host name or an address')
        options = list(_OPTIONS)
        if self._user:
            if not _USER.fullmatch(self._user):
                raise exception.InvalidInput(
                    f'ssh://***@{self._host}', 'not a login name')
            options += ['-l', self._user]
        if self._port is not None:
            options += ['-p', str(self._port)]
        if key_file is not None:
            path = os.path.abspath(key_file)
            if _REPLACED.search(path):
                raise exception.InvalidInput(
                    self.name, f'ssh would replace a part of the name {path}')
            options += ['-i', path, '-oIdentitiesOnly=yes']
        return tuple(options)

    def _run(self, connection: _Connection, argv: Sequence[str],
             stdin: bytes, timeout_s: float) -> executor.Completed:
        word = uuid.uuid4().hex
        begun, ended = f'{word}begun'.encode(), f'{word}ended'.encode()
        _, stdout, stderr = child_process.run(
            ['ssh', *connection.options, '--', self._host, shlex.join([
                'sh', '-c', _LIMIT, 'sh', word,
                str(math.ceil(timeout_s + GRACE_S)), *argv])],
            where=self.name, limit_s=timeout_s,
            environment=_choose_environment(), stdin=stdin,
            most_bytes=executor.MAX_OUTPUT_BYTES, leaves_processes=True,
            program=argv[0], end_mark=ended)
        found = re.search(rb'%b(\d+);' % ended, stderr)
        if found is not None:
            errors = stderr[:found.start()] + stderr[found.end():]
            return executor.Completed(
                int(found[1]), stdout.partition(begun)[2],
                errors.partition(begun)[2])
        if begun not in stderr and _TOO_MANY in stderr:
            raise exception.Unreachable(
                f'{self.name}: lets one login run too few commands at a time '
                '(MaxSessions of sshd)')
        raise exception.ConnectionLost(f'{self.name}: {_LOST}')

    def _check(self, connection: _Connection) -> None:
        """Check that the server still answers, so that the program was slow.

        :raises ConnectionLost: if it does not answer
        """
        try:
            self._run(connection, ['true'], b'', CONNECT_S)
        except exception.Unreachable as exc:
            self.close()
            raise exception.ConnectionLost(f'{self.name}: {_LOST}') from exc

    def _connect(self) -> _Connection:
        self.close()
        parent = tempfile.gettempdir()
        if not _FOLDER.fullmatch(parent):
            parent = _TMP
        folder = tempfile.TemporaryDirectory(prefix='hpcvirt-ssh-', dir=parent)
        with contextlib.ExitStack() as failed:
            failed.callback(folder.cleanup)
            status, printed, said = self._ask_ssh('-G')
            if status:
                raise exception.Unreachable(
                    f'{self.name}: {_read_lines(said)[-1]}')
            settings = host_keys.parse_settings(os.fsdecode(printed))
            trusted = self._trust.choose(folder.name, settings)
            path = os.path.join(folder.name, 'master')
            control = ['-oControlMaster=yes', '-S', path]
            # Somebody who logs in with a second factor lets others pass.
            if (not trusted and 'controlpath' in settings
                    and self._ask_ssh('-O', 'check')[0] == 0):
                path = settings['controlpath'].replace('%', '%%')
                control = ['-oControlMaster=no', '-S', path]
            master = self._start_master(control, trusted, folder.name)
            failed.pop_all()
        self._trust.connected(folder.name)
        self._connection = _Connection(
            master, folder, (*_ONLY_SHARED, '-S', path, *self._login))
        self._end = weakref.finalize(self, self._connection.close)
        return self._connection

    def _start_master(self, control: Sequence[str], trusted: Sequence[str],
                      folder: str) -> child_process.Child:
        """Log in, and return what holds the connection."""
        word = uuid.uuid4().hex
        with open(os.path.join(folder, 'said'), 'w+b') as said:
            child = child_process.Child(
                ['ssh', *control, *trusted, *self._login, '--', self._host,
                 f'echo {word}; exec cat'], where=self.name,
                environment=_choose_environment(), stdin=child_process.PIPE,
                stderr=said.fileno())
            with contextlib.ExitStack() as failed:
                failed.callback(child.end)
                printed = _read_until(child, word.encode())
                if printed is not None:
                    said.seek(0)
                    raise self._explain(printed + said.read(), trusted)
                failed.pop_all()
        return child

    def _ask_ssh(self, *words: str) -> tuple[int, bytes, bytes]:
        """Ask the program of this machine, and not yet the other machine."""
        return child_process.run(
            ['ssh', *self._login, *words, '--', self._host], where=self.name,
            limit_s=CONNECT_S, environment=_choose_environment())

    def _explain(self, said: bytes,
                 trusted: Sequence[str]) -> exception.Unreachable:
        """Say why there is no connection.

        :param said: what ssh has printed
        :param trusted: the options for the trusted keys
        """
        lines = _read_lines(said)
        if _REFUSED not in lines:
            return exception.ConnectionLost(f'{self.name}: {lines[-1]}')
        text = '\n'.join(lines)
        if found := _OFFENDING.search(text):
            place = '' if len(trusted) > 1 else f' in {found[1]}'
            why = f'differs from the known one{place}'
        elif 'revoked' in text:
            why = 'is revoked'
        else:
            why = ('is not known; verify it and log in once with ssh, which '
                   'adds it to known_hosts, or accept any key with --host-key '
                   'accept-new')
        return exception.Unreachable(
            f'{self.name}: the host key {self._read_key(trusted)}{why}')

    def _read_key(self, trusted: Sequence[str]) -> str:
        """Read the key that the server shows; empty if it shows none now."""
        try:
            _, _, said = child_process.run(
                ['ssh', '-v', '-oControlPath=none', host_keys.STRICT, *trusted,
                 *self._login, '--', self._host, 'true'], where=self.name,
                limit_s=CONNECT_S, environment=_choose_environment())
        except exception.TimedOut:
            return ''
        found = _SHOWN.findall(said.decode('utf-8', 'replace'))
        return f'{found[-1]} ' if found else ''


def _choose_environment() -> dict[str, str]:
    """Choose what ssh gets.

    Debian's configuration sends the language, on which output may depend.
    """
    chosen = child_environment.choose(*child_environment.SSH)
    return {name: value for name, value in chosen.items()
            if not name.startswith(('LANG', 'LC_'))}


def _read_until(child: child_process.Child, word: bytes) -> bytes | None:
    """Read until the master prints a word.

    :returns: what it printed instead; None if it did print it
    """
    stream = typing.cast(IO[bytes], child.process.stdout)
    printed = b''
    deadline = time.monotonic() + LOGIN_S
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left_s := deadline - time.monotonic()) > 0:
            if selector.select(left_s):
                chunk = os.read(stream.fileno(), CHUNK)
                if not chunk:
                    break
                printed = printed[-CHUNK:] + chunk
                if word in printed:
                    return None
    return printed


def _read_lines(said: bytes) -> list[str]:
    """Read what ssh has printed, at least one line."""
    lines = said.decode('utf-8', 'replace').splitlines()
    return ([line.strip() for line in lines if line.strip()]
            or [_LOST])
