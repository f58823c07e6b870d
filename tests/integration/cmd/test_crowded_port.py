# SPDX-License-Identifier: Apache-2.0

"""Another user of the machine holds connections to the port of metrics."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request
from unittest import mock

from prometheus_client import core
from prometheus_client import registry

from hpcvirt.cmd.fleet import exporter

#: A user without rights.
SOMEBODY = 65534
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
for number, each in enumerate(sockets):
    with contextlib.suppress(OSError):
        each.send([b"", b"G", b"\\xff\\0" * 99, b"GET / HTTP/9"]
                         [number % 4])
print(len(sockets), flush=True)
sys.stdin.read()
"""


class Figures(registry.Collector):
    def collect(self):
        yield core.GaugeMetricFamily('figure', 'A figure', value=3)


@unittest.skipIf(os.geteuid(), 'only root starts processes of other users')
class CrowdedPortTest(unittest.TestCase):

    def setUp(self):
        self.enterContext(mock.patch.object(exporter, 'REQUEST_S', 0.5))
        self.enterContext(mock.patch.object(exporter._Handler, 'timeout', 0.5))
        with open(os.devnull, 'w') as nothing, contextlib.redirect_stdout(
                nothing):
            self.enterContext(exporter.run_server(Figures(),
                                                  ('127.0.0.1', self.port())))

    def port(self):
        with socket.socket() as found:
            found.bind(('127.0.0.1', 0))
            self.used = found.getsockname()[1]
        return self.used

    def scrape(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f'http://127.0.0.1:{self.used}/metrics',
                         timeout=5) as answer:
            return answer.read().decode()

    def test_1100_connections_cost_few_threads_files_and_time(self):
        before = resource.getrusage(resource.RUSAGE_SELF)
        with subprocess.Popen(
                [sys.executable, '-c', CROWD, str(self.used), str(SOMEBODY)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
            self.assertEqual(b'1100\n', crowd.stdout.readline())
            self.assertLess(len(os.listdir('/proc/self/fd')), 64)
            # A timer for each connection, and the server.
            self.assertLessEqual(threading.active_count(),
                                 2 * exporter.MAX_CONNECTIONS + 2)
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(OSError):
                    self.assertIn('figure 3.0', self.scrape())
                    break
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            crowd.stdin.close()
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

    def test_a_slow_reading_of_the_fleet_is_answered(self):
        def collect(_self):
            time.sleep(1)
            yield core.GaugeMetricFamily('figure', 'A figure', value=4)
        with mock.patch.object(Figures, 'collect', collect):
            self.assertIn('figure 4.0', self.scrape())
