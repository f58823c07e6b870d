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

"""The arguments that describe the fleet of a replay: its hosts and flavors."""

import argparse
import os
import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.cmd import fleet_arguments
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import flavor_files
from hpcvirt.flavors import planner
from hpcvirt.fleet import empty_host
from hpcvirt.fleet import host_settings
from hpcvirt.model import host as host_model
from hpcvirt.simulate import scenario

EPILOG = """\
PATH is anything that "hpcvirt topology show" reads. COUNT is the number of
such hosts, 1 without it; hosts must have different names, and NAME= gives them
another than the topology has. All hosts are empty at first. They give to
guests what a plan in --flavors says, else what --profile says.

A what-if is the same command with other hosts, profile or flavors: a larger
COUNT, or a smaller one for hosts that are drained; a profile with smt: leave,
page_size, smallest_cores or devices. --load is a share of the CPUs of the
fleet: to send the same requests to other hosts, leave it out, or divide it by
the growth of the CPUs for guests.
"""

#: More hosts are not held in memory.
MOST_HOSTS = 100_000

_COUNT = re.compile(r'(.*)\*([^*/]*)', re.DOTALL)
_MAX_BYTES = 256 * 1024 * 1024


def add(parser: argparse.ArgumentParser) -> None:
    """Add --host, --flavors, --profile, --cpus and --pages."""
    parser.add_argument(
        '--host', metavar='[NAME=]PATH[*COUNT]', action='append',
        required=True, help='hosts that are alike, and their number; may be '
        'given once for each kind of host')
    parser.add_argument(
        '--flavors', metavar='FILE', action='append', default=[],
        help='the flavors, as "openstack flavor list --long -f json" or '
        '"hpcvirt flavor plan --format json" prints them; may be given '
        'several times (default: the flavors that the workload describes, and '
        'those that "hpcvirt flavor plan" plans for these hosts)')
    fleet_arguments.add_division(parser)


def read(args: argparse.Namespace) -> scenario.Fleet:
    """Read the hosts, and read or plan the flavors.

    :raises InvalidInput: for a file or an argument that cannot be used
    """
    counted = [_counted(word) for word in args.host]
    if sum(count for _, count in counted) > MOST_HOSTS:
        raise exception.InvalidInput(
            '--host', f'has more than {MOST_HOSTS} hosts')
    hosts = fleet_arguments.read_hosts([word for word, _ in counted])
    counts = [count for _, count in counted]
    documents = _documents(args.flavors)
    given = _flavors(documents)
    settings = {} if args.profile or args.cpus or args.pages else {
        name: own for where, document in documents.items()
        if isinstance(document, Mapping) and 'host_config' in document
        for name, own in host_settings.read(document, where).items()}
    if settings:
        found = [_as_planned(host, settings) for host in hosts]
    else:
        plan = planner.plan(hosts, *fleet_arguments.read_division(args))
        given = given or [item.flavor for item in plan.flavors]
        found = [each.supply for each in plan.hosts]
    return scenario.Fleet(tuple(
        scenario.Kind(host.name, count, supply) for host, count, supply
        in zip(hosts, counts, found, strict=True)), tuple(given))


def _counted(word: str) -> tuple[str, int]:
    """Divide [NAME=]PATH*COUNT; a file may have a star in its name."""
    match = _COUNT.fullmatch(word)
    if match is None or os.path.lexists(word.partition('=')[2] or word):
        return word, 1
    path, count = match.groups()
    if not (count.isascii() and count.isdecimal()
            and 1 <= int(count[:9]) <= MOST_HOSTS):
        raise exception.InvalidInput(
            f'--host {word[:200]}', f'the count {count[:20]!r} is not a whole '
            f'number from 1 to {MOST_HOSTS}')
    if not path or path.endswith('='):
        raise exception.InvalidInput(f'--host {word[:200]}', 'has no path')
    return path, int(count)


def _documents(paths: Sequence[str]) -> dict[str, Any]:
    """Read files, by the name that messages call them."""
    found: dict[str, Any] = {}
    for path in paths:
        where = input_file.name(path)
        if where in found:
            raise exception.InvalidInput('--flavors', f'names {where} twice')
        found[where] = serialization.json_value(
            input_file.content(path, _MAX_BYTES), where)
    return found


def _flavors(documents: Mapping[str, Any]) -> list[catalogue.Flavor]:
    found: dict[str, catalogue.Flavor] = {}
    for where, document in documents.items():
        for flavor in flavor_files.flavors(document, where):
            if flavor.name in found:
                raise exception.InvalidInput(
                    where, f'has a flavor {flavor.name[:64]}, of which there '
                    'is one already')
            found[flavor.name] = flavor
    return list(found.values())


def _as_planned(host: host_model.Host,
                settings: Mapping[str, host_settings.HostSettings],
                ) -> supplies.Supply:
    """Describe a host with the settings that a plan has for it."""
    if host.name not in settings:
        raise exception.InvalidInput(
            '--flavors', f'has a plan without host_config of {host.name}; '
            'name the hosts as in the plan (--host NAME=PATH), or divide all '
            'hosts by --profile')
    return empty_host.of(host, settings[host.name]).supply
