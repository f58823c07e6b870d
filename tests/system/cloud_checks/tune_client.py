# SPDX-License-Identifier: Apache-2.0

"""A client that carries out an experiment, and checks what it finds.

The cloud's Python environment runs it. The arguments are the command hpcvirt,
and the document of the experiment.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

import openstack

from hpcvirt import waiting

ENVIRONMENT = {**os.environ, 'OS_CLOUD': 'envvars'}
#: The experiment is killed in the next trial after this number.
KILLED_AFTER = 3
LIMIT_S = 1800


class Client:
    """Runs the commands of tune."""

    def __init__(self, hpcvirt, document):
        self.hpcvirt, self.document = hpcvirt, pathlib.Path(document)
        self.data = self.document.parent / 'data'
        self.record = self.data / 'tunes/cloud.json'
        self.cloud = openstack.connect()

    def words(self, *words):
        return [self.hpcvirt, 'bench', 'tune', *words]

    def run_words(self, *words):
        return [self.hpcvirt, 'bench', 'run', self.document, '--data',
                self.data, *words]

    def call(self, words):
        """Run a command to its end; return what it prints."""
        done = subprocess.run(words, capture_output=True, text=True,
                              check=False, env=ENVIRONMENT, timeout=LIMIT_S)
        if done.returncode:
            sys.exit(f'{words}: {done.stdout[-500:]}{done.stderr[-1500:]}')
        return done.stdout

    def trials(self):
        return (json.loads(self.record.read_text())['trials']
                if self.record.exists() else [])

    def servers(self):
        return [server for server in self.cloud.compute.servers()
                if server.name.startswith('hpcvirt-tune-')]

    def left(self):
        """List what the experiment has not removed."""
        return [
            *(server.name for server in self.servers()),
            *(key.name for key in self.cloud.compute.keypairs()
              if key.name.startswith('hpcvirt-tune-')),
            *(flavor.name for flavor
              in self.cloud.compute.flavors(is_public=None)
              if flavor.name.startswith('hpcvirt-tune-')),
            *(f'{host} in {aggregate.name}' for aggregate
              in self.cloud.compute.aggregates()
              for host in aggregate.hosts or ()
              if aggregate.name == 'hpcvirt-quarantine-tune'),
            *(path.name for pattern in ('disturber.pid', 'data/tunes/*.key',
                                        'data/tunes/*.settings')
              for path in self.document.parent.glob(pattern))]

    def kill(self):
        """Kill the experiment in a trial, while its guests run."""
        process = subprocess.Popen(
            self.run_words('--apply'), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        waiting.poll(
            lambda: process.poll() is not None or (
                len(self.trials()) == KILLED_AFTER and any(
                    server.status == 'ACTIVE' and server.name.startswith(
                        f'hpcvirt-tune-cloud-{KILLED_AFTER}-')
                    for server in self.servers())),
            bool, LIMIT_S, 0.5)
        process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            sys.exit(f'the experiment ended: {process.stderr.read()[-1500:]}')


def check_findings(found):
    """Check what the experiment says about its choices."""
    values = {each['choice']: each for each in found['values']}
    print({name: (each['decision'], each['effect'], each['runs'],
                  each['slow'], each['guard'])
           for name, each in values.items()}, found['recommended'],
          found['reason'], file=sys.stderr)
    if values['guests']['decision'] != 'better':
        sys.exit(f'two guests are not better: {values["guests"]}')
    if values['watchdog']['decision'] in ('better', 'worse'):
        sys.exit(f'a watchdog has an effect: {values["watchdog"]}')
    # The guard needs them in six of the eight boots, which is up to chance.
    if values['disturber']['slow'] <= values['disturber']['runs'] / 20:
        sys.exit(f'stragglers are not found: {values["disturber"]}')
    # The watchdog may be in the profile, because it changes nothing.
    guests, _, disturber = found['recommended']
    if (guests, disturber) != (1, 0):
        sys.exit(f'{found["recommended"]} is recommended')
    if not found['confirmation']['is_gain']:
        sys.exit(f'the gain is not confirmed: {found["confirmation"]}')


def main(hpcvirt, document):
    """Carry out the experiment."""
    client = Client(hpcvirt, document)
    print(client.call(client.words('plan', document)), file=sys.stderr)
    client.kill()
    kept, begun = client.trials(), {each.id for each in client.servers()}
    told = client.call(client.run_words())
    if not begun or any(f'left server {each}' not in told for each in begun):
        sys.exit(f'{begun} is not what a killed run left: {told}')
    client.call(client.run_words('--apply'))
    if client.trials()[:len(kept)] != kept:
        sys.exit('trials of the killed run are lost')
    print(client.call(client.words('show', document, '--data', client.data)),
          file=sys.stderr)
    found = json.loads(client.call(client.words(
        'show', document, '--data', client.data, '--format', 'json')))
    if client.left():
        sys.exit(f'not removed: {client.left()}')
    check_findings(found.get('findings', found))
    profile = client.document.parent / 'profile.yaml'
    profile.write_text(client.call(client.words(
        'show', document, '--data', client.data, '--format', 'profile')))
    client.call([hpcvirt, 'flavor', 'plan', '--profile', profile,
                 client.document.parent / 'topology.json'])


if __name__ == '__main__':
    main(*sys.argv[1:])
