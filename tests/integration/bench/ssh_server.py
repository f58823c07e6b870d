# SPDX-License-Identifier: Apache-2.0

"""A real sshd, to which the user of the tests logs in with a key.

The client reads a configuration of the tests instead of that of the user.
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
from collections.abc import Iterator
from unittest import mock

from hpcvirt import process_tree
from hpcvirt import waiting
from tests.integration import program_tests

USER = pwd.getpwuid(os.getuid()).pw_name

#: Variables of this machine that a login gets.
LOGIN = ('HOME', 'PATH', 'XDG_STATE_HOME')

#: sshd must be called by its path, to start itself again.
SSHD = shutil.which('sshd', path=f'{os.environ["PATH"]}:/usr/sbin')
#: Where sshd of root confines what it does before a login; it must exist.
CONFINED = pathlib.Path('/run/sshd')

CONFIGURATION = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/{host_key}
PidFile none
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
    :ivar login: variables that a login gets, from the next start on
    :ivar more: further lines of its configuration, from the next start on
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
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        self.url = (f'ssh://{USER}@127.0.0.1:{self.port}?'
                    f'key={self.folder}/id')
        self._count = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._earlier: tuple[int, ...] = ()
        self.show_new_key('ed25519')

    def show_new_key(self, kind: str) -> None:
        """Show another host key from the next connection on."""
        self._count += 1
        path = self.folder / f'host{self._count}'
        self.host_key = make_key(path, kind)
        self.start()

    def start(self) -> None:
        """Start again; connections stay."""
        self._stop()
        login = shlex.join(f'{name}={value}'
                           for name, value in self.login.items())
        path = self.folder / 'sshd_config'
        path.write_text(CONFIGURATION.format(
            folder=self.folder, port=self.port, login=login.replace("'", '"'),
            host_key=f'host{self._count}',
            secrets=' '.join(program_tests.SECRETS)) + self.more)
        self._process = subprocess.Popen(
            [SSHD, '-D', '-e', '-f', path],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not waiting.poll(self._listens, bool, 10, 0.01):
            raise RuntimeError('sshd does not start')

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', self.port)) == 0

    def _stop(self) -> None:
        if self._process is not None:
            self._earlier = self._list_connections()
            self._process.kill()
            self._process.wait()
            self._process = None

    def _list_connections(self) -> tuple[int, ...]:
        """List the processes of sshd that have connections.

        One of another user than root has a child for its session.
        """
        table = list(process_tree.read_table())
        found = list(self._earlier)
        parents = {process.pid for process in filter(None, [self._process])}
        while parents:
            children = {entry.process.pid for entry in table
                        if entry.parent in parents}
            parents = {pid for pid in children if _is_sshd(pid)}
            found += parents
        return tuple(found)

    def cut(self) -> None:
        """Break every connection, as a failing network does."""
        for pid in filter(_is_sshd, self._list_connections()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._earlier = ()

    def close(self) -> None:
        self.cut()
        self._stop()
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
