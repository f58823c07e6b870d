# SPDX-License-Identifier: Apache-2.0

"""The one way in which commands are told of hosts.

A command takes ``--fleet FILE`` (:func:`add_fleet`), single hosts
``[NAME=]PATH[*COUNT]`` (:func:`add_hosts`), or both. :func:`read` returns a
:class:`hpcvirt.fleet.document.FleetDocument` for either, with every file of it
read already: the hosts of the command line are its one class, with the
profile of ``--profile`` (:func:`add_division`). From there on:

* ``document.classes[name].read_profile(where)`` is the profile of a class,
  and ``.list_topologies()`` are its hosts;
* ``document.list_topologies()`` are all hosts, for what needs no classes;
* :func:`hpcvirt.fleet.assemble.make_fleet` builds the hosts with the
  instances on them, and the flavors.

:func:`read_hosts` returns the hosts of words alone.
"""

import argparse
import dataclasses
import importlib
import os
import re
import typing
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.cmd import output
from hpcvirt.cmd import yaml_file
from hpcvirt.flavors import flavor_files
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import classes as fleet_classes
from hpcvirt.fleet import document as documents
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.topology import collection
from hpcvirt.topology import source

if typing.TYPE_CHECKING:
    from hpcvirt.flavors import plan_document
    from hpcvirt.flavors import warning

METAVAR = '[NAME=]PATH[*COUNT]'

EPILOG = """\
PATH is a topology that "hpcvirt topology show" reads, or - for standard input.
It may also be a pattern ('rack1/*.json'), a folder or an archive (.tar,
.tar.gz, .zip), in which each file *.json or *.xml is the topology of one host.
NAME replaces the name of a single host; all names must be different. COUNT
stands for that many equal hosts, which are called NAME-1, NAME-2 and so on.
"""

#: The class of the hosts of a command line.
CLASS = 'hosts'

#: Enough for 100,000 instances.
MAX_FLEET_BYTES = 256 * 1024 * 1024

#: Far larger than any profile.
MAX_PROFILE_BYTES = 1024 * 1024

#: Path -> the hosts in it.
_Topologies = dict[str, list[tuple[str, collection.Topology]]]

_COUNT = re.compile(r'(.*)\*([0-9]+)', re.DOTALL)


def add_fleet(parser: argparse._ActionsContainer,
              help_text: str = '') -> None:
    """Add --fleet.

    :param help_text: what the command does without it
    """
    parser.add_argument(
        '--fleet', metavar='FILE', help='the fleet, as YAML or JSON: classes '
        'of hosts with their profiles, and optionally their instances and '
        'flavors; "hpcvirt fleet dump" writes the file for a cloud'
        + help_text)


def add_hosts(parser: argparse._ActionsContainer, nargs: str = '*') -> None:
    """Add the hosts and --source."""
    parser.add_argument('path', metavar=METAVAR, nargs=nargs,
                        help='the topology of a host, or of several')
    parser.add_argument('--source', choices=source.SOURCES, default='auto',
                        help='the format of every PATH; auto (the default) '
                        'detects it')


def add_division(parser: argparse._ActionsContainer) -> None:
    """Add the arguments that say how hosts are divided."""
    parser.add_argument('--profile', metavar='NAME|FILE',
                        help='what each host gives to guests: "default" keeps '
                        'some cores for the host, "dense" gives guests all '
                        'cores, and a FILE (./dense for one of that name) has '
                        'your own choices in YAML (default: default)')
    parser.add_argument('--cpus', metavar='LIST',
                        help='the CPUs of each host that guests may have, as '
                        'in cpu_dedicated_set: 2-7,10-15 (default: all CPUs '
                        'that the profile does not keep for the host)')
    parser.add_argument(
        '--pages', metavar='[CELL:]SIZE[:COUNT]', action='append', default=[],
        help='the pages that guests may have of one host cell, or of each '
        'cell: 2M:1024 for 1024 pages, 4K:50%% for half of the memory of the '
        'cell, 2M for the pages that the host has set aside now; may be '
        'given once for each cell (default: all memory that the profile does '
        'not keep for the host)')


def read(args: argparse.Namespace) -> documents.FleetDocument:
    """Read the fleet of --fleet, or the hosts that the arguments name.

    :raises InvalidInput: for a file or an argument that cannot be used, and
        for two hosts of one name
    """
    paths = getattr(args, 'path', [])
    profile = getattr(args, 'profile', None)
    path = getattr(args, 'fleet', None)
    if path is not None:
        for name, given in ((METAVAR, paths), ('--profile', profile)):
            if given:
                raise exception.InvalidInput(
                    name, 'cannot be used with --fleet, which has it')
        return read_fleet(path)
    if not paths:
        raise exception.InvalidInput(
            'hosts', 'are missing: name them by --fleet FILE'
            + (f', or by {METAVAR}' if hasattr(args, 'path') else ''))
    return _read_class(paths, getattr(args, 'source', 'auto'),
                       _read_profile_content(profile or 'default'))


def read_fleet(path: str) -> documents.FleetDocument:
    """Read a fleet document and every file that it names.

    :raises InvalidInput: naming the file, the class and the host
    """
    where = input_file.name(path)
    document = documents.read(yaml_file.read(path, MAX_FLEET_BYTES), where)
    folder = '' if path == input_file.STDIN else os.path.dirname(path)
    classes, known = {}, _Topologies()
    for name, own in document.classes.items():
        here = f'{where}: classes[{name[:64]!r}]'
        entries: list[fleet_classes.HostEntry] = []
        for number, entry in enumerate(own.hosts):
            try:
                entries += (read_entries([entry.path], folder=folder,
                                         known=known)
                            if entry.path is not None else [entry])
            except exception.InvalidInput as exc:
                raise exception.InvalidInput(f'{here}.hosts[{number}]',
                                             str(exc)) from exc
        content = own.profile
        if isinstance(content, str):
            content = _read_profile_content(content, folder)
        classes[name] = dataclasses.replace(own, hosts=tuple(entries),
                                            profile=content)
        classes[name].read_profile(here)
    document = dataclasses.replace(
        document, classes=classes, flavor_files=(), flavors=(
            *document.flavors, *(
                flavor for each in document.flavor_files
                for flavor in read_flavors(os.path.join(folder, each)))))
    document.check_names()
    return document


def read_hosts(paths: Sequence[str],
               kind: str = 'auto') -> list[host_model.Host]:
    """Read single hosts.

    :raises InvalidInput: if one cannot be used, or two have one name
    """
    return list(_read_class(paths, kind).list_topologies())


def _read_class(paths: Sequence[str], kind: str,
                profile: str | dict[str, object] = 'default',
                ) -> documents.FleetDocument:
    document = documents.FleetDocument('hosts', {
        CLASS: fleet_classes.FleetClass(
            hosts=tuple(read_entries(paths, kind)), profile=profile)})
    document.check_names()
    return document


def read_entries(paths: Sequence[str], kind: str = 'auto', folder: str = '',
                 known: _Topologies | None = None,
                 ) -> Iterator[fleet_classes.HostEntry]:
    """Read words of the form [NAME=]PATH[*COUNT].

    A file with a wrong content is an entry whose topology is the error.

    :param kind: the format of all files, see :mod:`hpcvirt.topology.source`
    :param folder: from where paths are relative
    :param known: the paths that have been read, which is filled
    :raises InvalidInput: if a word is not of this form, or a path cannot be
        read
    """
    known = {} if known is None else known
    for word in paths:
        name, path, count = split(word, folder)
        if path not in known:
            known[path] = list(collection.read(path, kind))
        found = known[path]
        if name and len(found) > 1:
            raise exception.InvalidInput(
                word, f'has {len(found)} hosts; NAME= is for one')
        for where, topology in found:
            own = name or (
                topology.name if isinstance(topology, host_model.Host)
                else os.path.splitext(os.path.basename(where))[0])
            yield fleet_classes.HostEntry(
                name=own, count=count, topology=dataclasses.replace(
                    topology, name=own) if isinstance(
                        topology, host_model.Host) else topology)


def split(word: str, folder: str = '') -> tuple[str, str, int]:
    """Divide [NAME=]PATH[*COUNT]; a file may have = and * in its name.

    :returns: the name or '', the path, the count
    :raises InvalidInput: if the name or the count cannot be used
    """
    def locate(path: str) -> str:
        return (path if path == input_file.STDIN
                else os.path.join(folder, path))

    name, path, count = '', word, 1
    head, equals, rest = path.partition('=')
    if equals and '/' not in head and not os.path.lexists(locate(path)):
        if not head.strip() or not head.isprintable():
            raise exception.InvalidInput(
                word, 'the name before = is empty or cannot be printed')
        name, path = head.strip(), rest
    match = _COUNT.fullmatch(path)
    if match and not os.path.lexists(locate(path)):
        path, number = match.groups()
        if not 1 <= int(number[:9]) <= fleet_classes.MAX_HOSTS:
            raise exception.InvalidInput(
                word, f'the count {number[:20]} is not from 1 to '
                f'{fleet_classes.MAX_HOSTS}')
        count = int(number)
    if not path:
        raise exception.InvalidInput(word, 'has no path')
    return name, locate(path), count


def read_profile(path: str) -> profiles.Profile:
    """Read a profile, or return a built-in one of that name.

    :raises InvalidInput: naming the file and the key at fault
    """
    content = _read_profile_content(path)
    return (profiles.BUILT_IN[content] if isinstance(content, str)
            else profiles.build(content, input_file.name(path)))


def _read_profile_content(path: str, folder: str = '',
                          ) -> str | dict[str, object]:
    """Read the content of a profile; a built-in one is its name."""
    if path in profiles.BUILT_IN:
        return path
    if path != input_file.STDIN:
        path = os.path.join(folder, path)
        if not os.path.lexists(path):
            raise exception.InvalidInput(
                path, 'is neither a file nor a built-in profile'
                + words.suggest(os.path.basename(path),
                                profiles.BUILT_IN))
    where = input_file.name(path)
    content: dict[str, object] = yaml_file.read(path, MAX_PROFILE_BYTES) or {}
    profile = profiles.build(content, where)
    if profile.extra_specs:
        _validate_as_nova_does(profile, where)
    return content


def _validate_as_nova_does(profile: profiles.Profile, path: str) -> None:
    """Check extra specs with the validators of Nova where it is installed."""
    try:
        # Nova need not be there: only hpcvirt.nova and controller import it.
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            validators = importlib.import_module(
                'hpcvirt.nova.operator_specs')
    except ImportError:
        return
    validators.check(profile.extra_specs, path)


def read_flavors(path: str) -> list[flavor_model.Flavor]:
    """Read the flavors of a file, see :mod:`hpcvirt.flavors.flavor_files`.

    The warnings of a plan are printed.

    :raises InvalidInput: if it cannot be read, or has no flavors
    """
    content = yaml_file.read(path, MAX_FLEET_BYTES)
    where = input_file.name(path)
    found = flavor_files.flavors(content, where)
    if isinstance(content, dict) and 'host_config' in content:
        from hpcvirt.flavors import plan_document
        warn(plan_document.load(content, where).warnings)
    return found


def warn(found: 'Iterable[warning.PlanWarning | plan_document.WarningSummary]',
         ) -> None:
    """Print the warnings of a plan on standard error."""
    for item in found:
        output.warn(f'Warning: {item.code}: {item.message}.')
