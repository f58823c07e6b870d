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

"""Where the arms of ``hpcvirt bench run`` are, and what each starts where.

With several guests a benchmark that knows of other machines (``{hosts}`` in
its command: MPI) is run once over all of them. Any other is started in each
guest at the same moment, sized for that guest; and natively as often, each
copy tied to the host CPUs of its guest, so that both arms do the same work.
"""

import argparse
import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import confinement
from hpcvirt.bench.execute import machine_probe
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sampler
from hpcvirt.cmd.bench import targets
from hpcvirt.model import cpuset

NATIVE = '--native'
NATIVE_CPUS = '--native-cpus'


@dataclasses.dataclass(frozen=True)
class Pair:
    """A guest and what stands for it natively.

    :ivar label: the guest's name, unique among the guests
    :ivar native: the same machine for all guests of a host, each time with a
        connection of its own; None if nothing is compared
    :ivar cpus: host CPUs that the native copy is tied to, None if unknown
    """

    label: str
    guest: targets.Where
    size: sizing.Machine
    native: targets.Where | None = None
    cpus: frozenset[int] | None = None


def find(args: argparse.Namespace) -> tuple[Pair, ...]:
    """Look up the places of a run, in the order of the guests.

    :raises InvalidInput: for a place that is none, or numbers of native
        places or CPU lists that fit no number of guests
    :raises Unreachable: if a place or the cloud does not answer
    """
    count = len(args.where)
    natives = _spread(NATIVE, args.native or [], count)
    told = _spread(NATIVE_CPUS, args.native_cpus or [], count)
    if told and not natives:
        raise exception.InvalidInput(NATIVE_CPUS, f'needs {NATIVE}')
    listed = [cpuset.parse(text, NATIVE_CPUS) for text in told]
    guests = [targets.find(text, args.os_cloud) for text in args.where]
    labels = aggregation.unique([guest.label for guest in guests])
    sizes = [machine_probe.observe(guest.place) for guest in guests]
    pairs = []
    for number, guest in enumerate(guests):
        native = None
        if natives:
            native = targets.find(natives[number], args.os_cloud)
        pairs.append(Pair(
            labels[number], guest, sizes[number], native,
            listed[number] if listed else guest.host_cpus))
    return tuple(pairs)


def parts(pairs: Sequence[Pair], made: definition.Definition,
          variant_name: str | None, settings: Mapping[str, str],
          ) -> dict[record.Arm, tuple[sampler.Part, ...]]:
    """Say what a benchmark starts in each arm.

    :raises InvalidInput: for a setting that it has not, a guest too small
    :raises Unreachable: if the places of an MPI run do not get to each other
    """
    if made.variant(variant_name).spans:
        return _spanning(pairs, made, variant_name, settings)
    tried = [run_spec.make(made, variant_name, pair.size, settings)
             for pair in pairs]
    arms = {record.Arm.GUEST: tuple(
        sampler.Part(task, _guest_seat(pair))
        for task, pair in zip(tried, pairs, strict=True))}
    natives = tuple(
        sampler.Part(task, _native_seat(pair.native, [pair]))
        for task, pair in zip(tried, pairs, strict=True)
        if pair.native is not None)
    if natives:
        arms[record.Arm.NATIVE] = natives
    return arms


def launches(word: str, pairs: Sequence[Pair], purpose: record.Purpose,
             ) -> tuple[record.Launch | None, ...]:
    """The states of the guest that each benchmark is run in.

    :param word: ``warm``, ``cold`` or ``both``
    :returns: None for a machine beside itself: no guest, no state
    :raises InvalidInput: if what would have to be relaunched cannot be
    """
    alone = purpose is record.Purpose.AA
    if word == 'warm':
        return (None,) if alone else (record.Launch.WARM,)
    if alone:
        raise exception.InvalidInput(
            f'--launch {word}', 'the native place is the guest itself, and '
            'native runs are not relaunched')
    for pair in pairs:
        if pair.guest.guest is None:
            raise exception.InvalidInput(
                f'--launch {word}', f'{pair.guest.place.name} cannot be '
                'relaunched: it is no server: of a cloud')
    if word == 'cold':
        return (record.Launch.COLD,)
    return record.Launch.WARM, record.Launch.COLD


def host(pairs: Sequence[Pair]) -> str:
    """The compute hosts that both arms run on."""
    names = [pair.guest.host or mpi_hosts.own_name((pair.native or pair.guest
                                                    ).place) for pair in pairs]
    return ', '.join(dict.fromkeys(names))


def shape(pairs: Sequence[Pair]) -> str:
    """The flavor of a single guest; instances x cores of equal ones."""
    if len(pairs) == 1:
        return pairs[0].guest.shape
    return instances(pairs)


def instances(pairs: Sequence[Pair]) -> str:
    """Instances x cores of equal guests, empty if they differ."""
    cpus = {pair.size.cpus for pair in pairs}
    return f'{len(pairs)}x{cpus.pop()}' if len(cpus) == 1 else ''


def close(pairs: Iterable[Pair]) -> None:
    """Give back all connections."""
    for pair in pairs:
        pair.guest.place.close()
        if pair.native is not None:
            pair.native.place.close()


def _spread(option: str, given: Sequence[str], count: int) -> list[str]:
    """One for each guest: what was given once holds for all."""
    if len(given) == 1:
        return list(given) * count
    if given and len(given) != count:
        raise exception.InvalidInput(
            option, f'given {len(given)} times; once, or once for each '
            f'--where ({count})')
    return list(given)


def _spanning(pairs: Sequence[Pair], made: definition.Definition,
              variant_name: str | None, settings: Mapping[str, str],
              ) -> dict[record.Arm, tuple[sampler.Part, ...]]:
    whole = mpi_hosts.whole([pair.size for pair in pairs])
    # How many ranks there are is known when it is sized.
    task = run_spec.make(made, variant_name, whole, settings)
    ranks = mpi_hosts.slots(int(task.values['ranks']),
                            [pair.size.cpus for pair in pairs])
    slots = dict(zip([pair.label for pair in pairs], ranks, strict=True))

    def part(groups: Sequence[tuple[targets.Where, Sequence[Pair]]],
             seats: Sequence[sampler.Seat]) -> sampler.Part:
        wheres = [where for where, _ in groups]
        names = [mpi_hosts.own_name(wheres[0].place),
                 *(_address(where) for where in wheres[1:])]
        mpi_hosts.reach(wheres[0].place, names[1:])
        hosts = mpi_hosts.hosts(
            names, [sum(slots[pair.label] for pair in group)
                    for _, group in groups], task.variant.environment)
        filled = run_spec.make(made, variant_name, whole, settings, hosts)
        return sampler.Part(filled, seats[0], tuple(seats[1:]))

    guests = [(pair.guest, [pair]) for pair in pairs]
    arms: dict[record.Arm, tuple[sampler.Part, ...]] = {
        record.Arm.GUEST: (part(guests, [_guest_seat(pair)
                                         for pair in pairs]),)}
    natives: dict[str, tuple[targets.Where, list[Pair]]] = {}
    for pair in pairs:
        if pair.native is not None:
            natives.setdefault(pair.native.place.name,
                               (pair.native, []))[1].append(pair)
    if natives:
        groups = list(natives.values())
        arms[record.Arm.NATIVE] = (part(groups, [
            _native_seat(where, group) for where, group in groups]),)
    return arms


def _guest_seat(pair: Pair) -> sampler.Seat:
    return sampler.Seat(pair.guest.place, confinement.directory(), pair.label,
                        facts=pair.guest.facts, guest=pair.guest.guest)


def _native_seat(native: targets.Where,
                 pairs: Sequence[Pair]) -> sampler.Seat:
    """Tied to the CPUs of all guests that it stands for, if all are known."""
    lists = [pair.cpus for pair in pairs if pair.cpus is not None]
    cpus = frozenset().union(*lists) if len(lists) == len(pairs) else None
    return sampler.Seat(native.place, confinement.directory(), pairs[0].label,
                        confinement.confinement(native.place, cpus),
                        cpus or frozenset())


def _address(where: targets.Where) -> str:
    return where.address or mpi_hosts.own_name(where.place)
