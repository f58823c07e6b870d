# SPDX-License-Identifier: Apache-2.0

"""Start RabbitMQ and memcached."""

import shutil

from tests.system.cloud import commands
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.system.cloud import settings as cloud_settings

#: /usr/sbin/rabbitmq-server of Debian needs the directories of its package;
#: this is the program that it runs, as this user.
USER = 'rabbitmq'
PROGRAM = '/usr/lib/rabbitmq/bin/rabbitmq-server'


def start(settings: cloud_settings.Settings,
          running: processes.Processes) -> None:
    """Start both without waiting for them."""
    directory = settings.run / 'rabbit'
    directory.mkdir(cloud_settings.PRIVATE, exist_ok=True)
    (directory / 'log').mkdir(exist_ok=True)
    (directory / 'rabbitmq.conf').write_text('\n'.join([
        f'listeners.tcp.1 = {cloud_settings.IP}:{settings.port("rabbit")}',
        'default_user = cloud',
        f'default_pass = {settings.password}',
        'loopback_users = none',
        'log.console = true',
        'log.console.level = warning',
        'vm_memory_high_watermark.absolute = 512MB',
        'disk_free_limit.absolute = 50MB', '']))
    (directory / 'plugins').write_text('[].\n')
    (directory / 'advanced.config').write_text('[].\n')
    for path in (directory, *directory.iterdir()):
        shutil.chown(path, USER, USER)
    running.start('rabbit', [*commands.as_user(USER), PROGRAM], {
        'HOME': str(directory),
        'RABBITMQ_NODENAME': f'hpcvirt-{settings.port_base}@localhost',
        'RABBITMQ_CONFIG_FILE': str(directory / 'rabbitmq.conf'),
        'RABBITMQ_ADVANCED_CONFIG_FILE': str(directory / 'advanced.config'),
        'RABBITMQ_CONF_ENV_FILE': str(directory / 'no-such-file'),
        'RABBITMQ_MNESIA_BASE': str(directory / 'mnesia'),
        'RABBITMQ_LOG_BASE': str(directory / 'log'),
        'RABBITMQ_PID_FILE': str(directory / 'pid'),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(directory / 'plugins'),
        'RABBITMQ_DIST_PORT': str(settings.port('rabbit-distribution')),
        'ERL_EPMD_PORT': str(settings.port('epmd')),
        'ERL_EPMD_ADDRESS': cloud_settings.IP,
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '+S 1:1 +sbwt none',
    })
    # Keystone unpickles what is in it: only root may write there.
    settings.cache_socket.parent.mkdir(cloud_settings.PRIVATE, exist_ok=True)
    running.start('memcached', [
        'memcached', '-u', 'root', '-s', str(settings.cache_socket),
        '-a', '0600', '-m', '32'])


def wait(settings: cloud_settings.Settings,
         running: processes.Processes) -> None:
    """Wait until both accept connections."""
    probes.wait_for_service(running, 'memcached',
                            settings.cache_socket.is_socket)
    probes.wait_for_service(
        running, 'rabbit', lambda: probes.port_open(settings.port('rabbit')))


def stop(settings: cloud_settings.Settings) -> None:
    """Stop Erlang's name server, which RabbitMQ leaves running."""
    probes.succeeds(['epmd', '-port', str(settings.port('epmd')), '-kill'])
