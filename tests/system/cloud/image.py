# SPDX-License-Identifier: Apache-2.0

"""Build a guest image that boots in seconds under emulation.

It is built from Debian packages only: the kernel for clouds, which is unpacked
but not installed, and busybox-static and dropbear of this machine. The root
file system is the initial RAM disk; the disk is empty. The guest reads its
address and keys from Nova's config drive.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from tests.system.cloud import commands
from tests.system.cloud import packages
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

INIT = pathlib.Path(__file__).resolve().parent / 'guest-init.sh'
#: A benchmark, and its path in the guest.
BENCHMARK = INIT.parent / 'hs06.sh'
BENCHMARK_PATH = '/bin/hs06'
METAPACKAGE = 'linux-image-cloud-amd64'

#: Drivers of the disks, the network and the config drive under QEMU.
MODULES = ('virtio_pci', 'virtio_blk', 'virtio_net', 'virtio_scsi',
           'virtio_rng', 'isofs', 'sr_mod', 'ata_piix', 'ahci', 'sd_mod',
           'vfat', 'nls_ascii', 'nls_cp437')
LIBRARY = re.compile(r'(/\S+)')
DIRECTORIES = ('bin', 'sbin', 'usr/bin', 'usr/sbin', 'etc/dropbear', 'proc',
               'sys', 'dev', 'tmp', 'run', 'mnt', 'root/.ssh', 'lib/modules',
               'lib64', 'var/log', 'var/tmp')


def ensure(settings: cloud_settings.Settings) -> None:
    """Build the image if it is missing or out of date."""
    stamp = settings.guest / 'stamp'
    wanted = hashlib.sha256(
        INIT.read_bytes() + BENCHMARK.read_bytes()
        + pathlib.Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    with progress.step('built the guest image'):
        shutil.rmtree(settings.guest, ignore_errors=True)
        settings.guest.mkdir(parents=True)
        work = settings.guest / 'work'
        kernel = _kernel(settings, work)
        root = work / 'root'
        _programs(root)
        _modules(settings, work / 'kernel', kernel, root)
        shutil.copy(INIT, root / 'init')
        (root / 'init').chmod(0o755)
        shutil.copy(BENCHMARK, root / BENCHMARK_PATH.lstrip('/'))
        archive = settings.guest / 'initrd.gz'
        commands.run(settings, 'guest-image', [
            'sh', '-c', 'cd "$1" && find . | cpio -o -H newc | gzip -1 >"$2"',
            'sh', str(root), str(archive)])
        shutil.copy(work / 'kernel' / 'boot' / f'vmlinuz-{kernel}',
                    settings.guest / 'vmlinuz')
        commands.run(settings, 'guest-image', [
            'qemu-img', 'create', '-q', '-f', 'qcow2',
            str(settings.guest / 'disk.qcow2'), '64M'])
        os.truncate(os.open(settings.guest / 'empty.raw',
                            os.O_CREAT | os.O_WRONLY, 0o644), 512)
        shutil.rmtree(work)
    stamp.write_text(wanted)


def ensure_key(settings: cloud_settings.Settings) -> None:
    """Create the key pair for the guests."""
    if not settings.key.exists():
        commands.run(settings, 'guest-image', [
            'ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'cloud',
            '-f', str(settings.key)])


def _kernel(settings: cloud_settings.Settings, work: pathlib.Path) -> str:
    packages.update(settings)
    name = packages.dependency(METAPACKAGE, 'linux-image-')
    deb = packages.fetch(settings, name, work / 'download')
    commands.run(settings, 'guest-image', [
        'dpkg-deb', '-x', str(deb), str(work / 'kernel')])
    kernel = name.removeprefix('linux-image-')
    # Debian 13 keeps modules below /usr/lib only; depmod looks in /lib.
    merged = work / 'kernel' / 'usr' / 'lib' / 'modules'
    plain = work / 'kernel' / 'lib'
    if merged.exists() and not (plain / 'modules').exists():
        plain.mkdir(exist_ok=True)
        (plain / 'modules').symlink_to(merged)
    commands.run(settings, 'guest-image', [
        'depmod', '-b', str(work / 'kernel'), kernel])
    return kernel


def _programs(root: pathlib.Path) -> None:
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    busybox = shutil.which('busybox') or '/bin/busybox'
    shutil.copy(busybox, root / 'bin' / 'busybox')
    for applet in commands.output([busybox, '--list']).split():
        if applet != 'busybox':
            (root / 'bin' / applet).symlink_to('/bin/busybox')
    for program in ('/usr/sbin/dropbear', '/usr/bin/dropbearkey'):
        _copy_program(root, program)
    (root / 'etc' / 'passwd').write_text('root:x:0:0:root:/root:/bin/sh\n')
    (root / 'etc' / 'group').write_text('root:x:0:\n')
    (root / 'etc' / 'shadow').write_text('root:*:19000:0:99999:7:::\n')
    (root / 'etc' / 'shells').write_text('/bin/sh\n')


def _copy_program(root: pathlib.Path, program: str) -> None:
    shutil.copy(program, root / program.lstrip('/'))
    for line in commands.output(['ldd', program]).splitlines():
        found = LIBRARY.search(line)
        if found:
            target = root / found[1].lstrip('/')
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found[1], target)


def _modules(settings: cloud_settings.Settings, tree: pathlib.Path,
             kernel: str, root: pathlib.Path) -> None:
    order: list[str] = []
    for module in MODULES:
        result = subprocess.run(
            ['modprobe', '-d', str(tree), '-S', kernel, '--show-depends',
             module], capture_output=True, text=True, check=False)
        for line in result.stdout.splitlines():
            words = line.split()
            if words[0] == 'insmod' and words[1] not in order:
                order.append(words[1])
    for path in order:
        _unpack(settings, pathlib.Path(path), root / 'lib' / 'modules')
    names = [re.sub(r'\.(xz|zst|gz)$', '', pathlib.Path(path).name)
             for path in order]
    (root / 'lib' / 'modules' / 'order').write_text('\n'.join(names) + '\n')


def _unpack(settings: cloud_settings.Settings, module: pathlib.Path,
            directory: pathlib.Path) -> None:
    # BusyBox cannot load compressed modules, which Debian 13 has.
    target = directory / module.name
    shutil.copy(module, target)
    if module.suffix == '.xz':
        commands.run(settings, 'guest-image', ['xz', '-d', str(target)])
    elif module.suffix == '.zst':
        commands.run(settings, 'guest-image',
                     ['zstd', '-q', '-d', '--rm', str(target)])
