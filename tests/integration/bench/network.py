# SPDX-License-Identifier: Apache-2.0

"""A network that swallows what is sent, as a broken one does."""

import contextlib
import socket
import threading
from collections.abc import Callable
from collections.abc import Iterator


class Network:
    """Relays to a port of the loopback until it is cut.

    :ivar port: to connect to
    :ivar cut: once it is set, nothing passes and no connection is closed
    """

    def __init__(self, port: int) -> None:
        self.cut = threading.Event()
        self._target = port
        self._socket = socket.create_server(('127.0.0.1', 0))
        self.port = self._socket.getsockname()[1]
        self._sockets: list[socket.socket] = [self._socket]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None],
               *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ends = (self._socket.accept()[0], socket.create_connection(
                    ('127.0.0.1', self._target)))
                self._sockets += ends
                for source, sink in (ends, ends[::-1]):
                    self._start(self._relay, source, sink)

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.cut.is_set():
                    sink.sendall(data)

    def close(self) -> None:
        for each in self._sockets:
            # Whoever waits for it wakes up.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()


@contextlib.contextmanager
def running(port: int) -> Iterator[Network]:
    network = Network(port)
    try:
        yield network
    finally:
        network.close()
