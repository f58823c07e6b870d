# SPDX-License-Identifier: Apache-2.0

"""Run a private PostgreSQL, whose data are removed after the check."""

import pathlib
import shutil

from tests.system.cloud import cloud as clouds
from tests.system.cloud import commands
from tests.system.cloud import errors
from tests.system.cloud import packages
from tests.system.cloud import probes
from tests.system.cloud import settings as cloud_settings

NAME = 'postgres'
PACKAGES = ('postgresql', 'util-linux')
PROGRAMS = pathlib.Path('/usr/lib/postgresql')
#: The server refuses to run as root; Debian's package creates this user.
AS_USER = commands.as_user('postgres')


def start(cloud: clouds.Cloud) -> None:
    """Start a server with an empty data directory."""
    settings = cloud.settings
    packages.install(settings, PACKAGES)
    data = settings.run / NAME
    stop(cloud)
    data.mkdir(cloud_settings.PRIVATE)
    shutil.chown(data, 'postgres', 'postgres')
    secret = data / 'password'
    secret.touch(0o600)
    secret.write_text(settings.password)
    shutil.chown(secret, 'postgres', 'postgres')
    commands.run(settings, 'postgres-init', [
        *AS_USER, _program('initdb'), '--pgdata', str(data / 'data'),
        '--username', 'cloud', '--pwfile', str(secret), '--auth',
        'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C.UTF-8'])
    # -F: do not wait for the disk, because the data are temporary.
    cloud.running.start(NAME, [
        *AS_USER, _program('postgres'), '-D', str(data / 'data'),
        '-h', cloud_settings.IP, '-p', str(settings.port(NAME)),
        '-k', str(data), '-F'])
    probes.wait_for_service(cloud.running, NAME, lambda: probes.succeeds([
        _program('pg_isready'), '-q', '-h', cloud_settings.IP, '-p',
        str(settings.port(NAME))]))


def recreate(cloud: clouds.Cloud, name: str) -> None:
    """Create an empty database in place of an existing one."""
    for statement in (f'drop database if exists {name}',
                      f'create database {name}'):
        commands.run(cloud.settings, 'postgres-client', [
            _program('psql'), '-q', '-h', cloud_settings.IP, '-p',
            str(cloud.settings.port(NAME)), '-U', 'cloud', '-d', 'postgres',
            '-c', statement], {'PGPASSWORD': cloud.settings.password})


def stop(cloud: clouds.Cloud) -> None:
    """Stop the server and delete its data."""
    cloud.running.stop([NAME], 10)
    shutil.rmtree(cloud.settings.run / NAME, ignore_errors=True)


def url(settings: cloud_settings.Settings, database: str) -> str:
    """Return the SQLAlchemy URL of a database."""
    return (f'postgresql+psycopg2://cloud:{settings.password}@'
            f'{cloud_settings.IP}:{settings.port(NAME)}/{database}')


def _program(name: str) -> str:
    found = sorted(PROGRAMS.glob(f'*/bin/{name}'))
    if not found:
        raise errors.CloudError(f'there is no {PROGRAMS}/*/bin/{name}')
    return str(found[-1])
