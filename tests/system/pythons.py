# SPDX-License-Identifier: Apache-2.0

"""Run a command with the Python of a distribution, as root on Debian.

    python -m tests.system.pythons SUITE COMMAND...

The command finds the programs and libraries of the distribution in place of
those of this machine; the clone, /etc and everything else are this machine's.
The distribution is installed below the clone, in .roots, when it is first
needed (remove it there to get a newer one). "tools/tox" keeps what it makes
beside it. It needs the Debian package mmdebstrap.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from tests.system.emulated_host import distribution

CLONE = pathlib.Path(__file__).resolve().parents[2]

#: Of minbase, Debian has libstdc++6 and Ubuntu has procps.
PACKAGES = ('ca-certificates', 'git', 'libstdc++6', 'openssh-client', 'procps',
            'python3', 'python3-venv')

#: Releases of Ubuntu; others are of Debian.
UBUNTU = ('noble', 'resolute')

#: The mounts are of a name space of the command, and end with it.
MOUNT = """\
mount --bind "$0/usr" /usr
mount --bind "$0/etc/alternatives" /etc/alternatives
exec "$@"
"""

#: What would lead the command to the Python that runs this.
OTHER_PYTHON = ('PYTHON', 'TOX_', 'VIRTUAL_ENV')


def main(suite: str, *command: str) -> int:
    """Run the command, and return its status."""
    folder = CLONE / '.roots' / suite
    root = folder / 'root'
    if not root.exists():
        install(suite, root)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(OTHER_PYTHON)}
    environment['PATH'] = '/usr/sbin:/usr/bin:/sbin:/bin'
    environment['HPCVIRT_VENV'] = f'{folder}/venv'
    environment['TOX_WORK_DIR'] = f'{folder}/tox'
    return subprocess.run(
        ('unshare', '--mount', 'sh', '-euc', MOUNT, root, *command),
        check=False, cwd=CLONE, env=environment).returncode


def install(suite: str, root: pathlib.Path) -> None:
    """Install the programs and libraries of the distribution in a folder.

    The folder is there when all is in it.
    """
    keys = root.with_suffix('.keys')
    archive = root.with_suffix('.tar')
    unfinished = root.with_suffix('.new')
    for left in (keys, unfinished):
        shutil.rmtree(left, ignore_errors=True)
    sources = []
    if suite in UBUNTU:
        sources = distribution.list_sources(suite, keys)
    unfinished.mkdir(parents=True)
    print(f'installing {suite} in {root}', flush=True)
    # An archive, because setuptools reads all folders of the clone, and would
    # find /proc and the devices in this one. The mounts end with the process.
    subprocess.run(
        ('unshare', '--mount', 'mmdebstrap', '--quiet', '--variant=minbase',
         '--mode=root', f'--include={",".join(PACKAGES)}',
         '--dpkgopt=force-unsafe-io', suite, archive, *sources), check=True)
    subprocess.run(('tar', '-xf', archive, '-C', unfinished, './usr',
                    './etc/alternatives'), check=True)
    archive.unlink()
    shutil.rmtree(keys, ignore_errors=True)
    unfinished.rename(root)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
