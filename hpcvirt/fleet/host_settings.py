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

"""Read what hosts give to guests from the document of a plan.

``hpcvirt flavor plan --format json`` writes it; ``host_config`` has the
settings of each host.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import cpuset

_Number = Annotated[int, serialization.whole(0, 2 ** 53)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReservedPages:
    """An item of Nova's ``reserved_huge_pages``."""

    node: _Number
    size: _Number
    count: _Number


@dataclasses.dataclass(frozen=True, kw_only=True)
class MdevType:
    """An item of Nova's ``enabled_mdev_types``, with its ``mdev_class``."""

    name: str
    device_addresses: tuple[str, ...]
    mdev_class: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostSettings:
    """The settings of a host; the fields have the names of the document.

    :ivar pages: cell -> page size in KiB -> the total
    :ivar device_counts: address of a device -> the virtual functions or
        vGPUs that it gives, 1 for itself
    """

    cpu_dedicated_set: str
    cpu_shared_set: str
    reserved_host_memory_mb: _Number
    reserved_huge_pages: tuple[ReservedPages, ...]
    pages: Mapping[str, Mapping[str, _Number]]
    pci_device_spec: tuple[Mapping[str, str], ...] = ()
    pci_alias: tuple[Mapping[str, str], ...] = ()
    mdev_types: tuple[MdevType, ...] = ()
    device_counts: Mapping[str, _Number] = dataclasses.field(
        default_factory=dict)
    packing_host_numa_cells_allocation_strategy: bool = False

    @functools.cached_property
    def dedicated(self) -> frozenset[int]:
        return cpuset.parse(self.cpu_dedicated_set)

    @functools.cached_property
    def shared(self) -> frozenset[int]:
        return cpuset.parse(self.cpu_shared_set)


_KEYS = frozenset(field.name for field in dataclasses.fields(HostSettings))


def read(plain: Any, where: str) -> Mapping[str, HostSettings]:
    """Read the settings of all hosts of a plan.

    :param plain: the parsed document
    :raises InvalidInput: naming the place of what is wrong
    """
    configs = plain.get('host_config') if isinstance(plain, dict) else None
    if not isinstance(configs, dict) or not configs:
        raise exception.InvalidInput(
            where, "has no 'host_config'; it must be a plan, as \"hpcvirt "
            'flavor plan --format json" prints it')
    found: dict[str, HostSettings] = {}
    # Thousands of hosts have a few kinds of settings.
    known: dict[str, HostSettings] = {}
    for name, config in configs.items():
        here = f'{where}: host_config[{name[:64]!r}]'
        text = repr(config)
        if text in known:
            found[name] = known[text]
            continue
        # A plan may say more of a host than is needed here.
        known[text] = found[name] = settings = serialization.from_plain(
            HostSettings, {key: value for key, value in config.items()
                           if key in _KEYS}
            if isinstance(config, dict) else config, here)
        cpuset.parse(settings.cpu_dedicated_set,
                     f'{here}.cpu_dedicated_set')
        cpuset.parse(settings.cpu_shared_set, f'{here}.cpu_shared_set')
    return found
