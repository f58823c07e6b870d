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

"""Whether PCI devices can be had beside a given set of host cells.

The rules are those of Nova's PciDeviceStats: requests are served in order,
each from the first pools that match it, and affinity is judged before
physical functions, vDPA and remotely managed devices are left out. The
claim on the compute host goes by them, so the engine does.
"""

import collections
import dataclasses
import typing
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.model import shape as shape_model

#: Keys of a request that Placement has judged already.
IGNORED_TAGS = frozenset(('resource_class', 'traits', 'rp_uuids'))

_TRUE = frozenset(('1', 't', 'true', 'on', 'y', 'yes'))


class Pool(typing.NamedTuple):
    """Free devices of one kind in one place.

    :ivar cell: NUMA cell, None if the machine does not say
    :ivar free: number of devices
    :ivar tags: what requests match: vendor_id, dev_type, physical_network...
    :ivar provider: UUID of the resource provider in Placement, if any
    """

    cell: int | None
    free: int
    tags: Mapping[str, typing.Any]
    provider: str | None = None


@dataclasses.dataclass(frozen=True)
class Request:
    """A request for devices of one kind.

    :ivar specs: alternatives; a pool matches one if it has all its tags
    :ivar count: number of devices
    :ivar affinity: which cells they may be on
    :ivar name: how a person knows it: an alias, or a port
    """

    specs: tuple[Mapping[str, typing.Any], ...]
    count: int = 1
    affinity: shape_model.PCIAffinity = shape_model.PCIAffinity.LEGACY
    name: str = ''


#: Per request, for each device that Placement has allocated the UUID of its
#: provider; empty if any pool may serve the request.
Providers = Sequence[Sequence[str]]


def request(wanted: shape_model.DeviceRequest) -> Request:
    """Compile a request of a Shape, to be met by :func:`pool`."""
    tags: dict[str, typing.Any] = {}
    if wanted.alias is not None:
        tags['alias'] = wanted.alias.lower()
    if wanted.physnet is not None:
        tags['physical_network'] = wanted.physnet.lower()
    return Request((tags,), wanted.count,
                   wanted.affinity or shape_model.PCIAffinity.LEGACY,
                   wanted.alias or wanted.physnet or '')


def pool(cell: int | None, free: int, alias: str | None = None,
         physnet: str | None = None) -> Pool:
    """Make a pool that serves requests of a Shape."""
    tags: dict[str, typing.Any] = {}
    if alias is not None:
        tags['alias'] = alias
    if physnet is not None:
        tags['physical_network'] = physnet
    return Pool(cell, free, tags)


class Offer:
    """The pools of one host as one guest's requests see them.

    Matching is done once; :meth:`take` is then asked for one set of host
    cells after the other.
    """

    def __init__(self, requests: Sequence[Request], pools: Sequence[Pool],
                 packages: Mapping[int, int | None],
                 providers: Providers = ()) -> None:
        """Match the requests.

        :param packages: the package of each host cell; asked only for
            requests with socket affinity
        """
        self._requests = requests
        self._pools = pools = tuple(pools)
        self._packages = packages
        self._providers = providers or ((),) * len(requests)
        self._matching = [
            [index for index, pool in enumerate(pools)
             if _matches(request, pool)] for request in requests]
        self._usable = [
            {index for index in matching
             if _asked_for(request, pools[index])}
            for request, matching in zip(requests, self._matching,
                                         strict=True)]

    @property
    def deciding(self) -> frozenset[int]:
        """The cells whose presence can change the answer."""
        cells = {self._pools[index].cell
                 for matching in self._matching for index in matching}
        near = {cell for cell in cells if cell is not None}
        if any(request.affinity is shape_model.PCIAffinity.SOCKET
               for request in self._requests):
            packages = {self._packages.get(cell) for cell in near}
            near.update(cell for cell, package in self._packages.items()
                        if package in packages)
        return frozenset(near)

    def shortage(self) -> tuple[Request, int] | None:
        """The first request that the whole host cannot serve alone.

        :returns: the request and the number of devices that it could have
        """
        for request, usable in zip(self._requests, self._usable,
                                   strict=True):
            free = sum(self._pools[index].free for index in usable)
            if free < request.count:
                return request, free
        return None

    def out_of_reach(self, cells: Iterable[int], most: int) -> bool:
        """Whether counting tells that no such set of cells will do.

        :param cells: those that the guest may use
        :param most: how many of them it uses
        """
        strict = [(request.count, usable) for request, usable in
                  zip(self._requests, self._usable, strict=True)
                  if request.affinity is shape_model.PCIAffinity.REQUIRED]
        # Of devices that Placement has allocated Nova may take fewer than
        # asked for; all others add up.
        if len(strict) == len(self._requests) and not any(self._providers):
            strict.append((sum(count for count, _ in strict),
                           set().union(*self._usable)))
        near = frozenset(cells)
        return any(self._most_free(usable, near, most) < count
                   for count, usable in strict)

    def _most_free(self, usable: Iterable[int], cells: Collection[int],
                   most: int) -> int:
        """The devices in those cells that have most of them."""
        free: collections.Counter[int | None] = collections.Counter()
        for index in usable:
            if self._pools[index].cell in cells:
                free[self._pools[index].cell] += self._pools[index].free
        return sum(count for _, count in free.most_common(most))

    def take(self, cells: Collection[int]) -> list[int] | None:
        """Serve all requests for a guest on a set of host cells.

        :returns: per pool the devices left, None if a request fails
        """
        left = [pool.free for pool in self._pools]
        gone: set[int] = set()
        for number in range(len(self._requests)):
            if not self._serve(number, cells, left, gone):
                return None
        return left

    def _serve(self, number: int, cells: Collection[int], left: list[int],
               gone: set[int]) -> bool:
        request = self._requests[number]
        matching = self._matching[number]
        if gone:
            matching = [index for index in matching if index not in gone]
        allocated = collections.Counter(self._providers[number])
        usable = [index for index in self._near(request, matching, cells, left)
                  if index in self._usable[number] and
                  (not allocated or self._allocated(index, allocated, left))]
        if not usable or sum(left[i] for i in usable) < request.count:
            return False
        if allocated:
            return self._take_allocated(usable, allocated, left, gone)
        wanted = request.count
        for index in usable:
            taken = min(wanted, left[index])
            left[index] -= taken
            wanted -= taken
            if not left[index]:
                gone.add(index)
            if not wanted:
                break
        return True

    def _near(self, request: Request, matching: list[int],
              cells: Collection[int], left: list[int]) -> list[int]:
        """The pools that affinity allows, the best ones if they suffice."""
        affinity = request.affinity
        pools = self._pools
        near = [index for index in matching if pools[index].cell in cells]
        if (affinity is shape_model.PCIAffinity.REQUIRED or
                sum(left[index] for index in near) >= request.count):
            return near
        if affinity is shape_model.PCIAffinity.SOCKET:
            allowed = self._cells_of_packages(cells)
            return [i for i in matching if pools[i].cell in allowed]
        near = [index for index in matching
                if pools[index].cell is None or pools[index].cell in cells]
        if (affinity is shape_model.PCIAffinity.LEGACY or
                sum(left[index] for index in near) >= request.count):
            return near
        return near + [i for i in matching if i not in near]

    def _cells_of_packages(self, cells: Collection[int]) -> set[int]:
        # One cell of unknown package and Nova does without the policy.
        if None in self._packages.values():
            return set()
        packages = {self._packages.get(cell) for cell in cells}
        return {cell for cell, package in self._packages.items()
                if package in packages}

    def _allocated(self, index: int, allocated: Mapping[str, int],
                   left: list[int]) -> bool:
        provider = self._pools[index].provider
        return (provider is not None and provider in allocated and
                left[index] >= allocated[provider])

    def _take_allocated(self, usable: list[int],
                        allocated: collections.Counter[str],
                        left: list[int], gone: set[int]) -> bool:
        providers = [pool.provider for index, pool in enumerate(self._pools)
                     if pool.provider is not None and index not in gone]
        if len(providers) != len(set(providers)):
            return False
        for index in usable:
            provider = self._pools[index].provider
            if provider is not None:
                left[index] -= allocated.pop(provider, 0)
            if not left[index]:
                gone.add(index)
        return True


def _matches(request: Request, pool: Pool) -> bool:
    """Some alternative of the request has its tags in the pool."""
    for spec in request.specs:
        for key, wanted in spec.items():
            value = pool.tags.get(key)
            if isinstance(value, str):
                value = value.lower()
            if value != wanted:
                break
        else:
            return True
    return False


def _asked_for(request: Request, pool: Pool) -> bool:
    """Leave out the special kinds of device unless they are asked for."""
    kind = pool.tags.get('dev_type')
    if kind in ('type-PF', 'vdpa') and not any(
            spec.get('dev_type') == kind.lower() for spec in request.specs):
        return False
    if _is_true(pool.tags.get('remote_managed')) and not any(
            _is_true(spec.get('remote_managed')) for spec in request.specs):
        return False
    for wanted in ('true', 'false'):
        if all(spec.get('live_migratable') == wanted
               for spec in request.specs):
            return pool.tags.get('live_migratable') == wanted
    return True


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in _TRUE
