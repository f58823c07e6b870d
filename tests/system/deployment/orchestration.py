# SPDX-License-Identifier: Apache-2.0

"""The deployment tools that read the configuration."""

import json
import os
import pathlib
import re
import shutil
import sysconfig
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import yaml

from hpcvirt.deployment import ansible
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset
from tests.system.deployment import readers
from tests.system.deployment import system

ROOT = pathlib.Path(__file__).parents[3]
COLLECTION = ROOT / 'ansible'
_DATA = pathlib.Path(sysconfig.get_path('data')) / 'share'
KOLLA_ANSIBLE = _DATA / 'kolla-ansible' / 'ansible'
KAYOBE = ROOT / 'constraints' / 'kayobe.txt'
#: Tasks of edpm-ansible, which no package index has.
EDPM = ROOT / 'tests' / 'data' / 'edpm'
PAGE_SIZES_KIB = (2048, 1048576)
UNITS_BYTES = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

#: Options that a site may have in nova.conf of all services.
SITE = """[DEFAULT]
debug = true
reserved_host_memory_mb = 512
[pci]
device_spec = {"address": "0000:ff:00.0"}
"""
#: Options that a site may have in nova.conf of a host.
SITE_PART = """[filter_scheduler]
enabled_filters = ComputeFilter,HPCTopologyFilter
[pci]
device_spec = {"address": "0000:fe:00.0"}
"""
MERGE = """
- hosts: all
  gather_facts: false
  tasks:
    - merge_configs:
        sources:
          - '{folder}/site.conf'
          - '{folder}/config/nova/{{{{ inventory_hostname }}}}/nova.conf'
        dest: '{folder}/merged/{{{{ inventory_hostname }}}}.conf'
        mode: '0660'
    - copy:
        content: "{{{{ default_container_dimensions | to_json }}}}"
        dest: '{folder}/dimensions'
        mode: '0644'
"""
#: Where the role keeps copies.
BACKUPS = 'var/lib/hpcvirt/backups'
#: The task and the template of kayobe that use its variables.
USE = """
- hosts: all
  gather_facts: false
  tasks:
    - template:
        src: '{template}'
        dest: '{folder}/kolla-build.conf'
        mode: '0644'
      run_once: true
    - copy:
        content: "{{{{ [sysctl_parameters, tuned_active_builtin_profile]
          | to_json }}}}"
        dest: '{folder}/{{{{ inventory_hostname }}}}.json'
        mode: '0644'
"""
#: Without it, each task of each host starts several processes.
FAST = {'ANSIBLE_PIPELINING': 'true'}
LOCAL = ('--connection', 'local', '-e', 'ansible_become=false', '-e',
         f'ansible_python_interpreter={system.SYSTEM_PYTHON}')


def lint(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let ansible-lint judge the collection."""
    readers.run('ansible-lint', '--offline', '--profile', 'production',
                '--project-dir', COLLECTION, COLLECTION,
                env={'ANSIBLE_HOME': str(folder),
                     'ANSIBLE_COLLECTIONS_PATH': str(install(folder))})
    return 'production'


def role(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Apply the role to roots: check mode, change, repeat, other profile."""
    # One machine, first with and then without virtual functions.
    plans_ = [plan for plan in found
              if plan.hosts[0].name == 'epyc-2s-64c-nps4']
    before = next(plan for plan in plans_ if plan.hosts[0].offered)
    after = next(plan for plan in plans_ if not plan.hosts[0].offered)
    root = folder / 'root'
    root.mkdir()
    readers.require('failed=0' in _play(folder, before, '--check'), 'check')
    readers.equal([], list(root.iterdir()), 'what check mode wrote')
    _play(folder, before)
    _same(root, before)
    readers.require('changed=0 ' in _play(folder, before),
                    'the second run changes something')
    place = root / host_files.NOVA_CONF
    removed = next(root.rglob('*.rules'))
    place.chmod(0o640)
    removed.chmod(0o600)
    _play(folder, after)
    _same(root, after)
    readers.equal(0o640, place.stat().st_mode & 0o777, 'the mode of a file')
    readers.equal([0o600], [
        copy.stat().st_mode & 0o777
        for copy in (root / BACKUPS).rglob(removed.name)],
        'the modes of the copies of a removed file')
    readers.require('changed=0 ' in _play(folder, after),
                    'a removed file is removed again')
    _check_links(folder, after)
    place.write_text('[DEFAULT]\n')
    text = _play(folder, after, status=2)
    readers.require('was not written by hpcvirt' in text, text)
    readers.equal('[DEFAULT]\n', place.read_text(), 'a file of the site')
    return 'check mode, twice, another profile, a file of the site'


#: Stand-ins that change the root as the programs change the host, and that
#: fail as long as the file FAIL_NAME exists.
PROGRAMS = {
    'update-grub': 'cat etc/default/grub.d/*.cfg > boot/grub/grub.cfg',
    'tuned-adm': 'echo $2 > etc/tuned/active_profile',
    'sysctl': 'sed -n "s/^\\([a-z_.]*\\) = \\(.*\\)/\\1 \\2/p" '
              'etc/sysctl.d/*.conf | while read name value; do '
              'echo $value > proc/sys/$(echo $name | tr . /); done',
    'systemctl': 'case $1 in is-active) cat units ;; '
                 'show) printf "LoadState=loaded\nActiveState=active\n" ;; '
                 'stop) echo inactive > units ;; esac',
}


def _check_links(folder: pathlib.Path, plan: plans.Plan) -> None:
    """Check that no link is followed out of the root, nor one to a file."""
    root, outside = folder / 'root', folder / 'outside'
    outside.mkdir()
    place = root / host_files.NOVA_CONF
    for linked, why in ((place.parent, 'leads out of'),
                        (place, 'is a symbolic link')):
        target = outside / linked.name
        linked.rename(target)
        linked.symlink_to(target)
        before = sorted(outside.rglob('*'))
        text = _play(folder, plan, status=2)
        readers.require(why in ' '.join(text.split()), text)
        readers.equal(before, sorted(outside.rglob('*')), 'files outside')
        linked.unlink()
        target.rename(linked)


def activation(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let each step of the role fail, and let a second run complete it."""
    plan = next(plan for plan in found if plan.hosts[0].offered)
    root, programs = _make_host(folder)
    words = _few(folder, plan)
    path = f'{programs}:{os.environ["PATH"]}'
    text = _play(folder, plan, '--check', *words, path=path)
    readers.require(all(name in text for name in (
        'update-grub', 'sysctl --system', 'tuned-adm profile', 'stop ksm')),
        f'check mode does not say what it would run: {text}')
    steps = [root / f'FAIL_{name}' for name in (
        'update-grub', 'sysctl', 'tuned-adm')]
    for step in steps:
        step.touch()
    _play(folder, plan, *words, path=path, status=2)
    for step in steps:
        step.unlink()
    text = _play(folder, plan, *words, path=path)
    wanted = host_files.command_line(
        kernel_settings.make_state(plan.hosts[0]))
    readers.require(wanted in (root / 'boot/grub/grub.cfg').read_text(),
                    'the kernel command line')
    readers.equal(('1', '0', 'hpcvirt', 'inactive'), tuple(
        (root / path).read_text().strip() for path in (
            'proc/sys/vm/swappiness', 'proc/sys/kernel/numa_balancing',
            'etc/tuned/active_profile', 'units')), 'the state')
    readers.require('Reboot the host' in text, 'no word of the reboot')
    # Only the reboot is left, which each run reports.
    text = _play(folder, plan, *words, path=path)
    readers.require('changed=0 ' in text and 'Reboot the host' in text, text)
    (root / 'proc/cmdline').write_text(f'{wanted}\n')
    (root / 'proc/stat').write_text('btime 99999999999\n')
    readers.require('Reboot the host' not in _play(
        folder, plan, *words, path=path), 'a reboot is asked for again')
    (root / 'etc/sysctl.d/99-site.conf').write_text('vm.swappiness = 60\n')
    (root / 'proc/sys/vm/swappiness').write_text('60\n')
    text = _play(folder, plan, *words, path=path, status=2)
    readers.require('sets vm.swappiness = 60,' in text, text)
    (root / 'usr/sbin/tuned-adm').unlink()
    shutil.rmtree(root / 'etc')
    _play(folder, plan, *words, '-e', 'hpcvirt_host_install=false', path=path,
          status=2)
    readers.require(not (root / 'etc').exists(), 'files without TuneD')
    return 'each step fails, a second run, a reboot, without TuneD'


def _make_host(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Make the root of a newly installed host, and programs for it."""
    root, programs = folder / 'root', folder / 'programs'
    for path, text in (
            ('usr/sbin/tuned-adm', ''), ('boot/grub/grub.cfg', ''),
            ('proc/cmdline', 'ro quiet\n'), ('proc/stat', 'btime 1000\n'),
            ('proc/sys/vm/swappiness', '60\n'), ('units', 'active\n'),
            ('proc/sys/kernel/numa_balancing', '1\n')):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / 'etc').mkdir()
    os.utime(root / 'boot/grub/grub.cfg', (1, 1))
    write_programs(root, programs, PROGRAMS)
    return root, programs


def write_programs(root: pathlib.Path, folder: pathlib.Path,
                   programs: Mapping[str, str]) -> None:
    """Write stand-ins for programs of a host."""
    folder.mkdir()
    for name, commands in programs.items():
        (folder / name).write_text(
            f'#!/bin/sh -e\ncd {root}\necho "$0 $*" >> calls\n'
            f'[ ! -e FAIL_{name} ]\n{commands}\n')
        (folder / name).chmod(0o755)


#: Files with all kinds of consequences. The role writes them one by one.
FEW = (host_files.COMMAND_LINE, host_files.SYSCTL, host_files.TUNED[1],
       host_files.NOVA_CONF)


def _few(folder: pathlib.Path, plan: plans.Plan) -> tuple[str, str]:
    """Write variables for a few files."""
    variables = ansible.variables(plan.hosts[0], [
        file for file in host_files.files(plan.hosts[0], plan)
        if file.path in FEW])
    (folder / 'few.json').write_text(json.dumps(
        {**variables, 'hpcvirt_host_activate': True}))
    return '-e', f'@{folder / "few.json"}'


#: Like the script of RHEL: the parameters to remove go first, then those that
#: have the name of a new one, and the new ones follow in their order.
GRUBBY = """#!/usr/bin/python3
import pathlib, re, sys
entry = pathlib.Path('{root}/boot/loader/entries/a.conf')
words = entry.read_text().split()
given = dict(word.split('=', 1) for word in sys.argv[1:])
if '--info' in given:
    print('index=0', 'kernel="/boot/vmlinuz"',
          'args="' + ' '.join(words[1:]) + '"', sep=chr(10))
    sys.exit()
assert given['--update-kernel'] == 'ALL', sys.argv
assert not pathlib.Path('{root}/FAIL_grubby').exists()
new = given['--args'].split()
names = given.get('--remove-args', '').split() + [
    word.partition('=')[0] for word in new]
entry.write_text(' '.join([word for word in words if not any(
    re.fullmatch(name + '(=.*)?', word) for name in names)] + new) + chr(10))
"""


def grubby(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let the role set the boot entries of a host with grubby."""
    plans_ = [plan for plan in found
              if plan.hosts[0].name == 'epyc-2s-64c-nps4']
    before = next(plan for plan in plans_ if plan.hosts[0].offered)
    after = next(plan for plan in plans_ if not plan.hosts[0].offered)
    root, programs = _make_host(folder)
    entry = root / 'boot/loader/entries/a.conf'
    entry.parent.mkdir(parents=True)
    entry.write_text('options root=UUID=1 ro hugepagesz=1G hugepages=200 '
                     'isolcpus=2-7 crashkernel=1G\n')
    (programs / 'grubby').write_text(GRUBBY.format(root=root))
    (programs / 'grubby').chmod(0o755)
    path = f'{programs}:{os.environ["PATH"]}'

    def play(plan: plans.Plan, *words: str, status: int = 0) -> str:
        return _play(folder, plan, *_few(folder, plan), '-e',
                     '{"hpcvirt_host_uses_grubby": true}', *words, path=path,
                     status=status)

    text = play(before, status=2)
    for word in ('hugepagesz=1G', 'hugepages=200', 'isolcpus=2-7'):
        readers.require(re.search(f'entries have [^;]*{word}', text)
                        is not None, text)
    readers.equal([], list((root / 'etc').rglob('*hpcvirt*')), 'files')
    (root / 'FAIL_grubby').touch()
    play(before, '-e', 'hpcvirt_host_replace=true', status=2)
    (root / 'FAIL_grubby').unlink()
    for plan in (before, after):
        play(plan, '-e', f'hpcvirt_host_replace={plan is before}')
        readers.equal('options root=UUID=1 ro crashkernel=1G '
                      + host_files.command_line(kernel_settings.make_state(
                          plan.hosts[0])), entry.read_text().strip(), 'entry')
    readers.require('changed=0 ' in play(after), 'the entry is set again')
    return 'replaced, a failure, a parameter that goes away'


def site(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let the role name and replace the settings of the site."""
    plan = next(plan for plan in found if plan.hosts[0].offered)
    root, programs = _make_host(folder)
    path = f'{programs}:{os.environ["PATH"]}'
    for name, text in (
            ('default/grub', 'GRUB_CMDLINE_LINUX="hugepages=200 a=1"\n'),
            ('sysctl.d/99-site.conf', 'vm.swappiness=60\nvm.panic_on_oom=0\n'),
            ('systemd/system.conf.d/99-a.conf', '[Manager]\nCPUAffinity=2\n'),
            ('tuned/bootcmdline', 'TUNED_BOOT_CMDLINE="isolcpus=2-3"\n')):
        (root / 'etc' / name).parent.mkdir(parents=True, exist_ok=True)
        (root / 'etc' / name).write_text(text)
    words = _few(folder, plan)
    before = sorted((root / 'etc').rglob('*'))
    text = ' '.join(_play(folder, plan, *words, path=path, status=2).split())
    for line in ('grub sets hugepages=200, which',
                 '99-a.conf sets CPUAffinity=2, and',
                 '99-site.conf sets vm.swappiness=60, and',
                 'bootcmdline sets isolcpus=2-3, which TuneD'):
        readers.require(line in text, f'{line} is not in {text}')
    readers.equal(before, sorted((root / 'etc').rglob('*')), 'files')
    words = (*words, '-e', 'hpcvirt_host_replace=true')
    _play(folder, plan, '--check', *words, path=path)
    readers.equal(before, sorted((root / 'etc').rglob('*')),
                  'what check mode wrote')
    readers.require('Reboot the host' in _play(folder, plan, *words,
                                               path=path), 'a reboot')
    wanted = host_files.command_line(kernel_settings.make_state(plan.hosts[0]))
    for name, text in (
            ('etc/default/grub', 'GRUB_CMDLINE_LINUX=" a=1"'),
            ('etc/systemd/system.conf.d/99-a.conf',
             '[Manager]\n# hpcvirt: CPUAffinity=2'),
            ('proc/sys/vm/swappiness', '1')):
        readers.equal(text, (root / name).read_text().strip(), name)
    readers.require(wanted in (root / 'boot/grub/grub.cfg').read_text(),
                    'update-grub')
    # The former parameters are in effect until the host is booted.
    (root / 'proc/stat').write_text('btime 99999999999\n')
    for line, more in ((wanted, False), (f'isolcpus=2 {wanted}', True)):
        (root / 'proc/cmdline').write_text(f'{line}\n')
        readers.equal(more, 'Reboot the host' in _play(
            folder, plan, *words, path=path), f'a reboot after {line}')
    return 'named, replaced, a reboot'


def _play(folder: pathlib.Path, plan: plans.Plan, *words: str,
          status: int = 0, path: str = os.environ['PATH']) -> str:
    readers.write(folder / 'site', formats.FORMATS['ansible'](plan))
    return readers.run(
        'ansible-playbook', '-i', folder / 'site/inventory/hpcvirt.yml',
        folder / 'site/hpcvirt.yml', *LOCAL, '-e',
        f'hpcvirt_host_root={folder / "root"}', *words, status=status,
        env={**FAST, 'PATH': path,
             'ANSIBLE_COLLECTIONS_PATH': str(install(folder)),
             'ANSIBLE_HOME': str(folder / 'home')})


def install(folder: pathlib.Path) -> pathlib.Path:
    """Copy the collection to where Ansible finds it."""
    place = folder / 'collections'
    if not place.exists():
        shutil.copytree(COLLECTION, place / 'ansible_collections/hpcvirt/hpc')
    return place


def _same(root: pathlib.Path, plan: plans.Plan) -> None:
    there = {str(place.relative_to(root)): place.read_text()
             for place in root.rglob('*')
             if place.is_file() and root / BACKUPS not in place.parents}
    readers.equal({file.path: file.text for file
                   in host_files.files(plan.hosts[0], plan)}, there, 'files')


def kolla_ansible(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let kolla-ansible merge nova.conf, and read the variables."""
    number = 0
    for profile, plan in _one_of_each_profile(found):
        place = folder / str(profile)
        files = formats.FORMATS['kolla'](plan)
        # What the site adds to a file is there after another run.
        files = tuple(step.file for step in steps.compare(files, {
            file.path: file.text + SITE_PART for file in files
            if file.shared}))
        readers.write(place, files)
        (place / 'merged').mkdir()
        (place / 'site.conf').write_text(SITE)
        (place / 'merge.yml').write_text(MERGE.format(folder=place))
        # Ansible reads the variables of kolla-ansible beside the playbook.
        (place / 'group_vars').symlink_to(KOLLA_ANSIBLE / 'group_vars')
        inventory = place / 'inventory/hpcvirt.yml'
        readers.run('ansible-playbook', '-i', inventory, place / 'merge.yml',
                    *LOCAL, env={
                        **FAST, 'ANSIBLE_ACTION_PLUGINS':
                        str(KOLLA_ANSIBLE / 'action_plugins'),
                        'ANSIBLE_LIBRARY': str(KOLLA_ANSIBLE / 'library'),
                        'ANSIBLE_HOME': str(folder / 'home')})
        (planned,) = plan.hosts
        own = _options((place / 'config/nova' / planned.name / 'nova.conf')
                       .read_text())
        merged = _options((place / 'merged' / f'{planned.name}.conf')
                          .read_text())
        readers.equal(_options(SITE) | own, merged, 'the merged nova.conf')
        readers.require(_options(SITE_PART).keys() <= merged.keys() and
                        SITE_PART.splitlines()[-1][14:] in merged[
                            '[pci]', 'device_spec'], 'options of the site')
        variables = json.loads(readers.run(
            'ansible-inventory', '-i', inventory, '--host', planned.name))
        readers.equal(
            ['CUSTOM_HPC'], variables['nova_cell_compute_provider_config'][
                'providers'][0]['traits']['additional'], 'traits')
        given = json.loads((place / 'dimensions').read_text())
        state = kernel_settings.make_state(planned)
        readers.equal(cpuset.render(state.housekeeping),
                      given.get('cpuset_cpus', ''), 'CPUs of containers')
        readers.require('ulimits' in given, 'limits of kolla-ansible are lost')
        number += 1
    return f'{number} hosts'


def _one_of_each_profile(found: Sequence[plans.Plan],
                         ) -> Iterator[tuple[int, plans.Plan]]:
    """Choose a plan of each profile, the last machine that it suits."""
    chosen = {(plan.hosts[0].profile.smt, plan.hosts[0].profile.devices,
               plan.hosts[
                   0].profile.shared_cores_per_cell): plan for plan in found}
    yield from enumerate(chosen.values())


def _one_of_two_machines(
        found: Sequence[plans.Plan]) -> tuple[plans.Plan, plans.Plan]:
    """Choose a plan of two cells, and one with cells without pages."""
    first = next(plan for plan in found
                 if plan.hosts[0].name == 'xeon-2s-20c-smt-8gpu')
    second = next(plan for plan in found
                  if plan.hosts[0].name == 'xeon-max-2s-56c-snc4-hbm')
    return first, second


def _options(text: str) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    section = ''
    for line in text.splitlines():
        if line.startswith('['):
            section = line
        elif line and not line.startswith('#'):
            name, _, value = line.partition(' = ')
            found.setdefault((section, name), []).append(value)
    return found


def kolla_build(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let kolla-build find the plugin of the image of Nova."""
    readers.write(folder, formats.FORMATS['kolla'](found[0]))
    words = readers.run(
        'python', '-c', 'import sys\n'
        'from kolla.common import config\n'
        'from kolla.image import kolla_worker\n'
        'from oslo_config import cfg\n'
        'conf = cfg.ConfigOpts()\n'
        'config.parse(conf, sys.argv[1:], prog="kolla-build")\n'
        'worker = kolla_worker.KollaWorker(conf)\n'
        'worker.setup_working_dir()\n'
        'worker.find_dockerfiles()\n'
        'worker.create_dockerfiles()\n'
        'worker.build_image_list()\n'
        'print([plugin["source"] for image in worker.images\n'
        '       if image.name == "nova-base" for plugin in image.plugins\n'
        f'       if plugin["name"] == "{formats.SOURCE}"])\n',
        '--config-file', folder / 'kolla-build-hpcvirt.conf',
        '--template-only', '--work-dir', folder / 'work', '--engine',
        'podman')
    dockerfile = next(folder.rglob('nova-base/Dockerfile')).read_text()
    readers.require('ADD plugins-archive' in dockerfile, dockerfile)
    readers.equal(f'[{formats.SOURCE_PLACE!r}]', words.splitlines()[-1],
                  formats.SOURCE)
    return formats.SOURCE


def kayobe(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let kayobe's group variables and template use the variables."""
    # The package requires all collections of Ansible; two files are enough.
    readers.run('python', '-m', 'pip', 'install', '--quiet', '--no-deps',
                '--target', folder / 'wheel', '--disable-pip-version-check',
                '--requirement', KAYOBE)
    base = next(folder.rglob('inventory/group_vars/compute')).parents[2]
    for plan in _one_of_two_machines(found):
        place = folder / plan.hosts[0].name
        readers.write(place, formats.FORMATS['kayobe'](plan))
        (place / 'use.yml').write_text(USE.format(
            folder=place, template=next(base.rglob('kolla-build.conf'))))
        (planned,) = plan.hosts
        (base / 'inventory/hosts').write_text(f'[compute]\n{planned.name}\n')
        readers.run(
            'ansible-playbook', '-i', base / 'inventory', '-i',
            place / 'inventory', place / 'use.yml', *LOCAL, '-e',
            f'@{place / "hpcvirt.yml"}', '-e',
            json.dumps({'kolla_bifrost_source_url': 'url',
                        'kolla_bifrost_source_version': 'master',
                        'kolla_base_distro': 'debian', 'kolla_base_tag': 't',
                        'kolla_base_arch': 'x86_64', 'kolla_tag': 't',
                        'kolla_docker_namespace': 'n',
                        'kolla_build_config_path': '/etc/kolla'}),
            env={**FAST, 'ANSIBLE_HOME': str(folder / 'home')})
        sysctl, profile = yaml.safe_load(
            (place / f'{planned.name}.json').read_text())
        readers.equal(('1', host_files.PROFILE), (
            str(sysctl['vm.swappiness']), profile), 'variables of kayobe')
        text = (place / 'kolla-build.conf').read_text()
        readers.require(re.search(
            rf'\[{formats.SOURCE}\]\n# .*\ntype = local\n# .*\n'
            f'location = {formats.SOURCE_PLACE}\n', text) is not None, text)
        readers.require('[bifrost-base]' in text, text)
    return 'two hosts'


def edpm(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let the tasks of EDPM write the command line, and count its pages."""
    tasks = folder / 'tasks'
    tasks.mkdir()
    for path in EDPM.glob('*.y*ml'):
        (tasks / path.name).write_text(re.sub(
            '(?<=[ "(])/(?=etc/)', f'{folder}/', path.read_text()))
    # The task that loads a module is in another role.
    module = folder / ('collections/ansible_collections/osp/edpm/roles/'
                       'edpm_module_load/tasks/main.yml')
    module.parent.mkdir(parents=True)
    module.write_text('[]\n')
    (folder / 'bin').mkdir()
    mkconfig = folder / 'bin/grub2-mkconfig'
    mkconfig.write_text('#!/bin/sh\n')
    mkconfig.chmod(0o755)
    for plan in _one_of_two_machines(found):
        (text,) = (file.text for file in formats.FORMATS['edpm'](plan)
                   if not file.path.startswith('controllers/'))
        node_set = next(yaml.safe_load_all(text))
        wanted = {size: sum(pages.get(size, 0) for pages
                            in plan.hosts[0].settings.pages.values())
                  for size in PAGE_SIZES_KIB}
        readers.equal(wanted, _edpm_pages(folder, node_set['spec'][
            'nodeTemplate']['ansible']['ansibleVars']), 'pages')
    readers.equal(
        dict.fromkeys(PAGE_SIZES_KIB, 0), _edpm_pages(folder, {
            'edpm_kernel_args': 'quiet', 'edpm_kernel_hugepages': {
                '2048': {'count': 8, 'default': True}}}),
        'pages of edpm_kernel_hugepages, which the kernel does not reserve')
    return 'two hosts'


def _edpm_pages(folder: pathlib.Path,
                variables: dict[str, Any]) -> dict[int, int]:
    """Run the tasks; return the pages of each size that Linux reserves."""
    grub = folder / 'etc/default/grub'
    grub.parent.mkdir(parents=True, exist_ok=True)
    grub.write_text('GRUB_CMDLINE_LINUX="quiet"\n')
    (folder / 'edpm.yml').write_text(yaml.safe_dump([{
        'hosts': 'localhost', 'gather_facts': False, 'vars': {
            'edpm_kernel_hugepages_remove': False, 'ansible_local': {},
            'edpm_kernel_defer_reboot': True, **variables},
        'tasks': [{'import_tasks': str(folder / 'tasks/kernelargs.yml')}]}]))
    readers.run('ansible-playbook', '-i', 'localhost,', folder / 'edpm.yml',
                *LOCAL, env={
                    **FAST, 'ANSIBLE_HOME': str(folder / 'home'),
                    'ANSIBLE_COLLECTIONS_PATH': str(folder / 'collections'),
                    'PATH': f'{folder / "bin"}:{os.environ["PATH"]}'})
    words = readers.run('sh', '-euc', '. "$0"; echo "$GRUB_CMDLINE_LINUX"',
                        grub).split()
    found = dict.fromkeys(PAGE_SIZES_KIB, 0)
    size = 0
    for name, _, value in (word.partition('=') for word in words):
        if name == 'hugepagesz':
            # As memparse() reads it: bytes without a unit.
            number, unit = value.rstrip('KMG'), value.lstrip('0123456789')
            size = int(number) * UNITS_BYTES[unit] // 1024
        elif name == 'hugepages' and size in found:
            found[size] += sum(int(count.rpartition(':')[2])
                               for count in value.split(','))
    return found


CHECKS: tuple[system.Check, ...] = (
    lint, role, activation, grubby, site, kolla_ansible, kolla_build, kayobe,
    edpm)
