# SPDX-License-Identifier: Apache-2.0

"""Boot an emulated machine, run one job on it, and switch it off."""

import pathlib
import shutil
import subprocess
import sys

from tests.system.emulated_host import kernel as kernels
from tests.system.emulated_host import machines

CLONE = pathlib.Path(__file__).resolve().parents[3]

#: Before the job: the drivers of all PCI devices, and the tuning.
_INIT = """\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LC_ALL=C.UTF-8 PYTHONPATH={clone} PYTHONDONTWRITEBYTECODE=1
export PYTHONPYCACHEPREFIX={cache}
exec > /job/log 2>&1
hostname {name}
cat /sys/bus/pci/devices/*/modalias | sort -u |
    xargs modprobe -d {root} -a -b -q
for module in {modules}; do
    modprobe -d {root} "$module"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    set -- /sys/class/net/*/device
    [ $# -le {cells} ] || break
    sleep 0.2
done
{tuning}
cd /job
sh -e -x /job/commands
echo $? > /job/status
sync
echo o > /proc/sysrq-trigger
sleep 60
"""


class BootFailed(Exception):
    """A machine did not run its job."""


def run(machine: machines.Machine, kernel: kernels.Kernel,
        job: pathlib.Path, commands: str, limit_s: int = 300) -> str:
    """Run shell commands on a machine.

    :param job: a directory that the machine sees as /job
    :returns: the output
    :raises BootFailed: if the machine or a command fails, or time is over
    """
    shutil.rmtree(job / 'etc', ignore_errors=True)
    (job / 'etc').mkdir(parents=True)
    for name, text in machine.etc:
        (job / 'etc' / name).parent.mkdir(parents=True, exist_ok=True)
        (job / 'etc' / name).write_text(text)
    for name in ('status', 'log', 'console'):
        (job / name).unlink(missing_ok=True)
    (job / 'directories').write_text(''.join(
        f'{directory}\n' for directory in _directories(kernel)))
    (job / 'init').write_text(_INIT.format(
        clone=CLONE, cache=sys.pycache_prefix or '', name=machine.name,
        root=kernel.root, modules=' '.join(machine.modules),
        cells=len(machine.cells), tuning=machine.tuning))
    (job / 'commands').write_text(commands)
    with open(job / 'qemu', 'w') as messages:
        try:
            subprocess.run(
                ['qemu-system-x86_64', *machine.arguments(),
                 *_surroundings(kernel, job, machine.parameters)],
                check=False, timeout=limit_s, stdin=subprocess.DEVNULL,
                stdout=messages, stderr=messages)
        except subprocess.TimeoutExpired as exc:
            raise BootFailed(f'{machine.name}: not finished after {limit_s} '
                             f's\n{_tail(job)}') from exc
    status = job / 'status'
    if not status.exists() or status.read_text().strip() != '0':
        raise BootFailed(f'{machine.name}: the job failed\n{_tail(job)}')
    return (job / 'log').read_text()


def _directories(kernel: kernels.Kernel) -> list[str]:
    """List the directories that the machine shares, outer ones first."""
    wanted = {'/usr', str(CLONE), str(kernel.root), sys.prefix,
              sys.base_prefix, str(pathlib.Path(sys.executable).resolve()
                                   .parents[1])}
    return sorted(directory for directory in wanted
                  if not any(directory.startswith(f'{other}/')
                             for other in wanted))


def _surroundings(kernel: kernels.Kernel, job: pathlib.Path,
                  parameters: str) -> list[str]:
    arguments = [
        '-accel', 'tcg,thread=multi', '-nodefaults', '-no-user-config',
        '-display', 'none', '-no-reboot', '-serial', f'file:{job}/console',
        '-kernel', str(kernel.image), '-initrd', str(kernel.initrd),
        # On a busy machine, the kernel's check of the timer may fail.
        '-append',
        f'console=ttyS0 quiet panic=-1 no_timer_check {parameters}']
    how = 'security_model=none,multidevs=remap'
    for tag, path, rest in (('outer', '/', ',readonly=on'), ('job', job, '')):
        arguments += [
            '-fsdev', f'local,id={tag},path={path},{how}{rest}',
            '-device', f'virtio-9p-pci,bus=pcie.0,fsdev={tag},mount_tag={tag}']
    return arguments


def _tail(job: pathlib.Path) -> str:
    """Return the last lines of the output of QEMU, the kernel and the job."""
    lines: list[str] = []
    for name, number in (('qemu', 5), ('console', 15), ('log', 60)):
        if (job / name).exists():
            text = (job / name).read_text(errors='replace')
            lines += [f'{name}: {line}' for line in [
                line for line in text.splitlines()
                if ': warning: ' not in line][-number:]]
    return '\n'.join(lines)
