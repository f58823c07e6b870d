# SPDX-License-Identifier: Apache-2.0

"""Accept an emulated host, and a host that this machine stands in for.

The libvirt host emulates its guest, so it must FAIL, far from the bound,
against a class of hosts on which the same program runs as fast as on this
machine, and stay in quarantine. A simulated host has no guests: this machine
stands in for them, as a guest without any loss. The host must pass against its
class. A flavor that requires its new trait must then start only there.

The figures of the peer hosts are stored when the acceptance has begun: the
program runs on this machine, and the peer hosts differ by 1 %.
"""

import json
import pathlib
import shutil
import subprocess
from typing import Any

from tests.system.cloud import cloud as clouds
from tests.system.cloud import fleet
from tests.system.cloud import image as guest_image
from tests.system.cloud import progress
from tests.system.cloud.config import compute
from tests.system.cloud_checks import load

HERE = pathlib.Path(__file__).resolve().parent
#: A simulated host; an equal host is not accepted.
STAND_IN = 'intel1'
LIMIT_S = 600


def check(cloud: clouds.Cloud) -> None:
    """Accept the hosts.

    :raises CloudError: if a verdict, a trait or a quarantine is wrong
    """
    settings = cloud.settings
    work = settings.run / 'accept'
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    common = {'work': str(work), 'program': str(guest_image.BENCHMARK)}
    plan = json.loads(fleet.guest_plan_file(settings).read_text())
    (host,) = plan['flavors'][0]['per_host']
    # Emulation is slow, and needs one of the CPUs.
    clients = {
        'the emulated host': _start(cloud, 'emulated', {
            **common, 'hpcvirt': [settings.program('hpcvirt')],
            'host': compute.LIBVIRT_HOST, 'image': 'guest',
            'script': guest_image.BENCHMARK_PATH,
            'flavor': _single(plan, host),
            'plan': str(fleet.guest_plan_file(settings))}),
        'the stand-in': _start(cloud, 'stand-in', {
            **common, 'hpcvirt': [settings.program('python'),
                                  str(HERE / 'accept_stand_in.py')],
            'host': STAND_IN, 'image': 'simulated',
            'script': str(guest_image.BENCHMARK),
            'flavor': _single(json.loads(
                fleet.plan_file(settings).read_text()), STAND_IN),
            'plan': str(fleet.plan_file(settings))})}
    try:
        for what, client in clients.items():
            with progress.step(f'accepted {what}'):
                load.finish(client, f'accepting {what}', LIMIT_S)
    finally:
        for client in clients.values():
            if client.poll() is None:
                client.kill()


def _single(plan: dict[str, Any], host: str) -> dict[str, Any]:
    """Choose a flavor of which one instance fills a host."""
    flavor: dict[str, Any] = next(
        flavor for flavor in plan['flavors']
        if flavor['per_host'][host] == 1)
    return flavor


def _start(cloud: clouds.Cloud, what: str,
           options: dict[str, Any]) -> 'subprocess.Popen[str]':
    return load.script(cloud, 'accept_client.py', what, json.dumps(options))
