# SPDX-License-Identifier: Apache-2.0

"""Check the metrics of ``hpcvirt host watch`` with promtool and Prometheus.

promtool must accept the metrics of the port and those of the file. Prometheus
scrapes the port, and must answer the queries of ``hpcvirt host supervise``
with the exported values. Both programs must be installed.
"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import prometheus_client

from hpcvirt import exception
from hpcvirt.cmd.fleet import exporter
from hpcvirt.cmd.host import watch_metrics
from hpcvirt.health import host_watch
from hpcvirt.health import readings
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health.host_sample import Quantity

#: Seconds until Prometheus has scraped.
LIMIT_S = 60


def main() -> int:
    """Check both."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        watch = host_watch.HostWatch(print)
        watch.take(sampler.HostSampler(pathlib.Path('/')).take())
        for minute in range(10):
            watch.score(60.0 * minute, 60.0, {
                Quantity.STEAL: {'cpu1': 0.25}, Quantity.LINK_LOSS: {}})
        collector = watch_metrics.WatchCollector(watch)
        port, other = find_ports(2)
        with exporter.run_server(collector, ('127.0.0.1', port)):
            with urllib.request.urlopen(
                    f'http://127.0.0.1:{port}/metrics') as answer:
                text = answer.read()
            for found in (text, prometheus_client.generate_latest(collector)):
                subprocess.run(['promtool', 'check', 'metrics'], input=found,
                               check=True)
            check_prometheus(work, port, other)
    print('promtool and Prometheus read what is exported.')
    return 0


def check_prometheus(work: pathlib.Path, port: int, other: int) -> None:
    """Let Prometheus scrape a port, and compare its answers.

    :raises SystemExit: if they differ from the exported values
    """
    (work / 'prometheus.yml').write_text(json.dumps({
        'global': {'scrape_interval': '1s'},
        'scrape_configs': [{'job_name': 'hpcvirt', 'static_configs': [
            {'targets': [f'127.0.0.1:{port}'],
             'labels': {'instance': 'n1:9835'}}]}]}))
    wanted = {'n1': {'steal': signature.SignScore(2.5, 'cpu1'),
                     'link': signature.SignScore(0.0, '')}}
    with subprocess.Popen(
            ['prometheus', f'--config.file={work / "prometheus.yml"}',
             f'--storage.tsdb.path={work / "tsdb"}', '--log.level=error',
             f'--web.listen-address=127.0.0.1:{other}']) as process:
        try:
            deadline = time.monotonic() + LIMIT_S
            found: object = None
            while found != wanted and time.monotonic() < deadline:
                time.sleep(0.5)
                try:
                    found = readings.read_prometheus(
                        f'http://127.0.0.1:{other}', {'n1'}, time.time())
                except exception.Unreachable as exc:
                    found = str(exc)
        finally:
            process.terminate()
    if found != wanted:
        sys.exit(f'Prometheus has {found} instead of {wanted}')


def find_ports(number: int) -> list[int]:
    """Find unused ports."""
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(number)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


if __name__ == '__main__':
    sys.exit(main())
