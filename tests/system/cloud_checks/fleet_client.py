# SPDX-License-Identifier: Apache-2.0

"""A client that has requests refused, explained, and then accepted.

The cloud's Python environment runs it. The arguments are the command hpcvirt,
nova.conf and an image. All requests are for two equal hosts.
"""

import contextlib
import json
import re
import subprocess
import sys

import openstack
from openstack import exceptions

from hpcvirt import waiting

VERSION = '2.86'
HOSTS = ('intel1', 'intel2')
#: The trait of both hosts, and a trait that neither has at first.
OURS, MISSING = 'CUSTOM_HPCVIRT_FLEET', 'CUSTOM_HPCVIRT_LACKED'
PREFIX = 'explained'
LIMIT_S = 90
#: Dozens of waits end up to this late.
POLL_S = 0.2


class Client:
    """Makes requests, and asks hpcvirt about them."""

    def __init__(self, hpcvirt, conf, image):
        self._hpcvirt = hpcvirt
        self._conf = conf
        self._image = image
        self._cloud = openstack.connect()
        self.compute = self._cloud.compute
        self._placement = self._cloud.placement
        self._flavors = []

    def clear(self):
        """Delete the servers and flavors of the requests."""
        for server in self._servers():
            self.compute.delete(f'/servers/{server["id"]}')
        left = waiting.poll(self._servers, lambda found: not found, LIMIT_S,
                            POLL_S)
        if left:
            sys.exit(f'servers are not deleted: {left}')
        for flavor in self._flavors:
            self.compute.delete_flavor(flavor)
        self._flavors.clear()

    def delete(self, server):
        """Delete a server and wait until it is gone."""
        self.compute.delete(f'/servers/{server["id"]}')
        waiting.poll(self._servers, lambda found: server['id'] not in {
            item['id'] for item in found}, LIMIT_S, POLL_S)

    def _servers(self):
        return self._get('/servers/detail?all_tenants=1&name=^'
                         f'{PREFIX}')['servers']

    def _get(self, url):
        answer = self.compute.get(url, microversion=VERSION)
        exceptions.raise_from_response(answer)
        return answer.json()

    def flavor(self, vcpus, cells=1, mib_per_vcpu=512, **specs):
        """Create a flavor with dedicated CPUs for our hosts."""
        name = f'{PREFIX}-{len(self._flavors)}'
        made = self.compute.create_flavor(
            name=name, vcpus=vcpus, ram=vcpus * mib_per_vcpu, disk=0)
        self._flavors.append(made)
        self.compute.create_flavor_extra_specs(made, {
            f'trait:{OURS}': 'required', 'hw:cpu_policy': 'dedicated',
            'hw:mem_page_size': '2048', 'hw:numa_nodes': str(cells),
            **{key.replace('__', ':'): value
               for key, value in specs.items()}})
        return made

    def boot(self, flavor, status, **more):
        """Request a server; it must end with this status."""
        answer = self.compute.post(
            '/servers', microversion=VERSION, json={'server': {
                'name': PREFIX, 'networks': 'none',
                'imageRef': self._image, 'flavorRef': flavor.id, **more}})
        exceptions.raise_from_response(answer)
        uuid = answer.json()['server']['id']
        server = waiting.poll(
            lambda: self._get(f'/servers/{uuid}')['server'],
            lambda found: found['status'] in ('ACTIVE', 'ERROR'), LIMIT_S,
            POLL_S)
        if server['status'] != status:
            sys.exit(f'a server of {flavor.name} is {server["status"]}, not '
                     f'{status}: {server.get("fault")}')
        return server

    def fill_halves(self):
        """Fill half of each cell, so that no cell is free."""
        half = self.flavor(16)
        for host in HOSTS:
            guests = {}
            for _ in range(3):
                server = self.boot(half, 'ACTIVE', host=host)
                (node,) = self._get(
                    f'/servers/{server["id"]}/topology')['nodes']
                guests.setdefault(node['host_node'], []).append(server)
            self.delete(max(guests.values(), key=len)[0])

    def traits(self, *hosts, names):
        """Give the hosts traits, beside those of nova-compute."""
        for name in names:
            self._placement.put(f'/traits/{name}', microversion='1.6')
        for host in hosts:
            uuid = self._placement.get(
                f'/resource_providers?name={host}').json()[
                    'resource_providers'][0]['uuid']
            url = f'/resource_providers/{uuid}/traits'
            found = self._placement.get(url, microversion='1.6').json()
            found['traits'] = [
                trait for trait in found['traits']
                if trait not in (OURS, MISSING)] + list(names)
            exceptions.raise_from_response(self._placement.put(
                url, microversion='1.6', json=found))

    def services(self, status):
        """Enable or disable our hosts."""
        for service in self.compute.services():
            if service.host in HOSTS:
                answer = self.compute.put(
                    f'/os-services/{service.id}', microversion=VERSION,
                    json={'status': status})
                exceptions.raise_from_response(answer)

    def explain(self, flavor, step, code, reason):
        """Ask hpcvirt why both hosts refuse; return the changes."""
        done = subprocess.run(
            [self._hpcvirt, 'explain', '--config-file', self._conf,
             '--flavor', flavor.name, '--format', 'json'],
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 1 or done.stderr:
            sys.exit(f'explain ended with {done.returncode}: '
                     f'{done.stdout[-300:]}{done.stderr[-1500:]}')
        document = json.loads(done.stdout)
        for host in document['hosts']:
            if host['name'] in HOSTS and (
                    (host['step'], host['code']) != (step, code)
                    or not re.search(reason, host['reason'])):
                sys.exit(f'{step}, {code}, {reason!r} was expected: {host}')
        return [change['change'] for change in document['nearest']]

    def make_room(self, *words, most_status=0):
        """Let hpcvirt move instances."""
        done = subprocess.run(
            [self._hpcvirt, 'make-room', '--config-file', self._conf, *words],
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode > most_status:
            sys.exit(f'make-room ended with {done.returncode}: '
                     f'{done.stdout[-1500:]}{done.stderr[-1500:]}')
        print(done.stdout)

    def compare_dump(self, flavor):
        """Check that a dump of the fleet gives the answers of the cloud."""
        live = '--config-file', self._conf
        fleet = self._answer('fleet', 'dump', *live)
        for asked in (
                ('capacity',),
                ('explain', '--flavor', flavor.name, '--hosts',
                 ','.join(HOSTS)),
                ('make-room', '--flavor', flavor.name, '--moves', '1')):
            words = (*asked, '--format', 'json')
            now = _make_comparable(json.loads(self._answer(*words, *live)))
            then = _make_comparable(json.loads(self._answer(
                *words, '--fleet', '-', given=fleet)))
            if now != then:
                sys.exit(f'{words} of the cloud and of a dump of it differ: '
                         f'{now}, {then}')
        print('a dump gives the same answers as the cloud')

    def _answer(self, *words, given=None):
        """Run hpcvirt; return what it printed."""
        done = subprocess.run(
            [self._hpcvirt, *words], input=given, capture_output=True,
            text=True, check=False, timeout=LIMIT_S)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f'{words} ended with {done.returncode}: '
                     f'{done.stderr[-1500:]}')
        return done.stdout

    def refused(self, flavor, step, code, reason, change=None):
        """Have a request refused and explained.

        :param change: a pattern that one of the changes must match
        """
        self.boot(flavor, 'ERROR')
        changes = self.explain(flavor, step, code, reason)
        if change is None:
            return None
        for found in changes:
            match = re.search(change, found)
            if match:
                print(f'{reason}: {found}')
                return match
        return sys.exit(f'{change!r} is not among the changes {changes}')


def _make_comparable(document):
    """Sort lists of hosts, because the cloud has no order.

    Only a dump has classes, which are left out.
    """
    document.pop('classes', None)
    for row in document.get('flavors', ()):
        row.pop('per_class', None)
    for row in document.get('hosts', ()):
        row.pop('class', None)
    for key in ('hosts', 'closed', 'broken'):
        if key in document:
            document[key] = sorted(document[key],
                                   key=lambda row: row['name'])
    return document


def no_cell(client):
    """A guest cell that is larger than a host cell becomes two."""
    client.refused(client.flavor(40), 'filter', 'no-cell',
                   'has 32 of the 40 PCPUs needed',
                   '2 guest cells instead of 1')
    client.boot(client.flavor(40, cells=2), 'ACTIVE')


def too_many_cpus(client):
    """A guest that is larger than a host gets fewer CPUs."""
    found = client.refused(
        client.flavor(72, cells=2), 'placement', 'resources',
        'has 64 PCPU free, 72 needed', r'(\d+) CPUs fewer')
    client.boot(client.flavor(72 - int(found[1]), cells=2), 'ACTIVE')


def page_size(client):
    """A guest whose pages no cell has gets others."""
    found = client.refused(
        client.flavor(4, hw__mem_page_size='1048576', mib_per_vcpu=1024),
        'filter', 'no-cell', '0 of the 4 free pages of 1048576',
        r'pages of (2048) KiB')
    client.boot(client.flavor(4, hw__mem_page_size=found[1],
                              mib_per_vcpu=1024), 'ACTIVE')


def pages(client):
    """A guest with more memory than a cell has gets two cells."""
    flavor = client.flavor(2, mib_per_vcpu=80_000)
    client.refused(flavor, 'filter', 'no-cell', 'free pages of 2048 KiB',
                   '2 guest cells instead of 1')
    client.boot(client.flavor(2, cells=2, mib_per_vcpu=80_000), 'ACTIVE')


def trait(client):
    """A host gets the trait that it lacks."""
    client.traits(names=(MISSING,))
    flavor = client.flavor(4, **{f'trait:{MISSING}': 'required'})
    client.refused(flavor, 'placement', 'trait', f'lacks the trait {MISSING}')
    client.traits('intel2', names=(OURS, MISSING))
    server = client.boot(flavor, 'ACTIVE')
    if server['OS-EXT-SRV-ATTR:host'] != 'intel2':
        sys.exit(f'the server is not on intel2: {server}')
    client.traits('intel2', names=(OURS,))


def forbidden_trait(client):
    """A guest that wants whole cores alone does without it."""
    client.refused(client.flavor(4, hw__cpu_thread_policy='isolate'),
                   'placement', 'forbidden-trait',
                   'HW_CPU_HYPERTHREADING, which is forbidden')
    client.boot(client.flavor(4, hw__cpu_thread_policy='prefer'), 'ACTIVE')


def disabled(client):
    """Hosts whose nova-compute is disabled are enabled."""
    flavor = client.flavor(4)
    client.services('disabled')
    try:
        client.refused(flavor, 'placement', 'forbidden-trait',
                       'its nova-compute is disabled')
    finally:
        client.services('enabled')
    client.boot(flavor, 'ACTIVE')


def moved(client):
    """Another instance moves, so that a whole cell is free."""
    client.fill_halves()
    whole = client.flavor(32)
    client.refused(
        whole, 'filter', 'no-cell', 'has 16 of the 32 free PCPUs needed',
        r'\S+ moves from \S+ to \S+')
    client.compare_dump(whole)
    client.make_room('--flavor', whole.name, '--moves', '1', '--apply')
    client.boot(whole, 'ACTIVE')


def standing(client):
    """Room is made after a refusal, so that the next request has it."""
    client.fill_halves()
    whole = client.flavor(32)
    client.delete(client.boot(whole, 'ERROR'))
    # Other flavors of the cloud may have no room.
    client.make_room('--standing', '--budget', '1000', most_status=1)
    client.make_room('--standing', '--apply', most_status=1)
    client.boot(whole, 'ACTIVE')


KINDS = (no_cell, too_many_cpus, page_size, pages, trait, forbidden_trait,
         disabled, moved, standing)


def main(hpcvirt, conf, image):
    """Go through all kinds of refusal."""
    client = Client(hpcvirt, conf, image)
    client.traits(*HOSTS, names=(OURS,))
    try:
        for kind in KINDS:
            kind(client)
            client.clear()
    finally:
        with contextlib.suppress(exceptions.SDKException):
            client.clear()
        client.traits(*HOSTS, names=())


if __name__ == '__main__':
    main(*sys.argv[1:])
