# SPDX-License-Identifier: Apache-2.0

"""A client that starts the guest to measure, and deletes it.

The cloud's Python environment runs it. The arguments are ``start`` or ``end``,
the name of the guest, its flavor (of the plan) in JSON, and its user data.
"""

import json
import sys

import openstack
from openstack import exceptions

from hpcvirt import waiting

VERSION = '2.86'
BOOT_S = 500


def start(cloud, name, flavor, user_data):
    """Start the guest, and wait until it has booted."""
    made = cloud.compute.create_flavor(
        name=name, vcpus=flavor['vcpus'], ram=flavor['ram_mib'],
        disk=flavor['disk_gib'])
    cloud.compute.create_flavor_extra_specs(made, flavor['extra_specs'])
    answer = cloud.compute.post('/servers', microversion=VERSION, json={
        'server': {
            'name': name, 'key_name': 'cloud', 'config_drive': True,
            'imageRef': cloud.image.find_image('guest').id,
            'flavorRef': made.id, 'user_data': user_data,
            'networks': [
                {'uuid': cloud.network.find_network('guests').id}]}})
    exceptions.raise_from_response(answer)
    uuid = answer.json()['server']['id']
    server = waiting.poll(
        lambda: cloud.compute.get_server(uuid),
        lambda found: found.status in ('ACTIVE', 'ERROR'), BOOT_S, 1)
    if server.status != 'ACTIVE':
        sys.exit(f'the guest is {server.status}: {server.fault}')
    said = waiting.poll(
        lambda: cloud.compute.get_server_console_output(uuid)['output'] or '',
        lambda text: 'guest ready' in text, BOOT_S, 2)
    if 'guest ready' not in said:
        sys.exit(f'the guest has not booted: {said[-1500:]}')


def end(cloud, name, _flavor, _user_data):
    """Delete the guest and its flavor, as far as they exist."""
    def servers():
        return list(cloud.compute.servers(name=f'^{name}$'))

    for server in servers():
        cloud.compute.delete_server(server)
    if waiting.poll(servers, lambda found: not found, BOOT_S, 1):
        sys.exit('the guest is not deleted')
    flavor = cloud.compute.find_flavor(name)
    if flavor is not None:
        cloud.compute.delete_flavor(flavor)


def main(part, name, flavor, user_data):
    """Take one part."""
    {'start': start, 'end': end}[part](
        openstack.connect(), name, json.loads(flavor), user_data)


if __name__ == '__main__':
    main(*sys.argv[1:])
