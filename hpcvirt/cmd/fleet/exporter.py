# SPDX-License-Identifier: Apache-2.0

"""Serve the capacity of a fleet to Prometheus.

Another process reads the fleet, again and again, and prints its metrics. A
scrape gets what the last reading that succeeded has printed, and its age: it
never waits for a reading, nor causes one. If there are too many connections,
the oldest is closed, so that nobody can keep Prometheus out.
"""

import contextlib
import gzip
import ipaddress
import re
import signal
import socket
import socketserver
import subprocess
import threading
import time
import types
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from wsgiref import simple_server
from wsgiref import types as wsgi

import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import output
from hpcvirt.fleet import metrics

#: Limits of simultaneous connections, of the time of each, and of a request;
#: and the time that each has even if there are too many.
MAX_CONNECTIONS = 64
CONNECTION_S = 5.0
MIN_S = 0.1
MAX_REQUEST_BYTES = 64 * 1024

#: Time limit of a reading. Fleets of 10,000 hosts take minutes.
MAX_READING_S = 1800

#: How often SIGTERM and the time limits are looked at.
_POLL_S = 0.2

HOST, PORT = '127.0.0.1', 9834

#: An address of IPv6 or a host, and a port.
_ADDRESS = re.compile(r'(?:\[(.+)\]|([^][:]*))(?::([0-9]{0,5}))?')


class FleetReader(registry.Collector):
    """Lets another process read a fleet, and answers scrapes by WSGI.

    :param command: the program that reads the fleet, and prints its metrics
    :param interval_s: seconds from the begin of a reading to the next
    """

    def __init__(self, command: Sequence[str], interval_s: float) -> None:
        self._command = command
        self._interval_s = interval_s
        # What the last reading that succeeded has printed, and packed.
        self._answer = b'', b''
        self._up = False
        self._failures = 0
        self._begin = self._end = self._seconds = self._due = 0.0

    def read_again(self, stop: threading.Event) -> None:
        """Read the fleet at each interval until an event is set."""
        while not stop.wait(max(0, self._due - time.monotonic())):
            try:
                self.read(stop)
            except exception.Unreachable as exc:
                # The metrics report the failure.
                self._failures += 1
                output.complain(f'hpcvirt capacity: {exc}')

    def read(self, stop: threading.Event) -> None:
        """Read the fleet once, unless an event ends it.

        :raises Unreachable: if that fails, with what the program has said
        """
        begin = time.monotonic()
        self._due = begin + self._interval_s
        status, text, said = self._run(stop, begin)
        self._seconds = time.monotonic() - begin
        if stop.is_set():
            return
        *warnings, last = said.splitlines() or [
            f'the program that reads the fleet ended with {status}']
        self._up = not status
        for line in said.splitlines() if self._up else warnings:
            # Lines of libraries may have a time, and differ each time.
            (output.warn if line.startswith(('Warning: ', 'hpcvirt: '))
             else output.complain)(line)
        if not self._up:
            raise exception.Unreachable(last.removeprefix('hpcvirt: '))
        self._answer = text, gzip.compress(text, 6)
        self._begin, self._end = begin, time.time()

    def _run(self, stop: threading.Event,
             begin: float) -> tuple[int, bytes, str]:
        """Run the program; return its status, output and errors."""
        with subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while True:
                try:
                    text, said = process.communicate(timeout=_POLL_S)
                    return process.returncode, text, said.decode(
                        errors='replace')
                except subprocess.TimeoutExpired:
                    if stop.is_set():
                        process.kill()
                    elif time.monotonic() > begin + MAX_READING_S:
                        process.kill()
                        return 2, b'', ('the fleet could not be read in '
                                        f'{MAX_READING_S} s')

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

    def __call__(self, environ: wsgi.WSGIEnvironment,
                 start_response: wsgi.StartResponse) -> Iterable[bytes]:
        """Answer a scrape."""
        text, packed = self._answer
        own = prometheus_client.generate_latest(self)
        headers = [('Content-Type', prometheus_client.CONTENT_TYPE_LATEST)]
        body = [own, text]
        if 'gzip' in environ.get('HTTP_ACCEPT_ENCODING', ''):
            headers.append(('Content-Encoding', 'gzip'))
            # Members of gzip that follow each other are one stream.
            body = [gzip.compress(own), packed]
        headers.append(('Content-Length', str(sum(map(len, body)))))
        start_response('200 OK', headers)
        return body


def write(families: Iterable[metrics.Family]) -> str:
    """Write metrics in the text format of Prometheus."""
    collector: Any = types.SimpleNamespace(
        collect=lambda: map(metric, families))
    return prometheus_client.generate_latest(collector).decode()


def make_app(collector: registry.Collector) -> wsgi.WSGIApplication:
    """Return a WSGI application that collects the metrics at each scrape."""
    collectors = registry.CollectorRegistry()
    collectors.register(collector)
    return prometheus_client.make_wsgi_app(collectors)


def metric(family: metrics.Family) -> core.Metric:
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
    match = _ADDRESS.fullmatch(
        f':{words}' if words.isdecimal()
        else f'[{words}]' if _is_ipv6(words) else words)
    bracketed, host, port = match.groups() if match else ('', '', '')
    if (match is None or (bracketed and not _is_ipv6(bracketed))
            or int(port or 0) > 65535):
        raise exception.InvalidInput(
            '--serve', f'{words[:64]!r} is not an address such as '
            f'{HOST}:{usual_port} or [::1]:{usual_port}')
    return bracketed or host or HOST, int(port or usual_port)


@contextlib.contextmanager
def run_server(app: wsgi.WSGIApplication,
               where: tuple[str, int]) -> Iterator[None]:
    """Serve metrics in another thread.

    :raises InvalidInput: if the address cannot be used
    """
    try:
        server = _Server(where, app)
    except (OSError, UnicodeError) as exc:
        raise exception.InvalidInput(
            '--serve', f'{_shown(*where)} cannot be used '
            f'({getattr(exc, "strerror", None) or exc})') from exc
    print(f'Serving http://{_shown(where[0], server.server_port)}/metrics',
          flush=True)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,),
                              daemon=True)
    # Signals must reach the main thread, or they would not wake it.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """A server that limits its connections, which clients may hold open."""

    request_queue_size = 4096
    daemon_threads = True
    block_on_close = False

    def __init__(self, where: tuple[str, int], app: wsgi.WSGIApplication,
                 ) -> None:
        """Listen on the address.

        :raises OSError: if the address cannot be used
        """
        self.address_family, *_, found = socket.getaddrinfo(
            *where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        #: Connection -> when it is closed, the oldest first.
        self._limits: dict[Any, float] = {}
        super().__init__(found[:2], _Handler)  # type: ignore[arg-type]
        # The kernel keeps connections for so long on which nothing is sent.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT,
                               int(CONNECTION_S) or 1)
        self.set_app(app)

    def verify_request(self, request: Any, *_: Any) -> bool:
        """Return whether anything has been sent on a connection."""
        try:
            return bool(request.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            oldest = list(self._limits.items())[:1]
            for connection, limit in oldest:
                time.sleep(max(0, limit - CONNECTION_S + MIN_S
                               - time.monotonic()))
                # Its thread ends at once, unless it computes an answer.
                _hang_up(connection)
            if not self._free.acquire(timeout=1):
                self.shutdown_request(request)
                return
        self._limits[request] = time.monotonic() + CONNECTION_S
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system allows no further thread.
            self._end(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any,
                               client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._end(request)

    def _end(self, request: Any) -> None:
        self._limits.pop(request, None)
        self._free.release()

    def service_actions(self) -> None:
        """Close the connections that have reached their limit."""
        now = time.monotonic()
        _hang_up(*(request for request, limit in list(self._limits.items())
                   if limit < now))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, such as broken connections."""


class _Handler(simple_server.WSGIRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.rfile = _Beginning(self.rfile)  # type: ignore[assignment]

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class _Beginning:
    """The beginning of a request, so that none fills the memory."""

    def __init__(self, stream: Any) -> None:
        self._left = MAX_REQUEST_BYTES
        self._stream = stream
        self.close = stream.close

    def readline(self, most: int) -> bytes:
        line: bytes = self._stream.readline(min(most, self._left))
        self._left -= len(line)
        return line


def _hang_up(*requests: Any) -> None:
    for request in requests:
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


def _is_ipv6(words: str) -> bool:
    try:
        return ipaddress.ip_address(words).version == 6
    except ValueError:
        return False


def _shown(host: str, port: int) -> str:
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
