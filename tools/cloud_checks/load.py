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

"""Load: many servers, several clients, services that die in the middle.

200 servers are asked for in bursts while computes are killed and started
again and the scheduler is restarted. At the end no CPU may be pinned twice,
no pool of pages overdrawn, Placement must agree with the hosts, and after
deletion nothing may be left allocated.
"""

import json
import os
import pathlib
import subprocess
import time
from typing import Any

from tools.cloud import cloud as clouds
from tools.cloud import errors
from tools.cloud import fleet
from tools.cloud import progress
from tools.cloud_checks import tempest_run

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = 200
CLIENTS = 4
PREFIX = 'load'

#: Flavors so small that the fleet's 528 PCPUs hold most of the servers.
PROFILE = 'name_prefix: load\nsmallest_cores: 1\n'

#: Seconds into the load, and what happens then.
EVENTS = (
    (5, 'kill', 'intel1'),
    (9, 'start', 'intel1'),
    (12, 'kill', 'epyc1'),
    (15, 'restart', 'nova-scheduler'),
    (19, 'start', 'epyc1'),
    (24, 'kill', 'xeon1'),
    (28, 'start', 'xeon1'),
)
SETTLE_S = 400


def check(cloud: clouds.Cloud) -> None:
    """Run the load.

    :raises CloudError: a promise is broken
    """
    flavors = ensure_flavors(cloud, PROFILE, 1, 4)
    image = tempest_run.images(cloud.settings)['simulated']
    began = time.monotonic()
    clients = [client(cloud, 'create', f'{PREFIX}{number}', image,
                       str(SERVERS // CLIENTS), *flavors)
               for number in range(CLIENTS)]
    try:
        _disturb(cloud, began)
        for one in clients:
            finish(one, 'a client', 600)
    finally:
        for one in clients:
            if one.poll() is None:
                one.kill()
        _restore(cloud)
    asked = time.monotonic() - began
    finish(client(cloud, 'settle', PREFIX, str(SETTLE_S)),
           'settling', SETTLE_S + 60)
    settled = time.monotonic() - began
    first = observe(cloud, PREFIX)
    progress.say(f'load: {SERVERS} servers asked for in {asked:.0f} s by '
                 f'{CLIENTS} clients, settled after {settled:.0f} s: '
                 f'{first["servers"]}, {first["messages"]}')
    _judge(first)
    # A server that was being built when its compute was killed is in error
    # and keeps its allocation until it is deleted. That is Nova's way.
    finish(client(cloud, 'delete', PREFIX, '300', 'ERROR'), 'deletion', 360)
    found = agreed(cloud, PREFIX)
    progress.say(f'load: PCPUs pinned {found["pinned"]}, allocated in '
                 f'Placement {found["allocated"]}')
    clear(cloud, PREFIX)


def _judge(found: dict[str, Any]) -> None:
    if sum(found['servers'].values()) != SERVERS:
        raise errors.CloudError(f'servers were lost: {found["servers"]}')
    if found['servers'].get('ACTIVE', 0) < SERVERS // 4:
        raise errors.CloudError(f'too few servers: {found["servers"]}')
    killed = {name for _, verb, name in EVENTS if verb == 'kill'}
    silent = set(found['silent']) - killed
    if silent:
        raise errors.CloudError('servers in error without a reason on '
                                f'{sorted(silent)}')
    overlaps = [text for text in found['faults']
                if 'Placement' not in text and 'allocation' not in text]
    if overlaps:
        raise errors.CloudError('broken promises: ' + '; '.join(overlaps))


def ensure_flavors(cloud: clouds.Cloud, profile: str,
                   least: int, most: int) -> list[str]:
    """Create flavors for the fleet.

    :param profile: the profile, in YAML
    :returns: the names of those from ``least`` to ``most`` CPUs
    """
    settings = cloud.settings
    path = settings.run / 'load-profile.yaml'
    path.write_text(profile)
    words = ['--profile', str(path), *(
        str(fleet.topology(settings, host)) for host in fleet.FLEET)]
    hpcvirt = settings.program('hpcvirt')
    document = json.loads(_run(cloud, [
        hpcvirt, 'flavor', 'plan', '--format', 'json', *words]))
    _run(cloud, [hpcvirt, 'flavor', 'apply', '--apply', *words])
    return [flavor['name'] for flavor in document['flavors']
            if least <= flavor['vcpus'] <= most]


def agreed(cloud: clouds.Cloud, *prefixes: str,
           seconds: float = 120) -> dict[str, Any]:
    """Look until Nova and Placement agree.

    A compute that was killed between claim and start gives back what it held
    when it next looks over its resources.

    :raises CloudError: they still do not after a while
    """
    deadline = time.monotonic() + seconds
    while True:
        found = observe(cloud, *prefixes)
        if not found['faults']:
            return found
        if time.monotonic() > deadline:
            raise errors.CloudError('broken promises: '
                                    + '; '.join(found['faults'][:10]))
        time.sleep(5)


def observe(cloud: clouds.Cloud, *prefixes: str) -> dict[str, Any]:
    """Compare servers, hosts and Placement."""
    answer: dict[str, Any] = json.loads(_run(cloud, [
        cloud.settings.program('python'), str(HERE / 'observer.py'),
        str(fleet.plan_file(cloud.settings)), *prefixes]))
    return answer


def clear(cloud: clouds.Cloud, prefix: str) -> None:
    """Delete the servers; nothing may stay allocated."""
    finish(client(cloud, 'delete', prefix, '400'), 'deletion', 460)
    found = agreed(cloud, prefix)
    left = {host: number for host, number in found['allocated'].items()
            if number}
    if left or found['servers']:
        raise errors.CloudError(f'left after deletion: {left}')
    progress.say('after deletion nothing is allocated')


def finish(process: 'subprocess.Popen[str]', what: str,
           seconds: float) -> None:
    """Wait for a client; quote it if it failed."""
    try:
        _, text = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise errors.CloudError(
            f'{what} did not end within {seconds:.0f} s') from None
    if process.returncode:
        raise errors.CloudError(f'{what} failed: {text[-1500:]}')


def client(cloud: clouds.Cloud,
           *words: str) -> 'subprocess.Popen[str]':
    """Start a client of the API beside us."""
    return subprocess.Popen(
        [cloud.settings.program('python'), str(HERE / 'burst.py'), *words],
        env={**os.environ, **cloud.settings.credentials()},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _disturb(cloud: clouds.Cloud, began: float) -> None:
    for moment, verb, name in EVENTS:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        progress.say(f'load: {verb} {name}')
        if verb == 'kill':
            cloud.stop(name, patience_s=0)
        elif verb == 'start':
            cloud.start(name)
        else:
            cloud.restart(name)


def _restore(cloud: clouds.Cloud) -> None:
    for _, _, name in EVENTS:
        if not cloud.running.alive(name):
            cloud.start(name)


def _run(cloud: clouds.Cloud, words: list[str]) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, **cloud.settings.credentials()})
    if done.returncode:
        raise errors.CloudError(f'{words[0]} failed: {done.stdout[-500:]}'
                                f'{done.stderr[-1500:]}')
    return done.stdout
