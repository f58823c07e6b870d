# SPDX-License-Identifier: Apache-2.0

"""Serve the capacity of a fleet to Prometheus.

A scrape reads the fleet again if the last reading is too old; simultaneous
scrapes share a reading. After a failed reading no figures of the fleet are
served until a reading succeeds, since outdated figures would mislead.
"""

import contextlib
import ipaddress
import re
import signal
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from wsgiref import simple_server
from wsgiref import types as wsgi

import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from hpcvirt import exception
from hpcvirt.cmd import output
from hpcvirt.fleet import metrics

#: Limit of simultaneous connections, and time limit of receiving a request.
MAX_CONNECTIONS = 8
REQUEST_S = 5.0

HOST, PORT = '127.0.0.1', 9834

#: An address of IPv6 or a host, and a port.
_ADDRESS = re.compile(r'(?:\[(.+)\]|([^][:]*))(?::([0-9]{0,5}))?')


class FleetCollector(registry.Collector):
    """A collector that reads the fleet at a scrape."""

    def __init__(self, read: Callable[[], Sequence[metrics.Family]],
                 max_age_s: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        """Read the fleet for the first time.

        :raises InvalidInput: for an invalid file or argument
        :raises NotInstalled: if Nova is needed, but missing
        """
        self._read = read
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._families: Sequence[metrics.Family] = ()
        self._up = False
        self._failures = 0
        self._last_success = 0.0
        self._seconds = 0.0
        self._due = clock()
        self._refresh(first=True)

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics, and read the fleet again if they are too old."""
        # A second scrape waits for the reading of the first one.
        with self._lock:
            if self._clock() >= self._due:
                self._refresh()
            found = [*self._own(), *map(metric, self._families)]
        yield from found

    def _refresh(self, first: bool = False) -> None:
        begin = self._clock()
        self._up, self._families = False, ()
        try:
            self._families = self._read()
            self._up = True
            self._last_success = time.time()
        except Exception as exc:
            if first and isinstance(exc, exception.InvalidInput
                                    | exception.NotInstalled):
                raise
            # The metrics report the failure, and the next scrape tries again.
            self._failures += 1
            output.complain('hpcvirt capacity: ' + (
                str(exc) if isinstance(exc, exception.HpcvirtError)
                else f'internal error: {type(exc).__name__}: {exc}'))
        end = self._clock()
        self._seconds = end - begin
        self._due = end + self._max_age_s

    def _own(self) -> Iterator[core.Metric]:
        yield core.GaugeMetricFamily(
            'hpcvirt_up', 'Whether the last reading of the fleet succeeded',
            value=int(self._up))
        yield core.GaugeMetricFamily(
            'hpcvirt_last_success_timestamp_seconds',
            'When a reading of the fleet last succeeded, 0 if never',
            value=self._last_success)
        yield core.GaugeMetricFamily(
            'hpcvirt_read_duration_seconds',
            'How long the last reading of the fleet took, including counting',
            value=self._seconds)
        yield core.CounterMetricFamily(
            'hpcvirt_read_failures', 'Readings of the fleet that failed',
            value=self._failures)


def metric(family: metrics.Family) -> core.Metric:
    """Convert a gauge to the type of prometheus_client."""
    found = core.GaugeMetricFamily(family.name, family.help,
                                    labels=family.labels)
    for labels, value in family.samples.items():
        found.add_metric(labels, value)
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
def run_server(collector: registry.Collector,
               where: tuple[str, int]) -> Iterator[None]:
    """Serve the metrics of a collector in another thread.

    :raises InvalidInput: if the address cannot be used
    """
    collectors = registry.CollectorRegistry()
    collectors.register(collector)
    try:
        server = _Server(where, prometheus_client.make_wsgi_app(collectors))
    except (OSError, UnicodeError) as exc:
        raise exception.InvalidInput(
            '--serve', f'{_shown(*where)} cannot be used '
            f'({getattr(exc, "strerror", None) or exc})') from exc
    print(f'Serving http://{_shown(where[0], server.server_port)}/metrics',
          flush=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
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

    request_queue_size = 128
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
        super().__init__(found[:2], _Handler)  # type: ignore[arg-type]
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system allows no further thread.
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any,
                               client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, such as broken connections."""


class _Handler(simple_server.WSGIRequestHandler):
    #: Time limit of a single send or receive.
    timeout = REQUEST_S

    def setup(self) -> None:
        super().setup()
        self._timer = threading.Timer(REQUEST_S, self._hang_up)
        self._timer.daemon = True
        self._timer.start()

    def get_environ(self) -> dict[str, Any]:
        # The request is complete, and reading the fleet may take long.
        self._timer.cancel()
        return super().get_environ()

    def finish(self) -> None:
        self._timer.cancel()
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _is_ipv6(words: str) -> bool:
    try:
        return ipaddress.ip_address(words).version == 6
    except ValueError:
        return False


def _shown(host: str, port: int) -> str:
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
