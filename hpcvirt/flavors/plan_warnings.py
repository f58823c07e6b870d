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

"""Find the warnings about a plan as a whole."""

from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.flavors import device_warnings
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import published_losses
from hpcvirt.flavors import sizes as guest_sizes
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model

#: What a plan takes for true where the topology says nothing. Pages have a
#: warning of their own, devices those of the profile.
_ASSUMED = {
    host_model.Unknown.PACKAGES:
        'which cells share a package; each counts as a package of its own',
    host_model.Unknown.CACHES:
        'which cores share a last-level cache; those of a cell count as '
        'sharing one, so that parts of a cell may cut a cache',
}


def on(hosts: Sequence[plans.PlannedHost],
       flavors: Sequence[plans.PlannedFlavor],
       profile: profiles.Profile) -> Iterator[warning.PlanWarning]:
    """Find the warnings about hosts and flavors of a plan."""
    if (not profile.housekeeping_cores_per_cell
            and profile.shared_cores_per_cell is not None):
        yield warning.PlanWarning(
            warning.Code.NO_HOUSEKEEPING,
            "all cores are dedicated to guests, which the host's own "
            'processes slow down (by 1 to 2 % in '
            f'{published_losses.HS06_STUDY.document.citation}); set '
            'housekeeping_cores_per_cell to keep cores for the host')
    for planned in hosts:
        yield from _served(planned, flavors)
        yield from _unknown(planned)
        yield from _parts(planned, profile)
        yield from _caches(planned)
        yield from _given_back(planned, profile)
        if profile.devices is not None:
            yield from device_warnings.on(planned, profile.devices)
    yield from _mixed_smt(hosts, flavors)


def _served(planned: plans.PlannedHost,
            flavors: Sequence[plans.PlannedFlavor],
            ) -> Iterator[warning.PlanWarning]:
    if not any(item.per_host[planned.name] for item in flavors):
        yield warning.PlanWarning(warning.Code.HOST_NOT_SERVED,
                            'none of the flavors fits', (planned.name,))


def _unknown(planned: plans.PlannedHost) -> Iterator[warning.PlanWarning]:
    for unknown, assumed in _ASSUMED.items():
        if unknown in planned.host.unknown:
            yield warning.PlanWarning(
                warning.Code.TOPOLOGY_UNKNOWN,
                f'the topology does not say {assumed}', (planned.name,))


def _parts(planned: plans.PlannedHost,
           profile: profiles.Profile) -> Iterator[warning.PlanWarning]:
    """Warn where no size is smaller than a cell, and say how to get one."""
    widths = {len(share.cores) for share in planned.partition.cells}
    by_devices = (profile.devices is not None
                  and profile.devices.kind is not profiles.Kind.VF)
    if len(widths) != 1 or by_devices:
        return
    width = widths.pop()
    sizes = guest_sizes.sizes(planned.partition, profile.host_steps,
                             profile.smallest_cores)
    cuts = [str(part) for part in range(width // 8 or 1, width)
            if width % part == 0 and part > 1]
    if cuts and all(max(size.cores) == width for size in sizes):
        reason = ('share a cache' if profile.smallest_cores is None else
                  f'have no part of {profile.smallest_cores} cores or more')
        yield warning.PlanWarning(
            warning.Code.NO_PARTS,
            f'no flavor is smaller than a cell, because its {width} cores '
            f'{reason}; set smallest_cores to allow parts of '
            f'{" or ".join(cuts)} cores', (planned.name,))


def _caches(planned: plans.PlannedHost) -> Iterator[warning.PlanWarning]:
    cut = [share.id for share in planned.partition.cells
           if len(share.llc) > 1 and max(share.llc) > 1]
    if cut:
        yield warning.PlanWarning(
            warning.Code.LLC_NOT_SEEN,
            'cells have several last-level caches, which Nova does not know; '
            'a part of a cell has the size of whole caches, but its CPUs may '
            'belong to several unless the firmware presents each cache as a '
            'NUMA cell', (planned.name,))


def _given_back(planned: plans.PlannedHost,
                profile: profiles.Profile) -> Iterator[warning.PlanWarning]:
    small = memory.small_page_kib(planned.host)
    kept = {size for size, _ in profile.host_pages_per_cell}
    given: dict[int, int] = {}
    for cell in planned.host.cells:
        for pool in cell.pages:
            if (pool.size_kib not in (small, planned.page_kib, *kept)
                    and pool.total):
                given[pool.size_kib] = given.get(pool.size_kib,
                                                 0) + pool.total
    for size, count in given.items():
        yield warning.PlanWarning(
            warning.Code.HUGE_PAGES_GIVEN_BACK,
            f'the host has {count} pages of {memory.page_name(size)} now and '
            'none under this plan; set host_pages_per_cell to keep pages for '
            'programs of the host', (planned.name,))


def _mixed_smt(hosts: Sequence[plans.PlannedHost],
               flavors: Sequence[plans.PlannedFlavor],
               ) -> Iterator[warning.PlanWarning]:
    wide = [planned.name for planned in hosts
            if planned.partition.threads > 1]
    for name in wide if len(wide) < len(hosts) else ():
        if any(item.guest.thread_policy is not shape_model.ThreadPolicy.REQUIRE
               and item.per_host[name] for item in flavors):
            yield warning.PlanWarning(
                warning.Code.SMT_MIXED,
                'takes flavors for hosts without SMT, with vCPUs on the '
                'siblings of a core; if that matters, separate hosts with and '
                'without SMT by aggregates', (name,))
