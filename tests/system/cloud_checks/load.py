# SPDX-License-Identifier: Apache-2.0

"""Create many servers from several clients while services are killed.

The clients create 200 servers in bursts while compute services are killed and
started again, and the scheduler is restarted. Afterwards no CPU may be pinned
twice, no page pool may be overcommitted, and Placement must agree with the
hosts. After the servers are deleted, no allocation may remain.
"""

import json
import os
import pathlib
import subprocess
import time
from typing import Any

from hpcvirt import waiting
from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import progress
from tests.system.cloud_checks import tempest_run

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = 200
CLIENTS = 4
PREFIX = 'load'

#: Its smallest flavors leave room for most servers on the fleet's 528 PCPUs.
PROFILE = 'base: dense\nname_prefix: load\nsmallest_cores: 1\n'

#: Seconds after the start of the load, a command and a service.
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

    :raises CloudError: if a condition is violated
    """
    flavors = ensure_flavors(cloud, PROFILE, 1, 4)
    image = tempest_run.images(cloud.settings)['simulated']
    began = time.monotonic()
    clients = [client(cloud, 'create', f'{PREFIX}{number}', image,
                      str(SERVERS // CLIENTS), *flavors)
               for number in range(CLIENTS)]
    try:
        _disturb(cloud, began)
        for process in clients:
            finish(process, 'a client', 600)
    finally:
        for process in clients:
            if process.poll() is None:
                process.kill()
        _restore(cloud)
    created_s = time.monotonic() - began
    finish(client(cloud, 'settle', PREFIX, str(SETTLE_S)),
           'settling', SETTLE_S + 60)
    settled_s = time.monotonic() - began
    state = observe(cloud, PREFIX)
    progress.say(f'load: {SERVERS} servers created in {created_s:.0f} s by '
                 f'{CLIENTS} clients, settled after {settled_s:.0f} s: '
                 f'{state["servers"]}, {state["messages"]}')
    _check_state(state)
    # In Nova, a server that was being built when its compute service was
    # killed is in error and keeps its allocation until it is deleted.
    finish(client(cloud, 'delete', PREFIX, '300', 'ERROR'), 'deletion', 360)
    state = wait_for_agreement(cloud, PREFIX)
    progress.say(f'load: PCPUs pinned {state["pinned"]}, allocated in '
                 f'Placement {state["allocated"]}')
    clear(cloud, PREFIX)


def _check_state(state: dict[str, Any]) -> None:
    if sum(state['servers'].values()) != SERVERS:
        raise errors.CloudError(f'servers were lost: {state["servers"]}')
    if state['servers'].get('ACTIVE', 0) < SERVERS // 4:
        raise errors.CloudError(f'too few active servers: {state["servers"]}')
    killed = {name for _, verb, name in EVENTS if verb == 'kill'}
    silent = set(state['silent']) - killed
    if silent:
        raise errors.CloudError('servers in error without a message on '
                                f'{sorted(silent)}')
    overlaps = [text for text in state['faults']
                if 'Placement' not in text and 'allocation' not in text]
    if overlaps:
        raise errors.CloudError('; '.join(overlaps))


def ensure_flavors(cloud: clouds.Cloud, profile: str,
                   least: int, most: int) -> list[str]:
    """Create flavors for the fleet.

    :param profile: the profile, in YAML
    :returns: the names of the flavors with ``least`` to ``most`` CPUs
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


def wait_for_agreement(cloud: clouds.Cloud, *prefixes: str,
                       limit_s: float = 120) -> dict[str, Any]:
    """Wait until Nova and Placement agree.

    A compute service that was killed between claim and start frees the claimed
    resources when it next updates its resources.

    :raises CloudError: if they do not agree in time
    """
    state = waiting.poll(lambda: observe(cloud, *prefixes),
                         lambda state: not state['faults'], limit_s, 5)
    if state['faults']:
        raise errors.CloudError('; '.join(state['faults'][:10]))
    return state


def observe(cloud: clouds.Cloud, *prefixes: str) -> dict[str, Any]:
    """Compare servers, hosts and Placement."""
    answer: dict[str, Any] = json.loads(_run(cloud, [
        cloud.settings.program('python'), str(HERE / 'observer.py'),
        str(fleet.plan_file(cloud.settings)), *prefixes]))
    return answer


def clear(cloud: clouds.Cloud, prefix: str) -> None:
    """Delete the servers and check that nothing stays allocated."""
    finish(client(cloud, 'delete', prefix, '400'), 'deletion', 460)
    state = wait_for_agreement(cloud, prefix)
    allocated = {host: pcpus for host, pcpus in state['allocated'].items()
                 if pcpus}
    if allocated or state['servers']:
        raise errors.CloudError(f'after deletion {state["servers"]} exist and '
                                f'{allocated} are allocated')
    progress.say('after deletion nothing is allocated')


def finish(process: 'subprocess.Popen[str]', what: str,
           limit_s: float) -> None:
    """Wait for a client; quote its output if it fails."""
    try:
        _, text = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise errors.CloudError(
            f'{what} did not end within {limit_s:.0f} s') from None
    if process.returncode:
        raise errors.CloudError(f'{what} failed: {text[-1500:]}')


def client(cloud: clouds.Cloud, *words: str) -> 'subprocess.Popen[str]':
    """Start a client of the API as a process."""
    return script(cloud, 'burst.py', *words)


def script(cloud: clouds.Cloud, name: str,
           *words: str) -> 'subprocess.Popen[str]':
    """Start a script beside this one in the environment of the cloud."""
    return subprocess.Popen(
        [cloud.settings.program('python'), str(HERE / name), *words],
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
