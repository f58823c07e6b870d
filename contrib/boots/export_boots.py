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

"""Print the instances that a cloud has booted and deleted, as CSV.

OS_CLOUD or the other OS_* variables name the cloud and the user, who must be
an administrator. The API does not list archived instances; boots.sql reads
them from the database::

    OS_CLOUD=admin python3 export_boots.py > boots.csv
"""

import csv
import json
import sys
from collections.abc import Iterator
from typing import Any

import openstack

#: The first microversion whose servers contain their flavors.
MICROVERSION = '2.47'
COLUMNS = ('uuid', 'created_at', 'deleted_at', 'reservation_id', 'flavor',
           'vcpus', 'memory_mb', 'extra_specs')


def main() -> None:
    """Print a row for each instance that was launched."""
    cloud = openstack.connect()
    writer = csv.writer(sys.stdout)
    writer.writerow(COLUMNS)
    for deleted in (False, True):
        for server in servers(cloud, deleted):
            if server['OS-SRV-USG:launched_at'] is None:
                continue
            flavor = server['flavor']
            writer.writerow((
                server['id'], server['created'],
                server['OS-SRV-USG:terminated_at'] or server['updated']
                if deleted else '',
                server['OS-EXT-SRV-ATTR:reservation_id'],
                flavor['original_name'], flavor['vcpus'], flavor['ram'],
                json.dumps(flavor['extra_specs'])))


def servers(cloud: Any, deleted: bool) -> Iterator[dict[str, Any]]:
    """Yield the servers of all projects, page by page."""
    query = {'all_tenants': '1', 'deleted': str(deleted)}
    while True:
        answer = cloud.compute.get('/servers/detail', params=query,
                                   microversion=MICROVERSION)
        if answer.status_code != 200:
            sys.exit(f'The Compute API answered: {answer.text}')
        page = answer.json()
        yield from page['servers']
        if not page.get('servers_links'):
            return
        query['marker'] = page['servers'][-1]['id']


if __name__ == '__main__':
    main()
