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

"""Choose the smallest flavor with what a job needs.

That is the flavor with the fewest CPUs, then the least memory, then the
fewest devices. A flavor with devices of a kind that the job does not need is
chosen only if no other is large enough.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.simulate import requests


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """What counts for the choice, of a job or of a flavor."""

    cpus: int
    memory_mib: int = 0
    vfs: int = 0
    gpus: int = 0

    @property
    def kinds(self) -> tuple[bool, bool]:
        """The kinds of its devices."""
        return self.vfs > 0, self.gpus > 0

    def holds(self, job: 'Need') -> bool:
        """Whether a flavor has what a job needs."""
        return (self.cpus >= job.cpus and self.memory_mib >= job.memory_mib
                and self.vfs >= job.vfs and self.gpus >= job.gpus)

    def times(self, job: 'Need') -> int:
        """How many of a flavor have together what a job needs."""
        return max(-(-wanted // its) for wanted, its in (
            (job.cpus, self.cpus), (job.memory_mib, self.memory_mib),
            (job.vfs, self.vfs), (job.gpus, self.gpus)) if wanted)


class Choice:
    """The flavors that can be chosen.

    :param splits: whether a job that is larger than every flavor becomes
        several instances of the largest
    :ivar kinds: alias or resource class -> the field of a need that counts
        its devices
    """

    def __init__(self, flavors: Sequence[requests.Flavor], wanted: str,
                 splits: bool) -> None:
        self.kinds = _kinds(flavors, wanted)
        self._splits = splits
        self._flavors = [_need(flavor, self.kinds) for flavor in flavors]
        self._sizes = sorted(
            ((size, number) for number, size in enumerate(self._flavors)),
            key=lambda size: (size[0].cpus, size[0].memory_mib,
                              size[0].vfs + size[0].gpus))
        self._known: dict[Need, tuple[int, int] | None] = {}

    def has(self, kind: str) -> bool:
        """Whether a flavor has devices of a kind."""
        return kind in self.kinds.values()

    def spends(self, number: int, job: Need) -> bool:
        """Whether a flavor has devices of a kind that a job does not need."""
        return self._flavors[number].kinds != job.kinds

    def __call__(self, job: Need) -> tuple[int, int] | None:
        """Choose a flavor.

        :returns: its number and how many instances of it, or None
        """
        if job not in self._known:
            self._known[job] = self._choose(job)
        return self._known[job]

    def _choose(self, job: Need) -> tuple[int, int] | None:
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


def _need(flavor: requests.Flavor, kinds: Mapping[str, str]) -> Need:
    counts = {'vfs': 0, 'gpus': 0}
    for name, count in _devices(flavor):
        counts[kinds[name]] += count
    return Need(flavor.cpus, flavor.flavor.ram_mib, **counts)


def _devices(flavor: requests.Flavor) -> Iterable[tuple[str, int]]:
    for device in flavor.guest.shape.devices:
        yield device.alias or device.resource_class or '', device.count


def _kinds(flavors: Iterable[requests.Flavor],
           wanted: str) -> dict[str, str]:
    """Tell the kind of each alias and resource class by its name.

    A flavor does not say what its devices are.

    :param wanted: the kind of devices whose name does not tell
    """
    names = {name for flavor in flavors for name, _ in _devices(flavor)}
    return {name: 'gpus' if 'gpu' in name.lower()
            else 'vfs' if 'vf' in name.lower() else wanted
            for name in sorted(names)}
