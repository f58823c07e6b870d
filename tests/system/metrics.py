# SPDX-License-Identifier: Apache-2.0

"""Check the metrics and the rules with promtool and Prometheus.

promtool must accept the metrics of ``hpcvirt host watch``, of its port and of
its file, those of ``hpcvirt capacity``, and the shipped rules, whose alerts it
tests. Prometheus scrapes both ports, must answer the queries of ``hpcvirt host
supervise`` with the exported values, and must raise the alerts that the sample
fleet deserves. Both programs must be installed.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from hpcvirt import exception
from hpcvirt.cmd.fleet import exporter
from hpcvirt.cmd.host import watch as watch_command
from hpcvirt.health import host_watch
from hpcvirt.health import readings
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health.signature import Quantity
from tests.builders import ports

#: Seconds until Prometheus has scraped.
LIMIT_S = 60

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / 'etc/hpcvirt/prometheus/hpcvirt.rules.yml'
RULES_TEST = ROOT / 'tests/data/prometheus/hpcvirt.rules.test.yml'
CAPACITY = (sys.executable, '-m', 'hpcvirt.cmd.main', 'capacity',
            f'--fleet={ROOT / "etc/hpcvirt/fleets/three-hosts.json"}')

#: The alerts that this fleet deserves, each with its flavor.
ALERTS = {('HpcvirtFlavorDoesNotFit', 'hpc.16c1n.2m'),
          ('HpcvirtNoEmptyHypervisor', None)}


def main() -> int:
    """Check all."""
    for words in (['check', 'rules', RULES], ['test', 'rules', RULES_TEST]):
        subprocess.run(['promtool', *words], check=True)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        watch = host_watch.HostWatch(print)
        watch.take(sampler.HostSampler(pathlib.Path('/')).take())
        for minute in range(10):
            watch.score(60.0 * minute, 60.0, {
                Quantity.STEAL: {'cpu1': 0.25}, Quantity.LINK_LOSS: {}})

        def answer(_=False):
            return exporter.write(watch_command.list_families(watch)).encode()

        port, other = ports.find_ports(2)
        with (exporter.run_server(answer, ('127.0.0.1', port)),
              subprocess.Popen([*CAPACITY, '--serve=127.0.0.1:0'],
                               stdout=subprocess.PIPE, text=True) as capacity):
            try:
                match = re.search(r'(http://\S+:(\d+)/metrics)',
                                  capacity.stdout.readline())
                for text in (scrape(f'http://127.0.0.1:{port}/metrics'),
                             answer(),
                             scrape(match[1]), subprocess.check_output(
                                 [*CAPACITY, '--format=prometheus'])):
                    check_text(text)
                check_prometheus(work, {'watch': (port, 'n1:9835'),
                                        'hpcvirt': (match[2], 'c1:9834')},
                                 other)
            finally:
                capacity.terminate()
    print('promtool and Prometheus read what is exported, and the rules.')
    return 0


def check_text(text: bytes) -> None:
    """Let promtool check metrics.

    :raises SystemExit: if it finds more than the name of os-capacity's metric
    """
    done = subprocess.run(['promtool', 'check', 'metrics'], input=text,
                          stderr=subprocess.PIPE, check=False)
    found = [line for line in done.stderr.decode().splitlines()
             if 'openstack_free_capacity_by_flavor_total ' not in line]
    if found or done.returncode not in (0, 3):
        sys.exit('\n'.join(['promtool check metrics', *found]))


def scrape(url: str) -> bytes:
    """Return the metrics of a port."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310
        return answer.read()


def check_prometheus(work: pathlib.Path,
                     jobs: dict[str, tuple[object, str]], other: int) -> None:
    """Let Prometheus scrape ports and evaluate rules, and read its answers.

    :param jobs: its jobs, each with the port and the label of its instance
    :param other: the port of Prometheus
    :raises SystemExit: if they differ from the exported values
    """
    # Alerts wait for minutes, which a check does not.
    (work / 'rules.yml').write_text(re.sub(
        r'\n +for: .*', '', RULES.read_text()))
    (work / 'prometheus.yml').write_text(json.dumps({
        'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'},
        'rule_files': ['rules.yml'],
        'scrape_configs': [{'job_name': name, 'static_configs': [
            {'targets': [f'127.0.0.1:{port}'],
             'labels': {'instance': label}}]}
            for name, (port, label) in jobs.items()]}))
    wanted = {'n1': {'steal': signature.SignScore(2.5, 'cpu1'),
                     'link': signature.SignScore(0.0, '')}}, ALERTS
    where = f'http://127.0.0.1:{other}'
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
                    found = (readings.read_prometheus(
                        where, {'n1'}, time.time()), read_alerts(where))
                except (exception.Unreachable, OSError) as exc:
                    found = str(exc)
        finally:
            process.terminate()
    if found != wanted:
        sys.exit(f'Prometheus has {found} instead of {wanted}')


def read_alerts(where: str) -> set[tuple[str, str | None]]:
    """Return the alerts that fire, each with its flavor."""
    alerts = json.loads(scrape(f'{where}/api/v1/alerts'))['data']['alerts']
    return {(each['labels']['alertname'], each['labels'].get('flavor_name'))
            for each in alerts if each['state'] == 'firing'}


if __name__ == '__main__':
    sys.exit(main())
