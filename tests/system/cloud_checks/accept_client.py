# SPDX-License-Identifier: Apache-2.0

"""A client that accepts a host, and checks the result.

The cloud's Python environment runs it. The arguments are ``emulated`` or
``stand-in``, and a JSON object with the keys hpcvirt (a command), work (a
directory), program (the benchmark on this machine), script (the benchmark in
the guest), host, image, flavor (of the plan) and plan (a file).
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import openstack
from openstack import exceptions

from hpcvirt import waiting
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement
from hpcvirt.cloud import session

VERSION = '2.86'
LIMIT_S = 90
#: A busy machine emulates slowly.
BOOT_S = 300
METRIC = 'score'
SAMPLES = 5
#: An emulated guest is far slower; this machine is faster, even while it
#: emulates.
MIN_RATIO = 0.4
AUDITED = 'CUSTOM_HPCVIRT_AUDITED'
QUARANTINED = 'CUSTOM_HPCVIRT_QUARANTINED'
#: Levels of the peer hosts, relative to that of the host.
PEERS = (0.99, 0.995, 1.0, 1.005, 1.01)


class Client:
    """Accepts one host.

    :ivar words: the command without the arguments for one host
    """

    def __init__(self, hpcvirt, work, program, script, host, image, flavor,
                 plan):
        self.host, self.flavor, self.program = host, flavor, program
        self.hpcvirt = hpcvirt
        self.made = []
        self.cloud = openstack.connect()
        self.work = pathlib.Path(work)
        self.data = self.work / f'data-{host}'
        audit = self.work / 'audit.json'
        audit.write_text(json.dumps({
            'schema_version': 1, 'host': host, 'findings': [],
            'checked': []}))
        document = self.work / f'{host}.json'
        document.write_text(json.dumps({
            'kind': 'acceptance', 'schema_version': 1,
            'flavors': [flavor['name']], 'plan': plan, 'image': image,
            'network': 'guests', 'benchmarks': ['hs06'],
            'settings': {'script': script}, 'pairs': SAMPLES,
            'bounds': {METRIC: MIN_RATIO}, 'audit': audit.name,
            'time_limit_minutes': 20}))
        self.words = [
            *hpcvirt, 'bench', 'run', str(document), host, '--data',
            str(self.data), '--format', 'json']

    def create_flavor(self, name, specs):
        """Create a flavor with the sizes of the plan, unless it exists."""
        made = self.cloud.compute.find_flavor(name)
        if made is None:
            made = self.cloud.compute.create_flavor(
                name=name, vcpus=self.flavor['vcpus'],
                ram=self.flavor['ram_mib'], disk=self.flavor['disk_gib'])
            self.made.append(made)
            self.cloud.compute.create_flavor_extra_specs(made, specs)
        return made

    def start(self):
        """Start the command."""
        return subprocess.Popen(
            [*self.words, '--apply'], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, 'OS_CLOUD': 'envvars'})

    def document(self, process, word):
        """Wait for the command, which must give this verdict."""
        out, err = process.communicate(timeout=LIMIT_S * 4)
        if process.returncode not in (0, 1):
            sys.exit(f'accept ended with {process.returncode}: {out[-500:]}'
                     f'{err[-1500:]}')
        found = json.loads(out)
        figure = found['verdict']['judgements'][0]
        print(f'{self.host}: {found["result"]}, {figure["metric"]} '
              f'{figure["native"]} {figure["guest"]} {figure["interval"]}, '
              f'{found["traits"]}', file=sys.stderr)
        if found['result'] != word:
            sys.exit(f'{word} was expected: {found}')
        return found

    def traits(self, host):
        """Read the traits of a host that hpcvirt set."""
        (provider,) = compute_hosts.find_providers(session.compute(), host)
        found = placement.PlacementClient(session.placement()).traits(provider)
        return {name for name in found.names if name.startswith(placement.OWN)}

    def check_state(self, *traits):
        """Check the traits, and that the acceptance has cleaned up."""
        if self.traits(self.host) != set(traits):
            sys.exit(f'{self.host} has {self.traits(self.host)}')
        name = f'hpcvirt-accept-{self.host}'
        servers = list(self.cloud.compute.servers())
        left = [*(server.id for server in servers
                  if self.host in server.metadata.values()),
                *(key.name for key in self.cloud.compute.keypairs()
                  if key.name == name),
                *(flavor.name for flavor
                  in self.cloud.compute.flavors(is_public=None)
                  if flavor.name.startswith(name)),
                *(port.id for port in self.cloud.network.ports()
                  if port.device_owner.startswith('compute:')
                  and port.device_id not in {each.id for each in servers})]
        if left:
            sys.exit(f'not removed: {left}')

    def servers(self, prefix):
        """List servers by the beginning of their names."""
        return [server for server in self.cloud.compute.servers()
                if server.name.startswith(prefix)]

    def boot(self, flavor, image):
        """Request a server; return its host, None if there is none."""
        answer = self.cloud.compute.post(
            '/servers', microversion=VERSION, json={'server': {
                'name': 'accepted', 'networks': 'none',
                'imageRef': self.cloud.image.find_image(image).id,
                'flavorRef': flavor.id}})
        exceptions.raise_from_response(answer)
        uuid = answer.json()['server']['id']
        server = waiting.poll(
            lambda: self.cloud.compute.get(
                f'/servers/{uuid}', microversion=VERSION).json()['server'],
            lambda found: found['status'] in ('ACTIVE', 'ERROR'), LIMIT_S, 1)
        host = (server['OS-EXT-SRV-ATTR:host']
                if server['status'] == 'ACTIVE' else None)
        return uuid, host

    def delete(self, uuid):
        """Delete a server and wait until it is gone."""
        self.cloud.compute.delete(f'/servers/{uuid}')
        waiting.poll(lambda: self.servers('accepted'),
                     lambda found: uuid not in {each.id for each in found},
                     LIMIT_S, 0.5)


def add_peers(client, process):
    """Store peer hosts once the acceptance has started to measure.

    :param process: the acceptance
    Their figures are those of the program on this machine.
    """
    score = float(subprocess.run(
        [client.program, '1'], check=True, capture_output=True,
        text=True).stdout.split()[-1])
    run = waiting.poll(lambda: first_run(client), bool, BOOT_S, 0.5)
    if run is None:
        process.terminate()
        said = process.communicate(timeout=LIMIT_S)[1]
        sys.exit(f'{client.host}: nothing is measured: {said[-1500:]}')
    store = stores.Store(None, str(client.data))
    for number, level in enumerate(PEERS):
        name = f'peer{number}'
        store.open_entry(stores.Entry(name, 'none', run.started_at, None), {})
        store.add_run(name, 0, dataclasses.replace(run, id=name, host=name))
        for pair in range(SAMPLES):
            store.add_sample(name, record.Sample(
                record.Side.GUEST, pair, pair, outcome.Outcome(True, None, {
                    METRIC: outcome.Metric(score * level * (1 + pair / 1e4),
                                           'HS06', outcome.Direction.UP)})))
        store.finish(name, run.started_at)
    store.close()


def first_run(client):
    """Return the first run of the acceptance; None if it has none yet."""
    if not (client.data / 'bench.sqlite').exists():
        return None
    store = stores.Store(None, str(client.data))
    try:
        runs = [run for entry in store.entries()
                for run in store.result(entry.id).runs]
        return runs[0] if runs else None
    finally:
        store.close()


def emulated(client):
    """The host that emulates its guests fails, and stays in quarantine."""
    flavor = client.create_flavor(client.flavor['name'],
                                  client.flavor['extra_specs'])
    process = client.start()
    add_peers(client, process)
    found = client.document(process, 'FAIL')
    ratio = found['verdict']['judgements'][0]['interval']['high']
    if ratio >= MIN_RATIO:
        sys.exit(f'an emulated guest is near native: {ratio}')
    client.check_state(QUARANTINED)
    uuid, host = client.boot(flavor, 'guest')
    client.delete(uuid)
    if host is not None:
        sys.exit(f'a server started on {host}, which is in quarantine')
    # Other checks need it.
    subprocess.run([*client.hpcvirt, 'host', 'quarantine', client.host,
                    '--release', '--holder', 'accept', '--apply'], check=True,
                   env={**os.environ, 'OS_CLOUD': 'envvars'},
                   stdout=subprocess.DEVNULL)
    client.check_state()


def stand_in(client):
    """A host without loss passes against its class."""
    client.create_flavor(client.flavor['name'], client.flavor['extra_specs'])
    process = client.start()
    add_peers(client, process)
    client.document(process, 'PASS')
    client.check_state(AUDITED)
    flavor = client.create_flavor('accepted', {
        **client.flavor['extra_specs'], f'trait:{AUDITED}': 'required'})
    hosts = [client.boot(flavor, 'simulated') for _ in range(2)]
    for uuid, _ in hosts:
        client.delete(uuid)
    if [host for _, host in hosts] != [client.host, None]:
        sys.exit(f'a flavor that requires {AUDITED} started on {hosts}')


def main(what, options):
    """Accept a host, and delete the flavors that were created for it."""
    client = Client(**json.loads(options))
    try:
        {'emulated': emulated, 'stand-in': stand_in}[what](client)
    finally:
        for flavor in client.made:
            client.cloud.compute.delete_flavor(flavor)


if __name__ == '__main__':
    main(*sys.argv[1:])
