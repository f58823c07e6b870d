# SPDX-License-Identifier: Apache-2.0

"""Create the Python environment of OpenStack's services and hpcvirt.

The environment is kept between starts. If the requirements change, it is
created again; if hpcvirt changes, only hpcvirt is installed again. hpcvirt is
installed as an operator installs it: from a built package, not in place.
"""

import hashlib
import pathlib
import shutil
import sys

from tests.system.cloud import commands
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / 'requirements.txt'
CONSTRAINTS = HERE / 'constraints.txt'


def ensure(settings: cloud_settings.Settings) -> None:
    """Create the environment if it is missing or out of date."""
    libvirt = commands.output(['pkg-config', '--modversion', 'libvirt'])
    interpreter = _interpreter()
    stamp = settings.venv / 'hpcvirt-cloud-stamp'
    wanted = _digest([REQUIREMENTS, CONSTRAINTS,
                      cloud_settings.REPOSITORY / 'requirements.txt'],
                     libvirt + str(interpreter))
    if not stamp.exists() or stamp.read_text() != wanted:
        with progress.step('created the Python environment'):
            _create(settings, interpreter, libvirt.strip())
        stamp.write_text(wanted)
    _install_hpcvirt(settings)
    _provide_sudo(settings)


def _interpreter() -> pathlib.Path:
    """Return the base interpreter, which outlives a virtual environment."""
    base = getattr(sys, '_base_executable', None) or sys.executable
    return pathlib.Path(base).resolve()


def _create(settings: cloud_settings.Settings, interpreter: pathlib.Path,
            libvirt: str) -> None:
    shutil.rmtree(settings.venv, ignore_errors=True)
    commands.run(settings, 'pip', [
        str(interpreter), '-m', 'venv', str(settings.venv)])
    pip = [settings.program('python'), '-m', 'pip', '--no-input',
           '--disable-pip-version-check', 'install', '--progress-bar', 'off']
    commands.run(settings, 'pip', [*pip, '-c', str(CONSTRAINTS), 'pip',
                                   'setuptools', 'wheel', 'pbr'])
    # libvirt-python must not be newer than Debian's libvirt.
    commands.run(settings, 'pip', [
        *pip, '-c', str(CONSTRAINTS), '-r', str(REQUIREMENTS),
        '-r', str(cloud_settings.REPOSITORY / 'requirements.txt'),
        f'libvirt-python=={libvirt}'], limit_s=1800)


def _install_hpcvirt(settings: cloud_settings.Settings) -> None:
    root = cloud_settings.REPOSITORY
    files = [root / 'setup.cfg', root / 'setup.py', root / 'pyproject.toml']
    for directory in ('hpcvirt', 'etc'):
        files += [path for path in sorted((root / directory).rglob('*'))
                  if path.is_file() and '__pycache__' not in path.parts]
    stamp = settings.venv / 'hpcvirt-stamp'
    wanted = _digest(files, str(root))
    if stamp.exists() and stamp.read_text() == wanted:
        return
    environment = {}
    if not (root / '.git').exists():
        environment['PBR_VERSION'] = '0.0.1'
    with progress.step('installed hpcvirt'):
        commands.run(settings, 'pip', [
            settings.program('python'), '-m', 'pip', '--no-input',
            '--disable-pip-version-check', 'install', '--no-deps',
            '--no-build-isolation', '--force-reinstall', str(root)],
            environment)
    stamp.write_text(wanted)


def _provide_sudo(settings: cloud_settings.Settings) -> None:
    """Provide sudo, which Nova's helpers need, if the machine has none."""
    path = settings.venv / 'bin' / 'sudo'
    if shutil.which('sudo') is None and not path.exists():
        path.write_text('#!/bin/sh\n'
                        'while [ "${1#-}" != "$1" ]; do shift; done\n'
                        'exec "$@"\n')
        path.chmod(0o755)


def _digest(paths: list[pathlib.Path], salt: str) -> str:
    digest = hashlib.sha256(salt.encode())
    for path in paths:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
