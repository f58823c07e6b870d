# SPDX-License-Identifier: Apache-2.0

"""Pair guests with native targets, and specify the jobs of both sides.

With several guests, a benchmark with ``{hosts}`` in its command (MPI) runs
once over all of them. Any other benchmark is started in each guest at the same
moment, sized for that guest. The native side starts as many copies, each
confined to the host CPUs of its guest, so that both sides do the same work.
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import target as targets

Jobs = Mapping[record.Side, tuple[run_spec.JobSpec, ...]]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A guest and the native target that it is compared with.

    :ivar guest: its label is unique among the guests
    :ivar size: of the guest
    :ivar native: None if the guest is not compared. The guests of a host
        share the machine, but each pair has its own connection.
    :ivar cpus: host CPUs that the native copy is confined to, None if unknown
    """

    guest: targets.Target
    size: sizing.Machine
    native: targets.Target | None = None
    cpus: frozenset[int] | None = None

    @property
    def host(self) -> str:
        """The compute host of both targets."""
        return self.guest.host or mpi_hosts.own_name(
            (self.native or self.guest).place)

    def close(self) -> None:
        """Close the connections."""
        self.guest.place.close()
        if self.native is not None:
            self.native.place.close()


def pair(guests: Sequence[targets.Target],
         natives: Sequence[targets.Target] = (),
         cpus: Sequence[frozenset[int]] = ()) -> tuple[Pair, ...]:
    """Pair guests with native targets, and read the size of the guests.

    :param natives: one for each guest, or empty
    :param cpus: host CPUs for each guest; empty for the CPUs that the guests
        are pinned to
    :raises Unreachable: if a guest does not answer
    """
    labels = aggregation.unique([guest.label for guest in guests])
    sizes = [mpi_hosts.probe(guest.place) for guest in guests]
    return tuple(
        Pair(dataclasses.replace(guest, label=label, cpu_count=size.cpus),
             size, natives[number] if natives else None,
             cpus[number] if cpus else guest.host_cpus)
        for number, (guest, label, size)
        in enumerate(zip(guests, labels, sizes, strict=True)))


def whole(pairs: Sequence[Pair]) -> sizing.Machine:
    """Return the size of all guests together."""
    return mpi_hosts.whole([pair.size for pair in pairs])


def instances(pairs: Sequence[Pair]) -> str:
    """Return "instances x cores" of equal guests, empty if they differ."""
    cpus = {pair.size.cpus for pair in pairs}
    return f'{len(pairs)}x{cpus.pop()}' if len(cpus) == 1 else ''


def jobs(pairs: Sequence[Pair], request: requests.RunRequest) -> Jobs:
    """Specify the jobs that each side starts together for a sample.

    :raises InvalidInput: for an unknown setting, or a guest that is too small
    :raises Unreachable: if the targets of an MPI run do not reach each other
    """
    if request.variant.spans:
        return _spanning(pairs, request)
    specs = [run_spec.make(request, pair.size) for pair in pairs]
    found = {record.Side.GUEST: tuple(
        run_spec.JobSpec(spec, pair.guest)
        for spec, pair in zip(specs, pairs, strict=True))}
    natives = tuple(
        run_spec.JobSpec(spec, _confine(pair.native, [pair]))
        for spec, pair in zip(specs, pairs, strict=True)
        if pair.native is not None)
    if natives:
        found[record.Side.NATIVE] = natives
    return found


def _spanning(pairs: Sequence[Pair], request: requests.RunRequest) -> Jobs:
    size = whole(pairs)
    # The number of ranks follows from the size of all guests together.
    values = run_spec.make(request, size).values
    ranks = dict(zip(
        [pair.guest.label for pair in pairs],
        mpi_hosts.slots(int(values['ranks']),
                        [sizing.weight(request.variant.ranks, pair.size)
                         for pair in pairs]), strict=True))

    def job(spanned: Sequence[targets.Target],
            groups: Sequence[Sequence[Pair]]) -> run_spec.JobSpec:
        first = spanned[0].place
        names = [mpi_hosts.own_name(first), *(
            target.address or mpi_hosts.own_name(target.place)
            for target in spanned[1:])]
        mpi_hosts.reach(first, names[1:])
        hosts = mpi_hosts.hosts(
            names, [sum(ranks[pair.guest.label] for pair in group)
                    for group in groups],
            request.variant.environment)
        spec = run_spec.make(
            request, dataclasses.replace(size, nodes=len(spanned)),
            (*hosts, *request.mpi_options))
        return run_spec.JobSpec(spec, spanned[0], tuple(spanned[1:]))

    found = {record.Side.GUEST: (
        job([pair.guest for pair in pairs], [[pair] for pair in pairs]),)}
    natives: dict[str, tuple[targets.Target, list[Pair]]] = {}
    for pair in pairs:
        if pair.native is not None:
            natives.setdefault(pair.native.place.name,
                               (pair.native, []))[1].append(pair)
    if natives:
        groups = [group for _, group in natives.values()]
        found[record.Side.NATIVE] = (
            job([_confine(native, group)
                 for native, group in natives.values()], groups),)
    return found


def _confine(native: targets.Target,
             pairs: Sequence[Pair]) -> targets.Target:
    """Confine native jobs to the CPUs of their guests, if all are known."""
    known = [pair.cpus for pair in pairs if pair.cpus is not None]
    cpus = frozenset().union(*known) if len(known) == len(pairs) else None
    return targets.Target(
        native.place, pairs[0].guest.label, native.address,
        prefix=cpu_affinity.confine(native.place, cpus),
        cpus=cpus or frozenset(), cpu_count=len(cpus) if cpus else None,
        directory=native.directory, named=native.named)
