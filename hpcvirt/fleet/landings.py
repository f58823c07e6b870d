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

"""Find where instances may move, for each kind of them once."""

import itertools
from collections.abc import Sequence

from hpcvirt.fleet import moving
from hpcvirt.fleet import state


class Landings:
    """The instances of a fleet that may move, and where they land.

    :ivar movable: host -> its instances that may move
    :ivar kinds: the instances of each kind; a kind decides where one lands
    """

    def __init__(self, hosts: Sequence[state.FleetHost], cold: bool) -> None:
        """Look at a fleet.

        :param cold: whether instances may be migrated cold
        """
        self.movable = {host.name: moving.movable(host, cold)
                        for host in hosts}
        self.kinds: list[list[state.Instance]] = []
        self._hosts = hosts
        self._kind: dict[str, int] = {}
        self._size: dict[str, int] = {}
        numbers: dict[object, int] = {}
        sizes: dict[object, int] = {}
        for instance in itertools.chain(*self.movable.values()):
            # Requests for devices cannot be hashed.
            demand: object = (id(instance.guest)
                              if instance.guest.demand.requests
                              else instance.guest.demand)
            size = self._size[instance.id] = sizes.setdefault(
                (demand, instance.guest.sums, instance.pages_kib), len(sizes))
            number = self._kind[instance.id] = numbers.setdefault(
                (size, instance.hosts, instance.group,
                 moving.only_cold(instance)), len(numbers))
            if number == len(self.kinds):
                self.kinds.append([])
            self.kinds[number].append(instance)
        self._roomy: dict[int, tuple[state.FleetHost, ...]] = {}
        self._landings: dict[int, dict[str, None]] = {}

    def knows(self, instance: state.Instance) -> bool:
        """Whether an instance may move."""
        return instance.id in self._kind

    def kind(self, instance: state.Instance) -> int:
        return self._kind[instance.id]

    def size(self, instance: state.Instance) -> int:
        """Return what decides where an instance has room."""
        return self._size[instance.id]

    def of(self, instance: state.Instance) -> dict[str, None]:
        """Find the hosts on which an instance lands as they are."""
        size, kind = self._size[instance.id], self._kind[instance.id]
        if size not in self._roomy:
            self._roomy[size] = tuple(
                host for host in self._hosts
                if moving.place(instance, host) is not None)
        if kind not in self._landings:
            self._landings[kind] = {
                host.name: None for host in self._roomy[size]
                if moving.may_join(instance, host)}
        return self._landings[kind]
