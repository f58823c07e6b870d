# SPDX-License-Identifier: Apache-2.0

"""Run the Tempest plugin in the cloud and check what is skipped."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent import futures

from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import inifile
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import compute

#: Tests that this check does not run, and the reason.
EXPECTED_SKIPS = {
    'GuestDeviceTest': 'the libvirt host has no SR-IOV device',
    'tests.scenario': 'the check "benchmarks" runs them',
}

#: The tests on the host with libvirt, and those on the simulated hosts. They
#: run at the same time: while a guest boots, the others wait for the cloud.
PARTS = {'tempest-guest': r'^hpcvirt\.tempest_plugin\.tests\.guest\.',
         'tempest': r'^hpcvirt\.tempest_plugin\.tests\.(?!guest\.)'}

#: The host with most cells is the last: a test that fills a host takes the
#: first one that suits it.
HOSTS = (*fleet.TWINS, 'xeon1', 'opteron1', 'epyc1')


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a run.

    :ivar passed: test -> details
    :ivar failed: test -> details with the traceback
    :ivar skipped: test -> reason
    """

    passed: dict[str, str]
    failed: dict[str, str]
    skipped: dict[str, str]


def configure(settings: cloud_settings.Settings,
              options: Mapping[str, inifile.Value],
              name: str) -> pathlib.Path:
    """Write tempest.conf.

    :param options: further options of the group ``[hpcvirt]``
    :returns: the directory with this name, to run in
    """
    directory = settings.run / name
    (directory / 'logs').mkdir(parents=True, exist_ok=True)
    image_ids, network_id = _references(settings)
    control = f'{sys.executable} -m tests.system.cloud'
    inifile.write(directory / 'tempest.conf', {
        'DEFAULT': {'log_dir': str(settings.log), 'log_file': f'{name}.log'},
        'oslo_concurrency': {'lock_path': str(directory / 'locks')},
        'auth': {
            'use_dynamic_credentials': True,
            'create_isolated_networks': False,
            'admin_username': 'admin',
            'admin_password': settings.password,
            'admin_project_name': 'admin',
            'admin_domain_name': 'Default',
        },
        'identity': {
            'uri_v3': f'{settings.url("keystone")}/v3',
            'auth_version': 'v3',
            'region': 'RegionOne',
            'v3_endpoint_type': 'public',
        },
        'compute': {
            'image_ref': image_ids['guest'],
            'image_ref_alt': image_ids['guest'],
            'flavor_ref': '1',
            'flavor_ref_alt': '1',
            'fixed_network_name': 'guests',
            'min_microversion': '2.1',
            'max_microversion': 'latest',
            'build_interval': 1,
            'build_timeout': 300,
        },
        'compute-feature-enabled': {'config_drive': True,
                                    'vnc_console': False},
        'network': {'project_networks_reachable': True,
                    'shared_physical_network': True,
                    'public_network_id': network_id},
        'validation': {
            'run_validation': True,
            'connect_method': 'fixed',
            'network_for_ssh': 'guests',
            'image_ssh_user': 'root',
            'ssh_timeout': 300,
            'connect_timeout': 30,
        },
        'service_available': {'cinder': False, 'swift': False,
                              'horizon': False, 'neutron': True,
                              'glance': True, 'nova': True},
        'hpcvirt': {
            'plan_file': str(fleet.plan_file(settings)),
            'topology_dir': str(fleet.topology(settings, 'x').parent),
            'hosts': ','.join(HOSTS),
            'twin_hosts': ','.join(fleet.TWINS),
            'pci_alias': compute.ALIAS,
            'scheduling_image_ref': image_ids['simulated'],
            'guest_image_ref': image_ids['guest'],
            'guest_plan_file': str(fleet.guest_plan_file(settings)),
            'guest_network': 'guests',
            'libvirt_uri': settings.libvirt_uri,
            'stop_compute_command': f'{control} stop {{host}}',
            'start_compute_command': f'{control} start {{host}}',
            'live_migration': True,
            'weighers': settings.filter == 'hpcvirt',
            **options,
        },
    })
    _init(settings, directory)
    return directory


def run(settings: cloud_settings.Settings) -> Result:
    """Run all tests except those that measure.

    :raises CloudError: if tests fail, or are skipped unexpectedly
    """
    with futures.ThreadPoolExecutor() as pool:
        parts = [pool.submit(attempt, settings, regex, 1500, {}, name)
                 for name, regex in PARTS.items()]
    passed: dict[str, str] = {}
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for part in parts:
        passed.update(part.result().passed)
        failed.update(part.result().failed)
        skipped.update(part.result().skipped)
    result = Result(passed, failed, skipped)
    for name, reason in result.skipped.items():
        progress.say(f'  skipped {name}: {reason}')
    unexpected = [name for name in result.skipped
                  if not any(key in name for key in EXPECTED_SKIPS)]
    if result.failed or not result.passed:
        raise errors.CloudError('Tempest failed: '
                                + (', '.join(result.failed) or 'no test ran'))
    if unexpected:
        raise errors.CloudError('skipped unexpectedly: '
                                + ', '.join(unexpected))
    return result


def attempt(settings: cloud_settings.Settings, regex: str, limit_s: float,
            options: Mapping[str, inifile.Value],
            name: str = 'tempest') -> Result:
    """Run tests one after the other.

    :param options: options of the group ``[hpcvirt]``
    :param name: the name of the directory to run in
    :raises CloudError: if Tempest does not end, or its result cannot be read
    """
    directory = configure(settings, options, name)
    environment = _environment(settings, directory)
    words = [settings.program('tempest'), 'run', '--config-file',
             str(directory / 'tempest.conf'), '--concurrency', '1',
             '--regex', regex]
    # A session of its own, so that its workers can be killed with it.
    process = subprocess.Popen(words, cwd=directory, env=environment,
                               start_new_session=True)
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise errors.CloudError(
            f'Tempest did not end within {limit_s:.0f} s') from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    result = _result(settings, directory, environment)
    if bool(status) != bool(result.failed):
        raise errors.CloudError(f'Tempest ended with status {status}, failed '
                                f'tests: {sorted(result.failed)}')
    progress.say(f'{name}: {len(result.passed)} passed, '
                 f'{len(result.failed)} failed, {len(result.skipped)} '
                 'skipped')
    return result


def _environment(settings: cloud_settings.Settings,
                 directory: pathlib.Path) -> dict[str, str]:
    return {
        **os.environ,
        'PATH': f'{settings.venv / "bin"}:{os.environ["PATH"]}',
        # For the commands that stop and start computes.
        'PYTHONPATH': str(cloud_settings.REPOSITORY),
        'TEMPEST_CONFIG_DIR': str(directory),
        'TEMPEST_CONFIG': 'tempest.conf',
        'OS_TEST_TIMEOUT': '900',
    }


def _init(settings: cloud_settings.Settings, directory: pathlib.Path) -> None:
    path = directory / '.stestr.conf'
    if not path.exists():
        packages = next((settings.venv / 'lib').glob('python3*'))
        top = packages / 'site-packages'
        path.write_text('[DEFAULT]\n'
                        f'test_path={top / "tempest" / "test_discover"}\n'
                        f'top_dir={top}\n')


def _references(
        settings: cloud_settings.Settings) -> tuple[dict[str, str], str]:
    script = ('import json, openstack\n'
              'cloud = openstack.connect()\n'
              'print(json.dumps([{i.name: i.id for i in '
              'cloud.image.images()}, '
              'cloud.network.find_network("guests").id]))\n')
    done = subprocess.run(
        [settings.program('python'), '-c', script], capture_output=True,
        text=True, check=False, timeout=120,
        env={**os.environ, **settings.credentials()})
    if done.returncode:
        raise errors.CloudError(f'cannot list images: {done.stderr[-500:]}')
    images, network = json.loads(done.stdout)
    return images, network


def _result(settings: cloud_settings.Settings, directory: pathlib.Path,
            environment: dict[str, str]) -> Result:
    stestr = settings.program('stestr')
    stream = subprocess.run([stestr, 'last', '--subunit'], cwd=directory,
                            env=environment, capture_output=True, check=False)
    script = str(pathlib.Path(__file__).parent / 'read_subunit.py')
    done = subprocess.run([settings.program('python'), script],
                          input=stream.stdout, capture_output=True,
                          check=False)
    if done.returncode:
        raise errors.CloudError('cannot read the result of Tempest: '
                                + done.stderr.decode()[-500:])
    answer = json.loads(done.stdout)
    return Result(**answer)


def images(settings: cloud_settings.Settings) -> dict[str, str]:
    """Return the ids of the images by name."""
    return _references(settings)[0]
