# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One client that creates servers in bursts, deletes them, or waits.

Run by the cloud's Python environment. Arguments: ``create``, the prefix of
the servers' names, the image, how many, and the flavors; or ``delete``, the
prefix, the seconds to wait and a status; or ``settle``, the prefix and the
seconds to wait until no server is between states.
"""

import random
import sys
import time

import openstack
from openstack import exceptions

VERSION = '2.86'
BURST = 8


def create(prefix, image, count, *flavors):
    """Create servers, as fast as the API takes them, burst by burst."""
    cloud = openstack.connect()
    ids = [cloud.compute.find_flavor(name, ignore_missing=False).id
           for name in flavors]
    dice = random.Random(prefix)  # noqa: S311 - a repeatable load
    for number in range(int(count)):
        if number and number % BURST == 0:
            time.sleep(dice.uniform(0, 2))
        answer = cloud.compute.post(
            '/servers', microversion=VERSION, json={'server': {
                'name': f'{prefix}-{number}', 'networks': 'none',
                'imageRef': image, 'flavorRef': dice.choice(ids)}})
        exceptions.raise_from_response(answer)


def delete(prefix, seconds='300', status=None):
    """Delete the servers with the prefix and wait until they are gone.

    :param status: only those with this status
    """
    cloud = openstack.connect()
    deadline = time.monotonic() + float(seconds)
    asked = set()
    while True:
        servers = [server for server in _mine(cloud, prefix)
                   if status in (None, server['status'])]
        if not servers:
            return
        if time.monotonic() > deadline:
            sys.exit('servers that are not deleted: '
                     + ', '.join(s['name'] for s in servers))
        for server in servers:
            if server['id'] not in asked:
                cloud.compute.delete(f'/servers/{server["id"]}')
                asked.add(server['id'])
        time.sleep(1)


def settle(prefix, seconds):
    """Wait until every server has come to an end."""
    cloud = openstack.connect()
    deadline = time.monotonic() + float(seconds)
    while True:
        moving = [s for s in _mine(cloud, prefix)
                  if s['OS-EXT-STS:task_state'] or s['status'] == 'BUILD']
        if not moving:
            return
        if time.monotonic() > deadline:
            sys.exit('servers between states: ' + ', '.join(
                f'{s["name"]} {s["status"]}/{s["OS-EXT-STS:task_state"]} on '
                f'{s["OS-EXT-SRV-ATTR:host"]}' for s in moving))
        time.sleep(1)


def _mine(cloud, prefix):
    answer = cloud.compute.get(
        f'/servers/detail?all_tenants=1&limit=1000&name=^{prefix}',
        microversion=VERSION)
    return answer.json()['servers']


if __name__ == '__main__':
    {'create': create, 'delete': delete,
     'settle': settle}[sys.argv[1]](*sys.argv[2:])
