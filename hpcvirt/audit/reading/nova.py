# SPDX-License-Identifier: Apache-2.0

"""Find and read the configuration of nova-compute.

Only the options of :data:`OPTIONS` are kept: a configuration also has
passwords, which no report must show.

Files are read as oslo.config reads them (:mod:`hpcvirt.config_file`).
"""

import dataclasses
import itertools
import os
import pathlib
import re
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import config_file
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.files import Files

#: The options that an audit reads, with their former names.
OPTIONS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ('DEFAULT', 'reserved_host_memory_mb'): (),
    ('DEFAULT', 'reserved_huge_pages'): (),
    ('DEFAULT', 'vcpu_pin_set'): (),
    ('DEFAULT', 'ram_allocation_ratio'): (),
    ('compute', 'cpu_dedicated_set'): (),
    ('compute', 'cpu_shared_set'): (),
    ('compute', 'packing_host_numa_cells_allocation_strategy'): (),
    ('filter_scheduler', 'enabled_filters'): (),
    ('libvirt', 'cpu_mode'): (),
    ('libvirt', 'cpu_models'): (('libvirt', 'cpu_model'),),
    ('libvirt', 'cpu_power_management'): (),
    ('libvirt', 'cpu_power_management_strategy'): (),
    ('libvirt', 'live_migration_parallel_connections'): (),
    ('libvirt', 'live_migration_permit_auto_converge'): (),
    ('libvirt', 'live_migration_permit_post_copy'): (),
    ('libvirt', 'live_migration_timeout_action'): (),
    ('libvirt', 'virt_type'): (),
    ('pci', 'device_spec'): (('pci', 'passthrough_whitelist'),
                             ('DEFAULT', 'pci_passthrough_whitelist')),
}

#: The anchor: the absence of a directory alone says nothing.
_ALWAYS = 'sys'

#: An option that has the value of another one. (In device_spec it is the end
#: of a regular expression.)
_REFERENCE = re.compile(r'[$]\{?[A-Za-z_]')

#: The options that name files, and where none of these can be.
_NAMING = ('--config-file', '--config-dir')
_NO_FILES = ('', 'proc', 'sys', 'dev')

_KOLLA = 'etc/kolla/nova-compute/nova.conf'
_TRIPLEO = ('var/lib/config-data/puppet-generated/nova_libvirt/etc/nova/'
            'nova.conf')
_EDPM = 'var/lib/openstack/nova'
_DEVSTACK = 'etc/nova/nova-cpu.conf'
_ETC = ('usr/share/nova/nova-dist.conf', 'etc/nova/nova.conf',
        'etc/nova/nova-compute.conf')
_ETC_DIRECTORIES = ('etc/nova/nova.conf.d', 'etc/nova/nova-compute.conf.d')

#: All of these files, as a shell finds them.
PATTERNS = (_KOLLA, _TRIPLEO, _DEVSTACK, *_ETC, *(
    f'{folder}/*.conf' for folder in (_EDPM, *_ETC_DIRECTORIES)))


@dataclasses.dataclass(frozen=True, slots=True)
class NovaFacts:
    """The options of nova-compute.

    :ivar files: the files that were read, in the order in which a later one
        has the last word
    :ivar options: (group, option) -> its values, in order
    :ivar unreadable: those of the files that the user nova cannot read
    """

    files: tuple[str, ...]
    options: Mapping[tuple[str, str], tuple[str, ...]]
    unreadable: tuple[str, ...] = ()

    def all(self, group: str, name: str) -> tuple[str, ...]:
        """Return every value of an option that may be repeated."""
        return self.options.get((group, name), ())

    def get(self, group: str, name: str, default: str = '') -> str:
        """Return the value of an option that has one."""
        values = self.all(group, name)
        return values[-1] if values else default

    def is_true(self, group: str, name: str) -> bool:
        """Whether a switch is on, as oslo.config reads it."""
        return config_file.is_true(self.get(group, name))


def read(files: Files) -> NovaFacts | None:
    """Read the configuration.

    :returns: None if there is none
    """
    owners = _find_owners(files)
    names, is_named = _names(files, owners)
    sections = []
    for name in names:
        try:
            sections.append(config_file.parse(files.need(
                name, owners if is_named else None)))
        except config_file.Malformed as exc:
            raise files_module.make_unknown(
                name, f'is refused by nova-compute: {exc}') from exc
    if not names:
        return None
    found = {}
    for (group, option), before in OPTIONS.items():
        values = config_file.merge(sections, [(group, option), *before])
        if option != 'device_spec' and any(map(_REFERENCE.search, values)):
            raise files_module.make_unknown(
                names[-1], f'[{group}]{option} refers to another option')
        if values:
            found[group, option] = values
    paths = tuple(f'/{name}' for name in names)
    return NovaFacts(paths, found, tuple(
        path for path in paths if path.startswith('/etc/nova/')
        and files.is_running and not _nova_may_read(files, path)))


def _nova_may_read(files: Files, path: str) -> bool:
    """Whether the user nova may read a file; true without such a user."""
    match = re.search('^nova:[^:\n]*:([0-9]{1,10}):([0-9]{1,10}):',
                      files.text('etc/passwd', 'etc') or '', re.MULTILINE)
    if match is None:
        return True
    groups = re.findall('^[^:\n]*:[^:\n]*:([0-9]{1,10}):(?:.*,)?nova(?:,|$)',
                        files.text('etc/group', 'etc') or '', re.MULTILINE)
    return may_read(path, int(match[1]), {int(match[2]), *map(int, groups)})


def may_read(path: str, user: int, groups: Collection[int]) -> bool:
    """Whether the modes of a file and its folders let a user read it."""
    real = os.path.realpath(path)
    folders = [str(folder) for folder in pathlib.PurePath(real).parents]
    for place, right in [(real, 4), *((folder, 1) for folder in folders)]:
        try:
            status = os.stat(place)
        except OSError:  # it has gone, or this audit may not see it either
            return True
        # Where the bits of the user's class begin in the mode.
        if status.st_uid == user:
            shift = 6
        elif status.st_gid in groups:
            shift = 3
        else:
            shift = 0
        if user and not status.st_mode >> shift & right:
            return False
    return True


def _find_owners(files: Files) -> frozenset[int] | None:
    """Find who may say what is read: root, nova and the owner of its folder.

    :returns: None for a copy, which is all of one origin
    """
    if not files.is_running:
        return None
    users = {0}
    if files.has('etc/nova'):
        users.add(os.stat('/etc/nova').st_uid)
    text = files.text('etc/passwd', 'etc') or ''
    users.update(map(int, re.findall(
        r'^nova:[^:\n]*:([0-9]{1,10}):', text, re.MULTILINE)))
    return frozenset(users)


def _names(files: Files, owners: frozenset[int] | None = None,
           ) -> tuple[tuple[str, ...], bool]:
    """Find the files, in the order in which nova-compute reads them.

    Containers have their configuration outside of ``/etc/nova``, which is
    unused then. Outside of containers, the command line of a running
    nova-compute names the files that it reads.

    :param owners: the users whose nova-compute counts; None for all
    :returns: the files, and whether a command line names them
    """
    for alone in (_KOLLA, _TRIPLEO):
        if files.has(alone):
            return (alone,), False
    if found := tuple(_directory(files, _EDPM)):
        return found, False
    if found := _named(files, _words(files, owners)):
        return found, True
    if files.has(_DEVSTACK):
        return (_DEVSTACK,), False
    return tuple([name for name in _ETC if files.has(name)]
                 + list(_default_directories(files))), False


def _default_directories(files: Files) -> Iterator[str]:
    for directory in _ETC_DIRECTORIES:
        yield from _directory(files, directory)


def _words(files: Files, owners: frozenset[int] | None) -> list[str]:
    """Return the command line of a running nova-compute.

    Anybody can name a process so; those of other users are left out.
    """
    for number in files.names('proc', 'sys'):
        here = f'proc/{number}'
        if (number.isdigit()
                and files.text(f'{here}/comm', 'proc') == 'nova-compute'
                and (owners is None
                     or frozenset() < files.users(number) <= owners)):
            return (files.text(f'{here}/cmdline', 'proc') or '').split('\0')
    return []


def _named(files: Files, words: Sequence[str]) -> tuple[str, ...]:
    """List the files that a command line names; none if it names none.

    With ``--config-file`` and no ``--config-dir``, oslo.config reads the
    directories that it knows by itself first.
    """
    found: list[str] = []
    directories = False
    for word, after in itertools.pairwise([*words, '']):
        option, equals, value = word.partition('=')
        name = os.path.normpath(
            '/' + (value if equals else after)).lstrip('/')
        if option in _NAMING and name.partition('/')[0] in _NO_FILES:
            raise files_module.make_unknown(
                name, 'is no file on a disk, but nova-compute names it')
        if option == '--config-file':
            found.append(name)
        elif option == '--config-dir':
            directories = True
            found += _directory(files, name)
    if found and not directories:
        found = [*_default_directories(files), *found]
    return tuple(found)


def _directory(files: Files, directory: str) -> Iterator[str]:
    for name in files.names(directory, _ALWAYS):
        if name.endswith('.conf') and not name.startswith('.'):
            yield f'{directory}/{name}'
