# SPDX-License-Identifier: Apache-2.0

"""Serve metrics to Prometheus, such as the capacity of a fleet.

Another process reads the fleet, again and again, and prints its metrics. A
scrape gets what the last reading that succeeded has printed, and its age: it
never waits for a reading, nor causes one. If there are too many connections,
the oldest is closed, so that nobody can keep Prometheus out.
"""

import asyncio
import contextlib
import errno
import gzip
import ipaddress
import os
import re
import signal
import socket
import threading
import time
import types
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import output
from hpcvirt.fleet import metrics

#: Limits of simultaneous connections, of the time of each, and of a request.
MAX_CONNECTIONS = 512
CONNECTION_S = 5.0
MAX_REQUEST_BYTES = 16 * 1024

#: Time limit of a reading. Fleets of 10,000 hosts take minutes.
MAX_READING_S = 1800

#: The most that a reading may print.
MAX_READING_BYTES = 256 * 2 ** 20

HOST, PORT = '127.0.0.1', 9834

#: An address of IPv6 or a host, and a port.
_ADDRESS = re.compile(r'(?:\[(.+)\]|([^][:]*))(?::([0-9]{0,5}))?')


class FleetReader(registry.Collector):
    """Lets another process read a fleet, and answers scrapes.

    :param command: the program that reads the fleet, and prints its metrics
    :param interval_s: seconds from the begin of a reading to the next
    """

    def __init__(self, command: Sequence[str], interval_s: float) -> None:
        self._command = command
        self._interval_s = interval_s
        # What the last reading that succeeded has printed, and packed.
        self._text = self._packed = b''
        self._up = False
        self._failures = 0
        self._begin = self._end = self._seconds = 0.0

    def read_again(self) -> NoReturn:
        """Read the fleet at each interval until SIGTERM interrupts it."""
        while True:
            time.sleep(max(0, self._interval_s - self._seconds))
            try:
                self.read()
            except exception.Unreachable as exc:
                # The metrics report the failure.
                self._up = False
                self._failures += 1
                output.complain(f'hpcvirt capacity: {exc}')

    def read(self) -> None:
        """Read the fleet once.

        :raises Unreachable: if that fails, with what the program has said
        """
        begin = time.monotonic()
        # It is hpcvirt itself, which reads the cloud as this process would:
        # options of Nova may be variables of the environment.
        status, stdout, stderr = child_process.run(
            self._command, where='capacity', limit_s=MAX_READING_S,
            environment=os.environ, most_bytes=MAX_READING_BYTES)
        said = stderr.decode(errors='replace').splitlines()
        reason = (said.pop() if said and status else
                  f'the program that reads the fleet ended with {status}')
        for line in said:
            # Lines of libraries may have a time, and differ each time.
            (output.warn if line.startswith(('Warning: ', 'hpcvirt: '))
             else output.complain)(line)
        self._seconds = time.monotonic() - begin
        if status:
            raise exception.Unreachable(reason.removeprefix('hpcvirt: '))
        self._text, self._packed = stdout, gzip.compress(stdout, 6)
        self._up = True
        self._begin, self._end = begin, time.time()

    def collect(self) -> Iterator[core.Metric]:
        """Yield what the readings themselves were like."""
        for name, words, value in (
                ('up', 'Whether the last reading of the fleet succeeded',
                 self._up),
                ('last_success_timestamp_seconds',
                 'When a reading of the fleet last succeeded',
                 self._end),
                ('answer_age_seconds',
                 'How long ago the reading began that all figures are from',
                 time.monotonic() - self._begin),
                ('read_duration_seconds',
                 'How long the last reading took, including counting',
                 self._seconds)):
            yield core.GaugeMetricFamily(f'hpcvirt_{name}', words, value=value)
        yield core.CounterMetricFamily(
            'hpcvirt_read_failures', 'Readings of the fleet that failed',
            value=self._failures)

    def answer(self, packed: bool) -> bytes:
        """Return the answer to a scrape.

        :param packed: whether the client understands gzip
        """
        own = prometheus_client.generate_latest(self)
        # Members of gzip that follow each other are one stream.
        return (gzip.compress(own) + self._packed if packed
                else own + self._text)


def write(families: Iterable[metrics.Family]) -> str:
    """Write metrics in the text format of Prometheus."""
    collector: Any = types.SimpleNamespace(
        collect=lambda: map(_metric, families))
    return prometheus_client.generate_latest(collector).decode()


def _metric(family: metrics.Family) -> core.Metric:
    """Convert a gauge to the type of prometheus_client."""
    found = core.GaugeMetricFamily(family.name, family.help,
                                   labels=family.labels)
    for labels, value in family.samples.items():
        found.add_metric([*map(printable.escape, labels)], value)
    return found


def address(words: str, usual_port: int = PORT) -> tuple[str, int]:
    """Parse an address: a host, a port, or both.

    :param usual_port: the port of an address without one
    :raises InvalidInput: if it has another form
    """
    whole = words
    if words.isdecimal():
        whole = f':{words}'
    elif _is_ipv6(words):
        whole = f'[{words}]'
    match = _ADDRESS.fullmatch(whole)
    bracketed, host, port = match.groups() if match else ('', '', '')
    if (match is None or (bracketed and not _is_ipv6(bracketed))
            or int(port or 0) > 65535):
        raise exception.InvalidInput(
            '--serve', f'{words[:64]!r} is not an address such as '
            f'{HOST}:{usual_port} or [::1]:{usual_port}')
    return bracketed or host or HOST, int(port or usual_port)


@contextlib.contextmanager
def run_server(answer: Callable[[bool], bytes],
               where: tuple[str, int]) -> Iterator[None]:
    """Serve metrics in another thread.

    :param answer: returns the metrics at a scrape, which it may pack by gzip
        if the client understands that; it must not wait
    :raises InvalidInput: if the address cannot be used
    """
    try:
        family, *_, found = socket.getaddrinfo(
            *where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(found[:2], family=family,
                                        backlog=4096)
    except (OSError, UnicodeError) as exc:
        raise exception.InvalidInput(
            '--serve', f'{_shown(*where)} cannot be used '
            f'({getattr(exc, "strerror", None) or exc})') from exc
    listener.setblocking(False)
    # The kernel keeps connections for so long on which nothing is sent.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT,
                        int(CONNECTION_S) or 1)
    print(f'Serving http://{_shown(where[0], listener.getsockname()[1])}'
          '/metrics', flush=True)
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(listener, answer)), daemon=True)
    # Signals must reach the main thread, or they would not wake it.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


async def _serve(listener: socket.socket,
                 answer: Callable[[bool], bytes]) -> None:
    """Serve until the socket is shut down."""
    loop = asyncio.get_running_loop()
    #: The connections, the oldest first.
    tasks: dict[asyncio.Task[None], None] = {}
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as exc:
            if exc.errno == errno.EINVAL:
                return
            # The system allows no further connection.
            await asyncio.sleep(0.1)
            continue
        task = loop.create_task(_reply(connection, answer))
        tasks[task] = None
        task.add_done_callback(lambda task: tasks.pop(task, None))
        if len(tasks) > MAX_CONNECTIONS:
            oldest = next(iter(tasks))
            del tasks[oldest]
            oldest.cancel()
        # Let it receive what is there before the next one is accepted.
        await asyncio.sleep(0)


async def _reply(connection: socket.socket,
                 answer: Callable[[bool], bytes]) -> None:
    """Answer a request of HTTP, whatever it asks for."""
    loop = asyncio.get_running_loop()
    request = b''
    # Broken connections, and those that take too long, are closed; so are
    # those on which nothing was sent while the kernel kept them.
    with connection, contextlib.suppress(OSError):
        connection.recv(1, socket.MSG_PEEK)
        async with asyncio.timeout(CONNECTION_S):
            while b'\r\n\r\n' not in request:
                chunk = await loop.sock_recv(connection, 4096)
                request += chunk
                if not chunk or len(request) > MAX_REQUEST_BYTES:
                    return
            body = answer(b'gzip' in request.lower())
            is_packed = body.startswith(b'\x1f\x8b')
            await loop.sock_sendall(
                connection, b'HTTP/1.1 200 OK\r\nConnection: close\r\n%s'
                b'Content-Type: %s\r\nContent-Length: %d\r\n\r\n' % (
                    b'Content-Encoding: gzip\r\n' * is_packed,
                    prometheus_client.CONTENT_TYPE_LATEST.encode(), len(body)))
            await loop.sock_sendall(connection, body)


def _is_ipv6(words: str) -> bool:
    try:
        return ipaddress.ip_address(words).version == 6
    except ValueError:
        return False


def _shown(host: str, port: int) -> str:
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
