# SPDX-License-Identifier: Apache-2.0

"""Carry out an experiment with guests that Nova launched, killed once.

The guests are emulated, and the program uses one CPU. Of the three choices,
two guests on a host instead of one do twice the work; a watchdog does nothing;
and a process on the host, which the command ``apply`` lets act, stops guests
for several seconds from time to time.
"""

import json
import pathlib
import shutil
import subprocess

from tests.system.cloud import cloud as clouds
from tests.system.cloud import image as guest_image
from tests.system.cloud import progress
from tests.system.cloud.config import compute
from tests.system.cloud_checks import load

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 2400
CPUS = 2
#: Leaves 576 MiB to guests, which the pages of the cloud suffice for.
MEMORY_MIB, RESERVE_MIB = 1200, 128
TOPOLOGY = {
    'schema_version': 1, 'name': compute.LIBVIRT_HOST, 'cells': [{
        'id': 0, 'socket': 0, 'cpus': list(range(CPUS)),
        'siblings': [[cpu] for cpu in range(CPUS)], 'memory_mib': MEMORY_MIB,
        'pages': {'4': MEMORY_MIB * 256, '2048': 0}}],
    'distances': [[10]], 'devices': []}
FLEET = {
    'schema_version': 1, 'classes': {'emulated': {
        'hosts': [f'{compute.LIBVIRT_HOST}=topology.json'],
        'profile': {
            'base': 'dense', 'name_prefix': 'tune', 'smallest_cores': 1,
            'memory_step_mib': 64, 'disk_gib': 1, 'page_size': '2M',
            'host_reserve_mib_per_cell': RESERVE_MIB}}}}
DOCUMENT = {
    'kind': 'experiment', 'schema_version': 1, 'image': 'guest',
    'network': 'guests', 'name': 'cloud', 'fleet': 'fleet.yaml',
    'host_class': 'emulated', 'programs': {'hs06': {
        'benchmark': 'hs06', 'minutes': 0.1,
        'settings': {'script': guest_image.BENCHMARK_PATH}}},
    'choices': {
        'guests': {'two': {'guests_per_host': 2}},
        'watchdog': {'none': {
            'extra_specs': {'hw:watchdog_action': 'none'}}},
        'disturber': {'on': {'host': {'disturber': 'on'}}}},
    'samples': 9, 'confirm_boots': 5, 'matters_percent': 15,
    'noise_percent': 2, 'boot_minutes': 0.7, 'reboot_minutes': 0.1,
    'never': {'slower_than': 3},
    # Two replicates of the design, and the confirmation.
    'limits': {'hours': 0.8, 'reboots': 20}}

#: Stops all guests of the cloud for 5 seconds, again and again, after 1 to 8
#: seconds, while the command ``apply`` says so. A run takes a second, and
#: begins less than 4 seconds after the guest answers again: one in eight to
#: one in five is hit, and the typical one is not.
DISTURB = """\
#!/bin/sh
# The arguments are the directory of the cloud and the file that says so.
guests() {
    pgrep -f "qemu-system.*$cloud"
}
cloud=$1
trap 'kill -CONT $(guests); exit' TERM
while :; do
    sleep "$(shuf -i 1-8 -n 1)" & wait $!
    [ -e "$2" ] || continue
    kill -STOP $(guests)
    sleep 5 & wait $!
    kill -CONT $(guests)
done 2> /dev/null
"""

#: The command ``apply``. Nothing that it starts would outlive it.
APPLY = """\
#!/bin/sh
cd "$(dirname "$0")" || exit
rm -f disturb
if grep -q disturber "$2"; then
    touch disturb
fi
"""


def check(cloud: clouds.Cloud) -> None:
    """Carry out the experiment.

    :raises CloudError: if a finding is wrong, or anything is left behind
    """
    settings = cloud.settings
    work = settings.run / 'tune'
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name, text in (('disturb.sh', DISTURB), ('apply.sh', APPLY)):
        (work / name).write_text(text)
        (work / name).chmod(0o755)
    (work / 'topology.json').write_text(json.dumps(TOPOLOGY))
    (work / 'fleet.yaml').write_text(json.dumps(FLEET))
    document = work / 'cloud.yaml'
    document.write_text(json.dumps({
        **DOCUMENT, 'apply': ['./apply.sh', '{host}', '{settings}']}))
    client = load.script(cloud, 'tune_client.py',
                         settings.program('hpcvirt'), str(document))
    disturber = subprocess.Popen([
        work / 'disturb.sh', settings.run, work / 'disturb'])
    try:
        with progress.step('tuned the emulated host'):
            load.finish(client, 'the experiment', LIMIT_S)
    finally:
        if client.poll() is None:
            client.kill()
        disturber.terminate()
        disturber.wait()
