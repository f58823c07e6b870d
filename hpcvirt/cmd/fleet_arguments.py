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

"""The arguments that name hosts, the part for guests and a profile."""

import argparse
import dataclasses
import importlib
import os
import warnings
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import topology
from hpcvirt.cmd import yaml_file
from hpcvirt.flavors import host_part
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.topology import source

EPILOG = """\
PATH is anything that "hpcvirt topology show" reads, - for standard input
included. Hosts must have different names; NAME=PATH gives a host the name
NAME. Without --cpus and --pages the whole of each host is divided; the profile
says what it keeps for itself.
"""

#: Far larger than any profile.
MAX_PROFILE_BYTES = 1024 * 1024


def add(parser: argparse.ArgumentParser) -> None:
    """Add PATH, --source, --profile, --cpus and --pages."""
    parser.add_argument('path', metavar='PATH', nargs='+',
                        help='the topology of a host')
    parser.add_argument('--source', choices=source.SOURCES, default='auto',
                        help='the format of every PATH; auto (the default) '
                        'detects it')
    add_division(parser)


def add_division(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how hosts are divided."""
    parser.add_argument('--profile', metavar='NAME|FILE',
                        help="default keeps cores for the host; dense gives "
                        'guests all of them; a FILE (./dense for one of that '
                        "name) has the operator's choices in YAML")
    parser.add_argument('--cpus', metavar='LIST',
                        help='the CPUs of each host that guests may have, as '
                        'in cpu_dedicated_set: 2-7,10-15 (default: all)')
    parser.add_argument(
        '--pages', metavar='[CELL:]SIZE[:COUNT]', action='append', default=[],
        help='the memory pages that guests may have of one host cell, or of '
        'each: 2M:1024 for a number, 4K:50%% for a share of the memory of '
        'the cell, 2M for all that the host has set aside now; may be given '
        'once for each cell (default: all memory that the profile does not '
        'keep for the host)')


def read(args: argparse.Namespace) -> tuple[
        list[host_model.Host], profiles.Profile, host_part.HostPart]:
    """Read the hosts that the arguments name, and how they are divided.

    :raises InvalidInput: for a file or an argument that cannot be used, and
        for two hosts of one name
    """
    return (read_hosts(args.path, args.source), *read_division(args))


def read_division(args: argparse.Namespace,
                  ) -> tuple[profiles.Profile, host_part.HostPart]:
    """Read how hosts are divided.

    :raises InvalidInput: for a file or an argument that cannot be used
    """
    profile = (profiles.DEFAULT if args.profile is None
               else read_profile(args.profile))
    return profile, host_part.build(args.cpus, args.pages)


def read_hosts(words: Sequence[str],
               kind: str = 'auto') -> list[host_model.Host]:
    """Read each PATH or NAME=PATH as a host."""
    hosts: dict[str, host_model.Host] = {}
    origin: dict[str, str] = {}
    for word in words:
        name, path = _split(word)
        host = topology.read(path, kind)
        if name:
            host = dataclasses.replace(host, name=name)
        if host.name in hosts:
            raise exception.InvalidInput(
                path, f'the host is called {host.name}, like that of '
                f'{origin[host.name]}; write NAME={path} to give it another '
                'name')
        hosts[host.name] = host
        origin[host.name] = path
    return list(hosts.values())


def _split(word: str) -> tuple[str, str]:
    name, equals, path = word.partition('=')
    if not equals or '/' in name or os.path.lexists(word):
        return '', word
    if not name.strip() or not name.isprintable():
        raise exception.InvalidInput(
            word, 'the name before = is empty or cannot be printed')
    return name.strip(), path


def read_profile(path: str) -> profiles.Profile:
    """Read a profile, or return a built-in one of that name.

    :raises InvalidInput: naming the file and the key at fault
    """
    if path in profiles.BUILT_IN:
        return profiles.BUILT_IN[path]
    where = input_file.name(path)
    profile = profiles.build(yaml_file.read(path, MAX_PROFILE_BYTES), where)
    if profile.extra_specs:
        _validate_as_nova_does(profile, where)
    return profile


def _validate_as_nova_does(profile: profiles.Profile, path: str) -> None:
    """Check extra specs with the validators of Nova where it is installed."""
    try:
        # Only hpcvirt.nova imports Nova, which need not be there.
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            validators = importlib.import_module(
                'hpcvirt.nova.operator_specs')
    except ImportError:
        return
    validators.check(profile.extra_specs, path)
