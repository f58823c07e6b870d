# SPDX-License-Identifier: Apache-2.0

"""Install Debian in an image, and boot it on an emulated machine.

Unlike the machines of ``boot``, this one has the initramfs and the systemd of
the distribution: the initramfs binds the drivers before the root is there, and
systemd moves programs between control groups. It needs the Debian packages
e2fsprogs and mmdebstrap.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import typing

from tools.emulated_host import boot
from tools.emulated_host import machines

SUITE = 'bookworm'

#: The kernel for clouds has fewer drivers, and boots faster.
PACKAGES = ('linux-image-cloud-amd64', 'systemd-sysv', 'udev', 'dbus', 'kmod',
            'irqbalance', 'procps', 'python3-minimal', 'tuned')

#: Where the image has hpcvirt and what it needs.
LIBRARIES = 'opt/hpcvirt'

#: What the site had before: the name of the machine, its root and its boot
#: loader, and the module that the packages of libvirt load.
SYSTEM = {
    'etc/fstab': '/dev/vda / ext4 defaults 0 1\n',
    'etc/default/grub': 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
                        'GRUB_CMDLINE_LINUX=""\n',
    'etc/modules-load.d/kvm.conf': 'kvm_amd\n',
    'etc/systemd/system/state.service': """\
[Unit]
After=tuned.service irqbalance.service systemd-tmpfiles-setup.service
[Service]
Type=oneshot
ExecStart=/bin/sh /state
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=file:/log
StandardError=file:/log
[Install]
WantedBy=multi-user.target
""",
    # libvirt starts a guest in a scope that is delegated to it. Then the state
    # that the host is in, with the CPUs of each program.
    'state': f"""\
rm -f /audit.json /state.txt
systemd-run --quiet --scope --slice machine.slice --property Delegate=yes \\
    sleep 1
for file in /sys/bus/pci/drivers/nvme/*/sriov_numvfs \\
    /sys/devices/system/node/node*/hugepages/*/nr_hugepages; do
    echo "$file $(cat "$file")" >> /state.txt
done
for process in $(grep -l VmSize /proc/[0-9]*/status); do
    echo "$(sed -n 's/^Name:.//p' "$process")" "$(
        sed -n 's/^Cpus_allowed_list:.//p' "$process")" >> /state.txt
done
cd /
PYTHONPATH=/{LIBRARIES} python3 -m hpcvirt.cmd.main host audit \\
    --profile /profile.yaml --format json > /audit.json
""",
}


#: Print the packages that the audit loads, and what describes them.
_LIST_PACKAGES = """
import contextlib, io, pathlib, sys, sysconfig
from hpcvirt.cmd import main
with contextlib.redirect_stdout(io.StringIO()):
    main.main(['host', 'audit', '--profile', sys.argv[1]])
top = pathlib.Path(sysconfig.get_path('purelib'))
files = {module.__file__ for module in list(sys.modules.values())
         if getattr(module, '__file__', None)}
for name in {pathlib.Path(file).relative_to(top).parts[0] for file in files
             if file.startswith(f'{top}/')}:
    print(name)
"""


class State(typing.NamedTuple):
    """What a system is like after it has booted.

    :ivar files: path -> content of those of the kernel
    :ivar programs: (name, CPUs that it may use)
    :ivar audit: what ``hpcvirt host audit`` prints
    """

    files: dict[str, str]
    programs: list[tuple[str, str]]
    audit: dict[str, typing.Any]


def install(tree: pathlib.Path, machine: machines.Machine,
            profile: str) -> None:
    """Install the distribution and hpcvirt in a folder.

    :param profile: the profile of hpcvirt that the audit compares with
    """
    _run('mmdebstrap', '--quiet', '--variant=minbase', '--mode=root',
         f'--include={",".join(PACKAGES)}', '--dpkgopt=force-unsafe-io',
         *(f'--dpkgopt=path-exclude=/usr/share/{name}/*'
           for name in ('doc', 'locale', 'man')), SUITE, tree)
    for path, text in {**SYSTEM, 'profile.yaml': profile,
                       'etc/hostname': f'{machine.name}\n'}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    shutil.copytree(boot.CLONE / 'hpcvirt', tree / LIBRARIES / 'hpcvirt')
    for name in _run(sys.executable, '-c', _LIST_PACKAGES,
                     tree / 'profile.yaml').split():
        place = pathlib.Path(sysconfig.get_path('purelib'), name)
        if place.is_dir():
            shutil.copytree(place, tree / LIBRARIES / name)
        else:
            shutil.copy(place, tree / LIBRARIES)
    # It compiles the modules, which an emulated processor does slowly.
    _run('chroot', tree, 'env', f'PYTHONPATH=/{LIBRARIES}', 'python3', '-m',
         'hpcvirt.cmd.main', 'host', 'audit', '--profile', '/profile.yaml',
         '--format', 'json', status=None)
    _run('chroot', tree, 'systemctl', '--quiet', 'enable', 'state.service')
    # Nothing asks for them here, and each costs seconds.
    _run('chroot', tree, 'systemctl', '--quiet', 'disable', 'getty@.service',
         'apt-daily.timer', 'apt-daily-upgrade.timer', 'e2scrub_reap.service')


def make_image(tree: pathlib.Path, image: pathlib.Path) -> None:
    """Make a disk with the content of a folder."""
    _run('mke2fs', '-q', '-F', '-t', 'ext4', '-d', tree, image, '2G')


def run(machine: machines.Machine, tree: pathlib.Path, image: pathlib.Path,
        parameters: str, limit_s: int) -> State:
    """Boot an image, and return the state that it was in.

    :param tree: the folder that the image was made of, with the kernel
    :param parameters: of the kernel, besides those of the root
    """
    (kernel,) = (tree / 'boot').glob('vmlinuz-*')
    (initramfs,) = (tree / 'boot').glob('initrd.img-*')
    console = image.with_suffix('.console')
    try:
        parameters = ('root=/dev/vda ro console=ttyS0 panic=-1 '
                      f'no_timer_check {parameters}')
        subprocess.run([
            'qemu-system-x86_64', *machine.arguments(), '-accel',
            'tcg,thread=multi', '-nodefaults', '-no-user-config', '-display',
            'none', '-no-reboot', '-serial', f'file:{console}', '-drive',
            f'if=none,id=root,format=raw,cache=unsafe,file={image}', '-device',
            'virtio-blk-pci,bus=pcie.0,drive=root', '-kernel', kernel,
            '-initrd', initramfs, '-append', parameters],
            check=False, timeout=limit_s, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = _read(image, 'state.txt').splitlines()
        return State(
            dict(line.split() for line in lines if line.startswith('/')),
            [(name, cpus) for name, _, cpus in (
                line.rpartition(' ') for line in lines
                if not line.startswith('/'))],
            json.loads(_read(image, 'audit.json')))
    except (subprocess.TimeoutExpired, ValueError) as exc:
        said = console.read_text(errors='replace').splitlines()
        raise boot.BootFailed('\n'.join([
            f'{machine.name}: {exc}', *said[-40:],
            *_read(image, 'log').splitlines()[-20:]])) from exc


def read_parameters(tree: pathlib.Path) -> str:
    """Read the kernel parameters as the scripts of GRUB do."""
    return _run('sh', '-euc', 'cd "$0"; for file in default/grub '
                'default/grub.d/*.cfg; do [ ! -e "$file" ] || . "./$file"; '
                'done; echo "$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"',
                tree / 'etc').strip()


def _read(image: pathlib.Path, path: str) -> str:
    return _run('debugfs', '-R', f'cat /{path}', image, status=None)


def _run(*words: str | pathlib.Path, status: int | None = 0) -> str:
    done = subprocess.run(words, check=False, text=True, capture_output=True)
    if status is not None and done.returncode != status:
        raise boot.BootFailed(f'{words[0]} ended with {done.returncode}: '
                              f'{done.stderr[-2000:]}')
    return done.stdout
