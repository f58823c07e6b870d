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

"""What the operator wants of the flavors, beyond what the hosts say.

Every key of a profile file is a field here, with its check and its default;
``etc/hpcvirt/profiles/default.yaml`` explains them.
"""

import dataclasses
import enum
import typing
from collections.abc import Mapping
from typing import Annotated
from typing import Any
from typing import TypeVar

from hpcvirt import exception
from hpcvirt.flavors import value as values
from hpcvirt.model import shape

_Section = TypeVar('_Section', 'Profile', 'Devices')


class SMT(enum.StrEnum):
    """What becomes of the SMT siblings of a dedicated core."""

    USE = 'use'
    LEAVE = 'leave'


class Ports(enum.StrEnum):
    """How an instance gets its virtual functions."""

    ALIAS = 'alias'
    NEUTRON = 'neutron'


_COUNT = values.integer(0, 1 << 20)
_CORES = values.integer(0, 1024)
_MAYBE_COUNT = values.optional(values.integer(1, 4096))
_MAYBE_HEX = values.optional(values.text(
    '[0-9a-f]{4}', "'15b3' (four hexadecimal digits, in quotes)"))
_NAME = values.text('[A-Za-z0-9_.-]{1,64}', 'hpc-vf')


@dataclasses.dataclass(frozen=True)
class Devices:
    """The SR-IOV virtual functions (VFs) of each instance.

    :ivar vendor_id: vendor of the devices to take; None takes every device
        that has VFs
    :ivar product_id: product of the VF, which a PCI alias needs
    :ivar vfs_per_device: VFs to create; None creates all that it can have
    :ivar physical_network: of Neutron ports
    """

    per_instance: Annotated[int, values.integer(1, 32)] = 1
    affinity: Annotated[shape.PCIAffinity, values.word(
        shape.PCIAffinity)] = shape.PCIAffinity.PREFERRED
    ports: Annotated[Ports, values.word(Ports)] = Ports.ALIAS
    alias: Annotated[str, _NAME] = 'hpc-vf'
    vendor_id: Annotated[str | None, _MAYBE_HEX] = None
    product_id: Annotated[str | None, _MAYBE_HEX] = None
    vfs_per_device: Annotated[int | None, _MAYBE_COUNT] = None
    physical_network: Annotated[str | None, values.optional(_NAME)] = None


@dataclasses.dataclass(frozen=True)
class Profile:
    """The choices of an operator.

    :ivar smallest_cores: cores of the smallest part of a cell; None is the
        last-level-cache group
    :ivar host_steps: steps into which the whole host is cut
    :ivar package_scope: ask that the cells of a guest share a package
    :ivar pack_cells: ``packing_host_numa_cells_allocation_strategy`` of the
        compute hosts
    :ivar page_size: in KiB; None is 2 MiB, or where the host has no such
        pages its smallest huge page
    :ivar host_reserve_mib_per_cell: None is 2048 MiB, but at most an eighth
        of the cell
    :ivar host_pages_per_cell: (page size in KiB, pages) for programs of the
        host
    :ivar guest_overhead_mib: memory of an emulator beside the guest's own:
        fixed, for each vCPU, and in thousandths of the guest's memory.
        Source: Red Hat, OpenShift Virtualization, "Physical resource
        overhead requirements": 0.002 x memory + 218 MiB + 8 MiB x vCPUs +
        16 MiB x graphics devices
    """

    name_prefix: Annotated[str, values.text(
        '[A-Za-z][A-Za-z0-9_-]{0,31}', 'hpc')] = 'hpc'
    disk_gib: Annotated[int, _COUNT] = 0
    smt: Annotated[SMT, values.word(SMT)] = SMT.USE
    housekeeping_cores_per_cell: Annotated[int, _CORES] = 0
    shared_cores_per_cell: Annotated[int, _CORES] = 0
    emulator_threads: Annotated[
        shape.EmulatorThreads | None,
        values.optional(values.word(shape.EmulatorThreads))] = None
    smallest_cores: Annotated[int | None, _MAYBE_COUNT] = None
    host_steps: Annotated[int, values.integer(1, 64)] = 4
    package_scope: Annotated[bool, values.flag] = True
    pack_cells: Annotated[bool, values.flag] = False
    page_size: Annotated[int | None, values.optional(
        values.page_size)] = None
    memory_step_mib: Annotated[int, values.integer(1, 1 << 20)] = 1024
    memory_tolerance_percent: Annotated[int, values.integer(0, 50)] = 10
    host_reserve_mib_per_cell: Annotated[int | None, values.optional(
        _COUNT)] = None
    host_pages_per_cell: Annotated[
        tuple[tuple[int, int], ...], values.page_counts] = ()
    guest_overhead_mib: Annotated[int, _COUNT] = 234
    guest_overhead_mib_per_vcpu: Annotated[int, _COUNT] = 8
    guest_overhead_permille: Annotated[int, values.integer(0, 1000)] = 2
    devices: Annotated[Devices | None, None] = None


def build(content: object, where: str) -> Profile:
    """Check the content of a profile file.

    :param content: what the YAML says: a mapping, or None for an empty file
    :param where: the file, for the error
    :raises InvalidInput: naming the file and the key at fault
    """
    try:
        profile = _section(Profile, {} if content is None else content, '')
        _check_together(profile)
    except ValueError as exc:
        raise exception.InvalidInput(where, str(exc)) from None
    return profile


def _section(kind: type[_Section], content: object, at: str) -> _Section:
    if not isinstance(content, Mapping):
        raise ValueError((f'key {at.rstrip(".")}' if at else 'a profile')
                         + ' must be a mapping of keys to values')
    hints = typing.get_type_hints(kind, include_extras=True)
    checked: dict[str, Any] = {}
    for key, value in content.items():
        if not isinstance(key, str) or key not in hints:
            raise ValueError(f'unknown key {at + str(key)[:64]!r}; known: '
                             + ', '.join(hints))
        check = hints[key].__metadata__[0]
        if check is None:
            checked[key] = None if value is None else _section(
                Devices, value, f'{key}.')
            continue
        try:
            checked[key] = check(value)
        except ValueError as exc:
            raise ValueError(
                f'key {at}{key}: {exc}, not {str(value)[:64]!r}') from None
    return kind(**checked)


def _check_together(profile: Profile) -> None:
    """Refuse values that contradict each other."""
    if (profile.emulator_threads is shape.EmulatorThreads.SHARE
            and not profile.shared_cores_per_cell):
        raise ValueError('key emulator_threads: share needs '
                         'shared_cores_per_cell of at least 1')
    devices = profile.devices
    if devices is None:
        return
    if devices.ports is Ports.NEUTRON and devices.physical_network is None:
        raise ValueError('key devices.ports: neutron needs '
                         'devices.physical_network')
    if devices.ports is Ports.ALIAS and (
            devices.vendor_id is None or devices.product_id is None):
        raise ValueError('key devices.ports: alias needs devices.vendor_id '
                         'and devices.product_id (of the VF), because a PCI '
                         'alias of Nova does')
