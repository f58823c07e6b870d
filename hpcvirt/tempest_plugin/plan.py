# SPDX-License-Identifier: Apache-2.0

"""Read the plan of the cloud under test and choose flavors from it."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_log import log

from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.flavors import plan_document
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec

LOG = log.getLogger(__name__)

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


def decode(flavor: plan_document.FlavorSummary) -> shape_model.Shape:
    """Decode the request of a flavor."""
    return codec.decode(flavor.vcpus, flavor.ram_mib, flavor.extra_specs)


def tiling(flavors: Sequence[plan_document.FlavorSummary], host: str,
           most: int) -> plan_document.FlavorSummary | None:
    """Choose the flavor that leaves the fewest PCPUs of a host unused.

    :param most: the maximum number of instances
    :returns: preferably a flavor that fits several times; None if no flavor
        fits 1 to ``most`` times
    """
    fitting = [flavor for flavor in flavors
               if 1 <= flavor.per_host.get(host, 0) <= most]
    return min(fitting, key=lambda flavor: (
        flavor.per_host[host] == 1, flavor.unused_pcpus.get(host, 0),
        -flavor.per_host[host]), default=None)


def smallest(flavors: Sequence[plan_document.FlavorSummary], host: str,
             least: int = 2) -> plan_document.FlavorSummary | None:
    """Choose the smallest flavor with one guest cell for a host.

    :param least: how many times it must fit on the host
    """
    fitting = [flavor for flavor in flavors
               if flavor.per_host.get(host, 0) >= least
               and len(decode(flavor).cells) == 1]
    return min(fitting, key=lambda flavor: flavor.vcpus, default=None)


def larger(flavors: Sequence[plan_document.FlavorSummary],
           small: plan_document.FlavorSummary, host: str,
           ) -> plan_document.FlavorSummary | None:
    """Choose the next larger flavor that fits on a host twice."""
    fitting = [flavor for flavor in flavors if flavor.vcpus > small.vcpus
               and flavor.per_host.get(host, 0) >= 2]
    return min(fitting, key=lambda flavor: flavor.vcpus, default=None)


def cells_to_share(flavors: Sequence[plan_document.FlavorSummary],
                   host: host_model.Host, most: int,
                   ) -> tuple[plan_document.FlavorSummary, int] | None:
    """Choose a flavor that fits several times on each cell of a host.

    :param most: the maximum number of cells
    :returns: the flavor and the number of host cells without devices; None if
        there are fewer than two or more than ``most``, or no flavor fits
    """
    with_devices = {device.cell for device in host.devices}
    plain = [cell for cell in host.cells
             if cell.cpus and cell.id not in with_devices]
    flavor = smallest(flavors, host.name)
    if (flavor and 2 <= len(plain) <= most
            and flavor.per_host[host.name] > len(host.cells)):
        return flavor, len(plain)
    return None


def cell_of_socket(flavors: Sequence[plan_document.FlavorSummary],
                   host: host_model.Host,
                   ) -> plan_document.FlavorSummary | None:
    """Choose a flavor of a whole host cell, if sockets have several cells."""
    cells = [cell for cell in host.cells if cell.cpus]
    if len(cells) < 2 * len(host.sockets) or len(host.sockets) < 2:
        return None
    return whole_cell(flavors, host.name, len(cells))


def whole_cell(flavors: Sequence[plan_document.FlavorSummary], host: str,
               host_cells: int) -> plan_document.FlavorSummary | None:
    """Choose a flavor with one guest cell that fits once on each host cell.

    :param host_cells: number of cells of the host
    """
    fitting = [flavor for flavor in flavors
               if flavor.per_host.get(host, 0) == host_cells
               and len(decode(flavor).cells) == 1]
    return max(fitting, key=lambda flavor: flavor.vcpus, default=None)


def spread(flavor: plan_document.FlavorSummary, guest_cells: int,
           scope: shape_model.NUMAScope = shape_model.NUMAScope.HOST,
           ) -> plan_document.FlavorSummary:
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


def extend(flavor: plan_document.FlavorSummary,
           specs: Mapping[str, str]) -> plan_document.FlavorSummary:
    """Add extra specs to a flavor."""
    return dataclasses.replace(
        flavor, extra_specs={**flavor.extra_specs, **specs})
