# SPDX-License-Identifier: Apache-2.0

"""Start and stop the hypervisor: libvirt and Open vSwitch.

Both run in a mount namespace, with sockets, configuration and databases below
the run directory. Open vSwitch uses its datapath in user space, which needs no
kernel module and whose bridges are tap devices that end with it.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from tests.system.cloud import commands
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import network

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'
#: The interface that Open vSwitch creates for a datapath in user space.
DATAPATH = 'ovs-netdev'
HERE = pathlib.Path(__file__).resolve().parent


def enter(running: processes.Processes) -> list[str]:
    """Return the start of a command line that runs a program on the node."""
    return ['nsenter', '-t', str(running.pid('node')), '-m']


def start(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """Start the namespace, Open vSwitch and libvirt, and wait for them."""
    _directories(settings)
    note_interfaces(settings)
    ready = settings.run / 'node-ready'
    ready.unlink(missing_ok=True)
    running.start('node', ['unshare', '-m', 'sh', str(HERE / 'node-init.sh'),
                           str(settings.run)])
    probes.wait_for_service(running, 'node', ready.exists, 30)
    _start_switch(settings, running)
    _start_libvirt(settings, running)


def clear(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """Kill the guests and delete their interfaces, even without libvirt."""
    if running.alive('libvirtd'):
        with contextlib.suppress(subprocess.TimeoutExpired):
            _destroy_domains(settings)
    _kill_emulators(settings)
    for name in _interfaces(settings):
        probes.succeeds(['ip', 'link', 'delete', name])


def note_interfaces(settings: cloud_settings.Settings) -> None:
    """Record the network interfaces that existed before the cloud."""
    record = settings.run / 'interfaces-before'
    if not record.exists():
        record.write_text('\n'.join(os.listdir('/sys/class/net')))


def clear_bridges(settings: cloud_settings.Settings) -> None:
    """Delete the bridges that remain after Open vSwitch has ended."""
    record = settings.run / 'interfaces-before'
    if not record.exists():
        return
    for name in (network.EXTERNAL_BRIDGE, network.INTEGRATION_BRIDGE,
                 DATAPATH):
        if (name not in record.read_text().split()
                and pathlib.Path('/sys/class/net', name).exists()):
            probes.succeeds(['ip', 'link', 'delete', name])


def _directories(settings: cloud_settings.Settings) -> None:
    libvirt = settings.run / 'libvirt'
    for name in ('libvirt/etc', 'libvirt/lib', 'libvirt/run',
                 'libvirt/cache', 'libvirt/log', 'ovs/run', 'ovs/etc',
                 'ovs/log', 'hugepages'):
        (settings.run / name).mkdir(parents=True, exist_ok=True)
    for source, target in (('/etc/libvirt', 'etc'),
                           ('/var/lib/libvirt', 'lib')):
        # Leave out the guests and networks of the machine itself.
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
    probes.wait_for_service(running, 'ovsdb',
                            (directory / 'run' / 'db.sock').exists, 30)
    control = [*inside, 'ovs-vsctl', '--timeout=30']
    commands.run(settings, 'ovs', [*control, '--no-wait', 'init'])
    # Guests send packets with incomplete checksums. Without this option the
    # switch drops their TCP packets, and only ping works.
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
    probes.wait_for_service(running, 'libvirtd', lambda: probes.succeeds(
        ['virsh', '-c', settings.libvirt_uri, 'version']), 60)


def _destroy_domains(settings: cloud_settings.Settings) -> None:
    virsh = ['virsh', '-c', settings.libvirt_uri]
    result = subprocess.run([*virsh, 'list', '--name'], capture_output=True,
                            text=True, timeout=30, check=False)
    for name in result.stdout.split():
        probes.succeeds([*virsh, 'destroy', name])


def _kill_emulators(settings: cloud_settings.Settings) -> None:
    """Kill the QEMU processes that libvirt started.

    They have neither the environment nor the session of libvirt, but their
    command lines name directories of the cloud.
    """
    needle = f'{settings.run / "nova"}/'.encode()
    for pid in processes.pids():
        with contextlib.suppress(OSError):
            line = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
            if b'qemu-system' in line.split(b'\0')[0] and needle in line:
                os.kill(pid, signal.SIGKILL)


def _interfaces(settings: cloud_settings.Settings) -> list[str]:
    """List the tap devices of guests in the switch's database."""
    database = settings.run / 'ovs' / 'etc' / 'conf.db'
    if not database.exists():
        return []
    query = ['Open_vSwitch', {'op': 'select', 'table': 'Interface',
                              'where': [], 'columns': ['name']}]
    result = subprocess.run(
        ['ovsdb-tool', 'query', str(database), json.dumps(query)],
        capture_output=True, text=True, check=False)
    names = re.findall(r'"(tap[0-9a-f]{8}-[0-9a-f]{2})"', result.stdout)
    return [name for name in names
            if pathlib.Path('/sys/class/net', name).exists()]
