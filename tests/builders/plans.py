# SPDX-License-Identifier: Apache-2.0

"""Plans of hosts, and what tests compare of them."""

from typing import Any

from hpcvirt.flavors import planned
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model


def plan(*machines: host_model.Host, **choices: Any) -> planned.Plan:
    """Plan hosts with the default profile but for some choices."""
    return planner.plan(machines, profiles.Profile(**choices))


def codes(found: planned.Plan) -> list[str]:
    """List the codes of a plan's warnings."""
    return [item.code.value for item in found.warnings]


def by_vcpus(found: planned.Plan, host: str) -> dict[int, tuple[int, int]]:
    """Count the guests of each size and the PCPUs they strand on a host."""
    return {row.flavor.vcpus: (row.per_host[host], row.stranded[host].pcpus)
            for row in found.flavors}
