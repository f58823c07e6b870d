# SPDX-License-Identifier: Apache-2.0

"""A real ssh server in a thread, which runs any command."""

import contextlib
import os
import pathlib
import selectors
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator

import paramiko

USER = 'hpc'

#: Variables of this machine that a login gets.
LOGIN = ('HOME', 'PATH', 'XDG_STATE_HOME')


class _Session(paramiko.ServerInterface):
    def __init__(self, key, status_first):
        self._key = key
        self._status_first = status_first

    def get_allowed_auths(self, _username):
        return 'publickey'

    def check_auth_publickey(self, username, key):
        if username == USER and key == self._key:
            return paramiko.AUTH_SUCCESSFUL
        return paramiko.AUTH_FAILED

    def check_channel_request(self, kind, _chanid):
        if kind == 'session':
            return paramiko.OPEN_SUCCEEDED
        return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=_serve,
                         args=(channel, command, self._status_first),
                         daemon=True).start()
        return True


def _serve(channel, command, status_first):
    # A login gets none of the variables of the client.
    process = subprocess.Popen(
        ['sh', '-c', command.decode()], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={
            name: os.environ[name] for name in LOGIN if name in os.environ})

    def feed():
        with contextlib.suppress(OSError):
            while data := channel.recv(65536):
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(data)
                    process.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with contextlib.suppress(OSError, EOFError):
        if status_first:
            channel.send_exit_status(process.wait() & 0xff)
            time.sleep(0.2)
        _relay(process, channel)
        if not status_first:
            channel.send_exit_status(process.wait() & 0xff)
    # As sshd does, it kills nothing if the client has gone.
    process.stdout.close()
    process.stderr.close()
    # The client ends its input after it has heard that the program was
    # started: it must not hear of the end before.
    feeder.join()
    channel.close()
    process.wait()


def _relay(process, channel):
    """Send what a program prints, until it ends or the client has gone."""
    with selectors.DefaultSelector() as selector:
        for stream, send in ((process.stdout, channel.sendall),
                             (process.stderr, channel.sendall_stderr)):
            selector.register(stream, selectors.EVENT_READ, send)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if data:
                    key.data(data)
                else:
                    selector.unregister(key.fileobj)


class Server:
    """Listens on a port of the loopback until closed.

    :ivar host_key: the key that it shows from the next connection on
    :ivar url: what :meth:`SSHExecutor.from_url` takes
    :ivar status_first: the exit status is sent before the output of the
        program, as OpenSSH may do; for programs that print little
    """

    def __init__(self) -> None:
        self.status_first = False
        self._directory = tempfile.TemporaryDirectory()
        self._key = paramiko.RSAKey.generate(2048)
        key_file = pathlib.Path(self._directory.name, 'id')
        self._key.write_private_key_file(str(key_file))
        self.host_key = paramiko.RSAKey.generate(2048)
        self._socket = socket.create_server(('127.0.0.1', 0))
        self.port = self._socket.getsockname()[1]
        self.url = f'ssh://{USER}@127.0.0.1:{self.port}?key={key_file}'
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._greet, args=(connection,),
                                 daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.host_key)
        self._transports.append(transport)
        # Whoever called may have gone again.
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            transport.start_server(
                server=_Session(self._key, self.status_first))

    def cut(self) -> None:
        """Break every connection, as a failing network does."""
        while self._transports:
            self._transports.pop().close()

    def close(self) -> None:
        self.cut()
        # If its accept were interrupted after the descriptor was closed, it
        # would go on with the next server that got the same descriptor.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self._directory.cleanup()


@contextlib.contextmanager
def running() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()
