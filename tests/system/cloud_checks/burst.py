# SPDX-License-Identifier: Apache-2.0

"""A client that creates servers in bursts, deletes them, or waits for them.

The cloud's Python environment runs it. The arguments are ``create``, the
prefix of the servers' names, the image, the number of servers and the flavors;
or ``delete``, the prefix, the seconds to wait and a status; or ``settle``, the
prefix and the seconds to wait until no server is in transition.
"""

import random
import sys
import time

import openstack
from openstack import exceptions

from hpcvirt import waiting

VERSION = '2.86'
BURST = 8


def create(prefix, image, count, *flavors):
    """Create servers as fast as the API accepts them, with random pauses."""
    cloud = openstack.connect()
    ids = [cloud.compute.find_flavor(name, ignore_missing=False).id
           for name in flavors]
    dice = random.Random(prefix)
    for number in range(int(count)):
        if number and number % BURST == 0:
            time.sleep(dice.uniform(0, 2))
        answer = cloud.compute.post(
            '/servers', microversion=VERSION, json={'server': {
                'name': f'{prefix}-{number}', 'networks': 'none',
                'imageRef': image, 'flavorRef': dice.choice(ids)}})
        exceptions.raise_from_response(answer)


def delete(prefix, limit_s='300', status=None):
    """Delete the servers with the prefix and wait until they are deleted.

    :param status: delete only servers with this status
    """
    cloud = openstack.connect()
    requested = set()

    def request_deletion():
        servers = [server for server in _servers(cloud, prefix)
                   if status in (None, server['status'])]
        for server in servers:
            if server['id'] not in requested:
                cloud.compute.delete(f'/servers/{server["id"]}')
                requested.add(server['id'])
        return servers

    left = waiting.poll(request_deletion, _is_empty, float(limit_s), 1)
    if left:
        sys.exit('servers that are not deleted: '
                 + ', '.join(server['name'] for server in left))


def settle(prefix, limit_s):
    """Wait until no server is in transition."""
    cloud = openstack.connect()
    moving = waiting.poll(
        lambda: [server for server in _servers(cloud, prefix)
                 if server['OS-EXT-STS:task_state']
                 or server['status'] == 'BUILD'],
        _is_empty, float(limit_s), 1)
    if moving:
        sys.exit('servers in transition: ' + ', '.join(
            f'{server["name"]} {server["status"]}/'
            f'{server["OS-EXT-STS:task_state"]} on '
            f'{server["OS-EXT-SRV-ATTR:host"]}' for server in moving))


def _is_empty(servers):
    return not servers


def _servers(cloud, prefix):
    answer = cloud.compute.get(
        f'/servers/detail?all_tenants=1&limit=1000&name=^{prefix}',
        microversion=VERSION)
    return answer.json()['servers']


if __name__ == '__main__':
    {'create': create, 'delete': delete,
     'settle': settle}[sys.argv[1]](*sys.argv[2:])
