# SPDX-License-Identifier: Apache-2.0

"""Let ``hpcvirt host supervise --gate`` keep a new host until it is proven.

A compute service leaves the cloud and appears again as a new one. It must get
no instances, and fail the gate, because its programs run at half the speed of
its class. It must stay held until an operator has taken it for a repair; then
it must pass, and take instances.

The programs of the gate on this machine, to which the gate logs in by ssh, are
stand-ins with the figures of the simulated host.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from hpcvirt import waiting
from tests.builders import supervised
from tests.integration.bench import ssh_server
from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import packages
from tests.system.cloud import progress
from tests.system.cloud_checks import load
from tests.system.cloud_checks import tempest_run

HERE = pathlib.Path(__file__).resolve().parent
#: The second of the hosts of fleet_client.
NEW = 'intel2'
PROGRAMS = ('mpirun', 'hpcc', 'fio')
#: The speed of the host, relative to its class.
SOUND, SLOW = 1.0, 0.5
#: Seconds for one part; a busy machine takes the gate slowly.
LIMIT_S = 400


def check(cloud: clouds.Cloud) -> None:
    """Let a host appear, fail, be repaired and pass.

    :raises CloudError: if it is not held and released as it should
    """
    packages.install(cloud.settings, ['openssh-server'])
    work = cloud.settings.run / 'gate'
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    _write_programs(work)
    with ssh_server.running() as server:
        server.login['PATH'] = f'{work}:{server.login["PATH"]}'
        server.more = 'LogLevel QUIET\n'
        server.write()
        server.known.write_text(f'[127.0.0.1]:{server.port} '
                                f'{server.host_key}\n')
        try:
            _check(cloud, work, server.url)
        finally:
            if not cloud.running.alive(NEW):
                cloud.start(NEW)


def _check(cloud: clouds.Cloud, work: pathlib.Path, target: str) -> None:
    _set_speed(work, SOUND)
    _run_part(cloud, work, 'peers', target)
    cloud.stop(NEW)
    _run_part(cloud, work, 'gone')
    process = _start_supervisor(cloud, work, target)
    try:
        state = work / 'state'
        if not waiting.poll(lambda: '"gates"' in state.read_text(), bool,
                            LIMIT_S, 0.2):
            raise errors.CloudError('the supervisor knows no gates: '
                                    + (work / 'said').read_text()[-1500:])
        _set_speed(work, SLOW)
        cloud.start(NEW)
        _run_part(cloud, work, 'held')
        _set_speed(work, SOUND)
        _run_part(cloud, work, 'repaired')
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
    if status:
        raise errors.CloudError(
            f'the supervisor ended with {status}: '
            + (work / 'said').read_text()[-1500:])


def _write_programs(work: pathlib.Path) -> None:
    """Put the programs of the gate into a folder."""
    text = (HERE / 'gate_program.py').read_text()
    for name in PROGRAMS:
        path = work / name
        path.write_text(f'#!{sys.executable} -IS\n{text}')
        path.chmod(0o755)


def _set_speed(work: pathlib.Path, speed: float) -> None:
    (work / 'speed').write_text(str(speed))


def _start_supervisor(cloud: clouds.Cloud, work: pathlib.Path,
                      target: str) -> 'subprocess.Popen[bytes]':
    """Start the supervisor; what it says is in the file ``said``."""
    words = supervised.write(work, NEW, 0.0)
    words.remove('--once')
    with open(work / 'said', 'wb') as said:
        return subprocess.Popen(
            [cloud.settings.program('python'),
             str(HERE / 'gate_supervisor.py'), *words, '--gate', target,
             '--apply'], stdout=said, stderr=said,
            env=_environment(cloud, work))


def _environment(cloud: clouds.Cloud, work: pathlib.Path) -> dict[str, str]:
    return {**os.environ, **cloud.settings.credentials(),
            'OS_CLOUD': 'envvars', 'XDG_DATA_HOME': str(work / 'data')}


def _run_part(cloud: clouds.Cloud, work: pathlib.Path, part: str,
              *words: str) -> None:
    settings = cloud.settings
    with progress.step(f'gate: {part}'):
        load.finish(subprocess.Popen(
            [settings.program('python'), str(HERE / 'gate_client.py'),
             settings.program('hpcvirt'),
             str(settings.etc / 'nova' / 'nova-scheduler.conf'),
             tempest_run.images(settings)['simulated'], str(work), part,
             *words], env=_environment(cloud, work),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True),
            f'gate, {part}', LIMIT_S)
