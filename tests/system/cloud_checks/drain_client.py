# SPDX-License-Identifier: Apache-2.0

"""A client that lets a host be emptied, and changes the cloud meanwhile.

The cloud's Python environment runs it. The arguments are the command hpcvirt,
nova.conf, an image, and a file whose presence lets the next live migration to
the target fail.
"""

import contextlib
import pathlib
import subprocess
import sys

import fleet_client
from openstack import exceptions

EMPTIED, TARGET = fleet_client.HOSTS
#: Together with one that arrives, they fill 7/8 of the target.
NUMBER, VCPUS = 6, 8


class Client(fleet_client.Client):
    """Starts instances, and empties a host."""

    def on(self, host):
        """Return the ids of the servers on a host."""
        return {server['id'] for server in self._get(
            f'/servers/detail?all_tenants=1&host={host}')['servers']}

    def drain(self, *words):
        """Start a drain, whose output is read line by line."""
        return subprocess.Popen(
            [self._hpcvirt, 'drain', EMPTIED, '--config-file', self._conf,
             *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)

    def release(self):
        """Let new instances start on the host again."""
        subprocess.run([self._hpcvirt, 'host', 'quarantine', EMPTIED,
                        '--release', '--holder', 'drain', '--apply'],
                       check=True, timeout=fleet_client.LIMIT_S)


def empty_host(client, fails):
    """Empty the host, and check what is said about it."""
    flavor = client.flavor(VCPUS)
    servers = {client.boot(flavor, 'ACTIVE', host=EMPTIED)['id']
               for _ in range(NUMBER)}
    pathlib.Path(fails).touch()
    arrived = set()
    lines = []
    # A failed live migration may be repeated as a cold one.
    process = client.drain('--cold', '--apply')
    for line in process.stdout:
        lines.append(line)
        if f' is on {TARGET}' in line and not arrived:
            arrived.add(client.boot(flavor, 'ACTIVE', host=TARGET)['id'])
    text = ''.join(lines)
    print(text)
    if process.wait(fleet_client.LIMIT_S):
        sys.exit(f'drain ended with {process.returncode}: {text[-1500:]}')
    for words in (f'did not move as planned: it is ACTIVE on {EMPTIED}',
                  'it does not converge', f'{EMPTIED} is empty.'):
        if words not in text:
            sys.exit(f'drain does not say {words!r}: {text[-2500:]}')
    # The failure and the arrival each lead to a new plan.
    if text.count(f'{EMPTIED} is empty after') < 3:
        sys.exit(f'drain did not plan again: {text[-2500:]}')
    if client.on(EMPTIED) or client.on(TARGET) < servers | arrived or (
            not arrived):
        sys.exit(f'{EMPTIED} has {client.on(EMPTIED)}, {TARGET} has '
                 f'{client.on(TARGET)} instead of {servers | arrived}')
    small = client.flavor(2)
    client.boot(small, 'ERROR', host=EMPTIED)
    client.release()
    client.boot(small, 'ACTIVE', host=EMPTIED)


def main(hpcvirt, conf, image, fails):
    """Empty the host, and delete what was created."""
    client = Client(hpcvirt, conf, image)
    client.traits(*fleet_client.HOSTS, names=(fleet_client.OURS,))
    try:
        empty_host(client, fails)
        client.clear()
    finally:
        pathlib.Path(fails).unlink(missing_ok=True)
        with contextlib.suppress(exceptions.SDKException):
            client.clear()
        client.traits(*fleet_client.HOSTS, names=())


if __name__ == '__main__':
    main(*sys.argv[1:])
