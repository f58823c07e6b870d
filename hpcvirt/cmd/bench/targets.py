# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Targets as the user writes them: local, ssh://HOST, server:NAME."""

import argparse
import urllib.parse
from collections.abc import Callable

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.run import target
from hpcvirt.cmd import extras

FORMS = ('local, ssh://[user@]host[:port][?key=FILE], or '
         'server:[user@]NAME[?key=FILE]')


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --os-cloud and --host-key."""
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml, for server:')
    parser.add_argument('--host-key', choices=('known', 'accept-new'),
                        default='known', help='the ssh host keys that are '
                        'trusted: those of known_hosts, or that a server: '
                        'printed on its console (the default); or also the '
                        'key that answers first where none is known, and no '
                        'other one during the run')


def find(text: str, cloud: str | None, host_key: str) -> target.Target:
    """Look up a target that the user names.

    :param cloud: an entry of clouds.yaml, for ``server:``
    :param host_key: ``known`` or ``accept-new``
    :raises InvalidInput: if it has none of the forms
    :raises Unreachable: if the cloud does not answer
    """
    if text == 'local':
        return target.Target(local.LocalExecutor(), text)
    if text.startswith('ssh://'):
        place = _ssh(text, host_key)
        address = urllib.parse.urlsplit(text).hostname or ''
        return target.Target(place, address, address)
    if text.startswith('server:') and text != 'server:':
        return _server(text.removeprefix('server:'), cloud, host_key)
    raise exception.InvalidInput(printable.without_user(text),
                                 f'not a target: {FORMS}')


def _ssh(url: str, host_key: str,
         console: Callable[[], str] = str) -> executor.Executor:
    with extras.bench():
        from hpcvirt.bench.execute import host_keys
        from hpcvirt.bench.execute import ssh
    return ssh.SSHExecutor.from_url(url, host_keys.Trust(
        host_keys.HostKeys(host_key),
        lambda: host_keys.from_console(console())))


def _server(text: str, cloud: str | None, host_key: str) -> target.Target:
    name, _, query = text.partition('?')
    user, at, name = name.rpartition('@')
    if (set(urllib.parse.parse_qs(query)) - {'key'} or not name
            or ':' in user):
        raise exception.InvalidInput(printable.without_user(f'server:{text}'),
                                     f'not a target: {FORMS}')
    from hpcvirt.cloud import servers
    from hpcvirt.cloud import session
    nova = session.compute(cloud)
    server = servers.find(nova, name)
    address = (f'[{server.address}]' if ':' in server.address
               else server.address)
    url = f'ssh://{user}{at}{address}' + (f'?{query}' if query else '')
    facts = target.instance_facts(server.id, server.flavor,
                                  server.page_kib or 0, server.host_cpus)
    place = _ssh(url, host_key, lambda: servers.console(nova, server.id))
    return target.Target(place, server.name, server.inner,
                         server.host or '', server.flavor, server.host_cpus,
                         facts, servers.Rebooter(nova, server.id))
