# SPDX-License-Identifier: Apache-2.0

"""Install a distribution in an image, and boot it on an emulated machine.

Unlike the machines of ``boot``, this one has the initramfs and the systemd of
the distribution: the initramfs binds the drivers before the root is there, and
systemd moves programs between control groups. It needs the Debian packages
e2fsprogs and mmdebstrap. The keys of Ubuntu's archive are taken from a package
of Debian 13, because Debian 12 has none.
"""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import typing

from tests.system.emulated_host import boot
from tests.system.emulated_host import machines

_PACKAGES = ('systemd-sysv', 'udev', 'dbus', 'kmod', 'initramfs-tools',
             'irqbalance', 'procps', 'tuned', 'ethtool')


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A distribution to install.

    :ivar packages: the kernel, Python and further packages. A kernel for
        clouds has fewer drivers, and boots faster
    :ivar python: a Python with which hpcvirt runs
    :ivar is_ubuntu: whether the archive of Ubuntu has the packages
    """

    suite: str
    packages: tuple[str, ...] = ('linux-image-cloud-amd64', 'python3-minimal')
    python: str = 'python3'
    is_ubuntu: bool = False


def _ubuntu(suite: str, *python: str) -> Distribution:
    return Distribution(suite, ('linux-image-virtual', *python),
                        python[0].removesuffix('-minimal'), True)


DISTRIBUTIONS = {item.suite: item for item in (
    Distribution('bookworm'), Distribution('trixie'),
    _ubuntu('jammy', 'python3.11-minimal', 'libpython3.11-stdlib'),
    _ubuntu('noble', 'python3-minimal', 'libpython3-stdlib'))}

#: The directory of hpcvirt and its dependencies in the image.
LIBRARIES = 'opt/hpcvirt'

#: Files of the site: the name of the machine, its root and its boot loader,
#: and the module that the packages of libvirt load.
SYSTEM = {
    'etc/fstab': '/dev/vda / ext4 defaults 0 1\n',
    'etc/default/grub': 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
                        'GRUB_CMDLINE_LINUX=""\n',
    'etc/modules-load.d/kvm.conf': 'kvm_amd\n',
    # An emulated machine is slow on busy processors.
    'etc/systemd/system.conf.d/10-slow.conf': """\
[Manager]
DefaultTimeoutStartSec=1800
DefaultDeviceTimeoutSec=1800
""",
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
    # Devices and TuneD, which is not ready when systemd says so, come first.
    # libvirt starts a guest in a scope that is delegated to it. Then the state
    # that the host is in, with the CPUs of each program.
    'state': f"""\
rm -f /audit.json /state.txt
udevadm settle --timeout=1800
for second in $(seq 900); do
    ! grep -q 'static tuning from .* applied' /var/log/tuned/tuned.log || break
    sleep 1
done
systemd-run --quiet --scope --slice machine.slice --property Delegate=yes \\
    sleep 1
for file in /sys/bus/pci/drivers/nvme/*/sriov_numvfs \\
    /sys/devices/system/node/node*/hugepages/*/nr_hugepages; do
    echo "$file $(cat "$file")" >> /state.txt
done
# The driver of the network is bound again, so that its device is renamed
# after the rules of udev, as it is where the initramfs lacks the driver.
rmmod vmxnet3
modprobe vmxnet3
udevadm settle --timeout=1800
for device in /sys/bus/pci/drivers/vmxnet3/*/net/*; do
    echo "$device/ring $(ethtool -g "${{device##*/}}" | awk '
        /^Current/ {{ now = 1 }}
        now && /^RX:/ {{ print $2 }}')" >> /state.txt
done
# A program may end meanwhile, and a thread of the kernel has no VmSize.
cat /proc/[0-9]*/status 2> /dev/null | awk '
    /^Name:/ {{ sub(/^Name:./, ""); name = $0; size = 0 }}
    /^VmSize:/ {{ size = 1 }}
    size && /^Cpus_allowed_list:/ {{ print name, $2 }}' >> /state.txt
cd /
PYTHONPATH=/{LIBRARIES} PYTHON -m hpcvirt.cmd.main host audit \\
    --profile /profile.yaml --format json > /audit.json
# It is written again at the next boot.
rm -f /var/log/tuned/tuned.log
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
    """The state of a system after it has booted.

    :ivar files: path -> content of files of the kernel
    :ivar programs: (name, CPUs that it may use)
    :ivar audit: what ``hpcvirt host audit`` prints
    """

    files: dict[str, str]
    programs: list[tuple[str, str]]
    audit: dict[str, typing.Any]


def install(distribution: Distribution, tree: pathlib.Path,
            machine: machines.Machine, profile: str) -> None:
    """Install the distribution and hpcvirt in a folder.

    :param profile: the profile of hpcvirt that the audit compares with
    """
    packages = ','.join((*_PACKAGES, *distribution.packages))
    _run('mmdebstrap', '--quiet', '--variant=minbase', '--mode=root',
         f'--include={packages}', '--dpkgopt=force-unsafe-io',
         *(f'--dpkgopt=path-exclude=/usr/share/{name}/*'
           for name in ('doc', 'locale', 'man')), distribution.suite, tree,
         *(list_sources(distribution.suite, tree.with_suffix('.keys'))
           if distribution.is_ubuntu else ()))
    for path, text in {**SYSTEM, 'profile.yaml': profile,
                       'etc/hostname': f'{machine.name}\n'}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text.replace('PYTHON ',
                                              f'{distribution.python} '))
    shutil.copytree(boot.CLONE / 'hpcvirt', tree / LIBRARIES / 'hpcvirt')
    for name in _run(sys.executable, '-c', _LIST_PACKAGES,
                     tree / 'profile.yaml').split():
        place = pathlib.Path(sysconfig.get_path('purelib'), name)
        if place.is_dir():
            shutil.copytree(place, tree / LIBRARIES / name)
        else:
            shutil.copy(place, tree / LIBRARIES)
    # This compiles the modules, which is slow on an emulated processor.
    _run('chroot', tree, 'env', f'PYTHONPATH=/{LIBRARIES}',
         distribution.python, '-m', 'hpcvirt.cmd.main', 'host', 'audit',
         '--profile', '/profile.yaml', '--format', 'json', status=None)
    _run('chroot', tree, 'systemctl', '--quiet', 'enable', 'state.service')
    # Nothing needs these services, and each takes seconds.
    _run('chroot', tree, 'systemctl', '--quiet', 'disable', 'getty@.service',
         'apt-daily.timer', 'apt-daily-upgrade.timer', 'e2scrub_reap.service')


def list_sources(suite: str, keys: pathlib.Path) -> list[str]:
    """Fetch the keys of Ubuntu, and write lines of sources.list."""
    for folder in ('state/lists/partial', 'cache/archives/partial'):
        (keys / folder).mkdir(parents=True)
    (keys / 'sources').write_text(
        'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
        'http://deb.debian.org/debian trixie main\n')
    options = [f'-o{name}={value}' for name, value in (
        ('APT::Sandbox::User', 'root'), ('APT::Update::Error-Mode', 'any'),
        ('Dir::Etc::SourceList', keys / 'sources'),
        ('Dir::Etc::SourceParts', '-'), ('Dir::State', keys / 'state'),
        ('Dir::Cache', keys / 'cache'))]
    _run('apt-get', '-qq', *options, 'update')
    _run('apt-get', '-qq', *options, '--download-only', '--reinstall',
         '--yes', 'install', 'ubuntu-keyring')
    (package,) = (keys / 'cache/archives').glob('ubuntu-keyring_*.deb')
    _run('dpkg-deb', '-x', package, keys)
    ring = keys / 'usr/share/keyrings/ubuntu-archive-keyring.gpg'
    return [f'deb [signed-by={ring}] http://archive.ubuntu.com/ubuntu {name} '
            'main universe' for name in (suite, f'{suite}-updates')]


def make_image(tree: pathlib.Path, image: pathlib.Path) -> None:
    """Make a disk with the content of a folder."""
    _run('mke2fs', '-q', '-F', '-t', 'ext4', '-d', tree, image, '4G')


def run(machine: machines.Machine, tree: pathlib.Path, image: pathlib.Path,
        parameters: str, limit_s: int) -> State:
    """Boot an image, and return its state.

    :param tree: the folder from which the image was made, with the kernel
    :param parameters: kernel parameters in addition to those of the root
    """
    (kernel,) = (tree / 'boot').glob('vmlinuz-*')
    (initramfs,) = (tree / 'boot').glob('initrd.img-*')
    console = image.with_suffix('.console')
    try:
        parameters = ('root=/dev/vda ro console=ttyS0 panic=-1 '
                      'no_timer_check cryptomgr.notests '
                      'udev.event_timeout=1800 '
                      'nvme_core.admin_timeout=255 nvme_core.io_timeout=255 '
                      f'{parameters}')
        subprocess.run([
            'qemu-system-x86_64', *machine.arguments(), '-accel',
            'tcg,thread=multi', '-nodefaults', '-no-user-config', '-display',
            'none', '-no-reboot', '-serial', f'file:{console}', '-drive',
            f'if=none,id=root,format=raw,cache=unsafe,file={image}', '-device',
            'virtio-blk-pci,bus=pcie.0,drive=root', '-device',
            'pcie-root-port,bus=pcie.0,id=network,chassis=99', '-device',
            'vmxnet3,bus=network', '-kernel', kernel,
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
