# SPDX-License-Identifier: Apache-2.0

"""Start MariaDB and create the databases.

Creating the schemas takes half a minute. The result is kept as a dump, with
Keystone's keys, which a later start restores in a second. A dump is used only
with the versions, ports and password with which it was created.
"""

import concurrent.futures
import hashlib
import pathlib
import shutil

from tests.system.cloud import commands
from tests.system.cloud import environment
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

#: The server's user, of Debian's package.
USER = 'mysql'

#: Increase it when the content of the databases changes.
LAYOUT = 1


def start(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """Start the server with an empty data directory."""
    data = settings.run / 'mariadb'
    if not (data / 'mysql').exists():
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(cloud_settings.PRIVATE)
        shutil.chown(data, USER, USER)
        # The server authenticates root over its socket, which only root and
        # the server can reach, by the credentials of the process.
        commands.run(settings, 'mariadb-install', [
            'mariadb-install-db', '--no-defaults', f'--user={USER}',
            f'--datadir={data}', '--skip-test-db',
            '--auth-root-authentication-method=socket'])
    # The data are removed with the cloud: do not wait for the disk.
    running.start('mariadb', [
        'mariadbd', '--no-defaults', f'--user={USER}', f'--datadir={data}',
        f'--socket={_socket(settings)}',
        f'--bind-address={cloud_settings.IP}',
        f'--port={settings.port("mariadb")}', '--max-connections=500',
        '--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=0',
        '--loose-innodb-flush-method=nosync', '--loose-debug-no-sync',
        '--innodb-buffer-pool-size=64M', '--performance-schema=OFF',
        '--skip-log-bin', '--skip-name-resolve',
        f'--pid-file={data / "mariadb.pid"}'])
    probes.wait_for_service(running, 'mariadb', lambda: probes.succeeds(
        [*_client(settings), '-e', 'select 1']))


def recreate(settings: cloud_settings.Settings, name: str) -> None:
    """Create an empty database in place of an existing one."""
    # "create or replace" fails if there are foreign keys.
    for statement in (f'drop database if exists {name}',
                      f'create database {name} character set utf8mb4'):
        commands.run(settings, 'mariadb-client',
                     [*_client(settings), '-e', statement])


def fill(settings: cloud_settings.Settings) -> bool:
    """Create the databases and their schemas.

    :returns: True if they come from a dump, which has the service catalog
    """
    dump = _dump(settings)
    password = settings.password
    names = cloud_settings.DATABASES
    statements = [f'create database if not exists {name} '
                  'character set utf8mb4;' for name in names]
    for host in ('%', 'localhost'):
        user = f"cloud@'{host}'"
        statements += [
            f"create user if not exists {user} identified by '{password}';",
            f'grant all on *.* to {user};']
    commands.run(settings, 'mariadb-client', _client(settings),
                 text='\n'.join(statements))
    if (dump / 'complete').exists():
        with progress.step('restored the schemas'):
            commands.run(settings, 'mariadb-client', [
                *_client(settings), '-e', f'source {dump / "all.sql"}'])
            shutil.copytree(dump / 'keystone', settings.etc / 'keystone',
                            dirs_exist_ok=True)
        return True
    with (progress.step('created the schemas'),
          concurrent.futures.ThreadPoolExecutor() as pool):
        jobs = [pool.submit(job, settings) for job in (
            _keystone, _placement, _glance, _neutron, _nova)]
        for job in jobs:
            job.result()
    return False


def keep(settings: cloud_settings.Settings) -> None:
    """Write the dump."""
    dump = _dump(settings)
    for old in dump.parent.glob('dump-*'):
        shutil.rmtree(old, ignore_errors=True)
    dump.mkdir(cloud_settings.PRIVATE)
    commands.run(settings, 'mariadb-client', [
        'mariadb-dump', '--no-defaults', '-uroot',
        f'--socket={_socket(settings)}', '--single-transaction',
        f'--result-file={dump / "all.sql"}', '--databases',
        *cloud_settings.DATABASES])
    for name in ('fernet-keys', 'credential-keys'):
        shutil.copytree(settings.etc / 'keystone' / name,
                        dump / 'keystone' / name)
    (dump / 'complete').touch()


def _keystone(settings: cloud_settings.Settings) -> None:
    directory = settings.etc / 'keystone'
    for name in ('fernet-keys', 'credential-keys'):
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    manage = [settings.program('keystone-manage'), '--config-file',
              str(directory / 'keystone.conf')]
    owner = ['--keystone-user', 'root', '--keystone-group', 'root']
    url = f'{settings.url("keystone")}/v3'
    for words in (
            ['db_sync'], ['fernet_setup', *owner],
            ['credential_setup', *owner],
            ['bootstrap', '--bootstrap-password', settings.password,
             '--bootstrap-region-id', 'RegionOne',
             '--bootstrap-public-url', url, '--bootstrap-internal-url', url,
             '--bootstrap-admin-url', url]):
        commands.run_unseen(settings, 'sync-keystone', [*manage, *words])


def _placement(settings: cloud_settings.Settings) -> None:
    path = settings.etc / 'placement' / 'placement.conf'
    commands.run(settings, 'sync-placement', [
        settings.program('placement-manage'), '--config-file', str(path),
        'db', 'sync'], {'OS_PLACEMENT_CONFIG_DIR': str(path.parent)})


def _glance(settings: cloud_settings.Settings) -> None:
    commands.run(settings, 'sync-glance', [
        settings.program('glance-manage'), '--config-file',
        str(settings.etc / 'glance' / 'glance-api.conf'), 'db_sync'])


def _neutron(settings: cloud_settings.Settings) -> None:
    directory = settings.etc / 'neutron'
    commands.run(settings, 'sync-neutron', [
        settings.program('neutron-db-manage'),
        '--config-file', str(directory / 'neutron.conf'),
        '--config-file', str(directory / 'ml2.ini'), 'upgrade', 'heads'])


def _nova(settings: cloud_settings.Settings) -> None:
    manage = [settings.program('nova-manage'), '--config-file',
              str(settings.etc / 'nova' / 'nova-conductor.conf')]
    for words in (
            ['api_db', 'sync'],
            ['cell_v2', 'map_cell0', '--database_connection',
             settings.database_url('nova_cell0')],
            ['db', 'sync'],
            ['cell_v2', 'create_cell', '--name', 'cell1',
             '--database_connection', settings.database_url('nova_cell1'),
             '--transport-url', settings.message_url]):
        commands.run_unseen(settings, 'sync-nova', [*manage, *words])


def _client(settings: cloud_settings.Settings) -> list[str]:
    return ['mariadb', '--no-defaults', '-uroot',
            f'--socket={_socket(settings)}']


def _socket(settings: cloud_settings.Settings) -> pathlib.Path:
    return settings.run / 'mariadb' / 'mariadb.sock'


def _dump(settings: cloud_settings.Settings) -> pathlib.Path:
    server = commands.output(['mariadbd', '--version'])
    text = ''.join([str(LAYOUT), server, str(settings.port_base),
                    settings.password, environment.REQUIREMENTS.read_text(),
                    environment.CONSTRAINTS.read_text()])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return settings.cache / f'dump-{digest}'
