# SPDX-License-Identifier: Apache-2.0

"""Write the configuration of Keystone, Placement and Glance."""

from tests.system.cloud import inifile
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import shared


def write(settings: cloud_settings.Settings) -> None:
    """Write the configuration files of the three services."""
    inifile.write(settings.etc / 'keystone' / 'keystone.conf',
                  _keystone(settings))
    inifile.write(settings.etc / 'placement' / 'placement.conf',
                  _placement(settings))
    inifile.write(settings.etc / 'glance' / 'glance-api.conf',
                  _glance(settings))


def _keystone(settings: cloud_settings.Settings) -> inifile.Sections:
    directory = settings.etc / 'keystone'
    return inifile.merge(shared.database(settings, 'keystone'), {
        'token': {'provider': 'fernet', 'expiration': 14400},
        'fernet_tokens': {'key_repository': str(directory / 'fernet-keys')},
        'credential': {'key_repository': str(directory / 'credential-keys')},
        'cache': {
            'enabled': True,
            'backend': 'dogpile.cache.memcached',
            'memcache_servers': f'unix:{settings.cache_socket}',
        },
        # Hash cheaply: Tempest creates and checks many passwords.
        'identity': {'password_hash_rounds': 4},
    })


def _placement(settings: cloud_settings.Settings) -> inifile.Sections:
    options = shared.database(settings, 'placement')['database']
    return inifile.merge(shared.token(settings, 'placement'), {
        'api': {'auth_strategy': 'keystone'},
        'placement_database': {**options, 'sync_on_startup': False},
    })


def _glance(settings: cloud_settings.Settings) -> inifile.Sections:
    store = settings.run / 'glance'
    return inifile.merge(
        shared.database(settings, 'glance'),
        shared.token(settings, 'glance'), {
            'DEFAULT': {
                'bind_host': cloud_settings.IP,
                'bind_port': settings.port('glance'),
                'workers': 1,
                'enabled_backends': 'fast:file',
                'enabled_import_methods': '[glance-direct]',
                'worker_self_reference_url': settings.url('glance'),
            },
            'glance_store': {'default_backend': 'fast'},
            'fast': {'filesystem_store_datadir': str(store / 'images')},
            'os_glance_staging_store': {
                'filesystem_store_datadir': str(store / 'staging')},
            'os_glance_tasks_store': {
                'filesystem_store_datadir': str(store / 'tasks')},
            'paste_deploy': {
                'flavor': 'keystone',
                'config_file': str(settings.venv / 'etc' / 'glance'
                                   / 'glance-api-paste.ini'),
            },
            'oslo_concurrency': {'lock_path': str(settings.run / 'locks')},
        })
