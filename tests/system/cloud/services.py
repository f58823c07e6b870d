# SPDX-License-Identifier: Apache-2.0

"""List and start the services of the cloud, and wait for them."""

import pathlib

from tests.system.cloud import fleet
from tests.system.cloud import node
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import compute

HERE = pathlib.Path(__file__).resolve().parent

#: WSGI module and number of threads of each API.
APIS = {
    'keystone': ('keystone.wsgi.api', 4),
    'placement': ('placement.wsgi.api', 4),
    'glance': ('glance.wsgi.api', 4),
    'nova-api': ('nova.wsgi.osapi_compute', 8),
    'neutron': ('neutron.wsgi.api', 4),
}
INFRASTRUCTURE = ('memcached', 'mariadb', 'rabbit', 'node', 'ovsdb',
                  'vswitchd', 'virtlogd', 'libvirtd')
#: Started on demand, to run two schedulers at once.
SPARE = 'nova-scheduler-2'


def control_names() -> list[str]:
    """List the services of the control plane in the order of their start."""
    return [*APIS, 'neutron-rpc', 'nova-conductor', 'nova-scheduler']


def compute_names() -> list[str]:
    """List the services of the compute hosts."""
    return ['ovs-agent', compute.LIBVIRT_HOST, *fleet.FLEET]


def all_names() -> list[str]:
    """List all services of a running cloud."""
    return [*INFRASTRUCTURE, *control_names(), *compute_names()]


def start(settings: cloud_settings.Settings,
          running: processes.Processes, name: str) -> None:
    """Start a service of the control plane or of a compute host."""
    if name in APIS:
        _start_api(settings, running, name)
        return
    words, extra = _command(settings, running, name)
    running.start(name, words, {**_environment(settings), **extra})


def wait(settings: cloud_settings.Settings,
         running: processes.Processes, name: str) -> None:
    """Wait until an API answers."""
    port = settings.port(name)
    probes.wait_for_service(running, name, lambda: probes.http_answers(port),
                            240)


def _environment(settings: cloud_settings.Settings) -> dict[str, str]:
    system = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    return {'PATH': f'{settings.venv / "bin"}:{system}'}


def _start_api(settings: cloud_settings.Settings,
               running: processes.Processes, name: str) -> None:
    module, threads = APIS[name]
    etc = settings.etc
    variables = {
        'keystone': {'OS_KEYSTONE_CONFIG_DIR': str(etc / 'keystone')},
        'placement': {'OS_PLACEMENT_CONFIG_DIR': str(etc / 'placement')},
        'glance': {'OS_GLANCE_CONFIG_DIR': str(etc / 'glance')},
        'nova-api': {'OS_NOVA_CONFIG_DIR': str(etc / 'nova'),
                     'OS_NOVA_CONFIG_FILES': 'api-paste.ini;nova-api.conf'},
        'neutron': {'OS_NEUTRON_CONFIG_DIR': str(etc / 'neutron'),
                    'OS_NEUTRON_CONFIG_FILES': 'neutron.conf;ml2.ini'},
    }[name]
    running.start(name, [
        settings.program('uwsgi'), '--master', '--die-on-term', '--need-app',
        '--enable-threads', '--thunder-lock', '--lazy-apps',
        '--processes', '1', '--threads', str(threads),
        '--http-socket', f'{cloud_settings.IP}:{settings.port(name)}',
        '--module', module, '--callable', 'application',
        '--buffer-size', '65535', '--listen', '100',
        '--add-header', 'Connection: close', '--http-chunked-input',
        '--disable-logging', '--worker-reload-mercy', '5',
    ], {**_environment(settings), **variables})


def _command(settings: cloud_settings.Settings,
             running: processes.Processes,
             name: str) -> tuple[list[str], dict[str, str]]:
    nova = ['--config-file', str(settings.etc / 'nova' / f'{name}.conf')]
    neutron = []
    for file in ('neutron.conf', 'ml2.ini'):
        neutron += ['--config-file', str(settings.etc / 'neutron' / file)]
    if name in fleet.FLEET:
        return ([settings.program('python'), str(HERE / 'fake_compute.py'),
                 *nova],
                {'HPCVIRT_FAKE_HOST': str(fleet.machine(settings, name))})
    if name == compute.LIBVIRT_HOST:
        return [*node.enter(running), settings.program('nova-compute'),
                *nova], {}
    if name == 'ovs-agent':
        return [*node.enter(running),
                settings.program('neutron-openvswitch-agent'), *neutron,
                '--config-file',
                str(settings.etc / 'neutron' / 'ovs-agent.ini')], {}
    if name == 'neutron-rpc':
        return [settings.program('neutron-rpc-server'), *neutron], {}
    if name == SPARE:
        return [settings.program('nova-scheduler'), *nova], {}
    return [settings.program(name), *nova], {}
