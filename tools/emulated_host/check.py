# SPDX-License-Identifier: Apache-2.0

"""Check hpcvirt on emulated compute hosts.

* What the collectors of ironic-python-agent find on a host is read as sysfs is
  read there, except for what no collector says.
* A host that was booted with the configuration that ``hpcvirt host config``
  wrote for it has nothing that ``hpcvirt host audit`` finds.

``tox -e emulated`` runs it, as root on Debian.
"""

import concurrent.futures
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import typing
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import host as host_model
from tools.emulated_host import boot
from tools.emulated_host import kernel as kernels
from tools.emulated_host import machines

#: A machine that boots takes 20 s alone, and the agent starts in 40 s.
LIMIT_S = 900

_HPCVIRT = f'{sys.executable} -m hpcvirt.cmd.main'

_SHOW = f'{_HPCVIRT} topology show --format json > /job/sysfs.json\n'

#: The agent waits for udev, which no job has.
_INSPECT = f"""\
mkdir -p /run/bin
printf '#!/bin/sh\\n' > /run/bin/udevadm
chmod 755 /run/bin/udevadm
PATH=/run/bin:$PATH {sys.executable} -m tools.emulated_host.inspection \
    /job/node.json
"""

#: With what systemd would do with the files: the values of sysctl and KSM, and
#: the affinity of programs. An audit with findings ends with 1.
_AUDIT = f"""\
/usr/lib/systemd/systemd-sysctl
systemd-tmpfiles --create /etc/tmpfiles.d/*.conf
affinity=$(cat /etc/systemd/system.conf.d/*.conf |
    sed -n 's/^CPUAffinity=\\([0-9].*\\)/\\1/p' | tail -n 1)
for process in $(grep -l VmSize /proc/[0-9]*/status | tr -dc '0-9\n'); do
    taskset -acp "$affinity" "$process" > /dev/null || :
done
{_HPCVIRT} host audit --profile default --format json \\
    > /job/audit.json || [ $? -eq 1 ]
"""

#: The machine does not run TuneD, which this rule is about.
_NOT_SHOWN = frozenset({'tuned'})


class CheckFailed(Exception):
    """A check failed."""


def main() -> int:
    """Run all checks; print each with its duration."""
    began = time.monotonic()
    passed = 0
    try:
        kernel = kernels.prepare(boot.CLONE / '.emulated')
        with tempfile.TemporaryDirectory() as scratch:
            for line in _checks(kernel, pathlib.Path(scratch)):
                passed += 1
                print(f'{time.monotonic() - began:5.0f} s  {line}', flush=True)
    except (CheckFailed, boot.BootFailed, exception.InvalidInput,
            subprocess.CalledProcessError) as exc:
        print(f'check: {exc}', file=sys.stderr)
        print(f'{passed} passed, 1 failed')
        return 1
    print(f'{passed} passed, 0 failed')
    return 0


def _checks(kernel: kernels.Kernel, scratch: pathlib.Path) -> Iterator[str]:
    _compile()
    first, second = machines.TWO_SOCKETS, machines.COMPUTE
    with concurrent.futures.ThreadPoolExecutor() as pool:
        booted = {machine: pool.submit(
            boot.run, machine, kernel, _job(scratch, machine),
            _INSPECT + _SHOW, LIMIT_S) for machine in (first, second)}
        for machine, future in booted.items():
            future.result()
            _compare(_job(scratch, machine))
            yield f'{machine.name}: the inspection agrees with sysfs'
    root = scratch / 'root'
    topology = _job(scratch, second) / 'sysfs.json'
    name = root / 'proc/sys/kernel/hostname'
    name.parent.mkdir(parents=True)
    name.write_text(json.loads(topology.read_text())['name'])
    subprocess.run(
        [*_HPCVIRT.split(), 'host', 'config', str(topology), '--root',
         str(root), '--apply'], check=True, stdout=subprocess.DEVNULL)
    job = scratch / 'configured'
    boot.run(second, kernel, job, _AUDIT, LIMIT_S, root / 'etc',
             _parameters(root))
    _judge(json.loads((job / 'audit.json').read_text()))
    yield f'{second.name}: no finding with the configuration'


def _compile() -> None:
    """Compile the modules that an emulated processor would compile slowly."""
    subprocess.run([sys.executable, '-c',
                    'import tools.emulated_host.inspection'], check=True)
    for words in (('topology', 'show', '--format', 'json'),
                  ('host', 'audit', '--profile', 'default')):
        subprocess.run([*_HPCVIRT.split(), *words], check=False,
                       stdout=subprocess.DEVNULL)


def _judge(audit: dict[str, typing.Any]) -> None:
    """Refuse an audit with anything but notes."""
    found = [f'{finding["code"]}: {finding["found"]}'
             for finding in audit['findings']
             if finding['severity'] != 'note'
             and finding['code'] not in _NOT_SHOWN]
    if found:
        raise CheckFailed('; '.join(found))


def _job(scratch: pathlib.Path, machine: machines.Machine) -> pathlib.Path:
    return scratch / machine.name


def _parameters(root: pathlib.Path) -> str:
    """Read the kernel parameters as GRUB's scripts do."""
    return subprocess.run(
        ['sh', '-c', '. "$0" && echo "$GRUB_CMDLINE_LINUX"',
         str(root / 'etc/default/grub.d/90-hpcvirt.cfg')],
        check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


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
    """Reduce a host to what an inspection can say."""
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
        unknown=frozenset({
            host_model.Unknown.SOCKETS, host_model.Unknown.CACHES,
            host_model.Unknown.PAGES, host_model.Unknown.VFS}))


if __name__ == '__main__':
    sys.exit(main())
