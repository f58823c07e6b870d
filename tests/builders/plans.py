# SPDX-License-Identifier: Apache-2.0

"""Plans of hosts, and what tests compare of them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hpcvirt.deployment import host_files as configuration
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import host_settings as settings
from hpcvirt.flavors import planned
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from tests.builders import hosts


def plan(*machines: host_model.Host, **choices: Any) -> planned.Plan:
    """Plan hosts with the default profile but for some choices."""
    return planner.plan(machines, profiles.Profile(**choices))


def codes(found: planned.Plan) -> list[str]:
    """List the codes of a plan's warnings."""
    return [item.code.value for item in found.warnings]


def by_vcpus(found: planned.Plan, host: str) -> dict[int, tuple[int, int]]:
    """Count the guests of each size and the PCPUs they strand on a host."""
    return {row.flavor.vcpus: (row.per_host[host], row.unused[host].pcpus)
            for row in found.flavors}


def planned_host(page_kib: int = 2048, pages: Any = None,
                 reserved: Sequence[str] = (), dedicated: int = 32,
                 ) -> planned.PlannedHost:
    """Make a host with two cells for guests, and one that it keeps."""
    host = hosts.build(cells=3)
    shares = tuple(
        cpu_partition.CellShare(number, number, (), ()) for number in (0, 1))
    return planned.PlannedHost(
        profiles.DENSE, host, cpu_partition.Partition(host, 1, shares),
        page_kib,
        settings.HostSettings(
            cpu_dedicated_set=cpuset.render(range(dedicated)),
            cpu_shared_set='', reserved_host_memory_mb=0,
            reserved_huge_pages=tuple(reserved), pages=pages or {}),
        placement.HostState(supply.Supply((), ()),
                            guests.Resources(0, 0, 0)), {})


def host_files(host: host_model.Host,
               base: profiles.Profile = profiles.DEFAULT,
               **choices: Any) -> dict[str, str]:
    """Write the files that configure a host; return their texts by path."""
    found = planner.plan([host], dataclasses.replace(base, **choices))
    return {file.path: file.text
            for file in configuration.files(found.hosts[0], found)}
