# SPDX-License-Identifier: Apache-2.0

"""The choices of an operator for flavors and hosts.

Every key of a profile file is a field here, with its check;
``etc/hpcvirt/profiles/default.yaml`` explains them. The defaults of the fields
are the profile ``dense``. A file changes the profile ``default``, unless its
``base`` names another one.

The template of names has fields in braces. The extra specs that an operator
gives may set what hpcvirt leaves open: traits, aggregates, quotas, and
resources of Placement. hpcvirt refuses keys that it writes itself, and keys
that would change the guest for which it counted the instances of each host.
"""

import dataclasses
import enum
import itertools
import re
import string
import typing
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.flavors import device_choice
from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.specs import scheduler_keys
from hpcvirt.specs import vocabulary

TEMPLATE = '{prefix}.{shape}.{page}{options}'
#: The fields of a template, as the operator's guide explains them.
FIELDS = ('prefix', 'shape', 'cores', 'vcpus', 'cells', 'sockets', 'threads',
          'memory', 'memory_mib', 'disk', 'page', 'options')

_LITERALS = frozenset(string.ascii_letters + string.digits + '._-')
_LONGEST = 128


def read_template(value: object) -> str:
    """Check the template of a profile.

    :raises ValueError: saying what is wrong
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise serialization.make_error(f'text such as {TEMPLATE}', value)
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as exc:
        raise ValueError(f'{value!r} is no template: {exc}') from None
    for literal, field, form, conversion in parts:
        if not _LITERALS.issuperset(literal):
            raise ValueError('must have only letters, digits and "._-" '
                             f'between its fields, not {literal!r}')
        if field is not None and (field not in FIELDS or form or conversion):
            raise ValueError(
                f'has the unknown field {{{field}{form and ":" + form}}}; '
                f'known: {", ".join(FIELDS)}')
    return value


ExtraSpecs = tuple[tuple[str, str], ...]

_SPELLING = re.compile('[A-Za-z0-9_.: -]{1,255}')
_MAX_LENGTH = 255

#: Nova interprets these keys, but they do not change the size of the guest.
_OPEN = (vocabulary.RESOURCES, vocabulary.TRAIT, vocabulary.LOCKED_MEMORY,
         vocabulary.PMEM, scheduler_keys.EXCLUSIVE_CELLS,
         vocabulary.GROUP_POLICY)
_TAKEN = tuple(row for row in vocabulary.INTERPRETED if row not in _OPEN)

#: Nova itself requests these resources, from the size of the flavor.
_SIZES = re.compile(
    'resources[A-Za-z0-9_-]*:(VCPU|PCPU|MEMORY_MB|DISK_GB)')


def read_specs(value: object) -> ExtraSpecs:
    """Read the extra specs of a profile.

    :raises ValueError: naming the key at fault
    """
    if not isinstance(value, Mapping):
        raise serialization.make_error('a mapping of keys to text', value)
    for name, text in value.items():
        _check(name, text)
    return tuple(sorted(value.items()))


def is_taken(name: str) -> bool:
    """Tell whether only hpcvirt sets a key."""
    return any(row.matches(name) for row in _TAKEN)


def _check(name: object, text: object) -> None:
    if not isinstance(name, str) or not _SPELLING.fullmatch(name):
        raise ValueError('must have keys of letters, digits and "_.:-", such '
                         f'as trait:CUSTOM_HPC, not {str(name)[:64]!r}')
    where = f'{name[:64]}: '
    if not isinstance(text, str):
        fault = serialization.make_error('text, in quotes', text)
        raise ValueError(f'{where}{fault}')
    if not 0 < len(text) <= _MAX_LENGTH or not text.isprintable():
        raise ValueError(
            f'{where}must be printable text of 1 to {_MAX_LENGTH} '
            'characters')
    if is_taken(name) or _SIZES.fullmatch(name):
        raise ValueError(f'{where}is set by hpcvirt, from the hosts and the '
                         'other keys of the profile')
    if vocabulary.is_unknown(name):
        raise ValueError(f'{where}is unknown in its namespace'
                         + vocabulary.nearest(name))
    row = vocabulary.find(name)
    try:
        if row is not None:
            row.check(text, name)
        # A value can contradict dedicated CPUs and huge pages.
        codec.decode(2, 1024, {vocabulary.CPU_POLICY.name: 'dedicated',
                               vocabulary.CPU_THREAD_POLICY.name: 'require',
                               scheduler_keys.MEM_PAGE_SIZE.name: '2048',
                               name: text})
    except exception.InvalidInput as exc:
        raise ValueError(str(exc)) from None


class SMT(enum.StrEnum):
    """How guests use the SMT siblings of a dedicated core."""

    USE = 'use'
    LEAVE = 'leave'


_MAX_PAGE_KIB = 1024 ** 3


def page_size(value: object) -> int:
    """Read a page size in KiB from ``2M``, ``1GiB`` or ``64 KB``."""
    kib = (words.read_size(value) if isinstance(value, str)
           and not value.strip().isdecimal() else None)
    if not kib or kib > _MAX_PAGE_KIB:
        raise serialization.make_error('a page size such as 2M, 1G or 64K',
                                       value)
    return kib


def _page_counts(value: object) -> tuple[tuple[int, int], ...]:
    """Read pairs of page size in KiB and number of pages."""
    if not isinstance(value, Mapping):
        raise serialization.make_error('a mapping of page sizes to numbers of '
                                       'pages', value)
    counts: dict[int, int] = {}
    for size, pages in value.items():
        kib = page_size(size)
        if kib in counts:
            raise ValueError(f'must not name {size} twice')
        counts[kib] = serialization.whole(1, 1 << 30)(pages)
    return tuple(sorted(counts.items()))


_Count = Annotated[int, serialization.whole(0, 1 << 20)]
_FewCores = Annotated[int, serialization.whole(0, 1024)]
_Some = Annotated[int, serialization.whole(1, 4096)]
_PageSize = Annotated[int, page_size]
_Ring = Annotated[int, serialization.whole(16, 1 << 16)]
_Project = Annotated[str, serialization.text(
    '[A-Za-z0-9_-]{1,64}', "'4c1b0f5a3f5f4d0b8f6a7c9e2d1b3a58' (a project "
    'id)')]


@dataclasses.dataclass(frozen=True)
class Profile:
    """The choices of an operator.

    :ivar name_template: the name of a flavor, with fields in braces
    :ivar projects: the projects that may use the flavors; None for all
    :ivar extra_specs: further extra specs of every flavor, as (key, value)
    :ivar shared_cores_per_cell: None for the number that
        :func:`hpcvirt.flavors.cpu_partition.count_kept` chooses
    :ivar all_host_steps: whether steps that leave a part of the host unused
        are offered, such as three of four
    :ivar smallest_cores: the cores of the smallest part of a cell; None for
        those that share a last-level cache
    :ivar host_steps: the number of steps into which the whole host is divided
    :ivar socket_scope: whether the cells of a guest must share a socket
    :ivar pack_cells: ``packing_host_numa_cells_allocation_strategy`` of the
        compute hosts
    :ivar page_size: in KiB; None for 2 MiB, or for the smallest huge page of
        hosts without such pages
    :ivar host_reserve_mib_per_cell: None for 2048 MiB, but at most an eighth
        of the cell
    :ivar host_pages_per_cell: (page size in KiB, number of pages) for programs
        of the host
    :ivar moderate_interrupts: whether network devices of the host wait for
        more packets before they interrupt, as their drivers set it
    :ivar ring_entries: of the rings of these devices; None for as many as
        their drivers set
    :ivar devices: at most one entry, or sets of devices of several kinds
    :ivar guest_overhead_mib: the memory of an emulator in addition to that of
        its guest: this fixed amount, an amount for each vCPU, and thousandths
        of the guest's memory. Source: Red Hat, OpenShift Virtualization,
        "Physical resource overhead requirements": 0.002 x memory + 218 MiB +
        8 MiB x vCPUs + 16 MiB x graphics devices
    """

    name_prefix: Annotated[str, serialization.text(
        '[A-Za-z][A-Za-z0-9_-]{0,31}',
        'hpc (at most 32 letters, digits, - and _)')] = 'hpc'
    name_template: Annotated[
        str, read_template] = TEMPLATE
    disk_gib: _Count = 20
    projects: tuple[_Project, ...] | None = None
    extra_specs: Annotated[
        ExtraSpecs, read_specs] = ()
    smt: SMT = SMT.USE
    housekeeping_cores_per_cell: _FewCores = 0
    shared_cores_per_cell: _FewCores | None = 0
    emulator_threads: shape.EmulatorThreads | None = None
    smallest_cores: _Some | None = None
    host_steps: Annotated[int, serialization.whole(1, 64)] = 4
    all_host_steps: bool = True
    socket_scope: bool = True
    pack_cells: bool = False
    page_size: _PageSize | None = None
    memory_step_mib: Annotated[int, serialization.whole(1, 1 << 20)] = 1024
    memory_tolerance_percent: Annotated[int, serialization.whole(0, 50)] = 10
    host_reserve_mib_per_cell: _Count | None = None
    host_pages_per_cell: Annotated[
        tuple[tuple[int, int], ...], _page_counts] = ()
    guest_overhead_mib: _Count = 234
    guest_overhead_mib_per_vcpu: _Count = 8
    guest_overhead_permille: Annotated[int, serialization.whole(0, 1000)] = 2
    moderate_interrupts: bool = True
    ring_entries: _Ring | None = None
    devices: tuple[device_choice.Devices, ...] = ()

    @property
    def device(self) -> device_choice.Devices | None:
        return self.devices[0] if self.devices else None

    @property
    def has_sets(self) -> bool:
        """Whether instances get sets of devices."""
        return bool(self.devices) and self.devices[0].sets is not None


DENSE = Profile()
DEFAULT = dataclasses.replace(
    DENSE, shared_cores_per_cell=None,
    emulator_threads=shape.EmulatorThreads.SHARE, all_host_steps=False)
BUILT_IN = {'default': DEFAULT, 'dense': DENSE}


def build(content: object, where: str) -> Profile:
    """Make a profile from the content of a file.

    :param content: the parsed YAML: a mapping, or None for an empty file
    :param where: the file, for the error
    :raises InvalidInput: naming the file and the key at fault
    """
    given: Any = {} if content is None else content
    name = 'default'
    if isinstance(given, dict) and 'base' in given:
        name = given['base']
        given = {key: value for key, value in given.items() if key != 'base'}
        if not isinstance(name, str) or name not in BUILT_IN:
            raise exception.InvalidInput(
                f'{where}: base', str(serialization.make_error(
                    f'one of {", ".join(BUILT_IN)}', name)))
    read = serialization.load(Profile, given, where)
    read = dataclasses.replace(read, devices=device_choice.complete(
        read.devices))
    profile = dataclasses.replace(BUILT_IN[name], **{
        key: getattr(read, key) for key in typing.cast('dict[str, Any]',
                                                       given)})
    faults = itertools.chain(
        device_choice.find_faults(profile.devices,
                                  given.get('devices', ())),
        _contradictions(profile))
    for fault in faults:
        raise exception.InvalidInput(where, fault)
    return profile


def _contradictions(profile: Profile) -> Iterator[str]:
    if (profile.emulator_threads is shape.EmulatorThreads.SHARE
            and profile.shared_cores_per_cell == 0):
        yield ('emulator_threads: share needs shared_cores_per_cell of at '
               'least 1; with null, emulator threads run on the CPUs of the '
               'guest')
    devices = profile.device
    if devices is None or devices.kind is not device_choice.DeviceKind.VGPU:
        return
    taken = codec.write_resource(devices.resource_class, 1, devices.traits)
    for key, _ in profile.extra_specs:
        if key in taken:
            yield f'extra_specs: {key} is set by devices'
