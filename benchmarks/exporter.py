# SPDX-License-Identifier: Apache-2.0

"""Measure the scrapes of ``hpcvirt capacity --serve`` while it reads a fleet.

Creates a fleet of hosts of all shipped topologies, each with random instances
of a plan, serves it, and scrapes ten times a second as Prometheus does::

    python3 -m benchmarks.exporter [HOSTS [INSTANCES_EACH [SECONDS]]]

First nobody else connects. Then there are 1,000 idle connections, which are
renewed when they are closed, and then 200 of clients that send their requests
byte by byte. Run it from the root of the repository.
"""

import asyncio
import contextlib
import gzip
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from benchmarks import large_fleet
from tests.builders import hosts

#: Seconds between two scrapes.
PAUSE_S = 0.1


def write_fleet(path, number, each):
    """Write a fleet document; return the number of instances."""
    of_host, _, instances = large_fleet.documents(random.Random(1), number,
                                                  each)
    instances = list(instances)
    path.write_text(json.dumps({
        'schema_version': 1, 'instances': instances, 'classes': {'all': {
            'hosts': [f'{host}={hosts.TOPOLOGIES / kind}.json'
                      for host, kind in of_host.items()],
            'profile': {'base': 'dense', 'smallest_cores': 1},
            'zone': 'az1'}}}))
    return len(instances)


def scrape(url):
    """Scrape once; return the seconds, the bytes and the text."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(  # noqa: S310
        url, headers={'Accept-Encoding': 'gzip'})
    begin = time.perf_counter()
    with opener.open(request, timeout=10) as answer:
        packed = answer.read()
    return (time.perf_counter() - begin, len(packed),
            gzip.decompress(packed).decode())


class Memory(threading.Thread):
    """Watches the resident memory of a process and of its children."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self._process = process
        self.most = self.readers = 0

    def run(self):
        while self._process.poll() is None:
            with contextlib.suppress(OSError, TypeError):
                own = pathlib.Path(f'/proc/{self._process.pid}')
                self.most = max(self.most, size(own))
                for child in (own / f'task/{own.name}/children'
                              ).read_text().split():
                    self.readers = max(self.readers,
                                       size(own.parent / child))
            time.sleep(0.2)


def size(process):
    """Return the resident memory of a process in MiB."""
    return int(re.search(r'VmRSS:\s+(\d+)', (process / 'status').read_text(
        ))[1]) // 1024


def measure(what, url, seconds):
    """Scrape for some time, and print a line."""
    times, failed, readings, age = [], 0, set(), 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            taken, packed, text = scrape(url)
        except OSError:
            failed += 1
        else:
            times.append(taken)
            readings.add(re.search(
                r'\nhpcvirt_last_\w+ (\S+)', text)[1])
            age = max(age, float(re.search(
                r'\nhpcvirt_answer_age_seconds (\S+)', text)[1]))
        time.sleep(PAUSE_S)
    times.sort()
    print(f'{what:16}{len(times):8}{failed:8}{len(readings):9}'
          f'{times[len(times) // 2] * 1000:10.1f}'
          f'{times[len(times) * 99 // 100] * 1000:8.1f}'
          f'{times[-1] * 1000:8.1f}{age:10.1f}', flush=True)
    return packed, len(text), text.count('\n')


async def hold(port, number, sends):
    """Hold connections, and renew those that are closed."""
    async def client():
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection('127.0.0.1',
                                                               port)
                with contextlib.closing(writer):
                    while sends:
                        writer.write(b'x')
                        await writer.drain()
                        await asyncio.sleep(0.5)
                    await reader.read()
            # A closed connection is renewed after a while, as by a client
            # that has given up.
            await asyncio.sleep(5)
    await asyncio.gather(*(client() for _ in range(number)))


@contextlib.contextmanager
def crowd(port, number, sends):
    """Let another process hold connections."""
    with subprocess.Popen([sys.executable, '-m', 'benchmarks.exporter',
                           'crowd', str(port), str(number),
                           str(int(sends))]) as process:
        try:
            time.sleep(2)
            yield
        finally:
            process.kill()


def main(number=2000, each=24, seconds=60):
    """Create a fleet, serve it and scrape."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, 'fleet.json')
        instances = write_fleet(path, number, each)
        with subprocess.Popen(
                [sys.executable, '-m', 'hpcvirt.cmd.main', 'capacity',
                 f'--fleet={path}', '--serve=127.0.0.1:0', '--interval=1'],
                stdout=subprocess.PIPE, text=True) as process:
            memory = Memory(process)
            memory.start()
            url, port = re.search(r'(http://\S+:(\d+)/metrics)',
                                  process.stdout.readline()).groups()
            print(f'{number} hosts, {instances} instances, '
                  f'{os.cpu_count()} CPUs\n\n{"":16}{"scrapes":>8}'
                  f'{"failed":>8}{"readings":>9}{"median ms":>10}'
                  f'{"99 %":>8}{"most":>8}{"oldest s":>10}')
            try:
                measure('alone', url, seconds)
                with crowd(port, 1000, False):
                    measure('1,000 idle', url, seconds)
                with crowd(port, 200, True):
                    found = measure('200 slow', url, seconds)
            finally:
                process.terminate()
    packed, plain, lines = found
    print(f'\n{lines} lines, {plain / 1e6:.1f} MB, packed '
          f'{packed / 1e6:.2f} MB\nMost memory: {memory.most} MiB, the '
          f'process that reads {memory.readers} MiB')


if __name__ == '__main__':
    if sys.argv[1:2] == ['crowd']:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        asyncio.run(hold(*map(int, sys.argv[2:])))
    else:
        main(*map(int, sys.argv[1:]))
