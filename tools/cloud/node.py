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

"""The hypervisor: a mount namespace with libvirt and Open vSwitch in it.

Both are private instances with sockets, configuration and databases below
the run directory. The datapath is Open vSwitch's own in user space, which
needs no kernel module; its bridges are tap devices that end with it.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from tools.cloud import commands
from tools.cloud import processes
from tools.cloud import settings as cloud_settings
from tools.cloud import waiting
from tools.cloud.config import network

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'
#: The interface that Open vSwitch makes for a datapath in user space.
DATAPATH = 'ovs-netdev'
HERE = pathlib.Path(__file__).resolve().parent


def enter(running: processes.Processes) -> list[str]:
    """The words that run a program on the node."""
    return ['nsenter', '-t', str(running.pid('node')), '-m']


def start(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """Start the node, Open vSwitch and libvirt, and wait for them."""
    _directories(settings)
    note_interfaces(settings)
    ready = settings.run / 'node-ready'
    ready.unlink(missing_ok=True)
    running.start('node', ['unshare', '-m', 'sh', str(HERE / 'node-init.sh'),
                           str(settings.run)])
    waiting.for_service(running, 'node', ready.exists, 30)
    _start_switch(settings, running)
    _start_libvirt(settings, running)


def clear(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """End the guests and take the bridges away; works on a dead node too."""
    if running.alive('libvirtd'):
        with contextlib.suppress(subprocess.TimeoutExpired):
            _destroy_domains(settings)
    _kill_emulators(settings)
    for name in _interfaces(settings):
        waiting.succeeds(['ip', 'link', 'delete', name])


def note_interfaces(settings: cloud_settings.Settings) -> None:
    """Write down which network interfaces are not ours."""
    record = settings.run / 'interfaces-before'
    if not record.exists():
        record.write_text('\n'.join(os.listdir('/sys/class/net')))


def clear_bridges(settings: cloud_settings.Settings) -> None:
    """Delete what is left of the bridges once the switch has ended."""
    record = settings.run / 'interfaces-before'
    if not record.exists():
        return
    for name in (network.EXTERNAL_BRIDGE, network.INTEGRATION_BRIDGE,
                 DATAPATH):
        if (name not in record.read_text().split()
                and pathlib.Path('/sys/class/net', name).exists()):
            waiting.succeeds(['ip', 'link', 'delete', name])


def _directories(settings: cloud_settings.Settings) -> None:
    libvirt = settings.run / 'libvirt'
    for name in ('libvirt/etc', 'libvirt/lib', 'libvirt/run',
                 'libvirt/cache', 'libvirt/log', 'ovs/run', 'ovs/etc',
                 'ovs/log', 'hugepages'):
        (settings.run / name).mkdir(parents=True, exist_ok=True)
    for source, target in (('/etc/libvirt', 'etc'),
                           ('/var/lib/libvirt', 'lib')):
        # The machine's own guests and networks are none of our business.
        shutil.copytree(source, libvirt / target, symlinks=True,
                        dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns(
                            'autostart', 'images', '*.qcow2', '*.raw',
                            '*.iso', 'save', 'snapshot', 'nvram', 'dump',
                            'ram', 'domain-*', '*.xml'))
    (libvirt / 'etc' / 'qemu.conf').write_text('\n'.join([
        'user = "root"', 'group = "root"', 'security_driver = "none"',
        'remember_owner = 0', 'namespaces = []', 'cgroup_controllers = []',
        f'hugetlbfs_mount = "{settings.run / "hugepages"}"', '']))
    (libvirt / 'etc' / 'libvirtd.conf').write_text('\n'.join([
        'unix_sock_rw_perms = "0700"', 'auth_unix_rw = "none"',
        'auth_unix_ro = "none"', '']))


def _start_switch(settings: cloud_settings.Settings,
                  running: processes.Processes) -> None:
    inside = enter(running)
    directory = settings.run / 'ovs'
    if not (directory / 'etc' / 'conf.db').exists():
        commands.run(settings, 'ovs', [
            *inside, 'ovsdb-tool', 'create', '/etc/openvswitch/conf.db',
            SCHEMA])
    running.start('ovsdb', [
        *inside, 'ovsdb-server', '/etc/openvswitch/conf.db',
        '--remote=punix:/run/openvswitch/db.sock',
        f'--remote=ptcp:{settings.port("ovsdb")}:{cloud_settings.IP}',
        '--pidfile=/run/openvswitch/ovsdb-server.pid'])
    waiting.for_service(running, 'ovsdb',
                        (directory / 'run' / 'db.sock').exists, 30)
    control = [*inside, 'ovs-vsctl', '--timeout=30']
    commands.run(settings, 'ovs', [*control, '--no-wait', 'init'])
    # Guests hand over packets whose checksums are not complete; without
    # this the switch drops their TCP, and only ping works.
    commands.run(settings, 'ovs', [
        *control, '--no-wait', 'set', 'Open_vSwitch', '.',
        'other_config:userspace-tso-enable=true'])
    running.start('vswitchd', [
        *inside, 'ovs-vswitchd', 'unix:/run/openvswitch/db.sock',
        '--pidfile=/run/openvswitch/ovs-vswitchd.pid'])
    commands.run(settings, 'ovs', [
        *control,
        '--', '--may-exist', 'add-br', network.EXTERNAL_BRIDGE,
        '--', 'set', 'bridge', network.EXTERNAL_BRIDGE,
        'datapath_type=netdev',
        '--', '--may-exist', 'add-br', network.INTEGRATION_BRIDGE,
        '--', 'set', 'bridge', network.INTEGRATION_BRIDGE,
        'datapath_type=netdev', 'fail_mode=secure'])
    address = f'{settings.subnet}.1/24'
    commands.run(settings, 'ovs', [
        'ip', 'address', 'replace', address, 'dev', network.EXTERNAL_BRIDGE])
    commands.run(settings, 'ovs', ['ip', 'link', 'set', 'mtu', '1400', 'up',
                                   'dev', network.EXTERNAL_BRIDGE])


def _start_libvirt(settings: cloud_settings.Settings,
                   running: processes.Processes) -> None:
    inside = enter(running)
    running.start('virtlogd', [*inside, 'virtlogd'])
    running.start('libvirtd', [*inside, 'libvirtd'])
    waiting.for_service(running, 'libvirtd', lambda: waiting.succeeds(
        ['virsh', '-c', settings.libvirt_uri, 'version']), 60)


def _destroy_domains(settings: cloud_settings.Settings) -> None:
    virsh = ['virsh', '-c', settings.libvirt_uri]
    done = subprocess.run([*virsh, 'list', '--name'], capture_output=True,
                          text=True, timeout=30, check=False)
    for name in done.stdout.split():
        waiting.succeeds([*virsh, 'destroy', name])


def _kill_emulators(settings: cloud_settings.Settings) -> None:
    """End the QEMU processes that libvirt started here.

    libvirt gives them an environment and a session of their own, so they
    are known by their command line, which names our directories.
    """
    needle = f'{settings.run / "nova"}/'.encode()
    for pid in processes.pids():
        with contextlib.suppress(OSError):
            line = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
            if b'qemu-system' in line.split(b'\0')[0] and needle in line:
                os.kill(pid, signal.SIGKILL)


def _interfaces(settings: cloud_settings.Settings) -> list[str]:
    """List the guests' tap devices, as the switch's database knows them."""
    database = settings.run / 'ovs' / 'etc' / 'conf.db'
    if not database.exists():
        return []
    query = ['Open_vSwitch', {'op': 'select', 'table': 'Interface',
                              'where': [], 'columns': ['name']}]
    done = subprocess.run(
        ['ovsdb-tool', 'query', str(database), json.dumps(query)],
        capture_output=True, text=True, check=False)
    names = re.findall(r'"(tap[0-9a-f]{8}-[0-9a-f]{2})"', done.stdout)
    return [name for name in names
            if pathlib.Path('/sys/class/net', name).exists()]
