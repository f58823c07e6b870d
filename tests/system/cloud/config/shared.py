# SPDX-License-Identifier: Apache-2.0

"""Configuration sections that several services share."""

from tests.system.cloud import inifile
from tests.system.cloud import settings as cloud_settings


def database(settings: cloud_settings.Settings, name: str) -> inifile.Sections:
    """Connect a service to its database."""
    return {'database': {
        'connection': settings.database_url(name),
        'max_pool_size': 10,
        'max_overflow': 20,
        'connection_recycle_time': 280,
    }}


def identity(settings: cloud_settings.Settings,
             user: str) -> dict[str, inifile.Value]:
    """Authenticate a service to other services."""
    return {
        'auth_type': 'password',
        'auth_url': settings.url('keystone'),
        'project_domain_name': 'Default',
        'user_domain_name': 'Default',
        'project_name': 'service',
        'username': user,
        'password': settings.password,
        'region_name': 'RegionOne',
    }


def token(settings: cloud_settings.Settings, user: str) -> inifile.Sections:
    """Have an API validate the tokens of its callers."""
    options = identity(settings, user)
    del options['region_name']
    return {'keystone_authtoken': {
        'www_authenticate_uri': settings.url('keystone'),
        'memcached_servers': f'unix:{settings.cache_socket}',
        'service_token_roles_required': True,
        'service_token_roles': 'service,admin',
        **options,
    }}


def messages(settings: cloud_settings.Settings) -> inifile.Sections:
    """Connect a service to the message queue."""
    return {
        'DEFAULT': {'transport_url': settings.message_url},
        'oslo_messaging_rabbit': {
            'rabbit_quorum_queue': False,
            'heartbeat_timeout_threshold': 0,
        },
        'oslo_concurrency': {'lock_path': str(settings.run / 'locks')},
    }
