# SPDX-License-Identifier: Apache-2.0

"""Random cases for the fit engine: a host in use, and a guest.

A :class:`Case` is plain data. The oracle answers it from first principles;
the engine gets it as a Demand and a Supply, and Nova as its own objects.
"""

import dataclasses
import uuid

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape

PAGE_KIB = 4
HUGE_KIB = 2048
GIANT_KIB = 1 << 20

#: The resource providers that Neutron's SR-IOV agent makes for interfaces of
#: the host: ``resource_provider_uuid5_namespace`` of its mechanism driver.
PROVIDERS = {
    name: str(uuid.uuid5(uuid.UUID('87f1895c-73bb-11e8-9008-c4d987b2a692'),
                         f'host:{name}'))
    for name in ('ens0', 'ens1', 'ens2', 'ens3')}


@dataclasses.dataclass(frozen=True)
class Pages:
    size_kib: int
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def free(self):
        return self.total - self.used - self.reserved


@dataclasses.dataclass(frozen=True)
class HostCell:
    id: int
    socket: int | None
    dedicated: frozenset
    shared: frozenset
    pinned: frozenset
    siblings: tuple
    cpu_usage: int
    memory_mib: int
    memory_used_mib: int
    pages: tuple
    physnets: frozenset = frozenset()
    tunneled: bool = False

    @property
    def free(self):
        return self.dedicated - self.pinned


@dataclasses.dataclass(frozen=True)
class GuestCell:
    pcpus: int
    vcpus: int
    memory_mib: int


@dataclasses.dataclass(frozen=True)
class Pool:
    cell: int | None
    count: int
    tags: dict
    provider: str | None = None


@dataclasses.dataclass(frozen=True)
class Request:
    """A PCI request: for an alias if it has one, else for a Neutron port."""

    spec: dict
    count: int
    affinity: str | None
    alias: str | None
    id: str


@dataclasses.dataclass(frozen=True)
class Case:
    host: tuple
    guest: tuple
    policy: str | None
    threads: str | None = None
    isolated_emulator: bool = False
    page_kib: int | None = None
    pools: tuple | None = ()
    requests: tuple = ()
    mappings: tuple = ({},)
    physnets: frozenset = frozenset()
    tunneled: bool = False
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0
    packing: bool = False
    spares_devices: bool = True

    @property
    def equal_cells(self):
        return len(set(self.guest)) == 1 and (
            not self.isolated_emulator or len(self.guest) == 1)


def a_case(dice, most_cells=5):
    """Create a random case; a quarter of them fit."""
    if dice.random() < 0.1:
        return a_case_with_distant_devices(dice)
    guest_cells = dice.choice((1, 1, 2, 2, 2, 3, 3, 4))
    host_cells = min(guest_cells + dice.choice((0, 0, 0, 1, 1, 1, 2, 2)),
                     most_cells) - (dice.random() < 0.03) or 1
    policy = dice.choice(('dedicated', 'dedicated', 'dedicated', 'mixed',
                          'mixed', 'shared', None))
    pinned = policy in ('dedicated', 'mixed')
    requests = some_requests(dice)
    pools, mappings = some_pools(dice, host_cells, requests)
    networks = dice.random() < 0.3
    host = a_host(dice, host_cells, policy)
    sizes = [pages.size_kib for cell in host for pages in cell.pages]
    return Case(
        host=host,
        guest=a_guest(dice, guest_cells, policy),
        policy=policy,
        threads=dice.choice((None, 'prefer', 'require', 'isolate'))
        if pinned else None,
        isolated_emulator=pinned and dice.random() < 0.2,
        page_kib=dice.choice((None, None, None, HUGE_KIB, -1, -2, -3,
                              *[dice.choice(sizes or [None])] * 5)),
        pools=pools, requests=requests, mappings=mappings,
        physnets=frozenset(dice.sample('ab', dice.randint(0, 2)))
        if networks else frozenset(),
        tunneled=networks and dice.random() < 0.4,
        cpu_ratio=dice.choice((1.0, 2.0, 2.0, 1.5, 4.0, 4.0, 0.5)),
        ram_ratio=dice.choice((1.0, 1.5, 2.0, 0.9)),
        packing=dice.random() < 0.3,
        spares_devices=dice.random() < 0.7)


def a_plain_case(dice):
    """Create a guest of the usual kind: equal cells, dedicated CPUs, pages.

    Half of them have devices, which Placement does not know.
    """
    if dice.random() < 0.25:
        return a_case_with_distant_devices(dice)
    case = a_case(dice)
    cell = GuestCell(dice.choice((1, 2, 3)), 0, dice.choice((256, 512)))
    requests = tuple(
        dataclasses.replace(request, affinity=dice.choice(
            (None, 'legacy', 'preferred', 'required')))
        for request in case.requests if dice.random() < 0.5)
    return dataclasses.replace(
        case, guest=(cell,) * len(case.guest), policy='dedicated',
        host=a_host(dice, len(case.host), 'dedicated'),
        threads=dice.choice((None, 'prefer')), page_kib=HUGE_KIB,
        isolated_emulator=False, physnets=frozenset(), tunneled=False,
        requests=requests, mappings=({'': ['root']},) * dice.randint(1, 2))


def a_case_with_devices(dice):
    """Create a guest with several devices of several kinds.

    The host has network cards, which Placement does not know but for the
    bandwidth of their interfaces, and GPUs or VFs, which it may know. The
    guest may request a card and its VFs, or more than one device at once.
    """
    case = (a_case(dice) if dice.random() < 0.3 else
            a_case_with_distant_devices(dice))
    cells = [*(cell.id for cell in case.host), *[None] * (dice.random() < .1)]
    tracked = dice.random() < 0.7
    pools = [pool for number in range(dice.choice((0, 1, 2, 3, 3)))
             for pool in a_card(dice, number, dice.choice(cells))]
    most = dice.choice((1, 4, 4))
    pools += [
        Pool(dice.choice(cells), dice.randint(most - 1 or 1, most),
             {'vendor_id': '8086', 'dev_type': 'type-PCI',
              'product_id': dice.choice(('1515', '1515', '1515', '1528')),
              'remote_managed': 'false', 'address': f'0000:8{number}:00.0'},
             an_id(dice) if tracked else None)
        for number in range(dice.choice((0, 2, 3, 4, 6)))]
    pools.sort(key=lambda pool: len(pool.tags) + (pool.provider is not None))
    requests = tuple(a_device_request(dice) for _ in range(
        dice.choice((1, 1, 1, 2, 2, 3))))
    case = dataclasses.replace(case, pools=tuple(pools), requests=requests)
    # Placement allocates the bandwidth of a port in all candidates or in none.
    ports = [request.id for request in requests
             if request.alias is None and dice.random() < 0.3]
    mappings = []
    for _ in range(dice.randint(1, 4)):
        mapping = (an_allocation(dice, pools, requests) if tracked
                   else {'': ['root']})
        mappings.append(with_bandwidth(dice, ports, mapping))
    case = dataclasses.replace(case, mappings=tuple(mappings), guest=tuple(
        GuestCell(min(cell.pcpus, 2), min(cell.vcpus, 1), 256)
        for cell in case.guest))
    return without_numa(case) if dice.random() < 0.1 else case


def an_id(dice):
    return str(uuid.UUID(int=dice.getrandbits(128)))


def a_card(dice, number, cell):
    """Create the pools of a card: its PF, if it is free, and its VFs."""
    tags = {'vendor_id': '15b3', 'remote_managed': 'false',
            'address': f'0000:1{number}:00.0',
            'physical_network': dice.choice(('p1', 'p1', 'p1', 'p2'))}
    count = dice.choice((0, 1, 2, 3, 4, 4))
    if dice.random() < 0.6:
        yield Pool(cell, 1, {**tags, 'dev_type': 'type-PF',
                             'product_id': '101d'})
    kind = dice.choice(('type-VF', 'type-VF', 'type-VF', 'vdpa'))
    for network in sorted({tags['physical_network'],
                           dice.choice(('p1', 'p2'))}):
        if count:
            yield Pool(cell, count, {
                **tags, 'dev_type': kind, 'product_id': '101e',
                'physical_network': network,
                'parent_ifname': f'ens{number}'})


def a_device_request(dice):
    """Request 1 to 4 devices by an alias, or one by a port."""
    affinity = dice.choice((None, 'legacy', 'preferred', 'preferred',
                            'required', 'socket'))
    if dice.random() < 0.4:
        spec = {'physical_network': dice.choice(('p1', 'p1', 'p1', 'p2')),
                'remote_managed': 'False'}
        kind = dice.choice((None, None, None, 'type-PF', 'type-PF', 'vdpa'))
        if kind:
            spec['dev_type'] = kind
        return Request(spec, 1, affinity, None, an_id(dice))
    spec = dice.choice((
        {'vendor_id': '8086', 'product_id': '1515', 'dev_type': 'type-PCI'},
        {'vendor_id': '8086', 'product_id': '1515', 'dev_type': 'type-PCI'},
        {'vendor_id': '8086', 'product_id': '1515', 'dev_type': 'type-PCI'},
        {'vendor_id': '8086', 'product_id': '1528', 'dev_type': 'type-PCI'},
        {'vendor_id': '15b3', 'product_id': '101d', 'dev_type': 'type-PF'},
        {'vendor_id': '15b3', 'product_id': '101e', 'dev_type': 'type-VF'}))
    return Request(dict(spec), dice.choice((1, 2, 2, 3, 4)), affinity,
                   f"{spec['product_id']}", an_id(dice))


def an_allocation(dice, pools, requests):
    """Allocate devices as Placement does: any that are free and match."""
    mapping = {'': ['root']}
    free = {pool.provider: pool.count for pool in pools if pool.provider}
    for request in requests:
        for number in range(request.count):
            alike = [pool.provider for pool in pools if request.alias and
                     free.get(pool.provider) and
                     pool.tags['product_id'] == request.spec['product_id']]
            if alike:
                chosen = dice.choice(alike[:2])
                free[chosen] -= 1
                mapping[f'{request.id}-{number}'] = [chosen]
    return mapping


def with_bandwidth(dice, ports, mapping):
    """Add the bandwidth of ports, perhaps on interfaces without free VFs."""
    return {**mapping, **{port: [dice.choice(list(PROVIDERS.values()))]
                          for port in ports}}


def interface_of(provider):
    """Name the interface of a resource provider."""
    return next(name for name, known in PROVIDERS.items() if known == provider)


def without_numa(case):
    """The same devices and host, and a guest without NUMA topology."""
    return dataclasses.replace(
        case, guest=(), policy=None, threads=None, isolated_emulator=False,
        page_kib=None, physnets=frozenset(), tunneled=False)


def on_another_host(dice, case):
    """Create a random case with the same guest on another host."""
    host = a_host(dice, len(case.host), case.policy)
    pools, mappings = some_pools(dice, len(host), case.requests)
    return dataclasses.replace(
        case, host=host, pools=pools, mappings=mappings,
        cpu_ratio=dice.choice((case.cpu_ratio, 2.0)),
        ram_ratio=dice.choice((case.ram_ratio, 1.5)))


def a_case_with_distant_devices(dice):
    """Create a guest with equal cells and devices on several host cells.

    Because of other devices Nova does not try those cells first.
    """
    cells = dice.choice((3, 4, 5))
    guest = dice.choice((2, 2, 3))
    homes = dice.sample(range(cells), min(guest, dice.choice((1, 2, 2, 3))))
    size = dice.choice((1, 2, 3, 4))
    host = tuple(
        HostCell(
            id=cell, socket=cell // 2, shared=frozenset(),
            dedicated=frozenset(range(cell * 8, cell * 8 + 8)),
            pinned=frozenset(range(cell * 8, cell * 8 + dice.choice(
                (0, 0, 1, 2, 4, 6)))),
            siblings=tuple(frozenset({cpu})
                           for cpu in range(cell * 8, cell * 8 + 8)),
            cpu_usage=0, memory_mib=8192,
            memory_used_mib=dice.choice((0, 2048, 4096)),
            pages=(Pages(HUGE_KIB, 4096),))
        for cell in range(cells))
    kind = {'vendor_id': '8086', 'remote_managed': 'false',
            'dev_type': 'type-PCI'}
    pools = [Pool(home, 1, {**kind, 'product_id': f'{number:04}'})
             for number, home in enumerate(homes)]
    pools += [Pool(cell, dice.randint(0, 8), {**kind, 'product_id': 'ffff'})
              for cell in range(cells)]
    requests = tuple(
        Request({'product_id': f'{number:04}'}, 1, 'required', 'gpu',
                str(uuid.UUID(int=dice.getrandbits(128))))
        for number in range(len(homes)))
    return Case(host=host, guest=(GuestCell(size, 0, 1024),) * guest,
                policy='dedicated', page_kib=HUGE_KIB, pools=tuple(pools),
                requests=requests, mappings=({'': ['root']},),
                packing=dice.random() < 0.3)


def a_guest(dice, count, policy):
    """Create guest cells, equal ones in half of the cases."""
    def cell():
        pcpus = dice.choice((1, 1, 2, 2, 3, 4))
        vcpus = dice.choice((0, 1, 1, 2))
        memory_mib = dice.choice((0, 256, 512, 512, 1024, 1024, 1500))
        if policy == 'dedicated':
            return GuestCell(pcpus, 0, memory_mib)
        if policy == 'mixed':
            if dice.random() < 0.1:
                return GuestCell(0, dice.choice((0, 1, 2, 2)), memory_mib)
            return GuestCell(pcpus, vcpus, memory_mib)
        return GuestCell(0, pcpus, memory_mib)
    if dice.random() < 0.5:
        return (cell(),) * count
    return tuple(cell() for _ in range(count))


def a_host(dice, count, policy):
    """Create host cells in use; some hosts are irregular."""
    threads = dice.choice((1, 2, 2, 2, 4))
    cores = {1: dice.choice((4, 6, 8)), 2: dice.choice((2, 3, 4)), 4: 2}[
        threads]
    legacy = dice.random() < 0.3
    sizes = dice.choice(((), (PAGE_KIB,), (PAGE_KIB, HUGE_KIB),
                         (PAGE_KIB, HUGE_KIB), (PAGE_KIB, HUGE_KIB, GIANT_KIB),
                         (PAGE_KIB, HUGE_KIB, GIANT_KIB),
                         (PAGE_KIB, HUGE_KIB, GIANT_KIB)))
    sockets = dice.choice((1, 2, count))
    ids = list(range(count))
    if dice.random() < 0.1:
        ids = sorted(dice.sample(range(9), count))
    affine = dice.random() < 0.5
    busy = dice.choice((0.0, 0.2, 0.4, 0.6, 1.0))
    split = threads * (dice.choice((0, 0, 1)) if policy == 'dedicated'
                       else dice.choice((0, 1, cores // 2, cores - 1)))
    empty_cells = 0.2 if dice.random() < 0.1 else 0
    cells = []
    for place, number in enumerate(ids):
        siblings = [frozenset(range(start, start + threads))
                    for start in range(number * 16,
                                       number * 16 + cores * threads, threads)]
        if dice.random() < 0.15:
            # An offline thread, or a core kept for the host.
            odd = dice.randrange(cores)
            siblings[odd] = frozenset(sorted(siblings[odd])[1:])
        siblings = [core for core in siblings if core]
        cpus = frozenset().union(*siblings)
        if dice.random() < empty_cells:
            siblings, cpus = [], frozenset()
        shared = frozenset(sorted(cpus)[:split])
        dedicated = cpus - shared
        if legacy:
            shared = dedicated = cpus
        memory_mib = (dice.choice((4096, 8192))
                      if dice.random() > empty_cells else 0)
        cells.append(HostCell(
            id=number,
            socket=None if dice.random() < 0.03
            else place * sockets // count,
            dedicated=dedicated, shared=shared,
            pinned=frozenset(cpu for cpu in dedicated
                             if dice.random() < busy * dice.random()),
            siblings=tuple(siblings),
            cpu_usage=dice.choice((0, 0, 0, 1, 3)),
            memory_mib=memory_mib,
            memory_used_mib=dice.choice((0, 0, 512, 1500)),
            pages=tuple(some_pages(dice, size, memory_mib)
                        for size in sizes),
            physnets=frozenset(dice.sample('ab', dice.choice((0, 0, 1))))
            if affine else frozenset(),
            tunneled=affine and dice.random() < 0.2))
    if len(sizes) > 1 and dice.random() < 0.1:
        # One cell has no giant pages at all.
        cells[0] = dataclasses.replace(cells[0], pages=cells[0].pages[:-1])
    return tuple(cells)


def some_pages(dice, size_kib, memory_mib):
    room = memory_mib * 1024 // size_kib
    total = dice.choice((room, room // 2, room // 2, room // 4))
    return Pages(size_kib, total,
                 used=int(total * dice.choice((0, 0, 0, 0.3, 0.7))),
                 reserved=int(total * dice.choice((0, 0, 0, 0.2))))


def some_requests(dice):
    requests = []
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2, 2, 3))):
        alias = dice.choice(('gpu', 'gpu', 'nic', None, None))
        if alias:
            spec = {'vendor_id': '8086', 'product_id': {
                'gpu': '1515', 'nic': '1528'}[alias]}
            kind = dice.choice((None, None, 'type-VF', 'type-VF', 'type-PF'))
            if kind:
                spec['dev_type'] = kind
        else:
            spec = {'physical_network': dice.choice(('p1', 'p1', 'P2')),
                    'remote_managed': dice.choice(('False',) * 7 + ('True',))}
            if dice.random() < 0.2:
                spec['dev_type'] = dice.choice(('type-VF', 'type-PF', 'vdpa'))
        if dice.random() < 0.05:
            spec['live_migratable'] = dice.choice(('true', 'false'))
        requests.append(Request(
            spec=spec, count=dice.choice((1, 1, 1, 1, 2)),
            affinity=dice.choice((None, 'legacy', 'preferred', 'required',
                                  'required', 'socket', 'socket')),
            alias=alias, id=str(uuid.UUID(int=dice.getrandbits(128)))))
    return tuple(requests)


def some_pools(dice, cells, requests):
    """Create pools, and the mappings of some allocation candidates."""
    if dice.random() < 0.03:
        return None, ({'': ['root']},)
    tracked = dice.random() < 0.4
    places = [*range(cells), None] if dice.random() < 0.3 else range(cells)
    pools = []
    for number in range(dice.choice((1, 2, 3, 5, 8)) if requests
                        else dice.choice((0, 2))):
        tags = {'vendor_id': '8086',
                'product_id': dice.choice(('1515', '1515', '1528')),
                'dev_type': dice.choice(('type-VF',) * 6 +
                                        ('type-PF', 'type-PCI', 'vdpa')),
                'remote_managed': dice.choice(('false',) * 6 + ('true',)),
                'address': f'0000:{number + 16:02x}:00.0'}
        if dice.random() < 0.7:
            tags['physical_network'] = dice.choice(('p1', 'p1', 'p2', 'P2'))
        if dice.random() < 0.1:
            tags['live_migratable'] = dice.choice(('true', 'false'))
        provider = None
        if tracked and ('physical_network' not in tags or dice.random() < 0.8):
            provider = str(uuid.UUID(int=dice.getrandbits(128)))
        pools.append(Pool(dice.choice(places), dice.randint(1, 4), tags,
                          provider))
    # Nova sorts its pools by the number of their tags.
    pools.sort(key=lambda pool: len(pool.tags) + (pool.provider is not None))
    mappings = [a_mapping(dice, pools, requests, tracked)
                for _ in range(dice.choice((1, 1, 2, 4)))]
    return tuple(pools), tuple(mappings)


def a_mapping(dice, pools, requests, tracked):
    """Create an allocation of Placement, mostly of devices that are free."""
    mapping = {'': ['root']}
    if not tracked:
        return mapping
    for request in requests:
        if request.alias is None:
            continue
        for number in range(request.count):
            alike = [pool.provider for pool in pools if pool.provider and
                     pool.tags['product_id'] == request.spec['product_id']]
            unknown = str(uuid.UUID(int=number))
            mapping[f'{request.id}-{number}'] = [
                dice.choice(alike[:2] or [unknown])]
    return mapping


def demand(case):
    """Convert the guest to a Demand."""
    policy = shape.CPUPolicy(case.policy or 'shared')
    threads = shape.ThreadPolicy(case.threads) if case.threads else None
    size = case.page_kib
    page_kib = shape.PageClass(size) if size and size < 0 else size
    return demands.Demand(
        cells=tuple(
            demands.CellDemand(
                policy, threads, cell.pcpus, cell.vcpus, cell.memory_mib,
                page_kib, int(case.isolated_emulator and not number))
            for number, cell in enumerate(case.guest)),
        requests=tuple(
            devices.DeviceRequest(
                ({tag: value.lower()
                  for tag, value in request.spec.items()},),
                request.count, shape.PCIAffinity(request.affinity or 'legacy'),
                request.alias or 'port')
            for request in case.requests),
        physnets=case.physnets, tunneled=case.tunneled)


def supply(case):
    """Convert the host to a Supply."""
    return supplies.Supply(
        cells=tuple(
            supplies.CellSupply(
                cell.id, cell.socket, cell.dedicated, cell.free, cell.shared,
                cell.siblings, cell.cpu_usage, cell.memory_mib,
                cell.memory_used_mib,
                tuple(supplies.PageSupply(p.size_kib, p.total, p.used, p.free)
                      for p in cell.pages),
                cell.physnets, cell.tunneled)
            for cell in case.host),
        pools=None if case.pools is None else tuple(
            devices.Pool(pool.cell, pool.count, pool.tags, pool.provider)
            for pool in case.pools),
        cpu_ratio=case.cpu_ratio, ram_ratio=case.ram_ratio,
        spares_devices=case.spares_devices, packing=case.packing)


def providers(case, mapping):
    """List, for each request, the providers of an allocation candidate."""
    return tuple(
        () if request.alias is None else tuple(
            uuids[0] for group, uuids in mapping.items()
            if group.startswith(request.id))
        for request in case.requests)
