# SPDX-License-Identifier: Apache-2.0

"""Run two schedulers and check the instances that lose a race.

Each scheduler sees a host as it was when the request arrived, so that two may
choose the last free CPUs of a host for two instances. Placement and the claim
admit one of them; the other must start on another host or be in error with a
message.
"""

from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import probes
from tests.system.cloud import progress
from tests.system.cloud import services
from tests.system.cloud_checks import load
from tests.system.cloud_checks import tempest_run

PREFIX = 'race'
SERVERS = 24
CLIENTS = 4
BOTH = ('nova-scheduler', services.SPARE)
#: What a scheduler logs when it receives requests, and for each request.
READY = 'Join ServiceGroup membership for this service scheduler'
REQUEST = 'Starting to schedule for instances'


def check(cloud: clouds.Cloud) -> None:
    """Run the race.

    :raises CloudError: if a condition is violated
    """
    # The fleet holds only a few large guests, so that most requests conflict.
    flavors = load.ensure_flavors(cloud, 'name_prefix: race\n', 32, 100)
    image = tempest_run.images(cloud.settings)['simulated']
    before = {name: _lines(cloud, name, REQUEST) for name in BOTH}
    starts = _lines(cloud, services.SPARE, READY)
    cloud.start(services.SPARE)
    try:
        probes.wait_for_service(
            cloud.running, services.SPARE,
            lambda: _lines(cloud, services.SPARE, READY) > starts)
        clients = [load.client(cloud, 'create', f'{PREFIX}{number}', image,
                               str(SERVERS // CLIENTS), *flavors)
                   for number in range(CLIENTS)]
        for process in clients:
            load.finish(process, 'a client', 300)
        load.finish(load.client(cloud, 'settle', PREFIX, '300'), 'settling',
                    360)
    finally:
        cloud.stop(services.SPARE)
    state = load.wait_for_agreement(cloud, PREFIX)
    progress.say(f'two schedulers: {SERVERS} servers: {state["servers"]}, '
                 f'{state["messages"]}')
    if sum(state['servers'].values()) != SERVERS:
        raise errors.CloudError(f'servers were lost: {state["servers"]}')
    if not state['servers'].get('ACTIVE') or '' in state['messages']:
        raise errors.CloudError('no server is active, or one is in error '
                                f'without a message: {state["messages"]}')
    requests = {name: _lines(cloud, name, REQUEST) - before[name]
                for name in BOTH}
    progress.say(f'two schedulers: requests {requests}')
    if not all(requests.values()):
        raise errors.CloudError(f'one scheduler got no request: {requests}')
    load.clear(cloud, PREFIX)


def _lines(cloud: clouds.Cloud, name: str, words: str) -> int:
    """Count the lines with these words in the log of a service."""
    path = cloud.running.log_file(name)
    text = path.read_text(errors='replace') if path.exists() else ''
    return text.count(words)
