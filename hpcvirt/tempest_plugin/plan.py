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

"""Read the plan of the cloud under test and choose flavors from it."""

import json
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec

Flavor = Mapping[str, Any]


def load(path: str) -> Mapping[str, Any]:
    """Read a plan.

    :raises InvalidInput: if it cannot be read or is not a plan
    """
    try:
        document = json.loads(pathlib.Path(path).read_text('utf-8'))
    except (OSError, ValueError) as exc:
        raise exception.InvalidInput(
            path, f'cannot be read as a plan: {exc}') from exc
    if not (isinstance(document, dict)
            and document.get('schema_version') == 1
            and isinstance(document.get('flavors'), list)):
        raise exception.InvalidInput(path, 'is not a plan of schema version 1')
    return document


def cells(flavor: Flavor) -> int:
    """Count the guest cells of a flavor."""
    return len(codec.decode(flavor['vcpus'], flavor['ram_mib'],
                            flavor['extra_specs']).cells)


def tiling(flavors: Sequence[Flavor], host: str,
           most: int) -> Flavor | None:
    """Choose the flavor that leaves the fewest PCPUs of a host unused.

    :param most: the most instances that a test may create
    :returns: None if no flavor fits from two to ``most`` times
    """
    fitting = [flavor for flavor in flavors
               if 2 <= flavor['per_host'].get(host, 0) <= most]
    return min(fitting, key=lambda flavor: (
        flavor['stranded_pcpus'].get(host, 0),
        -flavor['per_host'][host]), default=None)


def smallest(flavors: Sequence[Flavor], host: str) -> Flavor | None:
    """Choose the smallest flavor of one cell that fits on a host twice."""
    fitting = [flavor for flavor in flavors
               if flavor['per_host'].get(host, 0) >= 2
               and cells(flavor) == 1]
    return min(fitting, key=lambda flavor: flavor['vcpus'], default=None)


def whole_cell(flavors: Sequence[Flavor], host: str,
               host_cells: int) -> Flavor | None:
    """Choose a flavor of one guest cell that fits once on each host cell.

    :param host_cells: cells of the host
    """
    fitting = [flavor for flavor in flavors
               if flavor['per_host'].get(host, 0) == host_cells
               and cells(flavor) == 1]
    return max(fitting, key=lambda flavor: flavor['vcpus'], default=None)


def spread(flavor: Flavor, guest_cells: int,
           scope: shape_model.NUMAScope = shape_model.NUMAScope.HOST,
           ) -> dict[str, Any]:
    """Derive a flavor with several cells from one with a single cell."""
    single = codec.decode(flavor['vcpus'], flavor['ram_mib'],
                          flavor['extra_specs'])
    several = shape_model.Shape(cells=single.cells * guest_cells,
                                cpu_policy=single.cpu_policy,
                                numa_scope=scope)
    return {
        'name': f'{flavor["name"]}.x{guest_cells}',
        'vcpus': flavor['vcpus'] * guest_cells,
        'ram_mib': flavor['ram_mib'] * guest_cells,
        'disk_gib': flavor['disk_gib'],
        'extra_specs': codec.encode(several),
    }


def extended(flavor: Flavor, specs: Mapping[str, str]) -> dict[str, Any]:
    """Add extra specs to a flavor."""
    return {**flavor, 'extra_specs': {**flavor['extra_specs'], **specs}}
