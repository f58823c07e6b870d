# SPDX-License-Identifier: Apache-2.0

"""The Ansible collection: built, judged, and run on six stand-in hosts.

A stand-in host is a folder with the ``/boot``, ``/etc``, ``/proc`` and
``/sys`` of an emulated host (``tests/data/hosts``), which a connection plugin
mounts in a namespace of its own for each command. Programs that would change
the kernel are stand-ins too; a reboot writes what the kernel would show.
"""

import collections
import datetime
import json
import pathlib
import re
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import yaml

from hpcvirt.flavors import planned as plans
from tests.builders import sysfs_files
from tests.system.deployment import orchestration
from tests.system.deployment import readers
from tests.system.deployment import system

COLLECTION = orchestration.COLLECTION
PHASES = ('inspect', 'plan', 'config', 'reboot', 'audit', 'accept', 'release')
ROLES = ('accept', 'capture', 'exporter', 'fleet', 'host')

#: Class -> the emulated host, the number of hosts, and the profile.
CLASSES: Mapping[str, tuple[str, int, str | dict[str, Any]]] = {
    'intel': ('intel-2s-smt', 3, {'memory_step_mib': 512}),
    'amd': ('amd-2s', 3, 'dense'),
}
#: The emulated hosts have so much less memory than real ones.
MEMORY = 32
#: Host -> the phase in which it fails in the first run, and in the second.
FAILING: Sequence[Mapping[str, str]] = (
    {'intel-3': 'inspect', 'amd-3': 'plan', 'amd-2': 'config',
     'intel-2': 'reboot'},
    {'amd-2': 'audit', 'amd-3': 'accept', 'intel-2': 'release'},
)
#: Phase -> the file with which it fails.
FLAGS = {
    'config': 'FAIL_tuned-adm', 'reboot': 'FAIL_shutdown',
    'audit': 'FAIL_pages', 'accept': 'FAIL_accept',
    'release': 'FAIL_release'}
MEMINFO = 'sys/devices/system/node/node1/meminfo'

#: Appended to the plug-in "local" of the installed Ansible.
CONNECTION = """

_local = Connection.exec_command


def _exec_command(self, cmd, in_data=None, sudoable=True):
    root = self._play_context.remote_addr
    return _local(self, 'exec unshare --mount {enter} %s %s' % (
        shlex.quote(root), shlex.quote(to_text(cmd))), in_data, sudoable)


Connection.exec_command = _exec_command
"""
#: /proc is the last, because mount reads it.
ENTER = """#!/bin/sh -e
cd "$1"
mount --bind programs /usr/local/sbin
for name in /sbin/shutdown /usr/sbin/shutdown; do
    [ ! -e $name ] || mount --bind programs/shutdown $name
done
for name in boot etc sys proc; do
    mount --bind $name /$name
done
echo . >> entered
PATH=/usr/local/sbin:$PATH exec sh -c "$2"
"""
#: What a boot does: it writes what the kernel shows afterwards.
BOOT = """import pathlib, re, time
root = pathlib.Path('{root}')
text = (root / 'boot/grub/grub.cfg').read_text()
words = re.findall('(?m)^GRUB_CMDLINE_LINUX="[$]GRUB_CMDLINE_LINUX (.*)"',
                   text)
(root / 'proc/cmdline').write_text(' '.join(['ro quiet', *words]) + chr(10))
(root / 'proc/stat').write_text(f'btime {{int(time.time()) + 1}}' + chr(10))
boot_id = root / 'proc/sys/kernel/random/boot_id'
boot_id.write_text(str(time.time_ns()))
given = dict(word.split('=', 1) for word in ' '.join(words).split()
             if '=' in word)
size = {{'2M': 2048, '1G': 1 << 20}}[given['hugepagesz']]
lost = 100 if (root / 'FAIL_pages').exists() else 0
for place in (root / 'sys/devices/system/node').glob(
        'node*/hugepages/*/*_hugepages'):
    place.write_text('0' + chr(10))
for item in given['hugepages'].split(','):
    cell, count = item.split(':')
    for name in ('nr', 'free'):
        (root / f'sys/devices/system/node/node{{cell}}/hugepages'
         f'/hugepages-{{size}}kB/{{name}}_hugepages').write_text(
             f'{{int(count) - lost}}' + chr(10))
(root / 'sys/kernel/mm/transparent_hugepage/enabled').write_text(
    'always madvise [never]' + chr(10))
(root / 'sys/devices/system/cpu/isolated').write_text(
    given.get('isolcpus', '').split(',domain,')[-1] + chr(10))
(root / 'sys/devices/system/cpu/nohz_full').write_text(
    given.get('nohz_full', '') + chr(10))
"""
#: The program on the controller. What needs a cloud is a stand-in.
PROGRAM = """#!/bin/sh -e
act= host=$3
case "$1 $2" in
'bench run')
    act=accept host=$4
    # The document of the role is read as it is without a cloud.
    {python} -m hpcvirt.cmd.main bench run "$3" "$host" --quick ;;
'host quarantine')
    act=quarantine
    [ "$4" != --release ] || act=release ;;
esac
case $act in
?*)
    echo "$act" >> '{hosts}'/"$host"/cloud
    if [ -e '{hosts}'/"$host"/FAIL_"$act" ]; then
        [ "$act" = accept ] || {{ echo 'Nova cannot be reached' >&2; exit 2; }}
        echo "FAIL: STREAM Triad is 12 % slower than its class"
        exit 1
    fi
    echo Done.
    exit ;;
esac
exec {python} -m hpcvirt.cmd.main "$@"
"""
#: How much of a wave may fail for the next one to begin.
LIMIT = ('-e', 'hpcvirt_fleet_max_fail_percentage=70')
ENV = {**orchestration.FAST, 'ANSIBLE_FORKS': '4', 'ANSIBLE_NOCOLOR': '1'}


def build(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Build the collection, install the archive, and list its roles."""
    readers.run('ansible-galaxy', 'collection', 'build', COLLECTION,
                '--output-path', folder)
    (archive,) = folder.glob('hpcvirt-hpc-*.tar.gz')
    env = {'ANSIBLE_COLLECTIONS_PATH': str(folder / 'there'),
           'ANSIBLE_HOME': str(folder / 'home')}
    readers.run('ansible-galaxy', 'collection', 'install', archive,
                '--collections-path', folder / 'there', '--offline', env=env)
    listed = json.loads(readers.run(
        'ansible-doc', '--type', 'role', '--list', '--json', 'hpcvirt.hpc',
        env=env))
    readers.equal([f'hpcvirt.hpc.{name}' for name in ROLES], sorted(listed),
                  'the roles of the archive')
    for name in ('fleet', 'exporters'):
        readers.run('ansible-playbook', '--syntax-check', '-i', 'localhost,',
                    f'hpcvirt.hpc.{name}', env=env)
    return archive.name


def sanity(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let ansible-test judge the collection.

    For the tests that are left out, it would make environments of their own;
    ruff, ansible-lint and its yamllint find the same.
    """
    place = orchestration.install(folder) / 'ansible_collections/hpcvirt/hpc'
    # ansible-test would download the script that installs pip.
    version = re.search(r"pip='([0-9.]+)'", readers.run(
        'python', '-c', 'import ansible_test, pathlib; '
        'print(pathlib.Path(ansible_test.__file__).with_name("_internal")'
        '.joinpath("python_requirements.py").read_text())'))
    readers.require(version is not None, 'the version of pip')
    name = f'get_pip_{version[1].replace(".", "_")}.py'
    cache = folder / '.ansible/test/cache'
    cache.mkdir(parents=True)
    (cache / name).write_text('import ensurepip\nensurepip.bootstrap()\n')
    # The configuration of pip.
    (folder / '.config').symlink_to(pathlib.Path.home() / '.config')
    text = readers.run(
        'env', '-C', place, 'ansible-test', 'sanity', '--color', 'no',
        '--python', f'{sys.version_info[0]}.{sys.version_info[1]}',
        *(f'--skip-test={name}' for name in ('pep8', 'pylint', 'yamllint')),
        env={'ANSIBLE_HOME': str(folder / 'home'), 'HOME': str(folder)})
    ran = set(re.findall('(?m)^Running sanity test "(.*?)"', text))
    readers.require({'runtime-metadata', 'validate-modules'} <= ran, text)
    return f'{len(ran)} tests'


def waves(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Take a fleet through its phases: a failure in each, then a repair."""
    began = time.monotonic()
    roots = _make_site(folder)
    # One of the two hosts of each wave fails.
    _change(roots, FAILING[0])
    first = _fail(folder, FAILING[0], 2)
    readers.equal(
        dict.fromkeys(('amd-1', 'intel-1'), ('release', 'PASS')),
        {name: (item['phase'], item['verdict'])
         for name, item in first.items() if name not in FAILING[0]},
        'the hosts of the waves that do not fail')
    # All hosts of the first wave fail: no other wave begins.
    _change(roots, FAILING[0])
    _change(roots, FAILING[1])
    second = _fail(folder, FAILING[1], 3)
    readers.equal({*FAILING[1]}, {name for name in second if any(
        second[name]['phases'].get(phase) != first[name]['phases'].get(phase)
        for phase in PHASES[2:])}, 'the hosts of the wave that fails')
    _change(roots, FAILING[1])
    before = {name: (roots / name / 'entered').stat().st_size
              for name in second}
    _play(folder, 'fleet', *LIMIT, '-e', 'hpcvirt_fleet_serial=2')
    done = _results(folder)
    readers.equal({('release', 'PASS')}, {
        (item['phase'], item['verdict']) for item in done.values()},
        'the results of the last run')
    touched = {name for name in done if before[name] != (
        roots / name / 'entered').stat().st_size}
    # What follows the audit is done in the cloud.
    readers.equal({'amd-2', 'intel-3'}, touched,
                  'the hosts that were done again')
    _change_profile(folder, done)
    _exporters(folder, roots)
    lines = [f'{name} stopped in {phase}: '
             f'{found[name]["phases"][phase]["reason"]}'
             for failing, found in zip(FAILING, (first, second), strict=True)
             for name, phase in failing.items()]
    return '\n  '.join([
        (f'{len(done)} hosts, {len(lines)} failures, repaired in '
         f'{time.monotonic() - began:.0f} s'), *lines, *_times(first)])


def _fail(folder: pathlib.Path, failing: Mapping[str, str],
          serial: int) -> dict[str, dict[str, Any]]:
    """Run with hosts that fail, and return the results.

    :param serial: the number of hosts of a wave
    """
    text = _play(folder, 'fleet', *LIMIT, '-e',
                 f'hpcvirt_fleet_serial={serial}', status=2)
    found = _results(folder)
    readers.equal(
        {name: (phase, 'FAIL') for name, phase in failing.items()},
        {name: (found[name]['phase'], found[name]['verdict'])
         for name in failing}, f'{_failed_tasks(text)}the results')
    return found


def _change_profile(folder: pathlib.Path,
                    before: Mapping[str, Mapping[str, Any]]) -> None:
    """Change the profile of a class: a host of it is configured again."""
    place = folder / 'site/fleet.yaml'
    place.write_text(place.read_text().replace(
        'profile: dense', 'profile: {base: dense, page_size: 1G}'))
    _play(folder, 'fleet', '--limit', 'amd-1,intel-1')
    again = _results(folder)
    readers.equal({'amd-1'}, {
        name for name in before if any(
            again[name]['phases'][phase] != before[name]['phases'][phase]
            for phase in PHASES[2:])}, 'hosts with another profile')
    readers.equal(('release', 'PASS'), (
        again['amd-1']['phase'], again['amd-1']['verdict']), 'amd-1')


def _make_site(folder: pathlib.Path) -> pathlib.Path:
    """Make the hosts, the fleet document and the inventory."""
    roots, site = folder / 'hosts', folder / 'site'
    classes = {}
    for name, (machine, count, profile) in CLASSES.items():
        names = [f'{name}-{number}' for number in range(1, count + 1)]
        files = sysfs_files.emulated(machine)
        for host in names:
            _make_host(roots / host, files)
        classes[name] = {'profile': profile, 'hosts': [
            f'{host}=topologies/{host}.json' for host in names]}
    (site / 'inventory').mkdir(parents=True)
    (site / 'fleet.yaml').write_text(yaml.safe_dump(
        {'schema_version': 1, 'classes': classes}))
    program = folder / 'hpcvirt'
    program.write_text(PROGRAM.format(hosts=roots, python=shlex.quote(
        sys.executable)))
    program.chmod(0o755)
    (site / 'inventory/fleet.yml').write_text(readers.run(
        program, 'fleet', 'show', site / 'fleet.yaml', '-f', 'inventory'))
    group = {
        'hosts': {root.name: {'ansible_host': str(root)}
                  for root in roots.iterdir()},
        'vars': {'ansible_connection': 'standin', 'ansible_become': False,
                 'ansible_python_interpreter': system.SYSTEM_PYTHON,
                 'hpcvirt_fleet_folder': str(site),
                 'hpcvirt_fleet_program': str(program),
                 'hpcvirt_accept_gate': 'ssh://root@{{ inventory_hostname }}',
                 'hpcvirt_accept_flavors': ['hpc.largest']}}
    (site / 'inventory/hosts.yml').write_text(yaml.safe_dump(
        {'hpcvirt_hosts': group}))
    _make_connection(folder)
    return roots


def _make_host(root: pathlib.Path, files: Mapping[str, str]) -> None:
    """Lay out a host that was just installed."""
    sysfs_files.lay_out({
        path: content if isinstance(content, sysfs_files.Link) else re.sub(
            r'(Mem(?:Total|Free):\s+)(\d+)', lambda match: match[1] + str(
                int(match[2]) * MEMORY), content)
        for path, content in files.items()}, root)
    for name in ('passwd', 'group', 'nsswitch.conf', 'os-release',
                 'debian_version', 'ld.so.cache'):
        (root / 'etc').mkdir(exist_ok=True)
        if pathlib.Path('/etc', name).exists():
            shutil.copy(f'/etc/{name}', root / 'etc' / name)
    (root / 'etc/systemd/system').mkdir(parents=True)
    shutil.copytree('/etc/alternatives', root / 'etc/alternatives',
                    symlinks=True)
    for path, text in (
            ('boot/grub/grub.cfg', ''), ('proc/stat', 'btime 1000'),
            ('proc/cmdline', 'ro quiet'), ('units', 'active'), ('entered', ''),
            ('proc/sys/kernel/hostname', root.name),
            *((f'proc/{number}/{path}', text) for number, name in enumerate(
                ('systemd', 'kthreadd', 'tuned'), 1) for path, text in (
                    ('comm', name), ('status', 'Uid:\t0\t0\t0\t0'))),
            ('sys/class/misc/kvm/uevent', 'DEVNAME=kvm'),
            ('proc/sys/kernel/random/boot_id', '1'),
            *((f'proc/sys/{item.replace(".", "/")}', '60') for item in (
                'vm.swappiness', 'kernel.numa_balancing'))):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f'{text}\n')
    orchestration.write_programs(root, root / 'programs', {
        **orchestration.PROGRAMS, 'shutdown': f'exec python3 {root}/boot.py'})
    (root / 'boot.py').write_text(BOOT.format(root=root))


def _make_connection(folder: pathlib.Path) -> None:
    """Write the connection plug-in: that of Ansible, within a namespace."""
    enter = folder / 'enter'
    enter.write_text(ENTER)
    enter.chmod(0o755)
    source = pathlib.Path(readers.run(
        'python', '-c', 'from ansible.plugins.connection import local; '
        'print(local.__file__)').strip()).read_text()
    place = folder / 'plugins/standin.py'
    place.parent.mkdir()
    place.write_text(source.replace('name: local', 'name: standin').replace(
        "transport = 'local'", "transport = 'standin'").replace(
            'import shutil', 'import shlex\nimport shutil')
        + CONNECTION.format(enter=enter))


def _change(roots: pathlib.Path, failing: Mapping[str, str]) -> None:
    """Let hosts fail, or repair them."""
    for name, phase in failing.items():
        root = roots / name
        if phase == 'inspect':
            here, there = root / 'sys/devices/system/cpu', root / 'no-cpus'
            if there.exists():
                here, there = there, here
            here.rename(there)
        elif phase == 'plan':
            # A memory module is missing.
            place, kept = root / MEMINFO, root / 'meminfo'
            if kept.exists():
                kept.rename(place)
            else:
                shutil.copy(place, kept)
                place.write_text(re.sub(
                    r'(MemTotal:\s+)(\d+)', lambda match: match[1] + str(
                        int(match[2]) // 2), place.read_text()))
        else:
            flag = root / FLAGS[phase]
            if not flag.exists():
                flag.touch()
                continue
            flag.unlink()
            if phase == 'audit':
                readers.run('python3', root / 'boot.py')


def _play(folder: pathlib.Path, name: str, *words: str,
          status: int = 0) -> str:
    """Run a playbook of the collection on the site."""
    return readers.run(
        'ansible-playbook', '-i', folder / 'site/inventory',
        f'hpcvirt.hpc.{name}', *words, status=status, env={
            **ENV, 'ANSIBLE_HOME': str(folder / 'home'),
            'ANSIBLE_CONNECTION_PLUGINS': str(folder / 'plugins'),
            'ANSIBLE_COLLECTIONS_PATH': str(orchestration.install(folder))})


def _failed_tasks(text: str) -> str:
    """Return the lines of Ansible's output that name failed tasks."""
    failed = []
    task = ''
    for line in text.splitlines(keepends=True):
        if line.startswith('TASK'):
            task = line
        elif line.startswith(('fatal:', 'failed:', '[ERROR]')):
            failed += [task, line]
    return ''.join(failed)


def _results(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Read the results of the fleet."""
    text = (folder / 'site/results.jsonl').read_text()
    return {item['host']: item for item in map(
        json.loads, text.splitlines())}


def _times(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say how long hosts and waves took."""
    lines = []
    hosts = collections.defaultdict(list)
    for item in found.values():
        hosts[item['wave']].append(item)
    for wave, items in sorted(hosts.items()):
        own = [[each['phases'][phase] for phase in PHASES[2:]
                if phase in each['phases']] for each in items]
        if wave:
            begins = [_seconds(phases[0]['began']) for phases in own]
            ends = [_seconds(each['began']) + each['seconds']
                    for phases in own for each in phases]
            each = [sum(phase['seconds'] for phase in phases)
                    for phases in own]
            lines.append(
                f'wave {wave}: {len(items)} hosts in '
                f'{max(ends) - min(begins):.0f} s, {min(each):.0f} to '
                f'{max(each):.0f} s a host')
    for phase in PHASES:
        each = [item['phases'][phase]['seconds'] for item in found.values()
                if phase in item['phases']]
        lines.append(f'{phase}: {min(each):.1f} to {max(each):.1f} s a host')
    return lines


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def _exporters(folder: pathlib.Path, roots: pathlib.Path) -> None:
    """Install the units of the exporters, and let systemd verify them."""
    (folder / 'site/inventory/capacity.yml').write_text(yaml.safe_dump(
        {'hpcvirt_capacity': {'hosts': {'amd-1': {}}}}))
    words = ('--limit', 'intel-1,amd-1', '-e',
             'hpcvirt_exporter_program=/bin/true', '-e',
             'hpcvirt_exporter_cpus=0-1', '-e', 'hpcvirt_exporter_group=root')
    _play(folder, 'exporters', *words)
    for path in ('intel-1/etc/systemd/system/hpcvirt-watch.service',
                 'amd-1/etc/systemd/system/hpcvirt-capacity.service'):
        readers.equal('', readers.run(
            'systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
            roots / path, env={'SYSTEMD_LOG_LEVEL': 'info'}), path)
    readers.require('changed=0 ' in _play(folder, 'exporters', *words),
                    'the exporters are installed again')


CHECKS: tuple[system.Check, ...] = (build, sanity, waves)
