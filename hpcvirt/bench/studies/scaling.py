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

"""A case of a study, scaled to the hosts of a site.

The guests are those of the site's own plan for these hosts: one guest per
socket becomes one per package, four guests of 8 cores on a host of 32 become
four quarters, and one of 24 becomes three quarters. A tuned guest has the
cells, pins and pages of the plan; an untuned guest has the same number of
CPUs and as much memory, and floats. A case that cannot be scaled is refused
with a reason.
"""

import dataclasses
import fractions

from hpcvirt.bench.studies import study
from hpcvirt.model import host as host_model
from hpcvirt.model import shape


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedGuest:
    """A guest of the site's plan, pinned and with NUMA cells.

    :ivar per_host: how many of these guests every host takes
    """

    guest: shape.Shape
    per_host: int


@dataclasses.dataclass(frozen=True)
class Site:
    """The hosts of a site, which are all alike, and the plan for them.

    :ivar hosts: names of the hosts
    :ivar cpus: CPUs of each host that guests may use
    :ivar packages: packages of each host
    """

    hosts: tuple[str, ...]
    cpus: int
    packages: int
    guests: tuple[PlannedGuest, ...]


@dataclasses.dataclass(frozen=True)
class ScaledCase:
    """A case as these hosts can run it.

    :ivar per_host: guests on each host
    :ivar vcpus: vCPUs of each guest
    :ivar memory_mib: memory of each guest
    :ivar guest: what each guest requests of its host, None if it floats
    """

    case: study.Case
    hosts: tuple[str, ...]
    per_host: int
    vcpus: int
    memory_mib: int
    guest: shape.Shape | None

    @property
    def shape(self) -> str:
        """Instances x vCPUs of each, on all hosts together."""
        return f'{self.per_host * len(self.hosts)}x{self.vcpus}'


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """A case that these hosts cannot run.

    :ivar reason: one sentence without its subject
    """

    case: study.Case
    reason: str


def with_smt_of(case: study.Case,
                host: host_model.Host) -> host_model.Host | Refusal:
    """Return the host with SMT switched as the case requires."""
    smt = case.host_settings.get('smt')
    if smt == 'on' and host.threads_per_core < 2:
        return Refusal(case, f'needs SMT, and {host.name} shows none: turn '
                       'it on and read the topology again')
    if smt == 'off':
        return dataclasses.replace(host, cells=tuple(
            _without_siblings(cell) for cell in host.cells))
    return host


def scale(case: study.Case, site: Site) -> ScaledCase | Refusal:
    """Fit the guests of a case to the hosts of a site."""
    count = len(site.hosts)
    if case.hosts == 1 and count != 1:
        return Refusal(case, f'runs on one host, not on {count}')
    if case.hosts > 1 and not 2 <= count <= case.hosts:
        wanted = '2' if case.hosts == 2 else f'2 to {case.hosts}'
        return Refusal(case, 'spans several hosts: give the topologies of '
                       f'{wanted}')
    per_host, share = _division(case, site)
    vcpus = share * site.cpus
    if vcpus.denominator > 1:
        return Refusal(case, f'takes {share} of a host, and {site.cpus} CPUs '
                       'cannot be divided so')
    fitting = [planned.guest for planned in site.guests
               if planned.guest.cpus == vcpus
               and planned.per_host >= per_host]
    if not fitting:
        return Refusal(
            case, f'needs {per_host} guest{"s" if per_host > 1 else ""} of '
            f'{vcpus} CPUs on a host, and the plan of these hosts has no '
            'such guest, because their cells do not divide so')
    guest = max(fitting, key=lambda guest: (-len(guest.cells),
                                            guest.memory_mib))
    return ScaledCase(case, site.hosts, per_host, guest.cpus,
                      guest.memory_mib,
                      guest if case.guests.tuned else None)


def _division(case: study.Case,
              site: Site) -> tuple[int, fractions.Fraction]:
    """Return the guests on each host, and each one's share of its CPUs."""
    guests = case.guests
    if guests.partition is study.Partition.HOST:
        return 1, fractions.Fraction(1)
    if guests.partition is study.Partition.PART:
        return guests.instances // case.hosts, fractions.Fraction(
            guests.share)
    # A case of one socket keeps to one; a case of all sockets uses all.
    single = guests.instances == case.hosts
    return (1 if single else site.packages,
            fractions.Fraction(1, site.packages))


def _without_siblings(cell: host_model.Cell) -> host_model.Cell:
    first = frozenset(min(core) for core in cell.siblings)
    return dataclasses.replace(
        cell, cpus=first, siblings=tuple(
            frozenset({min(core)}) for core in cell.siblings),
        llc=tuple(cache & first for cache in cell.llc if cache & first))
