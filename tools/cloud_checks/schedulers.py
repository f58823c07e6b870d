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

"""Two schedulers at once: an instance that loses the race ends correctly.

Each scheduler sees a host as it was when the request came, so two may choose
the last free CPUs of a host for two instances. Placement and the claim let
one of them have it; the other starts elsewhere, or is in error with a reason.
"""

from tools.cloud import cloud as clouds
from tools.cloud import errors
from tools.cloud import progress
from tools.cloud import services
from tools.cloud_checks import load
from tools.cloud_checks import tempest_run

PREFIX = 'race'
SERVERS = 24
CLIENTS = 4
BOTH = ('nova-scheduler', services.SPARE)


def check(cloud: clouds.Cloud) -> None:
    """Run the race.

    :raises CloudError: a promise is broken
    """
    # Large guests, of which the fleet holds a few: most requests collide.
    flavors = load.ensure_flavors(cloud, 'name_prefix: race\n', 32, 100)
    image = tempest_run.images(cloud.settings)['simulated']
    before = {name: _selections(cloud, name) for name in BOTH}
    cloud.start(services.SPARE)
    try:
        clients = [load.client(cloud, 'create', f'{PREFIX}{number}', image,
                               str(SERVERS // CLIENTS), *flavors)
                   for number in range(CLIENTS)]
        for one in clients:
            load.finish(one, 'a client', 300)
        load.finish(load.client(cloud, 'settle', PREFIX, '300'), 'settling',
                    360)
    finally:
        cloud.stop(services.SPARE)
    found = load.agreed(cloud, PREFIX)
    progress.say(f'two schedulers: {SERVERS} servers: {found["servers"]}, '
                 f'{found["messages"]}')
    if sum(found['servers'].values()) != SERVERS:
        raise errors.CloudError(f'servers were lost: {found["servers"]}')
    if not found['servers'].get('ACTIVE') or '' in found['messages']:
        raise errors.CloudError('no server won, or one lost without a '
                                f'reason: {found["messages"]}')
    chosen = {name: _selections(cloud, name) - before[name]
              for name in BOTH}
    progress.say(f'two schedulers: requests taken {chosen}')
    if not all(chosen.values()):
        raise errors.CloudError(f'one scheduler had nothing to do: {chosen}')
    load.clear(cloud, PREFIX)


def _selections(cloud: clouds.Cloud, name: str) -> int:
    path = cloud.running.log_file(name)
    text = path.read_text(errors='replace') if path.exists() else ''
    return text.count('Starting to schedule for instances')
