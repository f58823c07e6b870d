# SPDX-License-Identifier: Apache-2.0

"""Allocate PCI devices to a guest on a given set of host cells.

The rules are those of Nova's PciDeviceStats, because the claim on the
compute host applies them: requests are served in order, each from the first
pools that match it, and pools are filtered by affinity before physical
functions, vDPA devices and remotely managed devices are filtered out.

Whether a pool matches a request is a comparison of their tags
(:func:`accepts_pool`). Placement offers a guest that requests 6 of the 16
devices of a host up to 8,008 allocations. Most of them differ only in which of
several equal devices they name, and Nova's claim treats them alike
(:class:`AlikeDevices`).

The claim only searches for devices; nova-compute takes them afterwards
(:class:`ClaimAllocator`). The claim accepts an allocation of Placement even
if a part of it is not near the guest (defect L), and a physical function
together with a virtual function of the same card, although each makes the
other unusable (defect M). The pools of a card have the same address. A
physical function becomes free again when the last of its virtual functions
does. Each virtual function therefore takes it once more, and the pool of the
physical function counts what it owes.
"""

import collections
import copy
import dataclasses
import functools
import itertools
import typing
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import kept_text
from hpcvirt.fit import reasons
from hpcvirt.model import shape as shape_model

_Tags = Mapping[str, typing.Any]

#: The tags that can forbid a request to use a pool that matches it.
DECISIVE_TAGS = ('dev_type', 'remote_managed', 'live_migratable')
_TRUE = frozenset(('1', 't', 'true', 'on', 'y', 'yes'))


def accepts_pool(specs: Sequence[_Tags], pool: _Tags) -> tuple[bool, bool]:
    """Tell whether a pool matches, and whether its kind may be used.

    :param specs: alternatives in lower case; a pool matches one if it has all
        of its tags
    """
    return _matches(specs, pool), _is_eligible(specs, pool)


def _matches(specs: Sequence[_Tags], pool: _Tags) -> bool:
    for spec in specs:
        for key, wanted in spec.items():
            value = pool.get(key)
            if isinstance(value, str):
                value = value.lower()
            if value != wanted:
                break
        else:
            return True
    return False


def _is_eligible(specs: Sequence[_Tags], pool: _Tags) -> bool:
    kind = pool.get('dev_type')
    if kind in ('type-PF', 'vdpa') and not any(
            spec.get('dev_type') == kind.lower() for spec in specs):
        return False
    if _is_true(pool.get('remote_managed')) and not any(
            _is_true(spec.get('remote_managed')) for spec in specs):
        return False
    for wanted in ('true', 'false'):
        if all(spec.get('live_migratable') == wanted for spec in specs):
            return bool(pool.get('live_migratable') == wanted)
    return True


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in _TRUE


#: The most kinds of pools that a request remembers; then all are forgotten.
MAX_KINDS = 64

#: A tag of pools, which Nova does not have: the names of the aliases for which
#: Placement offers the devices of the pool, separated by commas, in lower
#: case. Placement compares the traits of a device, and the claim does not.
OFFERED = 'offered'

#: Keys of a request that Placement has already evaluated.
IGNORED_TAGS = frozenset(('resource_class', 'traits', 'rp_uuids'))
#: Tags of Nova's pools that no request names: the number of devices and their
#: place. Without them, the pools of a fleet are of few kinds.
PLACE_TAGS = frozenset(('address', 'count', 'numa_node', 'rp_uuid'))

_STRICT = (shape_model.PCIAffinity.REQUIRED, shape_model.PCIAffinity.SOCKET)
#: With these policies, all devices that are near some cell are near a cell of
#: the guest. Others accept a cell of the same socket, or any cell.
_OWN_CELLS = (shape_model.PCIAffinity.REQUIRED, shape_model.PCIAffinity.LEGACY)


class Pool(typing.NamedTuple):
    """Free devices of one kind on one cell.

    :ivar cell: NUMA cell, None if unknown
    :ivar free: number of devices
    :ivar tags: the properties with which requests are matched, such as
        vendor_id, dev_type and physical_network
    :ivar provider: UUID of the resource provider in Placement, if any
    :ivar blocked: see :class:`ClaimAllocator`
    """

    cell: int | None
    free: int
    tags: Mapping[str, typing.Any]
    provider: str | None = None
    blocked: int = 0

    @property
    def is_pci(self) -> bool:
        """Whether these are PCI devices; only Placement knows vGPUs."""
        return self.tags.keys() != {'resource_class'}


@dataclasses.dataclass(frozen=True)
class DeviceRequest:
    """A request for devices of one kind.

    :ivar specs: alternatives; a pool matches one if it has all of its tags
    :ivar count: number of devices
    :ivar affinity: how near to the guest's cells they must be
    :ivar name: its name in messages: the alias, the physical network or the
        resource class
    :ivar one_pool: whether all devices must come from one pool, as Placement
        allocates the resources of a class
    """

    specs: tuple[Mapping[str, typing.Any], ...]
    count: int = 1
    affinity: shape_model.PCIAffinity = shape_model.PCIAffinity.LEGACY
    name: str = ''
    one_pool: bool = False

    def accepts(self, pool: Pool) -> tuple[bool, bool]:
        """Tell whether a pool matches, and whether its kind may be used.

        Many hosts have equal pools, so each kind is examined once.
        """
        kind = tuple(map(pool.tags.get, self._examined))
        try:
            return self._known[kind]
        except KeyError:
            answer = accepts_pool(self.specs, pool.tags)
            # A weigher remembers requests for as long as it lives.
            if len(self._known) >= MAX_KINDS:
                self._known.clear()
            if kept_text.are_short(kind):
                self._known[kind] = answer
            return answer
        except TypeError:
            # A malformed pool has a value that cannot be hashed.
            return accepts_pool(self.specs, pool.tags)

    @functools.cached_property
    def _examined(self) -> tuple[str, ...]:
        """The tags of a pool on which the answer depends."""
        return (*dict.fromkeys((*DECISIVE_TAGS,
                                *itertools.chain(*self.specs))),)

    @functools.cached_property
    def _known(self) -> dict[tuple[typing.Any, ...], tuple[bool, bool]]:
        return {}


#: For each request the provider UUIDs of the devices that Placement has
#: allocated to it; empty if any pool may serve the request.
Providers = Sequence[Sequence[str]]


def request(wanted: shape_model.GuestDevices) -> DeviceRequest:
    """Compile a device request of a Shape; :func:`pool` makes its pools."""
    tags: dict[str, typing.Any] = {}
    if wanted.alias is not None:
        tags[alias_tag(wanted.alias)] = True
    if wanted.physnet is not None:
        tags['physical_network'] = wanted.physnet.lower()
    if wanted.resource_class is not None:
        tags['resource_class'] = wanted.resource_class.lower()
    return DeviceRequest((tags,), wanted.count,
                         wanted.affinity or shape_model.PCIAffinity.LEGACY,
                         wanted.alias or wanted.physnet
                         or wanted.resource_class
                         or '', one_pool=wanted.resource_class is not None)


def pool(cell: int | None, free: int, alias: str | None = None,
         physnet: str | None = None,
         resource_class: str | None = None) -> Pool:
    """Make a pool that serves device requests of Shapes."""
    tags: dict[str, typing.Any] = {}
    if alias is not None:
        tags[alias_tag(alias)] = True
    if physnet is not None:
        tags['physical_network'] = physnet
    if resource_class is not None:
        tags['resource_class'] = resource_class
    return Pool(cell, free, tags)


def alias_tag(alias: str) -> str:
    """Return the tag of pools that serve an alias."""
    return f'alias {alias.lower()}'


def key(request: DeviceRequest) -> Hashable:
    """Return the needs of a request, without its name."""
    return (tuple(tuple(sorted((tag, str(value))
                               for tag, value in spec.items()))
                  for spec in request.specs),
            request.count, request.affinity, request.one_pool)


def serves(pool: Pool, request: DeviceRequest) -> bool:
    """Whether the devices of a pool are of the kind that is requested."""
    return all(request.accepts(pool))


def render_offered(aliases: Iterable[str]) -> str:
    """Write the value of the tag :data:`OFFERED`."""
    return ','.join(sorted(alias.lower() for alias in aliases))


def is_offered(pool: Pool, request: DeviceRequest) -> bool:
    """Whether Placement offers the devices of a pool for a request."""
    names = pool.tags.get(OFFERED)
    if names is not None and request.name.lower() not in names.split(','):
        return False
    return serves(pool, request)


def free_devices(request: DeviceRequest, pools: Iterable[Pool]) -> list[int]:
    """List the free devices of the pools that match a request."""
    return [pool.free for pool in pools if request.accepts(pool)[0]]


class Allocator:
    """Allocates devices from the pools of one host to one guest's requests.

    Requests are matched with pools once; :meth:`allocate` can then be called
    for many sets of host cells.
    """

    def __init__(self, requests: Sequence[DeviceRequest],
                 pools: Sequence[Pool],
                 sockets: Mapping[int, int | None],
                 providers: Providers = ()) -> None:
        """Match the requests with the pools.

        :param sockets: the socket of each host cell; used only for
            requests with socket affinity
        """
        self._requests = requests
        self._pools = pools = tuple(pools)
        self._sockets = sockets
        self._matching: list[list[int]] = []
        self._usable: list[set[int]] = []
        for request in requests:
            accepted = list(map(request.accepts, pools))
            self._matching.append([
                index for index, (matches, _) in enumerate(accepted)
                if matches])
            self._usable.append({
                index for index, (matches, usable) in enumerate(accepted)
                if matches and usable})
        names = [pool.provider for pool in pools if pool.provider is not None]
        self._shares_providers = len(names) != len(set(names))
        self._allocate_from(providers)

    def following(self, providers: Providers) -> typing.Self:
        """Return an allocator that follows another allocation of Placement.

        Which pools match which requests is not examined again.
        """
        twin = copy.copy(self)
        twin._allocate_from(providers)
        return twin

    def _allocate_from(self, providers: Providers) -> None:
        """Note the allocation, and the pools that can serve each request."""
        self._providers = providers or ((),) * len(self._requests)
        self._servable = [
            usable if not own else {
                index for index in usable if 0 < own.count(
                    self._pools[index].provider or '')
                <= self._pools[index].free}
            for usable, own in zip(self._usable, self._providers, strict=True)]

    @property
    def needed(self) -> frozenset[int]:
        """The host cells without which a request gets too few devices."""
        found: set[int] = set()
        for request, servable in zip(self._requests, self._servable,
                                     strict=True):
            if request.affinity not in _OWN_CELLS:
                continue
            free: dict[int | None, int] = {}
            for index in servable:
                pool = self._pools[index]
                free[pool.cell] = free.get(pool.cell, 0) + pool.free
            spare = sum(free.values()) - request.count
            for cell, own in free.items():
                if cell is not None and own > spare:
                    found.add(cell)
        return frozenset(found)

    @property
    def deciding(self) -> frozenset[int]:
        """The host cells whose use can change the result."""
        near: set[int] = set()
        for matching in self._matching:
            for index in matching:
                cell = self._pools[index].cell
                if cell is not None:
                    near.add(cell)
        if any(request.affinity is shape_model.PCIAffinity.SOCKET
               for request in self._requests):
            sockets = {self._sockets.get(cell) for cell in near}
            near.update(cell for cell, socket in self._sockets.items()
                        if socket in sockets)
        return frozenset(near)

    def shortage(self) -> tuple[DeviceRequest, int] | None:
        """Find the first request that the host cannot serve by itself.

        :returns: the request and the number of devices that it could get
        """
        for request, usable in zip(self._requests, self._usable, strict=True):
            counts = [self._pools[index].free for index in usable]
            free = max(counts, default=0) if request.one_pool else sum(counts)
            if free < request.count:
                return request, free
        return None

    def ruled_out(self, cells: Iterable[int], most: int,
                  taken: Collection[int] = ()) -> bool:
        """Whether counting shows that no set of cells has enough devices.

        :param cells: the host cells that the guest can use
        :param most: the number of cells that it uses
        :param taken: the cells that it uses in any case
        """
        strict = [(request.count, servable) for request, servable in
                  zip(self._requests, self._servable, strict=True)
                  if request.affinity in _STRICT]
        # Sockets are given only if a request has socket affinity.
        place: Mapping[int, object] = {
            cell: ('socket', self._sockets[cell]) if self._sockets else cell
            for cell in {*self._sockets, *cells, *taken}}
        # The requests need the sum of their devices, unless Placement has
        # allocated them: the claim may then take fewer.
        if len(strict) == len(self._requests) and not any(self._providers):
            strict.append((sum(count for count, _ in strict),
                           set().union(*self._usable)))
        near = {place[cell] for cell in (*cells, *taken)}
        own = {place[cell] for cell in taken}
        for count, usable in strict:
            free: collections.Counter[object] = collections.Counter()
            for index in usable:
                cell = self._pools[index].cell
                if cell is not None and place.get(cell) in near:
                    free[place[cell]] += self._pools[index].free
            most_free = sum(free.pop(each, 0) for each in own) + sum(
                each for _, each in free.most_common(
                    max(most - len(taken), 0)))
            if most_free < count:
                return True
        return False

    def allocate(self, cells: Collection[int] | None) -> list[int] | None:
        """Serve all requests of a guest on a set of host cells.

        :param cells: None to ignore affinity, as for a guest without NUMA
            topology
        :returns: the number of devices left in each pool; None if a request
            cannot be served
        """
        left = [pool.free for pool in self._pools]
        return None if self._refused(cells, left) else left

    def refused(self) -> DeviceRequest | None:
        """Find the first request that is not served even without affinity."""
        return self._refused(None, [pool.free for pool in self._pools])

    def _refused(self, cells: Collection[int] | None,
                 left: list[int]) -> DeviceRequest | None:
        for number, request in enumerate(self._requests):
            if not self._serve(number, cells, left):
                return request
        return None

    def _serve(self, number: int, cells: Collection[int] | None,
               left: list[int]) -> bool:
        request = self._requests[number]
        # Nova drops a pool when it becomes empty.
        matching = [index for index in self._matching[number] if left[index]]
        if cells is not None:
            matching = self._near(request, matching, cells, left)
        suitable = self._servable[number]
        usable = [index for index in matching if index in suitable]
        allocated = self._providers[number]
        if allocated:
            usable = [index for index in usable if allocated.count(
                self._pools[index].provider or '') <= left[index]]
        if request.one_pool:
            usable = [index for index in usable
                      if left[index] >= request.count][:1]
        if not usable or sum(left[i] for i in usable) < request.count:
            return False
        if allocated:
            return self._take_allocated(usable, allocated, left)
        missing = request.count
        for index in usable:
            taken = min(missing, left[index])
            left[index] -= taken
            missing -= taken
            if not missing:
                break
        return True

    def _near(self, request: DeviceRequest, matching: list[int],
              cells: Collection[int], left: list[int]) -> list[int]:
        """List the pools that affinity allows, the nearest if they suffice."""
        affinity = request.affinity
        pools = self._pools
        near = [index for index in matching if pools[index].cell in cells]
        if (affinity is shape_model.PCIAffinity.REQUIRED or
                sum(left[index] for index in near) >= request.count):
            return near
        if affinity is shape_model.PCIAffinity.SOCKET:
            allowed = self._cells_of_sockets(cells)
            return [i for i in matching if pools[i].cell in allowed]
        near = [index for index in matching
                if pools[index].cell is None or pools[index].cell in cells]
        if (affinity is shape_model.PCIAffinity.LEGACY or
                sum(left[index] for index in near) >= request.count):
            return near
        return near + [i for i in matching if i not in near]

    def _cells_of_sockets(self, cells: Collection[int]) -> set[int]:
        # Nova cannot apply the policy if the socket of any cell is unknown.
        if None in self._sockets.values():
            return set()
        sockets = {self._sockets.get(cell) for cell in cells}
        return {cell for cell, socket in self._sockets.items()
                if socket in sockets}

    def _take_allocated(self, usable: list[int],
                        allocated: Sequence[str], left: list[int]) -> bool:
        if self._shares_providers:
            providers = [
                pool.provider for index, pool in enumerate(self._pools)
                if pool.provider is not None and left[index]]
            if len(providers) != len(set(providers)):
                return False
        served: set[str] = set()
        for index in usable:
            provider = self._pools[index].provider or ''
            if provider not in served:
                served.add(provider)
                left[index] -= allocated.count(provider)
        return True


class AlikeDevices:
    """Finds the kinds of the allocations to the requests of one guest.

    Two pools are alike if they are on the same cell, have the same number of
    free devices and are accepted by the same requests. If it also matters what
    the allocation leaves for other guests, their tags must be equal.

    A pool is like no other if a request without an allocation may use it,
    because such a request takes the first pools; if another pool is of the
    same card, which the devices of one pool make unusable; or if its resource
    provider has several pools.
    """

    def __init__(self, requests: Sequence[DeviceRequest],
                 pools: Sequence[Pool],
                 by_tags: bool = False) -> None:
        """Prepare to compare allocations.

        :param requests: the requests of the guest
        :param pools: the pools of the host
        :param by_tags: whether the tags of alike pools must be equal
        """
        self._by_tags = by_tags
        self._requests = requests
        self._pools = pools
        # Which requests have an allocation -> provider -> a key of its pool.
        self._keys: dict[tuple[bool, ...], dict[str, str]] = {}

    def kind(self, providers: Providers) -> Hashable:
        """Return a key: allocations with equal keys get the same answer.

        The key is made of texts and numbers in a fixed order.

        :param providers: what Placement allocated to each request
        """
        if not any(providers):
            return ()
        allocated = tuple(map(bool, providers))
        keys = self._keys.get(allocated)
        if keys is None:
            keys = self._keys[allocated] = self._find_keys(allocated)
        # For each provider, which requests get how many of its devices.
        taken: dict[str, list[int]] = {}
        for number, own in enumerate(providers):
            for provider in own:
                taken.setdefault(provider, []).append(number)
        return allocated, tuple(sorted(
            (keys.get(provider, provider), tuple(numbers))
            for provider, numbers in taken.items()))

    def _find_keys(self, allocated: Sequence[bool]) -> dict[str, str]:
        """Return the key of the pool of each provider that is like others."""
        pools = [pool for pool in self._pools if pool.provider]
        # What a compute host reports need not be hashable.
        cards = collections.Counter(repr(pool.tags.get('address'))
                                    for pool in self._pools
                                    if 'address' in pool.tags)
        names = collections.Counter(pool.provider for pool in pools)
        keys: dict[str, str] = {}
        for pool in pools:
            accepted = [request.accepts(pool) for request in self._requests]
            in_order = any(
                matches and (request.one_pool or not own)
                for (matches, _), request, own in zip(
                    accepted, self._requests, allocated, strict=True))
            if (pool.provider and not in_order and names[pool.provider] == 1
                    and cards[repr(pool.tags.get('address'))] < 2):
                keys[pool.provider] = repr((
                    pool.cell, pool.free, accepted,
                    _list_tags(pool) if self._by_tags else ''))
        return keys


def _list_tags(pool: Pool) -> str:
    """Return the tags of a pool that other guests may name, as a text."""
    return repr(sorted((tag, repr(value)) for tag, value in pool.tags.items()
                       if tag not in PLACE_TAGS))


_PF = 'type-PF'
_DEPENDENTS = {_PF: ('type-VF', 'vdpa'), 'type-VF': (_PF,), 'vdpa': (_PF,)}


class ClaimAllocator(Allocator):
    """Allocates devices, and takes them."""

    def take(self, cells: Collection[int] | None,
             ) -> list[int] | reasons.Misfit:
        """Take the devices of a guest that its claim accepts on these cells.

        :param cells: None to ignore affinity
        :returns: the number of devices that each pool loses, or why the guest
            does not get all its devices
        """
        left = [pool.free for pool in self._pools]
        lost = [0] * len(left)
        for number, request in enumerate(self._requests):
            before = tuple(left)
            served = self._serve(number, cells, left)
            taken = sum(before) - sum(left) if served else 0
            if taken < request.count:
                return reasons.Misfit(reasons.Code.CLAIM_TAKES_FEWER, {
                    'request': request.name, 'free': taken,
                    'needed': request.count,
                    'defect': reasons.Defect.FEWER_DEVICES if served
                    else reasons.Defect.DEPENDENT_DEVICES})
            for index, count in enumerate(before):
                if count == left[index]:
                    continue
                lost[index] += count - left[index]
                for other in self._dependents(index):
                    lost[other] += (left[other] if self._is_pf(index)
                                    else count - left[index])
                    left[other] = 0
        return lost

    def loss(self, cells: Collection[int]) -> reasons.Misfit | None:
        """Say why a guest would not get all devices that its claim accepts.

        :param cells: empty for a guest without NUMA topology
        """
        # The defects cannot occur for most guests.
        if all(len(allocated) < 2 for allocated in self._providers) and (
                len(self._requests) < 2 or not any(
                    map(self._is_pf, set().union(*self._usable)))):
            return None
        taken = self.take(cells or None)
        return taken if isinstance(taken, reasons.Misfit) else None

    def _is_pf(self, index: int) -> bool:
        return self._pools[index].tags.get('dev_type') == _PF

    def _dependents(self, index: int) -> list[int]:
        tags = self._pools[index].tags
        kinds = _DEPENDENTS.get(tags.get('dev_type', ''), ())
        return [other for other, pool in enumerate(self._pools)
                if kinds and pool.tags.get('dev_type') in kinds
                and pool.tags.get('address') == tags.get('address', index)]


def return_devices(pool: Pool, count: int) -> Pool:
    """Give devices back to a pool, or take them if the count is negative."""
    left = pool.free - pool.blocked + count
    return pool._replace(free=max(left, 0), blocked=max(-left, 0))
