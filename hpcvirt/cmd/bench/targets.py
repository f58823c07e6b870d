# SPDX-License-Identifier: Apache-2.0

"""Find the targets that a user names, such as ssh://HOST or server:NAME."""

import argparse
import dataclasses
import os
import posixpath
import urllib.parse
from collections.abc import Callable

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt import plug_ins
from hpcvirt import printable
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import slurm
from hpcvirt.bench.execute import ssh
from hpcvirt.bench.run import target

FORMS = ('local, slurm:NODE, ssh://[user@]host[:port][?key=FILE], or '
         'server:[user@]NAME[?key=FILE]')
#: The entry points of other packages: a function that takes what follows the
#: colon of a target, and returns an executor.
GROUP = 'hpcvirt.bench.executors'
_METHODS = ('run', 'expect_restart', 'close')

#: The option for settings of benchmarks.
SET = '--set'


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --os-cloud and --host-key."""
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml (default: OS_CLOUD)')
    parser.add_argument('--host-key', choices=('known', 'accept-new'),
                        default='known', metavar='KEYS',
                        help='ssh host keys: known (default), or accept-new')


def _find_job_directory() -> str:
    """Return the directory of the site for files of runs on their targets.

    It is on a local disk, where only the user can write, if homes are shared.

    :returns: an absolute path; empty for the default, which is hpcvirt in
        $XDG_STATE_HOME of the target, or in ~/.local/state
    :raises InvalidInput: if it is not the path of a directory below the root
    """
    text = os.environ.get(child_environment.JOB_DIRECTORY, '')
    path = posixpath.normpath(text) if text else ''
    if text and (not posixpath.isabs(path) or path.strip('/') == ''):
        raise exception.InvalidInput(
            child_environment.JOB_DIRECTORY,
            f'must be an absolute path, not {text!r}')
    return path


def check(text: str) -> None:
    """Check that a target has one of the forms, without a connection.

    :raises InvalidInput: if it has not
    """
    scheme, _, rest = text.partition(':')
    if text.startswith('ssh://'):
        ssh.SSHExecutor.from_url(text)
    elif text != 'local' and not (rest and (
            scheme in ('slurm', 'server') or plug_ins.find(GROUP, scheme))):
        raise _make_unknown(text)


def find(args: argparse.Namespace, text: str) -> target.Target:
    """Find a target, with the options of :func:`add_options`.

    :param text: one of :data:`FORMS`
    :raises InvalidInput: if the text has another form
    :raises Unreachable: if the cloud does not answer
    """
    found = _find(text, args.os_cloud, args.host_key)
    return dataclasses.replace(found, directory=_find_job_directory())


def _find(text: str, cloud: str | None, host_key: str) -> target.Target:
    if text == 'local':
        return target.Target(local.LocalExecutor(), text)
    if text.startswith('slurm:') and text != 'slurm:':
        node = text.removeprefix('slurm:')
        return target.Target(slurm.connect(node), node, node)
    if text.startswith('ssh://'):
        place = _ssh(text, host_key)
        address = urllib.parse.urlsplit(text).hostname or ''
        return target.Target(place, address, address)
    if text.startswith('server:') and text != 'server:':
        return _server(text.removeprefix('server:'), cloud, host_key)
    scheme, colon, rest = text.partition(':')
    connect = plug_ins.find(GROUP, scheme) if colon and rest else None
    if connect is not None:
        return _connect_added(connect, scheme, rest)
    raise _make_unknown(text)


def _make_unknown(text: str) -> exception.InvalidInput:
    added = ''.join(f', or {name}:NAME' for name in plug_ins.names(GROUP))
    return exception.InvalidInput(printable.hide_user(text),
                                  f'not a target: {FORMS}{added}')


def _connect_added(connect: Callable[[str], executor.Executor], scheme: str,
                   rest: str) -> target.Target:
    """Return a target behind the executor of another package."""
    where = f'{scheme}:{rest}'
    try:
        place = connect(rest)
    except exception.HpcvirtError:
        raise
    # Another package may fail in any way.
    except Exception as exc:
        raise exception.InvalidInput(
            where, f'the executor {scheme} failed ({type(exc).__name__}: '
            f'{exc})') from exc
    if not (all(callable(getattr(place, name, None)) for name in _METHODS)
            and isinstance(getattr(place, 'name', None), str)):
        raise exception.InvalidInput(
            where, f'the executor {scheme} has no name, or lacks one of '
            f'{", ".join(_METHODS)}')
    return target.Target(place, where)


def find_named(args: argparse.Namespace, text: str) -> target.Target:
    """Find a target, and record its name on the command line."""
    return dataclasses.replace(find(args, text), named=text)


def find_server(args: argparse.Namespace, user: str, server_id: str,
                flavor: str, key_file: str) -> target.Target:
    """Return the target for an instance that was started for a benchmark.

    :param user: the login name in the instance
    :param flavor: flavor for its results; the instance may have a copy of it
    """
    found = find(args, f'server:{user}@{server_id}?key='
                 + urllib.parse.quote(key_file))
    return dataclasses.replace(
        found, flavor=flavor, facts={**found.facts, 'server.flavor': flavor})


def _ssh(url: str, host_key: str,
         console: Callable[[], str] = str) -> executor.Executor:
    return ssh.SSHExecutor.from_url(url, host_keys.Trust(
        host_keys.HostKeys(host_key),
        lambda: host_keys.parse_console(console())))


def _server(text: str, cloud: str | None, host_key: str) -> target.Target:
    name, _, query = text.partition('?')
    user, at, name = name.rpartition('@')
    if (set(urllib.parse.parse_qs(query)) - {'key'} or not name
            or ':' in user):
        raise exception.InvalidInput(printable.hide_user(f'server:{text}'),
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
                         facts, servers.ServerRebooter(nova, server.id))
