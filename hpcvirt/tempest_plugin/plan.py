# SPDX-License-Identifier: Apache-2.0

"""Read the plan of the cloud under test and choose flavors from it."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_log import log

from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.flavors import plan_document
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec

LOG = log.getLogger(__name__)

Flavor = plan_document.FlavorSummary

_MAX_BYTES = 64 * 1024 * 1024


def load(path: str) -> plan_document.PlanDocument:
    """Read a plan, and log its warnings.

    :raises InvalidInput: if it cannot be read or is not a plan
    """
    document = plan_document.load(serialization.json_value(
        input_file.content(path, _MAX_BYTES), path), path)
    for warning in document.warnings:
        LOG.warning('%s: %s: %s', path, warning.code, warning.message)
    return document


def decode(flavor: Flavor) -> shape_model.Shape:
    """Decode what a flavor asks for."""
    return codec.decode(flavor.vcpus, flavor.ram_mib, flavor.extra_specs)


def tiling(flavors: Sequence[Flavor], host: str,
           most: int) -> Flavor | None:
    """Choose the flavor that leaves the fewest PCPUs of a host unused.

    :param most: the most instances that a test may create
    :returns: None if no flavor fits from two to ``most`` times
    """
    fitting = [flavor for flavor in flavors
               if 2 <= flavor.per_host.get(host, 0) <= most]
    return min(fitting, key=lambda flavor: (
        flavor.stranded_pcpus.get(host, 0),
        -flavor.per_host[host]), default=None)


def smallest(flavors: Sequence[Flavor], host: str) -> Flavor | None:
    """Choose the smallest flavor of one cell that fits on a host twice."""
    fitting = [flavor for flavor in flavors
               if flavor.per_host.get(host, 0) >= 2
               and len(decode(flavor).cells) == 1]
    return min(fitting, key=lambda flavor: flavor.vcpus, default=None)


def whole_cell(flavors: Sequence[Flavor], host: str,
               host_cells: int) -> Flavor | None:
    """Choose a flavor of one guest cell that fits once on each host cell.

    :param host_cells: cells of the host
    """
    fitting = [flavor for flavor in flavors
               if flavor.per_host.get(host, 0) == host_cells
               and len(decode(flavor).cells) == 1]
    return max(fitting, key=lambda flavor: flavor.vcpus, default=None)


def spread(flavor: Flavor, guest_cells: int,
           scope: shape_model.NUMAScope = shape_model.NUMAScope.HOST,
           ) -> Flavor:
    """Derive a flavor with several cells from one with a single cell."""
    single = decode(flavor)
    several = shape_model.Shape(cells=single.cells * guest_cells,
                                cpu_policy=single.cpu_policy,
                                numa_scope=scope)
    return dataclasses.replace(
        flavor, name=f'{flavor.name}.x{guest_cells}',
        vcpus=flavor.vcpus * guest_cells,
        ram_mib=flavor.ram_mib * guest_cells,
        extra_specs=codec.encode(several))


def extend(flavor: Flavor, specs: Mapping[str, str]) -> Flavor:
    """Add extra specs to a flavor."""
    return dataclasses.replace(
        flavor, extra_specs={**flavor.extra_specs, **specs})
