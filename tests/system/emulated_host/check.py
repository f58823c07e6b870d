# SPDX-License-Identifier: Apache-2.0

"""Check hpcvirt on emulated compute hosts.

* The data of the collectors of ironic-python-agent give the same host as its
  sysfs, except for facts that no collector reports.
* ``hpcvirt host audit`` finds nothing on a host that was booted with the
  configuration that ``hpcvirt host config`` wrote for it.
* Debian 12 and Ubuntu 22.04 boot twice with that configuration, their own
  initramfs and their own systemd. After libvirt has started a guest, the
  virtual functions and the pages of each cell exist, programs run on the CPUs
  of the host, and the audit finds nothing. The same holds on a Debian host
  where the site had other settings, which ``host config`` names and replaces.
  Ubuntu 22.04 has a kernel before 5.16, whose pages a unit reserves.
* Devices are wired as QEMU was told, see wiring.py: those of a host with
  switches, and those of a guest whose XML Nova made.

``tox -e emulated`` runs it, as root on Debian, and ``tox -e emulated -- trixie
noble`` with other distributions.
"""

import concurrent.futures
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from tests.system.emulated_host import boot
from tests.system.emulated_host import distribution
from tests.system.emulated_host import kernel as kernels
from tests.system.emulated_host import machines
from tests.system.emulated_host import wiring

#: A machine boots in 20 s, and the agent starts in 40 s; on busy processors,
#: both take many times as long.
LIMIT_S = 1800

_HPCVIRT = f'{sys.executable} -m hpcvirt.cmd.main'

_SHOW = f'{_HPCVIRT} host show --format json > /job/sysfs.json\n'

#: The agent waits for udev, which a job does not have.
_INSPECT = f"""\
mkdir -p /run/bin
printf '#!/bin/sh\\n' > /run/bin/udevadm
chmod 755 /run/bin/udevadm
PATH=/run/bin:$PATH {sys.executable} -m tests.system.emulated_host.inspection \
    /job/node.json
"""

#: The disks of the machine have four virtual functions.
_PROFILE = """\
moderate_interrupts: false
ring_entries: 128
devices:
- {per_instance: 1, vendor_id: '1b36', product_id: '0010', vfs_per_device: 4}
"""

#: Settings that a site may have had, and those that conflict.
_SITE = {
    'etc/default/grub': 'GRUB_CMDLINE_LINUX_DEFAULT="quiet hugepages=200"\n'
                        'GRUB_CMDLINE_LINUX="hugepagesz=1G isolcpus=0-1 '
                        'nohz_full=0-1"\n',
    'etc/sysctl.d/99-site.conf': 'vm.swappiness = 60\n',
    'etc/systemd/system.conf.d/99-site.conf': '[Manager]\nCPUAffinity=1\n',
}
_CONFLICTS = ('etc/default/grub sets hugepages=200, ',
              'etc/default/grub sets hugepagesz=1G, ',
              'etc/default/grub sets isolcpus=0-1, ',
              'etc/default/grub sets nohz_full=0-1, ',
              'etc/sysctl.d/99-site.conf sets vm.swappiness = 60, ',
              'etc/systemd/system.conf.d/99-site.conf sets CPUAffinity=1, ')


#: Those that are booted unless others are named.
_SUITES = ('bookworm', 'jammy')


class CheckFailed(Exception):
    """A check failed."""


def main(words: list[str]) -> int:
    """Run all checks; print each with its duration.

    :param words: the distributions; the first is also booted with the
        settings of a site
    """
    began = time.monotonic()
    passed: list[str] = []

    def say(line: str) -> None:
        passed.append(line)
        print(f'{time.monotonic() - began:5.0f} s  {line}', flush=True)

    try:
        kernel = kernels.prepare(boot.CLONE / '.emulated')
        with tempfile.TemporaryDirectory() as scratch:
            _check(kernel, pathlib.Path(scratch), words or _SUITES, say)
    except (CheckFailed, boot.BootFailed, exception.InvalidInput,
            wiring.WiringDiffers, subprocess.CalledProcessError) as exc:
        print(f'check: {exc}', file=sys.stderr)
        print(f'{len(passed)} passed, 1 failed')
        return 1
    print(f'{len(passed)} passed, 0 failed')
    return 0


def _check(kernel: kernels.Kernel, scratch: pathlib.Path,
           suites: Sequence[str], say: Callable[[str], None]) -> None:
    """Run all machines at once: a machine that boots uses one processor."""
    _compile()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        inspected = [pool.submit(_inspect, kernel, scratch, machine, say)
                     for machine in (machines.TWO_SOCKETS, machines.COMPUTE)]
        jobs: list[concurrent.futures.Future[typing.Any]] = [
            *inspected, pool.submit(_check_wiring, kernel, scratch, inspected,
                                    say)]
        for suite in suites:
            (scratch / suite).mkdir()
            jobs.append(pool.submit(
                _distribution, distribution.DISTRIBUTIONS[suite],
                scratch / suite, inspected[1], suite == suites[0], pool, say))
        for job in concurrent.futures.as_completed(jobs):
            job.result()


def _inspect(kernel: kernels.Kernel, scratch: pathlib.Path,
             machine: machines.Machine,
             say: Callable[[str], None]) -> pathlib.Path:
    """Compare the inspection of a machine with its sysfs; return that."""
    job = scratch / machine.name
    boot.run(machine, kernel, job, _INSPECT + _SHOW, LIMIT_S)
    _compare(job)
    say(f'{machine.name}: the inspection agrees with sysfs')
    return job / 'sysfs.json'


def _check_wiring(kernel: kernels.Kernel, scratch: pathlib.Path,
                  inspected: Sequence[concurrent.futures.Future[typing.Any]],
                  say: Callable[[str], None]) -> None:
    concurrent.futures.wait(inspected)
    wiring.check_guest(kernel, scratch / 'guest')
    say('a guest sees the cells of its devices that Nova chose')
    wiring.check_host(kernel, scratch / 'wired', _SHOW)
    say('sysfs and lstopo: devices are wired as QEMU was told')


def _configure(topology: pathlib.Path, root: pathlib.Path, *words: str,
               status: int = 0) -> str:
    """Apply the configuration to a root; return what the command says."""
    done = subprocess.run(
        [*_HPCVIRT.split(), 'host', 'config', str(topology), '--root',
         str(root), '--apply', *words], check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != status:
        raise CheckFailed(f'host config ended with {done.returncode}, not '
                          f'{status}: {done.stdout}')
    return done.stdout


def _distribution(system: distribution.Distribution, scratch: pathlib.Path,
                  inspected: concurrent.futures.Future[pathlib.Path],
                  has_site: bool, pool: concurrent.futures.Executor,
                  say: Callable[[str], None]) -> None:
    """Boot a system as it is installed and, if told, as a site has set it."""
    tree, fresh = scratch / 'tree', scratch / 'etc'
    profile = ['--profile', str(tree / 'profile.yaml')]
    distribution.install(system, tree, machines.COMPUTE, _PROFILE)
    say(f'{system.suite}: installed')
    topology = inspected.result()
    shutil.copytree(tree / 'etc', fresh, symlinks=True)
    _configure(topology, tree, *profile)
    jobs = [pool.submit(_boot, tree, _make_image(tree, scratch / 'fresh.img'),
                        [f'{system.suite}: as configured after a boot',
                         f'{system.suite}: as configured after another'], say)]
    if has_site:
        shutil.rmtree(tree / 'etc')
        fresh.rename(tree / 'etc')
        _write_site(tree)
        said = _configure(topology, tree, *profile, status=2)
        for line in _CONFLICTS:
            if f'Conflict: {line}' not in said:
                raise CheckFailed(f'{line} is not in {said}')
        _configure(topology, tree, *profile, '--replace')
        jobs.append(pool.submit(
            _boot, tree, _make_image(tree, scratch / 'site.img'),
            [f'{system.suite}: as configured, in place of a site'], say))
    for job in concurrent.futures.as_completed(jobs):
        job.result()


def _make_image(tree: pathlib.Path,
                image: pathlib.Path) -> tuple[pathlib.Path, str]:
    """Make an image of a tree; return it and its kernel parameters."""
    (tree / 'etc/tuned/active_profile').write_text('hpcvirt\n')
    (tree / 'etc/tuned/profile_mode').write_text('manual\n')
    distribution.make_image(tree, image)
    return image, distribution.read_parameters(tree)


def _boot(tree: pathlib.Path, made: tuple[pathlib.Path, str],
          results: Sequence[str], say: Callable[[str], None]) -> None:
    """Boot an image once for each result."""
    image, parameters = made
    for result in results:
        _judge_state(distribution.run(
            machines.COMPUTE, tree, image, parameters, LIMIT_S), parameters)
        say(result)


def _write_site(tree: pathlib.Path) -> None:
    for path, text in _SITE.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)


def _judge_state(state: distribution.State, parameters: str) -> None:
    """Compare the state of a booted system with its configuration."""
    pages = re.search('hugepagesz=2M hugepages=0:([0-9]+),1:([0-9]+)',
                      parameters)
    isolated = re.search('nohz_full=([0-9,-]+)', parameters)
    if pages is None or isolated is None:
        raise CheckFailed(f'no pages or CPUs of guests in {parameters}')
    there = {re.sub('.*/(node[01])/.*-', r'\1 ', path): value
             for path, value in state.files.items()}
    wanted = {'node0 1048576kB/nr_hugepages': '0',
              'node1 1048576kB/nr_hugepages': '0',
              'node0 2048kB/nr_hugepages': pages[1],
              'node1 2048kB/nr_hugepages': pages[2],
              **{path: '128' if path.endswith('/ring') else '4'
                 for path in there if path.startswith('/')}}
    if there != wanted or len(wanted) != 7:
        raise CheckFailed(f'{there}, not {wanted}')
    guests = cpuset.parse(isolated[1], 'nohz_full')
    found = [f'{name} on {cpus}' for name, cpus in state.programs
             if cpuset.parse(cpus, name) & guests]
    if found or not state.programs:
        raise CheckFailed(f'on the CPUs of guests: {", ".join(found)}')
    found = [f'{finding["code"]}: {finding["found"]}'
             for finding in state.audit['findings']
             if finding['severity'] != 'note'
             and finding['code'] != 'iommu']  # The machine has none.
    if found:
        raise CheckFailed('; '.join(found))


def _compile() -> None:
    """Compile the modules that an emulated processor would compile slowly."""
    subprocess.run(
        [sys.executable, '-c',
         'import tests.system.emulated_host.inspection'], check=True)
    for words in (('host', 'show', '--format', 'json'),
                  ('host', 'audit', '--profile', 'default')):
        subprocess.run([*_HPCVIRT.split(), *words], check=False,
                       stdout=subprocess.DEVNULL)


def _compare(job: pathlib.Path) -> None:
    """Compare the two ways to read a machine."""
    inspected = topology.read(str(job / 'node.json'))
    wanted = _inspectable(topology.read(str(job / 'sysfs.json')))
    for field in dataclasses.fields(host_model.Host):
        here, there = (getattr(host, field.name)
                       for host in (inspected, wanted))
        if here != there:
            raise CheckFailed(f'{field.name} of the inspection is {here}, '
                              f'of sysfs {there}')


def _inspectable(host: host_model.Host) -> host_model.Host:
    """Reduce a host to the facts that an inspection reports."""
    cells = tuple(dataclasses.replace(
        cell, socket=None, other_sockets=frozenset(), llc=(cell.cpus,),
        pages=(host_model.PagePool(4, sum(
            pool.size_kib * pool.total for pool in cell.pages) // 4),))
        for cell in host.cells)
    adapters = {'e1000e'}
    devices = tuple(dataclasses.replace(
        device, total_vfs=0, vf_product_id=None,
        driver=device.driver if device.driver in adapters else None)
        for device in host.devices)
    return dataclasses.replace(
        host, name='node', cells=cells, distances=(), devices=devices,
        wiring=None, address_bits=None,
        unknown=frozenset({
            host_model.Unknown.SOCKETS, host_model.Unknown.CACHES,
            host_model.Unknown.PAGES, host_model.Unknown.VFS}))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
