# SPDX-License-Identifier: Apache-2.0

"""Install the Debian packages that the cloud needs.

The names are those of Debian 12 and 13. During the installation a
``policy-rc.d`` keeps the services of the packages from starting; an existing
``policy-rc.d`` is left as it is.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from collections.abc import Iterator

from tests.system.cloud import commands
from tests.system.cloud import errors
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

PACKAGES = (
    # what the APIs need
    'mariadb-server', 'rabbitmq-server', 'memcached',
    # the hypervisor
    'libvirt-daemon-system', 'libvirt-daemon', 'libvirt-daemon-driver-qemu',
    'libvirt-clients', 'qemu-system-x86', 'qemu-utils', 'genisoimage',
    # its network
    'openvswitch-switch', 'iproute2', 'iptables', 'ebtables', 'ipset',
    'conntrack', 'dnsmasq-base', 'bridge-utils', 'iputils-ping',
    # to build libvirt-python and uWSGI
    'libvirt-dev', 'pkg-config', 'gcc', 'libc6-dev',
    # the guest
    'busybox-static', 'dropbear-bin', 'kmod', 'cpio', 'xz-utils',
    'openssh-client',
)

#: The packages for a virtual environment with Debian's Python.
PYTHON_PACKAGES = ('python3-venv', 'python3-dev')

POLICY = pathlib.Path('/usr/sbin/policy-rc.d')
RELEASES = ('12', '13')
#: The lock of tools/debian_packages, with which other environments of tox
#: install packages.
LOCK = pathlib.Path('/run/lock/hpcvirt-packages')


def ensure(settings: cloud_settings.Settings) -> None:
    """Install the packages of the cloud that are missing.

    :raises CloudError: if not run as root on Debian 12 or 13
    """
    if os.geteuid() != 0:
        raise errors.CloudError(
            'the cloud needs root to set up huge pages, mounts and bridges')
    wanted = PACKAGES
    if pathlib.Path(sys.executable).resolve().is_relative_to('/usr/bin'):
        wanted += PYTHON_PACKAGES
    install(settings, wanted)


def install(settings: cloud_settings.Settings, wanted: Iterable[str]) -> None:
    """Install the packages that are missing.

    It does not use the network if all are installed.

    :raises CloudError: if not on Debian 12 or 13, or apt-get fails
    """
    missing = [name for name in wanted if not _installed(name)]
    if not missing:
        return
    _check_release()
    with (progress.step(f'installed {len(missing)} Debian packages'),
          _alone()):
        _install(settings, missing)


def fetch(settings: cloud_settings.Settings, name: str,
          directory: pathlib.Path) -> pathlib.Path:
    """Download a package without installing it.

    :returns: the .deb file
    """
    if not _candidate(name):
        update(settings)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # The sandbox user of apt cannot write to the directory.
    script = 'cd "$1" && apt-get -o APT::Sandbox::User=root download "$2"'
    commands.run(settings, 'apt', [
        'sh', '-c', script, 'sh', str(directory), name])
    return next(directory.glob('*.deb'))


def dependency(name: str, prefix: str) -> str:
    """Return the dependency of a metapackage that has this prefix."""
    for line in commands.output(['apt-cache', 'depends', name]).splitlines():
        words = line.split()
        if len(words) == 2 and words[1].startswith(prefix):
            return words[1]
    raise errors.CloudError(f'{name} depends on no {prefix}*')


def update(settings: cloud_settings.Settings) -> None:
    """Update the package lists."""
    with _alone():
        commands.run(settings, 'apt', ['apt-get', 'update'])


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other environment of tox runs apt-get, which would fail.

    They wait for each other here, too.
    """
    with LOCK.open('a') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _installed(name: str) -> bool:
    done = subprocess.run(
        ['dpkg-query', '-W', '-f', '${db:Status-Status}', name],
        capture_output=True, text=True, check=False)
    return done.stdout == 'installed'


def _candidate(name: str) -> bool:
    done = subprocess.run(['apt-cache', 'show', name], check=False,
                          capture_output=True)
    return done.returncode == 0 and bool(done.stdout)


def _check_release() -> None:
    values = {}
    path = pathlib.Path('/etc/os-release')
    for line in path.read_text().splitlines() if path.exists() else []:
        key, _, value = line.partition('=')
        values[key] = value.strip('"')
    if (values.get('ID') != 'debian'
            or values.get('VERSION_ID') not in RELEASES):
        raise errors.CloudError(
            'packages are missing, and can be installed only on Debian 12 '
            'and 13; this is ' + values.get('PRETTY_NAME', 'unknown'))


def _install(settings: cloud_settings.Settings, names: list[str]) -> None:
    needs_policy = not POLICY.exists()
    if needs_policy:
        POLICY.write_text('#!/bin/sh\nexit 101\n')
        POLICY.chmod(0o755)
    environment = {'DEBIAN_FRONTEND': 'noninteractive'}
    try:
        commands.run(settings, 'apt', ['apt-get', 'update'])
        commands.run(settings, 'apt', [
            'apt-get', '-o', 'DPkg::Lock::Timeout=300', 'install', '-y',
            '--no-install-recommends', *names], environment, limit_s=1800)
    finally:
        if needs_policy:
            POLICY.unlink(missing_ok=True)
