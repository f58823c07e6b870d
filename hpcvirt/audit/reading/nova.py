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

"""Find and read the configuration of nova-compute.

Only the options of :data:`OPTIONS` are kept: a configuration also has
passwords, which no report must show.
"""

import itertools
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.audit import facts
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import ini

Files = files_module.Files

#: The options that an audit reads, with the names that they had before.
OPTIONS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ('DEFAULT', 'reserved_host_memory_mb'): (),
    ('DEFAULT', 'reserved_huge_pages'): (),
    ('DEFAULT', 'vcpu_pin_set'): (),
    ('DEFAULT', 'ram_allocation_ratio'): (),
    ('compute', 'cpu_dedicated_set'): (),
    ('compute', 'cpu_shared_set'): (),
    ('compute', 'packing_host_numa_cells_allocation_strategy'): (),
    ('libvirt', 'cpu_mode'): (),
    ('libvirt', 'cpu_models'): (('libvirt', 'cpu_model'),),
    ('libvirt', 'cpu_power_management'): (),
    ('libvirt', 'cpu_power_management_strategy'): (),
    ('libvirt', 'live_migration_parallel_connections'): (),
    ('libvirt', 'virt_type'): (),
    ('pci', 'device_spec'): (('pci', 'passthrough_whitelist'),
                             ('DEFAULT', 'pci_passthrough_whitelist')),
}

#: Whether a directory of a configuration is there says nothing alone.
_ALWAYS = 'sys'

#: An option that has the value of another one. (In device_spec it is the end
#: of a regular expression.)
_REFERENCE = re.compile(r'[$]\{?[A-Za-z_]')

_KOLLA = 'etc/kolla/nova-compute/nova.conf'
_TRIPLEO = ('var/lib/config-data/puppet-generated/nova_libvirt/etc/nova/'
            'nova.conf')
_EDPM = 'var/lib/openstack/nova'
_DEVSTACK = 'etc/nova/nova-cpu.conf'
_ETC = ('usr/share/nova/nova-dist.conf', 'etc/nova/nova.conf',
        'etc/nova/nova-compute.conf')
_ETC_DIRECTORIES = ('etc/nova/nova.conf.d', 'etc/nova/nova-compute.conf.d')


def read(files: Files) -> facts.NovaFacts | None:
    """Read the configuration.

    :returns: None if there is none
    """
    names = _names(files)
    if not names and not files.exists('etc'):
        raise files_module.unknown('etc')
    sections = []
    for name in names:
        try:
            sections.append(ini.parse(files.need(name)))
        except ini.Malformed as exc:
            raise files_module.unknown(
                name, f'is refused by nova-compute: {exc}') from exc
    if not names:
        return None
    found = {}
    for (group, option), before in OPTIONS.items():
        values = ini.merge(sections, [(group, option), *before])
        if option != 'device_spec' and any(map(_REFERENCE.search, values)):
            raise files_module.unknown(
                names[-1], f'[{group}]{option} refers to another option')
        if values:
            found[group, option] = values
    return facts.NovaFacts(tuple(f'/{name}' for name in names), found)


def _names(files: Files) -> tuple[str, ...]:
    """Find the files, in the order in which nova-compute reads them.

    Containers have their configuration outside of ``/etc/nova``, which then
    belongs to nothing. Outside of containers, the command line of a
    nova-compute that runs says which files it reads.
    """
    for alone in (_KOLLA, _TRIPLEO):
        if _is_there(files, alone):
            return (alone,)
    found = tuple(_directory(files, _EDPM)) or _named(files, _words(files))
    if not found and _is_there(files, _DEVSTACK):
        return (_DEVSTACK,)
    return found or tuple(
        [name for name in _ETC if _is_there(files, name)]
        + list(_default_directories(files)))


def _default_directories(files: Files) -> Iterator[str]:
    for directory in _ETC_DIRECTORIES:
        yield from _directory(files, directory)


def _words(files: Files) -> list[str]:
    """Return the command line of a nova-compute that runs."""
    for number in files.names('proc', 'sys'):
        here = f'proc/{number}'
        if number.isdigit() and files.text(f'{here}/comm',
                                           'proc') == 'nova-compute':
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
        name = (value if equals else after).lstrip('/')
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


def _is_there(files: Files, name: str) -> bool:
    directory, _, last = name.rpartition('/')
    return last in files.names(directory, _ALWAYS)
