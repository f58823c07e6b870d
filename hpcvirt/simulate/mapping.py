# SPDX-License-Identifier: Apache-2.0

"""Map the jobs of a workload to requests for flavors.

A job that names a flavor of the fleet, and has its size, gets this flavor. Any
other gets the smallest flavor that is large enough: the one with the fewest
CPUs, then the least memory, then the fewest devices. A flavor with devices of
a kind that the job does not need is chosen only if no other is large enough.
"""

import collections
import dataclasses
import enum
import functools
import hashlib
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import requests
from hpcvirt.simulate import workload as workloads

#: Above these, in percent and as a share, a mapping decides what is lost.
_MUCH_MORE, _MUCH_LEFT_OUT = 50, 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """The resources of a job or of a flavor that decide the choice."""

    cpus: int
    memory_mib: int = 0
    vfs: int = 0
    gpus: int = 0

    @property
    def kinds(self) -> tuple[bool, bool]:
        """Whether there are virtual functions, and GPUs."""
        return self.vfs > 0, self.gpus > 0

    def holds(self, job: 'Need') -> bool:
        """Whether a flavor with these resources is large enough for a job."""
        return (self.cpus >= job.cpus and self.memory_mib >= job.memory_mib
                and self.vfs >= job.vfs and self.gpus >= job.gpus)

    def times(self, job: 'Need') -> int:
        """Return how many instances of a flavor a job needs."""
        return max(-(-wanted // its) for wanted, its in (
            (job.cpus, self.cpus), (job.memory_mib, self.memory_mib),
            (job.vfs, self.vfs), (job.gpus, self.gpus)) if wanted)


class FlavorChooser:
    """The flavors that can be chosen.

    :param others: further flavors, whose kinds of devices are known as well
    :param wanted: the kind of devices whose name does not tell: ``vfs`` or
        ``gpus``
    :param known: alias or resource class -> what its devices are, as the
        profile says; the name tells those of others
    :param splits: whether a job that is larger than every flavor becomes
        several instances of the largest
    :ivar kinds: alias or resource class to the field of a need that counts
        its devices
    :ivar guessed: those that are known by their names only
    """

    def __init__(self, flavors: Sequence[guests.Guest],
                 wanted: str, splits: bool,
                 others: Sequence[guests.Guest] = (),
                 known: Mapping[str, device_choice.CountedAs] | None = None,
                 ) -> None:
        self.guessed = _guess_kinds((*flavors, *others), wanted, known or {})
        self.kinds = {**self.guessed, **(known or {})}
        self._splits = splits
        self._had: set[str] = set()
        for flavor in (*flavors, *others):
            self._had.update(self.kinds[name] for name, _ in _devices(flavor))
        self._flavors = [_need(flavor, self.kinds) for flavor in flavors]
        self._sizes = sorted(
            ((size, number) for number, size in enumerate(self._flavors)),
            key=lambda size: (size[0].cpus, size[0].memory_mib,
                              size[0].vfs + size[0].gpus))
        # Many jobs have the same needs.
        self.choose = functools.cache(self._choose)

    def has(self, kind: str) -> bool:
        """Whether a flavor has devices of a kind."""
        return kind in self._had

    def spends(self, number: int, job: Need) -> bool:
        """Whether a flavor has devices of a kind that a job does not need."""
        return self._flavors[number].kinds != job.kinds

    def _choose(self, job: Need) -> tuple[int, int] | None:
        """Choose a flavor.

        :returns: its number and the number of instances, or None
        """
        able = [(size, number) for size, number in self._sizes
                if all(its or not needed for its, needed
                       in zip(size.kinds, job.kinds, strict=True))]
        alike = [(size, number) for size, number in able
                 if size.kinds == job.kinds]
        for size, number in (*alike, *able):
            if size.holds(job):
                return number, 1
        if not able or not self._splits:
            return None
        size, number = (alike or able)[-1]
        return number, size.times(job)


def _need(flavor: guests.Guest, kinds: Mapping[str, str]) -> Need:
    counts = {'vfs': 0, 'gpus': 0}
    for name, count in _devices(flavor):
        if kinds[name]:
            counts[kinds[name]] += count
    return Need(flavor.cpus, flavor.sums.memory_mib, **counts)


def _devices(flavor: guests.Guest) -> Iterable[tuple[str, int]]:
    for device in flavor.shape.devices:
        yield (device.alias or device.resource_class or device.physnet
               or ''), device.count


def _guess_kinds(flavors: Iterable[guests.Guest], wanted: str,
                 known: Container[str]) -> dict[str, str]:
    """Guess the kind of each unknown device from its name."""
    found = {}
    for flavor in flavors:
        for device, (name, _) in zip(flavor.shape.devices, _devices(flavor),
                                     strict=True):
            if name in known:
                continue
            if device.physnet is not None or 'vf' in name.lower():
                found[name] = 'vfs'
            elif 'gpu' in name.lower():
                found[name] = 'gpus'
            else:
                found[name] = wanted
    return found


class _Case(enum.StrEnum):
    """The end of a sentence on what happened to jobs."""

    NAMED = 'got the flavor of the fleet that the workload names'
    OWN = 'got the flavor that the workload describes'
    SPLIT = ('were larger than every flavor, and became several instances of '
             'the largest')
    TOO_LARGE = 'were larger than every flavor, and left out'
    LOST = 'have no flavor that is large enough, and are lost'
    NO_MEMORY = 'got a flavor by their CPUs alone, their memory being unknown'
    NO_DEVICE = 'lost devices of a kind that no flavor has'
    SPENT = 'got a flavor with devices that they do not need'
    VF = 'got a virtual function in addition'
    NO_VF = ('were too large for a virtual function, which they were to get '
             'in addition')


def map_jobs(workload: workloads.Workload,
             flavors: Sequence[flavor_model.Flavor], *, own: bool = True,
             vf_share: float = 0.0, seed: int = 0,
             others: Sequence[flavor_model.Flavor] | None = None,
             kinds: Mapping[str, device_choice.CountedAs] | None = None,
             ) -> requests.Requests:
    """Choose flavors for jobs.

    A job that is larger than every flavor becomes several instances of the
    largest if the workload splits jobs, and is left out otherwise. The rule of
    the result says what happened to how many jobs.

    :param flavors: the flavors that can be chosen
    :param own: whether a job whose flavor the workload describes gets that
        flavor, if it has NUMA cells or devices
    :param vf_share: share of the jobs that get a virtual function in addition,
        among those that request none and whose own flavor has no devices;
        the seed decides which
    :param others: if fleets are compared, the flavors of all. There is then a
        request for each job; it is lost if no flavor has room for the job, or
        the devices that some fleet has
    :param kinds: alias or resource class -> what its devices are; the name
        tells those of others
    :raises InvalidInput: if a flavor is malformed, none has virtual
        functions to add, or no job has a flavor
    """
    names = {job.flavor for job in workload.jobs}
    described = [
        flavor for flavor in _compiled(
            flavor for name, flavor in workload.flavors.items()
            if own and name in names)
        if flavor.shape.cells or flavor.shape.devices]
    compiled = [*_compiled(flavors)]
    places = {each.name: number for number, each in enumerate(compiled)}
    for each in described:
        place = places.get(each.name)
        if place is None or compiled[place] != each:
            places[each.name] = len(compiled)
            compiled.append(each)
    mapper = _Mapper(
        workload, tuple(compiled), len(flavors),
        {each.name: places[each.name] for each in described},
        vf_share, seed, None if others is None else _compiled(others),
        kinds or {})
    arrivals = tuple(mapper.arrivals())
    if not arrivals:
        raise exception.InvalidInput(
            workload.name, f'there is no flavor for any of its '
            f'{len(workload.jobs)} jobs')
    return requests.Requests(tuple(compiled), arrivals, tuple(mapper.rule()),
                             tuple(mapper.warnings()))


def _compiled(flavors: Iterable[flavor_model.Flavor],
              ) -> tuple[guests.Guest, ...]:
    return tuple(map(compiled_flavor.make, flavors))


class _Mapper:
    """Maps jobs to flavors, and counts what happens to them."""

    def __init__(self, workload: workloads.Workload,
                 flavors: tuple[guests.Guest, ...], given: int,
                 own: Mapping[str, int], vf_share: float, seed: int,
                 others: Sequence[guests.Guest] | None,
                 kinds: Mapping[str, device_choice.CountedAs]) -> None:
        self._workload = workload
        self._flavors = flavors
        self._own = own
        self._named = {flavor.flavor.name: number for number, flavor
                       in enumerate(flavors[:given])}
        self._chooser = FlavorChooser(
            flavors[:given],
            'gpus' if any(job.gpus for job in workload.jobs) else 'vfs',
            workload.splits, others or (), kinds)
        self._keeps_all = others is not None
        if vf_share and not self._chooser.has('vfs'):
            raise exception.InvalidInput(
                'flavors', 'none has a virtual function, which --vf-share '
                'needs')
        self._vf_share = vf_share
        self._seed = seed
        self._jobs: collections.Counter[_Case] = collections.Counter()
        self._work: dict[_Case, float] = collections.defaultdict(float)
        self._asked = self._got = 0.0

    def arrivals(self) -> Iterator[requests.Arrival]:
        """Yield the requests of the jobs."""
        for index, job in enumerate(self._workload.jobs):
            chosen = self._chosen(index, job)
            cpus = job.cpus * job.count * self._keeps_all
            if chosen is None:
                self._note(_Case.LOST if cpus else _Case.TOO_LARGE, job)
                if cpus:
                    yield requests.Arrival(job.time, job.duration,
                                           requests.NO_FLAVOR, 1, cpus)
                continue
            number, count = chosen
            if count > 1:
                self._note(_Case.SPLIT, job)
            count *= job.count
            self._asked += _work(job)
            self._got += self._flavors[number].cpus * count * job.duration
            yield requests.Arrival(job.time, job.duration, number, count,
                                   cpus)

    def _chosen(self, index: int,
                job: workloads.WorkloadJob) -> tuple[int, int] | None:
        need = Need(
            job.cpus, job.memory_mib,
            job.vfs if self._chooser.has('vfs') else 0,
            job.gpus if self._chooser.has('gpus') else 0)
        own = self._own.get(job.flavor)
        case = _Case.OWN
        if own is None and self._is_named(job):
            own, case = self._named[job.flavor], _Case.NAMED
        chosen = self._chooser.choose(need) if own is None else (own, 1)
        if chosen and self._gets_vf(index, job, own):
            with_vf = dataclasses.replace(need, vfs=1)
            other = self._chooser.choose(with_vf)
            self._note(_Case.VF if other else _Case.NO_VF, job)
            if other:
                own, need, chosen = None, with_vf, other
        if own is not None:
            self._note(case, job)
            return chosen
        if need.gpus != job.gpus or need.vfs < job.vfs:
            self._note(_Case.NO_DEVICE, job)
        if not job.memory_mib:
            self._note(_Case.NO_MEMORY, job)
        if chosen and self._chooser.spends(chosen[0], need):
            self._note(_Case.SPENT, job)
        return chosen

    def _is_named(self, job: workloads.WorkloadJob) -> bool:
        """Whether a job names a flavor of the fleet, and has its size."""
        number = self._named.get(job.flavor)
        if number is None:
            return False
        flavor = self._flavors[number]
        return (flavor.cpus == job.cpus and job.memory_mib
                in (0, flavor.sums.memory_mib))

    def _gets_vf(self, index: int, job: workloads.WorkloadJob,
                 own: int | None) -> bool:
        """Whether a job gets a virtual function that it does not request."""
        if not self._vf_share or job.vfs or (
                own is not None and self._flavors[own].shape.devices):
            return False
        return draw(index, self._seed) < self._vf_share

    def _note(self, case: _Case, job: workloads.WorkloadJob) -> None:
        self._jobs[case] += 1
        self._work[case] += _work(job)

    def rule(self) -> Iterator[str]:
        """Yield the rule of the choice, after :meth:`arrivals`."""
        if (self._jobs[_Case.OWN] + self._jobs[_Case.NAMED]
                < len(self._workload.jobs)):
            yield ('A job gets the smallest flavor with its CPUs, memory and '
                   'devices: the one with the fewest CPUs, then the least '
                   'memory, then the fewest devices.')
        wanted = {kind for kind in ('vfs', 'gpus')
                  if any(getattr(job, kind) for job in self._workload.jobs)}
        if self._vf_share:
            wanted.add('vfs')
        for kind, noun in (('gpus', 'GPU'), ('vfs', 'virtual function')):
            names = sorted(name for name, its in self._chooser.guessed.items()
                           if its == kind and kind in wanted)
            if len(names) == 1:
                yield f'By its name, {names[0]} is taken for {noun}s.'
            elif names:
                yield (f'By their names, {", ".join(names)} are taken for '
                       f'{noun}s.')
        total = sum(_work(job) for job in self._workload.jobs)
        for case in _Case:
            if self._jobs[case]:
                yield (f'{self._jobs[case]:,} of {len(self._workload.jobs):,}'
                       f' jobs ({100 * self._work[case] / total:.1f} % of '
                       f'the CPU-hours) {case}.')
        yield (f'The flavors have {self._more:.1f} % more CPU-hours than '
               'these jobs ask for.')

    @property
    def _more(self) -> float:
        return 100 * (self._got / self._asked - 1) if self._asked else 0.0

    def warnings(self) -> Iterator[str]:
        """Yield what makes the loss one of the mapping, in sentences."""
        if self._more > _MUCH_MORE:
            yield (f'The flavors have {self._more:.0f} % more CPU-hours than '
                   'the jobs ask for.')
        left_out = self._work[_Case.TOO_LARGE]
        if left_out > _MUCH_LEFT_OUT * (left_out + self._asked):
            yield (f'{100 * left_out / (left_out + self._asked):.1f} % of the '
                   'CPU-hours are larger than every flavor, and left out.')


def _work(job: workloads.WorkloadJob) -> float:
    return job.cpus * job.count * job.duration


def draw(index: int, seed: int) -> float:
    """Return a reproducible random number from 0 to 1."""
    digest = hashlib.blake2b(f'{seed} {index}'.encode(), digest_size=6)
    return int(digest.hexdigest(), 16) / (1 << 48)
