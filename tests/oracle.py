# SPDX-License-Identifier: Apache-2.0

"""Decide whether a guest fits by trying everything.

The oracle is slow, simple and independent of hpcvirt.fit: it tries all
subsets of free CPUs for the vCPUs, and all arrangements of host cells. Where
the engine and the oracle differ, one of them is wrong.

PCI devices are allocated as in Nova's documentation and its PciDeviceStats:
one request after the other, from the first pools that serve it.
"""

import functools
import itertools


def arrangements(case, mapping):
    """All arrangements that fit, in the order of Nova's claim.

    :param mapping: the allocation candidate's
    :returns: an iterator of tuples: for each guest cell its host cell
    """
    for arrangement in itertools.permutations(in_order(case), len(case.guest)):
        if all(fits(case, number, cell)
               for number, cell in enumerate(arrangement)):
            chosen = {cell.id for cell in arrangement}
            if (networks_near(case, chosen) and
                    devices_near(case, mapping, chosen)):
                yield arrangement


def first(case, mapping):
    """The first arrangement as cell ids; None if the guest does not fit."""
    for arrangement in arrangements(case, mapping):
        return tuple(cell.id for cell in arrangement)
    return None


def in_order(case):
    """Sort host cells as Nova does: a series of stable sorts."""
    cells = list(case.host)
    if len(cells) <= len(case.guest):
        return cells
    cells.sort(key=lambda cell: cell.memory_mib - cell.memory_used_mib,
               reverse=not case.packing)
    if case.policy in (None, 'shared'):
        cells.sort(key=lambda cell: cell.cpu_usage, reverse=case.packing)
    else:
        cells.sort(key=lambda cell: len(cell.free), reverse=not case.packing)
    if case.pools is not None and (case.requests or case.spares_devices):
        cells.sort(reverse=bool(case.requests), key=lambda cell: sum(
            pool.count for pool in case.pools if pool.cell == cell.id))
    return cells


def fits(case, number, cell):
    """Whether a guest cell fits on a host cell."""
    return (memory_fits(case, case.guest[number], cell) and
            shared_cpus_fit(case, case.guest[number], cell) and
            pins_exist(case, number, cell))


def memory_fits(case, guest, cell):
    need_kib = guest.memory_mib * 1024
    pinned = case.policy in ('dedicated', 'mixed')

    def serves(pages, kib):
        return need_kib % pages.size_kib == 0 and need_kib <= kib
    sizes = sorted(pages.size_kib for pages in cell.pages)
    if case.page_kib is None:
        if not sizes:
            return guest.memory_mib <= cell.memory_mib - (
                cell.memory_used_mib if pinned else 0)
        smallest = next(p for p in cell.pages if p.size_kib == sizes[0])
        return serves(smallest, smallest.size_kib * (
            smallest.free if pinned else smallest.total))
    asked = {-1: sizes[:1], -2: sizes[1:], -3: sizes}.get(
        case.page_kib, [case.page_kib])
    return any(serves(pages, pages.free * pages.size_kib)
               for pages in cell.pages if pages.size_kib in asked)


def shared_cpus_fit(case, guest, cell):
    if case.policy == 'dedicated':
        return True
    return (guest.vcpus <= len(cell.shared) and
            cell.cpu_usage + guest.vcpus <=
            len(cell.shared) * case.cpu_ratio and
            cell.memory_used_mib + guest.memory_mib <=
            cell.memory_mib * case.ram_ratio)


def pins_exist(case, number, cell):
    if case.policy not in ('dedicated', 'mixed'):
        return True
    guest = case.guest[number]
    if not guest.pcpus + guest.vcpus:
        # Nova handles a pinned cell without vCPUs as if there were none.
        return False
    emulator = int(case.isolated_emulator and number == 0)
    return _pins_exist(cell.siblings, cell.free, cell.dedicated == cell.shared,
                       case.threads, guest.pcpus, emulator)


@functools.lru_cache(maxsize=4096)
def _pins_exist(siblings, free, legacy, threads, pcpus, emulator):
    if not siblings:
        return False
    # Nova isolates emulator threads only next to pinned vCPUs, and it
    # isolates only guest cells that have some.
    if not pcpus and (emulator or threads == 'isolate'):
        return False
    cores = [frozenset(core) for core in siblings]
    known = free & frozenset().union(*cores)
    for pins in itertools.combinations(sorted(known), pcpus):
        if not policy_holds(cores, known, legacy, threads, set(pins)):
            continue
        if not emulator:
            return True
        used = [core for core in cores if core & set(pins)]
        for cpu in known - set(pins):
            home = next(core for core in cores if cpu in core)
            if threads != 'isolate' or (home <= known and home not in used):
                return True
    return False


def policy_holds(cores, free, legacy, threads, pins):
    width = max(len(core) for core in cores)
    if threads == 'isolate':
        if width > 1 and not legacy:
            return False
        return all(len(core & pins) <= 1 for core in cores) and all(
            len(core) == width and core <= free
            for core in cores if core & pins)
    if threads == 'require':
        return any(side_by_side(cores, free, pins, together)
                   for together in range(2, width + 1))
    return True


def side_by_side(cores, free, pins, together):
    """All but the remainder are in groups, on cores with enough free."""
    wide = [core for core in cores if len(core & free) >= together]
    if not wide or not pins <= frozenset().union(*wide):
        return False
    counts = sorted(len(core & pins) for core in wide if core & pins)
    rest = [len(pins) % together] if len(pins) % together else []
    return counts == rest + [together] * (len(pins) // together)


def networks_near(case, chosen):
    def near(has):
        cells = {cell.id for cell in case.host if has(cell)}
        return not cells or bool(cells & chosen)
    return (all(near(lambda cell, name=name: name in cell.physnets)
                for name in case.physnets) and
            (not case.tunneled or near(lambda cell: cell.tunneled)))


def devices_anywhere(case, mapping):
    """Follow what Nova does with the requests regardless of cells."""
    return not case.requests or (
        case.pools is not None and devices_near(case, mapping, None))


def devices_near(case, mapping, chosen):
    """Follow what Nova does with the requests on these cells.

    :param chosen: None to ignore affinity
    """
    if not case.requests or case.pools is None:
        return True
    pools = [[pool, pool.count] for pool in case.pools]
    for request in case.requests:
        providers = [] if request.alias is None else [
            uuids[0] for group, uuids in mapping.items()
            if group.startswith(request.id)]
        able = [entry for entry in pools if alike(request, entry[0])]
        able = near_enough(case, request, able, chosen)
        able = [entry for entry in able if wanted(request, entry[0])]
        if providers:
            able = [entry for entry in able
                    if entry[0].provider in providers and
                    entry[1] >= providers.count(entry[0].provider)]
        if not able or sum(free for _, free in able) < request.count:
            return False
        if providers:
            known = [entry[0].provider for entry in pools if entry[0].provider]
            if len(known) != len(set(known)):
                return False
            for entry in able:
                entry[1] -= providers.count(entry[0].provider)
        else:
            missing = request.count
            for entry in able:
                taken = min(entry[1], missing)
                entry[1] -= taken
                missing -= taken
        pools = [entry for entry in pools if entry[1]]
    return True


def alike(request, pool):
    return all(str(pool.tags.get(tag)).lower() == value.lower()
               for tag, value in request.spec.items())


def wanted(request, pool):
    """Special devices are given only to requests that name them."""
    for kind in ('type-PF', 'vdpa'):
        if (pool.tags['dev_type'] == kind and
                request.spec.get('dev_type') != kind):
            return False
    return (pool.tags['remote_managed'] == 'false' or
            request.spec.get('remote_managed') == 'True')


def near_enough(case, request, able, chosen):
    if chosen is None:
        return able

    def on(cells):
        return [entry for entry in able if entry[0].cell in cells]

    def enough(entries):
        return sum(free for _, free in entries) >= request.count
    best = on(chosen)
    if request.affinity == 'required' or enough(best):
        return best
    if request.affinity == 'socket':
        sockets = {cell.socket for cell in case.host if cell.id in chosen}
        if any(cell.socket is None for cell in case.host):
            return []
        return on({cell.id for cell in case.host if cell.socket in sockets})
    best = on({*chosen, None})
    if request.affinity in (None, 'legacy') or enough(best):
        return best
    return best + [entry for entry in able if entry not in best]
