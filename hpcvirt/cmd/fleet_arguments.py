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

"""The arguments that name hosts and a profile, for every verb that plans."""

import argparse
import dataclasses
import os
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.cmd import yaml_file
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.topology import source

EPILOG = """\
PATH is anything that "hpcvirt topology show" reads. Hosts must have different
names; NAME=PATH gives a host the name NAME.
"""

#: No profile comes near this.
MAX_PROFILE_BYTES = 1024 * 1024


def add(parser: argparse.ArgumentParser) -> None:
    """Add PATH..., --source and --profile."""
    parser.add_argument('path', metavar='PATH', nargs='+',
                        help='a host: where its topology is')
    parser.add_argument('--source', choices=source.SOURCES, default='auto',
                        help='what every PATH is; auto (the default) looks '
                        'at each')
    parser.add_argument('--profile', metavar='FILE',
                        help='a YAML file with the choices of the operator')


def read(args: argparse.Namespace,
         ) -> tuple[list[host_model.Host], profiles.Profile]:
    """Read what the arguments name.

    :raises InvalidInput: for a file that cannot be used, and for two hosts
        of one name
    """
    profile = (profiles.Profile() if args.profile is None
               else read_profile(args.profile))
    return read_hosts(args.path, args.source), profile


def read_hosts(words: Sequence[str],
               kind: str = 'auto') -> list[host_model.Host]:
    """Read hosts from PATH or NAME=PATH."""
    hosts: dict[str, host_model.Host] = {}
    origin: dict[str, str] = {}
    for word in words:
        name, path = _split(word)
        host = topology.read(path, kind)
        if name:
            host = dataclasses.replace(host, name=name)
        if host.name in hosts:
            raise exception.InvalidInput(
                path, f'the host is called {host.name}, as that of '
                f'{origin[host.name]}; write NAME={path} to give it a name '
                'of its own')
        hosts[host.name] = host
        origin[host.name] = path
    return list(hosts.values())


def _split(word: str) -> tuple[str, str]:
    name, equals, path = word.partition('=')
    if not equals or '/' in name or os.path.lexists(word):
        return '', word
    if not name.strip() or not name.isprintable():
        raise exception.InvalidInput(word, 'the name before = is empty')
    return name.strip(), path


def read_profile(path: str) -> profiles.Profile:
    """Read a profile.

    :raises InvalidInput: naming the file and the key at fault
    """
    return profiles.build(yaml_file.read(path, MAX_PROFILE_BYTES), path)
