# SPDX-License-Identifier: Apache-2.0

"""Unpack Debian's kernel, without installing it, and make a RAM disk.

It needs the Debian packages apt, busybox-static, cpio, dpkg and kmod.
"""

import dataclasses
import gzip
import lzma
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent

#: The package that depends on the current kernel.
PACKAGE = 'linux-image-amd64'

#: The modules that mount the programs of this machine.
EARLY = ('virtio_pci', '9pnet_virtio', '9p')


@dataclasses.dataclass(frozen=True)
class Kernel:
    """An unpacked kernel.

    :ivar root: the directory with ``lib/modules``
    :ivar image: the kernel
    :ivar initrd: the RAM disk
    """

    root: pathlib.Path
    image: pathlib.Path
    initrd: pathlib.Path


def prepare(directory: pathlib.Path) -> Kernel:
    """Unpack the kernel to a directory unless it is there already."""
    package = _package()
    kernel = Kernel(directory / package, directory / package / 'vmlinuz',
                    directory / package / 'initrd.gz')
    if not kernel.image.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            _unpack(package, pathlib.Path(scratch), kernel.root)
    _write_initrd(kernel)
    return kernel


def _package() -> str:
    answer = _run('apt-cache', 'depends', PACKAGE)
    match = re.search(r'Depends: (linux-image-\S+)', answer)
    if match is None:
        raise FileNotFoundError(f'{PACKAGE} is not in the lists of apt')
    return match[1]


def _unpack(package: str, scratch: pathlib.Path, to: pathlib.Path) -> None:
    _run('apt-get', 'download', '-qq', '-o', 'APT::Sandbox::User=root',
         package, cwd=scratch)
    _run('dpkg-deb', '-x', *map(str, scratch.glob('*.deb')), 'root',
         cwd=scratch)
    root = scratch / 'root'
    _run('depmod', '-b', str(root), _version(root))
    next((root / 'boot').glob('vmlinuz-*')).rename(root / 'vmlinuz')
    shutil.rmtree(to, ignore_errors=True)
    root.rename(to)


def _version(root: pathlib.Path) -> str:
    return next((root / 'lib/modules').iterdir()).name


def _write_initrd(kernel: Kernel) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / 'modules').mkdir()
        (root / 'bin').mkdir()
        shutil.copy2(shutil.which('busybox') or 'busybox', root / 'bin')
        shutil.copy2(HERE / 'guest-init', root / 'init')
        order = []
        for path in _modules(kernel.root):
            name = path.name.removesuffix('.xz')
            data = path.read_bytes()
            (root / 'modules' / name).write_bytes(
                lzma.decompress(data) if path.suffix == '.xz' else data)
            order.append(name)
        (root / 'modules/order').write_text('\n'.join(order) + '\n')
        names = sorted(str(path.relative_to(root)) for path in root.rglob('*'))
        archive = subprocess.run(
            ['cpio', '-o', '-H', 'newc', '--quiet'], cwd=root, check=True,
            input='\n'.join(names).encode(), stdout=subprocess.PIPE).stdout
    kernel.initrd.write_bytes(gzip.compress(archive, 1))


def _modules(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """List the files of the early modules, dependencies first."""
    seen = set()
    for module in EARLY:
        answer = _run('modprobe', '-d', str(root), '-S', _version(root),
                      '--show-depends', module)
        for word in re.findall(r'^insmod (\S+)', answer, re.MULTILINE):
            if word not in seen:
                seen.add(word)
                yield pathlib.Path(word)


def _run(*argv: str, cwd: pathlib.Path | None = None) -> str:
    return subprocess.run(argv, check=True, text=True, cwd=cwd,
                          stdout=subprocess.PIPE).stdout
