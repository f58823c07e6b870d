# SPDX-License-Identifier: Apache-2.0

"""A client that looks at a host which waits for its gate, and repairs it.

The cloud's Python environment runs it. The arguments are the command hpcvirt,
nova.conf, an image, the folder with what the supervisor says, the name of the
part, and for ``peers`` where the gate is taken.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import fleet_client
import gate_supervisor
from openstack import exceptions

from hpcvirt import waiting
from hpcvirt.bench.results import store as stores
from hpcvirt.health import gate_keeper

NEW = fleet_client.HOSTS[1]
AGGREGATE = 'hpcvirt-quarantine-gate'
LIMIT_S = 300
#: Speeds of the peer hosts, relative to that of the first.
PEERS = (0.99, 0.995, 1.0, 1.005, 1.01)


class Client(fleet_client.Client):
    """Looks at the host, and starts instances."""

    def __init__(self, hpcvirt, conf, image, work):
        super().__init__(hpcvirt, conf, image)
        self.work = pathlib.Path(work)

    def wait_for(self, text, wanted=''):
        """Wait until the supervisor says something about the host.

        :param wanted: what the first line with this text must have besides
        """
        def read():
            return [line for line
                    in (self.work / 'said').read_text().splitlines()
                    if f' {NEW}: ' in line and text in line]
        lines = waiting.poll(read, bool, LIMIT_S, 0.5)
        if not lines or wanted not in lines[0]:
            sys.exit(f'{text}{wanted} was expected: '
                     + (self.work / 'said').read_text()[-2500:])

    def compute_services(self):
        """List the compute services of the host."""
        return [service for service in self.compute.services()
                if service.host == NEW]

    def is_held(self):
        """Whether the gate holds the host."""
        return any(NEW in (aggregate.hosts or ())
                   for aggregate in self.compute.aggregates()
                   if aggregate.name == AGGREGATE)

    def explain_held(self, flavor):
        """Ask hpcvirt why the host refuses a flavor."""
        done = subprocess.run(
            [self._hpcvirt, 'explain', '--config-file', self._conf,
             '--flavor', flavor.name, '--format', 'json'],
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        for host in json.loads(done.stdout or '{"hosts": []}')['hosts']:
            if host['name'] == NEW:
                if re.search('gate since .*: the gate says FAIL: .*slower',
                             host['reason']):
                    return
                sys.exit(f'it is not refused for its gate: {host}')
        sys.exit(f'explain does not name {NEW}: {done.stderr[-1500:]}')

    def quarantine(self, *words):
        """Hold or release the host as an operator does."""
        subprocess.run([self._hpcvirt, 'host', 'quarantine', NEW, *words,
                        '--apply'], check=True, stdout=subprocess.DEVNULL)


def peers(client, target):
    """Measure a host of the class, and store it as five with their speeds."""
    document = client.work / 'peer.json'
    document.write_text(json.dumps({
        'kind': 'acceptance', 'schema_version': 1, 'gate': target}))
    subprocess.run(
        [sys.executable, '-c', gate_supervisor.GATE + gate_keeper._PROGRAM,
         'bench', 'run', str(document), 'peer', '--quick', '--apply'],
        check=False, stdout=subprocess.DEVNULL)
    data = client.work / 'data' / 'hpcvirt'
    store = stores.Store(None, str(data))
    runs = [run for entry in store.entries()
            for run in store.result(entry.id).runs]
    if len(runs) != 2:
        sys.exit(f'{len(runs)} benchmarks of a gate are stored')
    for run in runs:
        for number, level in enumerate(PEERS):
            store_as(store, run, f'peer{number}', level)
    store.close()


def store_as(store, run, host, level):
    """Store a run as that of another host with another speed."""
    entry = f'{run.benchmark}{host}'
    store.open_entry(stores.Entry(entry, 'none', run.started_at, None), {})
    store.add_run(entry, 0, dataclasses.replace(run, id=entry, host=host))
    for sample in run.samples:
        metrics = {}
        for name, figure in sample.outcome.metrics.items():
            metrics[name] = dataclasses.replace(
                figure, value=figure.value * level)
        store.add_sample(entry, dataclasses.replace(
            sample, outcome=dataclasses.replace(sample.outcome,
                                                metrics=metrics)))
    store.finish(entry, run.started_at)


def gone(client):
    """Delete the compute service, so that the host is unknown to Nova."""
    for service in client.compute_services():
        client.compute.delete(f'/os-services/{service.id}',
                              microversion=fleet_client.VERSION)
    if waiting.poll(client.compute_services, lambda found: not found,
                    LIMIT_S, 0.5):
        sys.exit(f'{NEW} is still there')


def held(client):
    """The host fails, and takes no instances."""
    client.wait_for('the gate says', ' FAIL')
    client.wait_for('note of the reason at the hold is done')
    if not client.is_held():
        sys.exit(f'{NEW} is not held')
    flavor = client.flavor(4)
    client.boot(flavor, 'ERROR', host=NEW)
    client.explain_held(flavor)


def repaired(client):
    """After a repair the host passes, and takes instances."""
    client.quarantine('--reason', 'its memory is replaced')
    client.wait_for('is being repaired')
    if not client.is_held():
        sys.exit(f'the repair has ended the hold of {NEW}')
    client.quarantine('--release')
    client.wait_for('the gate has passed')
    client.wait_for('release for the gate is done')
    if client.is_held():
        sys.exit(f'{NEW} is still held')
    client.boot(client.flavor(4), 'ACTIVE', host=NEW)


PARTS = {'peers': peers, 'gone': gone, 'held': held, 'repaired': repaired}
#: Those that start instances.
STARTING = ('held', 'repaired')


def main(hpcvirt, conf, image, work, part, *words):
    """Take one part."""
    client = Client(hpcvirt, conf, image, work)
    if part not in STARTING:
        PARTS[part](client, *words)
        return
    if part == 'held':
        client.wait_for('the gate has begun')
    client.traits(NEW, names=(fleet_client.OURS,))
    try:
        PARTS[part](client, *words)
    finally:
        with contextlib.suppress(exceptions.SDKException):
            client.clear()
        client.traits(NEW, names=())


if __name__ == '__main__':
    main(*sys.argv[1:])
