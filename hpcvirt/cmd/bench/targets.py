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

"""Arguments that say where a benchmark runs."""

import argparse
import dataclasses
import urllib.parse
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.execute import confinement
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import reboot
from hpcvirt.cmd import extras

FORMS = ('local, ssh://[user@]host[:port][?key=FILE], or '
         'server:[user@]NAME[?key=FILE]')


@dataclasses.dataclass(frozen=True)
class Where:
    """A place and what is known of it.

    :ivar label: how it is called among others
    :ivar address: by which other places reach it, empty if unknown
    :ivar host: the compute host, empty if unknown
    :ivar shape: the flavor's name, empty if it is no instance
    :ivar host_cpus: PCPUs of the host that a guest is pinned to, None if
        unknown
    :ivar facts: added to the environment of each sample
    :ivar guest: what starts it anew, None if it is no instance
    """

    place: executor.Executor
    label: str
    address: str = ''
    host: str = ''
    shape: str = ''
    host_cpus: frozenset[int] | None = None
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guest: reboot.Relaunch | None = None


def find(text: str, cloud: str | None) -> Where:
    """Make a place of what the user wrote.

    :param cloud: an entry of clouds.yaml, for ``server:``
    :raises InvalidInput: if it is none of the forms
    :raises Unreachable: if the cloud does not answer
    """
    if text == 'local':
        return Where(local.LocalExecutor(), text)
    if text.startswith('ssh://'):
        made = _ssh(text)
        address = urllib.parse.urlsplit(text).hostname or ''
        return Where(made, address, address)
    if text.startswith('server:') and text != 'server:':
        return _server(text.removeprefix('server:'), cloud)
    raise exception.InvalidInput(text, f'not a place: {FORMS}')


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where results are kept."""
    parser.add_argument(
        '--store', metavar='URL',
        help='database of results, as SQLAlchemy names it (default: '
        'sqlite:///DATA/bench.sqlite)')
    parser.add_argument(
        '--data', metavar='DIR', default=confinement.default_data(),
        help='directory of raw outputs (default: %(default)s)')


def store_url(args: argparse.Namespace) -> str:
    """The database that the arguments name."""
    return confinement.store_url(args.store, args.data)


def _ssh(url: str) -> executor.Executor:
    # paramiko takes a while to load: not for local runs.
    with extras.bench():
        from hpcvirt.bench.execute import ssh
    return ssh.SSHExecutor.from_url(url)


def _server(text: str, cloud: str | None) -> Where:
    name, _, query = text.partition('?')
    user, at, name = name.rpartition('@')
    if set(urllib.parse.parse_qs(query)) - {'key'} or not name:
        raise exception.InvalidInput(f'server:{text}',
                                     f'not a place: {FORMS}')
    from hpcvirt.cloud import servers
    from hpcvirt.cloud import session
    nova = session.compute(cloud)
    found = servers.find(nova, name)
    address = f'[{found.address}]' if ':' in found.address else found.address
    url = f'ssh://{user}{at}{address}' + (f'?{query}' if query else '')
    facts = confinement.instance_facts(
        found.id, found.flavor, found.page_kib or 0, found.host_cpus)
    return Where(_ssh(url), found.name, found.inner, found.host or '',
                 found.flavor, found.host_cpus, facts,
                 servers.Relauncher(nova, found.id))
