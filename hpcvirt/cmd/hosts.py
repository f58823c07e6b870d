# SPDX-License-Identifier: Apache-2.0

"""The arguments by which all commands take hosts.

A command takes ``--fleet FILE`` (:func:`add_fleet`), single hosts
``[NAME=]PATH[*COUNT]`` (:func:`add_hosts`), or both. For either, :func:`read`
returns a :class:`hpcvirt.fleet.document.FleetDocument` whose files are all
read. Hosts of the command line form its only class, with the profile of
``--profile`` (:func:`add_division`). Use the document as follows:

* ``document.classes[name].read_profile(where)`` returns the profile of a
  class, and ``.list_topologies()`` its hosts;
* ``document.list_topologies()`` returns the hosts of all classes;
* :func:`hpcvirt.fleet.assemble.make_fleet` builds the hosts with their
  instances, and the flavors.

:func:`read_hosts` returns only the hosts of ``[NAME=]PATH[*COUNT]``.
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
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import classes as fleet_classes
from hpcvirt.fleet import document as documents
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.topology import collection

if typing.TYPE_CHECKING:
    from hpcvirt.flavors import current_settings
    from hpcvirt.flavors import plan_document
    from hpcvirt.flavors import warning

METAVAR = '[NAME=]PATH[*COUNT]'

EPILOG = """\
PATH is a topology that "hpcvirt host show" reads, or a pattern, a folder or an
archive of them. NAME= names a single host, and *COUNT makes that many.
"""

#: The name of the class of hosts on the command line.
CLASS = 'hosts'

#: A fleet with 100,000 instances is smaller.
MAX_FLEET_BYTES = 256 * 1024 * 1024

#: Real profiles are far smaller.
MAX_PROFILE_BYTES = 1024 * 1024

#: Path to the hosts in it.
_Topologies = dict[str, list[tuple[str, collection.Topology]]]

_COUNT = re.compile(r'(.*)\*([0-9]+)', re.DOTALL)


def add_fleet(parser: argparse._ActionsContainer, help_text: str = '',
              action: str = 'store') -> None:
    """Add --fleet.

    :param help_text: end of the help, such as the default
    :param action: ``append`` if it may be given several times
    """
    parser.add_argument(
        '--fleet', metavar='FILE', action=action,
        help='the fleet document' + help_text)


def add_hosts(parser: argparse._ActionsContainer, nargs: str = '*') -> None:
    """Add the hosts."""
    parser.add_argument('path', metavar=METAVAR, nargs=nargs,
                        help='the topology of a host, or of several')


def add_division(parser: argparse._ActionsContainer) -> None:
    """Add --profile, --cpus and --pages, which divide hosts."""
    parser.add_argument('--profile', metavar='NAME|FILE',
                        help='what guests get of each host: default (cores '
                        'are kept for it), dense, or a file of yours')
    parser.add_argument('--cpus', metavar='LIST',
                        help='the CPUs of each host for guests, such as '
                        '2-7,10-15 (default: those of the profile)')
    parser.add_argument(
        '--pages', metavar='[CELL:]SIZE[:COUNT]', action='append', default=[],
        help='the pages for guests, such as 2M:1024, 4K:50%% or 2M for those '
        'that there are (default: those of the profile)')


def read(args: argparse.Namespace) -> documents.FleetDocument:
    """Read the fleet of --fleet, or the hosts that the arguments name.

    :raises InvalidInput: for an invalid file or argument, or two hosts with
        the same name
    """
    paths = getattr(args, 'path', [])
    profile = getattr(args, 'profile', None)
    path = getattr(args, 'fleet', None)
    if path is not None:
        for name, given in ((METAVAR, paths), ('--profile', profile)):
            if given:
                raise exception.InvalidInput(
                    name, 'cannot be used with --fleet, whose file has it')
        return read_fleet(path)
    if not paths:
        raise exception.InvalidInput(
            'hosts', 'are missing; give --fleet FILE'
            + (f', or {METAVAR}' if hasattr(args, 'path') else ''))
    return _read_class(paths, read_profile_content(profile or 'default'))


def read_fleet(path: str, *,
               names_only: bool = False) -> documents.FleetDocument:
    """Read a fleet document and all files that it names.

    :param names_only: whether only the names of hosts and classes are needed;
        flavors and the topologies of hosts NAME=PATH need not exist then
    :raises InvalidInput: with the file, the class and the host that is wrong
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
                                         known=known, names_only=names_only)
                            if entry.path is not None else [entry])
            except exception.InvalidInput as exc:
                raise exception.InvalidInput(f'{here}.hosts[{number}]',
                                             str(exc)) from exc
        content, profile_file = own.profile, None
        if isinstance(own.profile, str):
            content = read_profile_content(own.profile, folder)
            if content != own.profile:
                profile_file = own.profile
        classes[name] = dataclasses.replace(
            own, hosts=tuple(entries), profile=content,
            profile_file=profile_file,
            conf=None if names_only else _read_conf(own.settings, folder))
        classes[name].read_profile(here)
    flavors = list(document.flavors)
    if not names_only:
        for each in document.flavor_files:
            flavors += read_flavors(os.path.join(folder, each))
    document = dataclasses.replace(
        document, classes=classes, flavor_files=(), flavors=tuple(flavors))
    document.check_names()
    if document.flavors and not names_only:
        document = documents.find_flavors(document, document.flavors)
    return document


def _read_conf(settings: str,
               folder: str) -> 'current_settings.NovaConf | None':
    """Read the nova.conf that a class names; None if it names none."""
    if settings in (fleet_classes.PLANNED, fleet_classes.CURRENT):
        return None
    path = os.path.join(folder, settings)
    if not os.path.lexists(path):
        raise exception.InvalidInput(
            path, f'is neither a nova.conf, {fleet_classes.PLANNED} nor '
            f'{fleet_classes.CURRENT}')
    from hpcvirt.flavors import current_settings
    return current_settings.read_conf(
        input_file.content(path, MAX_PROFILE_BYTES).decode('utf-8', 'replace'),
        input_file.name(path))


def read_hosts(paths: Sequence[str],
               folder: str = '') -> list[host_model.Host]:
    """Read the hosts of words [NAME=]PATH[*COUNT].

    :param folder: the directory of relative paths
    :raises InvalidInput: if one is invalid, or two have the same name
    """
    return list(_read_class(paths, folder=folder).list_topologies())


def _read_class(paths: Sequence[str],
                profile: str | dict[str, object] = 'default',
                folder: str = '') -> documents.FleetDocument:
    document = documents.FleetDocument('hosts', {
        CLASS: fleet_classes.FleetClass(
            hosts=tuple(read_entries(paths, folder)), profile=profile)},
        is_file=False)
    document.check_names()
    return document


def read_entries(paths: Sequence[str], folder: str = '',
                 known: _Topologies | None = None, *, names_only: bool = False,
                 ) -> Iterator[fleet_classes.HostEntry]:
    """Read words of the form [NAME=]PATH[*COUNT].

    The topology of a file with an invalid content is an error value.

    :param folder: the directory of relative paths
    :param known: cache of the paths that were read; it is updated
    :param names_only: whether not to read the topology of NAME=PATH
    :raises InvalidInput: if a word has another form, or a path cannot be read
    """
    known = {} if known is None else known
    for word in paths:
        name, path, count = split(word, folder)
        if names_only and name:
            yield fleet_classes.HostEntry(name=name, count=count)
            continue
        if path not in known:
            known[path] = list(collection.read(path))
        found = known[path]
        if name and len(found) > 1:
            raise exception.InvalidInput(
                word, f'has {len(found)} hosts, but NAME= names a single one')
        for where, topology in found:
            own = name or (
                topology.name if isinstance(topology, host_model.Host)
                else os.path.splitext(os.path.basename(where))[0])
            yield fleet_classes.HostEntry(
                name=own, count=count, topology=dataclasses.replace(
                    topology, name=own) if isinstance(
                        topology, host_model.Host) else topology)


def split(word: str, folder: str = '') -> tuple[str, str, int]:
    """Split [NAME=]PATH[*COUNT]; the name of an existing file is not split.

    :returns: the name or '', the path, the count
    :raises InvalidInput: if the name or the count is invalid
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
        count = words.read_whole(number) or 0
        if not 1 <= count <= fleet_classes.MAX_HOSTS:
            raise exception.InvalidInput(
                word, f'the count {number[:20]} is not from 1 to '
                f'{fleet_classes.MAX_HOSTS}')
    if not path:
        raise exception.InvalidInput(word, 'has no path')
    return name, locate(path), count


def read_profile(path: str) -> profiles.Profile:
    """Return a built-in profile, or read one from a file.

    :raises InvalidInput: with the file and the key that is wrong
    """
    content = read_profile_content(path)
    return (profiles.BUILT_IN[content] if isinstance(content, str)
            else profiles.build(content, input_file.name(path)))


def read_profile_content(path: str, folder: str = '',
                         ) -> str | dict[str, object]:
    """Read the content of a profile; for a built-in one, return its name.

    :param folder: the directory of a relative path
    :raises InvalidInput: with the file and the key that is wrong
    """
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
    """Check extra specs with Nova's validators, if Nova is installed."""
    try:
        # A static import would need Nova, and break the layers.
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            validators = importlib.import_module(
                'hpcvirt.nova.operator_specs')
    except ImportError:
        return
    validators.check(profile.extra_specs, path)


def read_flavors(path: str) -> list[flavor_model.Flavor]:
    """Read the flavors of a file, see :mod:`hpcvirt.flavors.flavor_files`.

    If the file is a plan, its warnings are printed.

    :raises InvalidInput: if it cannot be read, or has no flavors
    """
    from hpcvirt.flavors import flavor_files
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
