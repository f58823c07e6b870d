# SPDX-License-Identifier: Apache-2.0

"""Scale a case of a study to the hosts of a site.

The guests are those of the site's own plan for these hosts. One guest per
socket remains one per socket; four guests of 8 cores on a host of 32 become
four quarters, and one of 24 becomes three quarters. A tuned guest has the
guest cells, pinning and page size of the plan; an untuned guest has as many
CPUs and as much memory, and is not pinned. A case that cannot be scaled is
refused with a reason.
"""

import dataclasses
import fractions

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.studies import study
from hpcvirt.model import host as host_model
from hpcvirt.model import shape


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedGuest:
    """A guest of the site's plan, pinned and with NUMA cells.

    :ivar per_host: number of these guests that fit on each host
    """

    guest: shape.Shape
    per_host: int


@dataclasses.dataclass(frozen=True)
class Site:
    """The hosts of a site, which are all alike, and the plan for them.

    :ivar hosts: names of the hosts
    :ivar cpus: CPUs of each host that guests may use
    :ivar sockets: sockets of each host
    """

    hosts: tuple[str, ...]
    cpus: int
    sockets: int
    guests: tuple[PlannedGuest, ...]


@dataclasses.dataclass(frozen=True)
class ScaledCase:
    """A case as the hosts of the site run it.

    :ivar per_host: guests on each host
    :ivar vcpus: vCPUs of each guest
    :ivar memory_mib: memory of each guest
    :ivar guest: the request of each guest, None if it is not pinned
    """

    case: study.Case
    hosts: tuple[str, ...]
    per_host: int
    vcpus: int
    memory_mib: int
    guest: shape.Shape | None

    @property
    def guests(self) -> int:
        """The guests on all hosts together."""
        return self.per_host * len(self.hosts)

    @property
    def shape(self) -> str:
        """Instances x vCPUs of each, on all hosts together."""
        return f'{self.guests}x{self.vcpus}'

    def find_ranks(self, benchmark: study.StudyBenchmark) -> str:
        """Return the MPI ranks that the case sets in all guests together.

        :returns: the number, or "" if the case leaves it to the benchmark
        """
        together = sizing.Machine(self.guests * self.vcpus,
                                  self.guests * self.memory_mib)
        return scale_parameters(self.case, benchmark, together).get(
            'ranks', '')


@dataclasses.dataclass(frozen=True, slots=True)
class CaseRefusal:
    """A case that these hosts cannot run.

    :ivar reason: a sentence whose subject is the case
    """

    case: study.Case
    reason: str


def prepare_host(case: study.Case,
                 host: host_model.Host) -> host_model.Host | CaseRefusal:
    """Return the host with SMT switched as the case requires."""
    cells = sum(bool(cell.cpus) for cell in host.cells)
    if case.host_settings.get('memory') == 'uma' and cells > 1:
        return CaseRefusal(
            case, f'needs a host with uniform memory, and {host.name} has '
            f'{cells} NUMA cells; turn node interleaving on in the firmware '
            'and read the topology again')
    smt = case.host_settings.get('smt')
    if smt == 'on' and host.threads_per_core < 2:
        return CaseRefusal(case,
                           f'needs SMT, which is off on {host.name}; turn '
                           'it on and read the topology again')
    if smt == 'off':
        return dataclasses.replace(host, cells=tuple(
            _without_siblings(cell) for cell in host.cells))
    return host


def scale(case: study.Case, site: Site) -> ScaledCase | CaseRefusal:
    """Fit the guests of a case to the hosts of a site."""
    count = len(site.hosts)
    if case.hosts == 1 and count != 1:
        return CaseRefusal(case, f'runs on one host, not on {count}')
    if case.hosts > 1 and not 2 <= count <= case.hosts:
        wanted = '2' if case.hosts == 2 else f'2 to {case.hosts}'
        return CaseRefusal(case, 'spans several hosts; give the topologies of '
                           f'{wanted} hosts')
    per_host, share = _division(case, site)
    vcpus = share * site.cpus
    if vcpus.denominator > 1:
        return CaseRefusal(case,
                           f'takes {share} of a host, but {site.cpus} CPUs '
                           'cannot be divided so')
    fitting = [planned.guest for planned in site.guests
               if planned.guest.cpus == vcpus
               and planned.per_host >= per_host]
    if not fitting:
        return CaseRefusal(
            case, f'needs {per_host} guest{"s" if per_host > 1 else ""} of '
            f'{vcpus} CPUs on a host, but the plan of these hosts has no '
            'such guest, because the host cells cannot be divided so')
    guest = max(fitting, key=lambda guest: (-len(guest.cells),
                                            guest.memory_mib))
    return ScaledCase(case, site.hosts, per_host, guest.cpus,
                      guest.memory_mib,
                      guest if case.guests.tuned else None)


def _division(case: study.Case,
              site: Site) -> tuple[int, fractions.Fraction]:
    """Return the guests on each host, and the share of CPUs of each."""
    guests = case.guests
    if guests.partition is study.GuestSpan.HOST:
        return 1, fractions.Fraction(1)
    if guests.partition is study.GuestSpan.PART:
        return guests.instances // case.hosts, fractions.Fraction(
            guests.share)
    # A case with one guest per host uses one socket, any other all sockets.
    single = guests.instances == case.hosts
    return (1 if single else site.sockets,
            fractions.Fraction(1, site.sockets))


def _without_siblings(cell: host_model.Cell) -> host_model.Cell:
    first = frozenset(min(core) for core in cell.siblings)
    return dataclasses.replace(
        cell, cpus=first, siblings=tuple(
            frozenset({min(core)}) for core in cell.siblings),
        llc=tuple(cache & first for cache in cell.llc if cache & first))


#: The kernel reserves up to this share of a guest's memory, and does not
#: report it in MemTotal.
KERNEL_SHARE = 0.1


def select_benchmarks(case: study.Case,
                      stand_in: str | None) -> tuple[study.StudyBenchmark,
                                                     ...]:
    """Return the benchmarks of a case.

    :param stand_in: a free benchmark that replaces those of the case that
        allow it
    :raises InvalidInput: if no benchmark of the case allows it
    """
    if stand_in is None:
        return case.benchmarks
    definition = catalogue.get(stand_in)
    stand_ins: set[str] = set()
    for benchmark in case.benchmarks:
        stand_ins.update(benchmark.stand_ins)
    allowed = sorted(stand_ins)
    if definition.name not in allowed:
        raise exception.InvalidInput(
            stand_in, f'does not stand in for a benchmark of '
            f'{case.id}; ' + (f'choose from {", ".join(allowed)}' if allowed
                              else 'no other benchmark does'))
    selected: dict[tuple[str, str], study.StudyBenchmark] = {}
    for benchmark in case.benchmarks:
        chosen = (_replaced(benchmark, definition)
                  if definition.name in benchmark.stand_ins else benchmark)
        selected.setdefault((chosen.benchmark, chosen.variant), chosen)
    return tuple(selected.values())


def check_guest_count(case: study.Case, count: int) -> None:
    """Check that a case allows a number of guests.

    :raises InvalidInput: if it does not
    """
    guests = case.guests
    if guests.partition is study.GuestSpan.SOCKET and (
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
            case.id, f'needs {wanted} guests, not {count}')


def scale_parameters(case: study.Case, benchmark: study.StudyBenchmark,
                     machine: sizing.Machine) -> dict[str, str]:
    """Return the parameters that a case sets for the guests of a site.

    Guests of the study's size use the parameters of the study. For other
    guests, the definition computes the sizes, the ranks keep their share of
    the CPUs, and parameters that do not depend on the machine are kept.

    :param machine: all guests together
    """
    guests = case.guests
    definition = catalogue.get(benchmark.benchmark)
    cpus = guests.instances * guests.vcpus
    memory_mib = guests.instances * (guests.memory_mib or 0)
    if machine.cpus == cpus and (
            machine.memory_mib >= memory_mib * (1 - KERNEL_SHARE)):
        return dict(benchmark.parameters)
    kept = {}
    for name, value in benchmark.parameters.items():
        if name == 'ranks':
            # A variant that does not span the guests runs in each separately.
            if definition.variant(benchmark.variant).spans:
                kept[name] = str(max(1, int(value) * machine.cpus // cpus))
        elif definition.size[name].rule is sizing.SizeRule.FIXED:
            kept[name] = value
    return kept


def _replaced(benchmark: study.StudyBenchmark,
              definition: definitions.Definition) -> study.StudyBenchmark:
    variants = [variant.name for variant in definition.variants]
    return study.StudyBenchmark(
        definition.name,
        benchmark.variant if benchmark.variant in variants else variants[0],
        {name: value for name, value in benchmark.parameters.items()
         if name == 'ranks'})
