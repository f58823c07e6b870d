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

The guests are those of the site's own plan for these hosts: a guest per
socket is one per package, four guests of 8 cores on a host of 32 are four
quarters, one of 24 is three quarters. A tuned guest is the plan's, with its
cells, pins and pages; an untuned one has as many CPUs and as much memory and
floats. What cannot be scaled is refused with a reason.
"""

import dataclasses
import fractions
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.studies import study
from hpcvirt.model import host as host_model
from hpcvirt.model import shape

#: What a kernel keeps of a guest's memory before it counts it.
KERNEL_SHARE = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """A guest of the site's plan, pinned and with NUMA cells.

    :ivar per_host: how many of it every host takes
    """

    guest: shape.Shape
    per_host: int


@dataclasses.dataclass(frozen=True)
class Site:
    """The hosts of a site, all alike, and what they are planned for.

    :ivar hosts: their names
    :ivar cpus: CPUs that each has for guests
    :ivar packages: of each
    """

    hosts: tuple[str, ...]
    cpus: int
    packages: int
    offers: tuple[Offer, ...]


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A case as these hosts can run it.

    :ivar per_host: guests on each host
    :ivar vcpus: of each guest
    :ivar memory_mib: of each guest
    :ivar guest: what each guest asks of its host, None if it only floats
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


def prepared(case: study.Case, host: host_model.Host) -> host_model.Host | Refusal:
    """The host as it is once its SMT is switched as the case wants it."""
    smt = case.host_settings.get('smt')
    if smt == 'on' and host.threads_per_core < 2:
        return Refusal(case, f'needs SMT, and {host.name} shows none: turn '
                       'it on and read the topology again')
    if smt == 'off':
        return dataclasses.replace(host, cells=tuple(
            _without_siblings(cell) for cell in host.cells))
    return host


def scale(case: study.Case, site: Site) -> Scaled | Refusal:
    """Fit the guests of a case to the hosts of a site."""
    count = len(site.hosts)
    if case.hosts == 1 and count != 1:
        return Refusal(case, f'is of one host, not of {count}')
    if case.hosts > 1 and not 2 <= count <= case.hosts:
        wanted = '2' if case.hosts == 2 else f'2 to {case.hosts}'
        return Refusal(case, f'spans several hosts: give the topologies of '
                       f'{wanted}')
    per_host, share = _division(case, site)
    vcpus = share * site.cpus
    if vcpus.denominator > 1:
        return Refusal(case, f'takes {share} of a host, and {site.cpus} CPUs '
                       'have no such part')
    fitting = [offer.guest for offer in site.offers
               if offer.guest.cpus == vcpus and offer.per_host >= per_host]
    if not fitting:
        return Refusal(
            case, f'needs {per_host} guest{"s" if per_host > 1 else ""} of '
            f'{vcpus} CPUs on a host, and the plan of these hosts has no '
            'such guest: their cells do not divide so')
    guest = max(fitting, key=lambda guest: (-len(guest.cells),
                                            guest.memory_mib))
    return Scaled(case, site.hosts, per_host, guest.cpus, guest.memory_mib,
                  guest if case.guests.tuned else None)


def uses(case: study.Case, instead: str | None) -> tuple[study.Use, ...]:
    """The benchmarks of a case.

    :param instead: a free benchmark that is to stand in where it may
    :raises InvalidInput: if it may not stand in for any of them
    """
    if instead is None:
        return case.uses
    name = catalogue.get(instead).name
    if not any(name in use.instead for use in case.uses):
        allowed = sorted({other for use in case.uses
                          for other in use.instead})
        raise exception.InvalidInput(
            f'--instead {instead}', f'does not stand in for a benchmark of '
            f'{case.id}; ' + (f'{", ".join(allowed)} may' if allowed
                              else 'nothing does'))
    found: dict[tuple[str, str], study.Use] = {}
    for use in case.uses:
        wanted = (_stand_in(use, catalogue.get(name))
                  if name in use.instead else use)
        found.setdefault((wanted.benchmark, wanted.variant), wanted)
    return tuple(found.values())


def check_count(case: study.Case, count: int) -> None:
    """See that as many guests are measured as the case has.

    :param count: guests that were given
    :raises InvalidInput: if it cannot be that case
    """
    guests = case.guests
    if guests.partition is study.Partition.SOCKET and (
            guests.instances > case.hosts):
        least, most = case.hosts, None
        wanted = f'{least} or more, one per socket'
    elif case.hosts > 1:
        least, most = 2, case.hosts
        wanted = '2' if most == 2 else f'2 to {most}, one per host'
    else:
        least = most = guests.instances
        wanted = str(most)
    if count < least or (most is not None and count > most):
        raise exception.InvalidInput(
            case.id, f'is a case of {wanted} guests, not of {count}; give '
            '--where once for each')


def parameters(case: study.Case, use: study.Use,
               machine: sizing.Machine) -> dict[str, str]:
    """What the study fixed and the definition would not.

    On guests like the study's everything is as it was there. On others the
    sizes follow the definition's rule; the ranks stay the part of the CPUs
    that they were, and what no machine changes stays.

    :param machine: all guests together
    """
    guests = case.guests
    made = catalogue.get(use.benchmark)
    cpus = guests.instances * guests.vcpus
    memory_mib = guests.instances * (guests.memory_mib or 0)
    if machine.cpus == cpus and (
            machine.memory_mib >= memory_mib * (1 - KERNEL_SHARE)):
        return dict(use.parameters)
    kept = {}
    for name, value in use.parameters.items():
        if name == 'ranks':
            # What does not span the guests is run in each by itself.
            if made.variant(use.variant).spans:
                kept[name] = str(max(1, int(value) * machine.cpus // cpus))
        elif made.size[name].rule is sizing.Rule.FIXED:
            kept[name] = value
    return kept


def demands(case: study.Case) -> Iterator[str]:
    """What somebody has to set before a case is run, one sentence each."""
    told = {**case.host_settings, 'pages': case.guests.pages,
            'device': case.guests.device}
    for name, sentences in _DEMANDS.items():
        if name in told and told[name] in sentences:
            yield sentences[told[name]]


_DEMANDS: Mapping[str, Mapping[str, str]] = {
    'nested_paging': {
        'on': 'Host: nested paging on, ept=1 of kvm_intel or npt=1 of '
              'kvm_amd (the default); see /sys/module/kvm_*/parameters.',
        'off': 'Host: nested paging off, "options kvm_intel ept=0" or '
               '"options kvm_amd npt=0" in /etc/modprobe.d, then reboot; '
               'never leave it so in production.'},
    'smt': {
        'on': 'Host: SMT on, in the firmware and without nosmt on the '
              "kernel's command line.",
        'off': 'Host: SMT off, in the firmware or by nosmt on the '
               "kernel's command line, then reboot."},
    'pages': {
        'small': 'Host, for the native arm: "never" in '
                 '/sys/kernel/mm/transparent_hugepage/enabled; the guests '
                 'are started so.',
        'large': 'Host, for the native arm: "always" in '
                 '/sys/kernel/mm/transparent_hugepage/enabled; the guests '
                 'are started so.'},
    'device': {
        'emulated': 'Image: hw_vif_model=e1000.',
        'virtio': 'Image: hw_vif_model=virtio, or none.',
        'sriov': 'Networks: on a physical network with virtual functions.',
        'passthrough': 'Networks: on a physical network whose devices are '
                       'given away as a whole.'},
}


def _division(case: study.Case,
              site: Site) -> tuple[int, fractions.Fraction]:
    """Guests on each host, and the part of its CPUs that each has."""
    guests = case.guests
    if guests.partition is study.Partition.HOST:
        return 1, fractions.Fraction(1)
    if guests.partition is study.Partition.PART:
        return guests.instances // case.hosts, fractions.Fraction(
            guests.share)
    # A study of one socket stays with one; of all sockets, with all.
    alone = guests.instances == case.hosts
    return (1 if alone else site.packages,
            fractions.Fraction(1, site.packages))


def _without_siblings(cell: host_model.Cell) -> host_model.Cell:
    stay = frozenset(min(core) for core in cell.siblings)
    return dataclasses.replace(
        cell, cpus=stay, siblings=tuple(
            frozenset({min(core)}) for core in cell.siblings),
        llc=tuple(cache & stay for cache in cell.llc if cache & stay))


def _stand_in(use: study.Use, made: definition.Definition) -> study.Use:
    variants = [variant.name for variant in made.variants]
    return study.Use(
        made.name,
        use.variant if use.variant in variants else variants[0],
        {name: value for name, value in use.parameters.items()
         if name == 'ranks'})
