# SPDX-License-Identifier: Apache-2.0

"""Another user of the machine holds connections to the port of metrics."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request
from unittest import mock

import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from hpcvirt.cmd.fleet import exporter
from tests.builders import folders
from tests.builders import strangers

HPCVIRT = (sys.executable, '-m', 'hpcvirt.cmd.main')
FLEET = pathlib.Path(
    __file__).parents[3] / 'etc/hpcvirt/fleets/three-hosts.json'
#: Holds connections, says so, and ends when its input ends.
CROWD = """
import contextlib, encodings.idna, os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
sockets = []
for number in range(1100):
    sockets.append(socket.socket())
    sockets[-1].setblocking(False)
    sockets[-1].connect_ex(("127.0.0.1", int(sys.argv[1])))
for number, each in enumerate(sockets if sys.argv[3:] else ()):
    with contextlib.suppress(OSError):
        each.send([b"", b"G", b"\\xff\\0" * 99, b"GET / HTTP/9"]
                         [number % 4])
print(len(sockets), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def crowd(port, *words):
    """Let another user hold 1,100 connections to a port.

    :param words: any, if some of the connections shall not be idle
    """
    with subprocess.Popen(
            [sys.executable, '-c', CROWD, str(port), str(strangers.SOMEBODY),
             *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True) as process:
        try:
            if process.stdout.readline() != '1100\n':
                raise AssertionError('there is no crowd')
            yield
        finally:
            process.stdin.close()


def scrape(url):
    """Scrape once, as Prometheus does."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        return answer.read().decode()


class Figures(registry.Collector):
    def collect(self):
        yield core.GaugeMetricFamily('figure', 'A figure', value=3)


@unittest.skipIf(os.geteuid(), 'only root starts processes of other users')
class CrowdedPortTest(unittest.TestCase):

    def setUp(self):
        self.enterContext(mock.patch.object(exporter, 'CONNECTION_S', 0.5))
        with open(os.devnull, 'w') as nothing, contextlib.redirect_stdout(
                nothing):
            self.enterContext(exporter.run_server(
                lambda _: prometheus_client.generate_latest(Figures()),
                ('127.0.0.1', self.port())))

    def port(self):
        with socket.socket() as found:
            found.bind(('127.0.0.1', 0))
            self.used = found.getsockname()[1]
        return self.used

    def scrape(self):
        return scrape(f'http://127.0.0.1:{self.used}/metrics')

    def test_1100_connections_cost_few_threads_files_and_time(self):
        before = resource.getrusage(resource.RUSAGE_SELF)
        with crowd(self.used, 'not idle'):
            self.assertLess(len(os.listdir('/proc/self/fd')),
                            exporter.MAX_CONNECTIONS + 64)
            # The server has one thread.
            self.assertLessEqual(threading.active_count(), 2)
            self.assertIn('figure 3.0', self.scrape())
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime
                        - before.ru_stime, 3)

    def test_a_request_that_comes_byte_by_byte_is_ended_as_a_whole(self):
        begin = time.monotonic()
        with (socket.create_connection(('127.0.0.1', self.used), 5) as slow,
              self.assertRaises(OSError)):
            while time.monotonic() < begin + 10:
                slow.send(b'x')
                time.sleep(0.05)
        self.assertLess(time.monotonic() - begin, 5)

    def test_who_does_not_read_the_answer_is_hung_up_on(self):
        def collect(_self):
            yield core.GaugeMetricFamily('figure', 'x' * 40_000_000, value=4)
        with (mock.patch.object(Figures, 'collect', collect),
              socket.create_connection(('127.0.0.1', self.used), 5) as slow):
            slow.send(b'GET / HTTP/1.0\r\n\r\n')
            time.sleep(2)
            received = 0
            while chunk := slow.recv(1_000_000):
                received += len(chunk)
        self.assertLess(received, 40_000_000)

    def test_a_long_request_does_not_fill_the_memory(self):
        request = b'GET / HTTP/1.0\r\n' + (
            b'x: ' + b'y' * 60_000 + b'\r\n') * 99
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(5):
            with (contextlib.suppress(OSError), socket.create_connection(
                    ('127.0.0.1', self.used), 5) as long):
                long.sendall(request)
                long.recv(100)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertLess(after - before, 4 * 1024)

    def test_the_oldest_connection_gives_way(self):
        with (mock.patch.object(exporter, 'CONNECTION_S', 60),
              mock.patch.object(exporter, 'MAX_CONNECTIONS', 50)):
            held = [socket.create_connection(('127.0.0.1', self.used), 5)
                    for _ in range(exporter.MAX_CONNECTIONS)]
            for each in held:
                self.addCleanup(each.close)
                each.send(b'G')
            self.assertIn('figure 3.0', self.scrape())
            self.assertEqual(b'', held[0].recv(1))
            held[1].settimeout(0.2)
            self.assertRaises(TimeoutError, held[1].recv, 1)


@unittest.skipIf(os.geteuid(), 'only root starts processes of other users')
class CrowdedProcessTest(unittest.TestCase):
    """The commands, while another user holds 1,100 idle connections."""

    #: The commands begin with up to 1,024 files.
    LIMIT = ('sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh')

    def setUp(self):
        self.folder = folders.make(self)
        self.output = self.folder / 'output'

    @contextlib.contextmanager
    def command(self, *words):
        """Run a command that serves; yield the process and its port."""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith('OS_')}
        environment['OS_CLIENT_CONFIG_FILE'] = '/nowhere'
        with (self.output.open('wb') as output, subprocess.Popen(
                [*self.LIMIT, *HPCVIRT, *words, '--serve=127.0.0.1:0'],
                stdout=output, stderr=output, env=environment) as process):
            try:
                self.wait(lambda: b'/metrics\n' in self.output.read_bytes())
                yield process, int(re.search(
                    r':(\d+)/metrics', self.output.read_text())[1])
                process.send_signal(signal.SIGTERM)
                self.assertEqual(0, process.wait(30), self.output.read_text())
            finally:
                process.kill()

    def wait(self, is_done, seconds=60):
        deadline = time.monotonic() + seconds
        while not is_done():
            self.assertLess(time.monotonic(), deadline, self.output.read_text(
                ) if self.output.exists() else None)
            time.sleep(0.05)

    def size(self, process):
        """Return the threads, files and MiB of a process."""
        status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
        return (int(re.search(r'Threads:\s+(\d+)', status)[1]),
                len(os.listdir(f'/proc/{process.pid}/fd')),
                int(re.search(r'VmRSS:\s+(\d+)', status)[1]) // 1024)

    def check_level(self, process, before):
        threads, files, mib = self.size(process)
        self.assertLessEqual(threads, before[0])
        # The pipes of a reading, too, and a connection that is being closed.
        self.assertLessEqual(files, before[1] + exporter.MAX_CONNECTIONS + 8)
        self.assertLessEqual(mib, before[2] + 8)

    def check_signals(self, process):
        """Check that SIGTERM can only wake the thread that waits for it.

        That one blocks it too for a moment while it starts another thread.
        """
        self.wait(lambda: self.find_open(process) == {str(process.pid)}, 10)

    def find_open(self, process):
        """Return the threads of a process that do not block SIGTERM."""
        masks = {path.parent.name: int(re.search(
            r'SigBlk:\s+(\w+)', path.read_text())[1], 16)
            for path in pathlib.Path(f'/proc/{process.pid}/task').glob(
                '*/status')}
        self.assertGreater(len(masks), 1)
        return {thread for thread, mask in masks.items()
                if not mask >> signal.SIGTERM - 1 & 1}

    def test_the_watch_samples(self):
        path = self.folder / 'n1.prom'

        def sampled():
            """Tell when the last sample was taken."""
            match = re.search(r'_seconds ([\d.e+]+)$', path.read_text(),
                              re.MULTILINE) if path.exists() else None
            return float(match[1]) if match else 0.0
        with self.command('host', 'watch', '--interval=1',
                          f'--textfile={path}') as (process, port):
            self.wait(sampled)
            before = self.size(process)
            with crowd(port):
                for _ in range(6):
                    last = sampled()
                    self.wait(lambda last=last: sampled() > last)
                    self.check_level(process, before)
                self.assertIn('hpcvirt_host_rate{', scrape(
                    f'http://127.0.0.1:{port}/metrics'))
                self.check_level(process, before)

    def test_the_capacity_is_served(self):
        with self.command('capacity', f'--fleet={FLEET}',
                          '--interval=1') as (process, port):
            url = f'http://127.0.0.1:{port}/metrics'
            self.assertIn('openstack_free_capacity_by_flavor_total',
                          scrape(url))
            before = self.size(process)
            self.wait(lambda: self.size(process)[0] == 2)
            self.check_signals(process)
            for _ in range(3):
                with crowd(port):
                    self.check_level(process, before)
                    self.assertIn('openstack_free_capacity_by_flavor_total',
                                  scrape(url))
                    self.check_level(process, before)
