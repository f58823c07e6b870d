# SPDX-License-Identifier: Apache-2.0
"""A client that supervises a host, and starts instances.

The cloud's Python environment runs it. The arguments are the command hpcvirt,
nova.conf, an image, the folder with the words of the command, and the name of
the part.
"""

import contextlib
import json
import pathlib
import subprocess
import sys

import fleet_client
from openstack import exceptions

SLOW, PEER = fleet_client.HOSTS
TRAIT = 'CUSTOM_HPCVIRT_QUARANTINED'

#: The exit status of the command in each part. Without Placement the host
#: keeps its state, and the change is completed later.
ENDS = {
    'slow': (0, 'quarantine is done'),
    'quiet': (0, ''),
    'outage': (2, 'release from quarantine failed'),
    'over': (0, 'release from quarantine is done'),
}


class Client(fleet_client.Client):
    """Starts instances, and checks the host."""

    def explain_slow(self, flavor):
        """Ask hpcvirt why the host refuses a flavor."""
        done = subprocess.run(
            [self._hpcvirt, 'explain', '--config-file', self._conf,
             '--flavor', flavor.name, '--format', 'json'],
            capture_output=True, text=True, check=False,
            timeout=fleet_client.LIMIT_S)
        hosts = {host['name']: host for host in
                 json.loads(done.stdout or '{"hosts": []}')['hosts']}
        if (SLOW not in hosts or hosts[SLOW]['code'] != 'quarantined'
                or 'watch since' not in hosts[SLOW]['reason']):
            sys.exit(f'explain ended with {done.returncode}: '
                     f'{done.stdout[-1500:]}{done.stderr[-1500:]}')

    def boot_on(self, flavor, wanted, **more):
        """Start a server, which must be on this host."""
        server = self.boot(flavor, 'ACTIVE', **more)
        if server['OS-EXT-SRV-ATTR:host'] != wanted:
            sys.exit(f'the server is not on {wanted}: {server}')

    def has_trait(self):
        """Whether the host has the trait of quarantine."""
        return any(
            found['name'] == SLOW for found in self._placement.get(
                f'/resource_providers?required={TRAIT}',
                microversion='1.18').json()['resource_providers'])


def supervise(hpcvirt, work, part):
    """Decide once."""
    status, words = ENDS[part]
    done = subprocess.run(
        [hpcvirt, *pathlib.Path(work, 'words').read_text().splitlines(),
         '--apply'],
        capture_output=True, text=True, check=False,
        timeout=fleet_client.LIMIT_S)
    if done.returncode != status or words not in done.stdout:
        sys.exit(f'host supervise ended with {done.returncode}: '
                 f'{done.stdout[-1500:]}{done.stderr[-1500:]}')


def slow(client):
    """New instances land on the other host, and explain says why."""
    flavor = client.flavor(4)
    if not client.has_trait():
        sys.exit(f'{SLOW} lacks the trait')
    for _ in range(3):
        client.boot_on(flavor, PEER)
    client.boot(flavor, 'ERROR', host=SLOW)
    client.explain_slow(flavor)


def over(client):
    """New instances start on the host again."""
    if client.has_trait():
        sys.exit(f'{SLOW} still has the trait')
    client.boot_on(client.flavor(4), SLOW, host=SLOW)


AFTER = {'slow': slow, 'over': over}


def main(hpcvirt, conf, image, work, part):
    """Decide once, and check where instances start."""
    supervise(hpcvirt, work, part)
    if part not in AFTER:
        return
    client = Client(hpcvirt, conf, image)
    client.traits(*fleet_client.HOSTS, names=(fleet_client.OURS,))
    try:
        AFTER[part](client)
    finally:
        with contextlib.suppress(exceptions.SDKException):
            client.clear()
        client.traits(*fleet_client.HOSTS, names=())


if __name__ == '__main__':
    main(*sys.argv[1:])
