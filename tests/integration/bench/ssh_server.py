# SPDX-License-Identifier: Apache-2.0

"""A real sshd, to which the user of the tests logs in with a key.

The client reads a configuration of the tests instead of that of the user.

sshd does not listen itself: the tests do, and start one for each connection,
as inetd does. The port then stays that of the server while it starts again;
otherwise a test in another process could get it meanwhile.
"""

import contextlib
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from unittest import mock

from hpcvirt import process_tree
from tests.integration import program_tests

USER = pwd.getpwuid(os.getuid()).pw_name

#: Variables of this machine that a login gets.
LOGIN = ('HOME', 'PATH', 'XDG_STATE_HOME')

#: sshd must be called by its path, to start itself again.
SSHD = shutil.which('sshd', path=f'{os.environ["PATH"]}:/usr/sbin')
#: Where sshd of root confines what it does before a login; it must exist.
CONFINED = pathlib.Path('/run/sshd')

#: The exchange of keys that OpenSSH prefers takes most of the time of a login.
CONFIGURATION = """\
HostKey {folder}/{host_key}
KexAlgorithms curve25519-sha256
AuthorizedKeysFile {folder}/id.pub
AuthenticationMethods publickey
StrictModes no
UsePAM no
AcceptEnv LANG LC_* {secrets}
SetEnv {login}
"""


def make_key(path: pathlib.Path, kind: str) -> str:
    """Make a pair of keys; return the public one, as in known_hosts."""
    subprocess.run(['ssh-keygen', '-q', '-t', kind, '-N', '', '-f', path],
                   check=True, stdin=subprocess.DEVNULL)
    return ' '.join(pathlib.Path(f'{path}.pub').read_text().split()[:2])


def _is_sshd(pid: int) -> bool:
    try:
        name = pathlib.Path('/proc', str(pid), 'comm').read_text()
    except OSError:
        return False
    return name.startswith('sshd')


class Server:
    """Listens on a port of the loopback until closed.

    :ivar host_key: the key that it shows, as in known_hosts
    :ivar url: what :meth:`SSHExecutor.from_url` takes
    :ivar configuration: the file that the client reads
    :ivar known: the file of known keys in it
    :ivar login: variables that a login gets, once they are written
    :ivar more: further lines of its configuration, once they are written
    """

    def __init__(self) -> None:
        if SSHD is None:
            raise RuntimeError('there is no sshd; see bindep.txt')
        if os.getuid() == 0:
            CONFINED.mkdir(mode=0o755, exist_ok=True)
        self._directory = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._directory.name)
        self.folder.chmod(0o755)
        self.known = self.folder / 'known_hosts'
        self.configuration = self.folder / 'ssh_config'
        self.configuration.write_text(f'UserKnownHostsFile {self.known}\n'
                                      'SendEnv *\n')
        make_key(self.folder / 'id', 'ecdsa')
        self.login = {name: os.environ[name] for name in LOGIN
                      if name in os.environ}
        # bash then reads no .bashrc, which may take long.
        self.login['SHLVL'] = '1'
        self.more = ''
        self._count = 0
        self.show_new_key('ed25519')
        self._started: list[subprocess.Popen[bytes]] = []
        self._socket = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self._socket.getsockname()[1]
        self.url = (f'ssh://{USER}@127.0.0.1:{self.port}?'
                    f'key={self.folder}/id')
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def show_new_key(self, kind: str) -> None:
        """Show another host key from the next connection on."""
        self._count += 1
        path = self.folder / f'host{self._count}'
        self.host_key = make_key(path, kind)
        self.write()

    def write(self) -> None:
        """Write the configuration, which the next connection gets."""
        login = shlex.join(f'{name}={value}'
                           for name, value in self.login.items())
        path = self.folder / 'sshd_config'
        path.write_text(CONFIGURATION.format(
            folder=self.folder, login=login.replace("'", '"'),
            host_key=f'host{self._count}',
            secrets=' '.join(program_tests.SECRETS)) + self.more)

    def _serve(self) -> None:
        """Start an sshd for each connection until the server is closed."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                # One that has ended must not be taken for a later process.
                self._started = [process for process in self._started
                                 if process.poll() is None]
                self._started.append(subprocess.Popen(
                    [SSHD, '-i', '-e', '-f', self.folder / 'sshd_config'],
                    stdin=connection, stdout=connection,
                    stderr=subprocess.DEVNULL))

    def _list_connections(self) -> tuple[int, ...]:
        """List the processes of sshd that have connections.

        One of another user than root has a child for its session.
        """
        table = list(process_tree.read_table())
        found: list[int] = []
        parents = {process.pid for process in self._started
                   if process.poll() is None}
        while parents:
            parents = set(filter(_is_sshd, parents))
            found += parents
            parents = {entry.process.pid for entry in table
                       if entry.parent in parents}
        return tuple(found)

    def cut(self) -> None:
        """Break every connection, as a failing network does."""
        for pid in self._list_connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Refuse connections, and break those that there are."""
        # What waits in accept() does not notice that its socket is closed.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self.cut()
        for process in self._started:
            process.kill()
            process.wait()
        self._directory.cleanup()


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run a server, and let ``ssh`` read its client's configuration."""
    server = Server()
    try:
        folder = server.folder / 'bin'
        folder.mkdir()
        script = folder / 'ssh'
        script.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F '
                          f'{server.configuration} "$@"\n')
        script.chmod(0o755)
        with mock.patch.dict(os.environ,
                             PATH=f'{folder}:{os.environ["PATH"]}'):
            yield server
    finally:
        server.close()
