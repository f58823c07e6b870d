# SPDX-License-Identifier: Apache-2.0

"""Check on which hosts flavors fit, and what they leave unused there.

A flavor is placed on the empty hosts as Placement and Nova's claim would place
it, so that the answers are those of ``hpcvirt capacity`` and ``explain``.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.flavors import address_width
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import lint
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import codec
from hpcvirt.specs import scheduler_keys
from hpcvirt.specs import vocabulary

_NO_DEVICES = (
    'does-not-fit', vocabulary.PCI_ALIAS.name,
    ('request fewer devices, or name these in the profile of hosts that have '
     'them'))
#: The code, the key and the advice of a flavor that fits nowhere, by its
#: cause; for other causes, those of :data:`_TOO_LARGE`.
_NOWHERE: Mapping[reasons.Code, tuple[str, str, str]] = {
    reasons.Code.PAGE_SIZE: (
        'no-such-pages', scheduler_keys.MEM_PAGE_SIZE.name,
        'use a page size of the hosts'),
    reasons.Code.FREE_PAGES: (
        'does-not-fit', scheduler_keys.MEM_PAGE_SIZE.name,
        ('use pages of which the hosts have enough, or make the guest '
         'smaller')),
    reasons.Code.PAGE_MULTIPLE: (
        'does-not-fit', 'ram',
        'make the memory of each cell a multiple of the page size'),
    reasons.Code.TRAIT: (
        'does-not-fit', 'trait', 'require a trait that hosts have'),
    reasons.Code.FORBIDDEN_TRAIT: (
        'does-not-fit', 'trait', 'do not forbid a trait that all hosts have'),
    reasons.Code.AGGREGATE: (
        'does-not-fit', 'trait', 'require the trait, or use other hosts'),
    reasons.Code.ADDRESS_BITS: (
        'address-width', vocabulary.MAXPHYSADDR_BITS.name,
        'ask for as many bits as the hosts have, or fewer'),
    reasons.Code.DEVICES: _NO_DEVICES,
    reasons.Code.NO_DEVICE_SET: _NO_DEVICES,
    reasons.Code.BROKEN_DEVICE_SET: _NO_DEVICES,
}
#: The same of a flavor whose thread policy is for hosts with other cores.
_OTHER_SMT: Mapping[reasons.Code, tuple[str, str, str]] = {
    reasons.Code.FORBIDDEN_TRAIT: (
        'isolate-on-smt', vocabulary.CPU_THREAD_POLICY.name,
        'use require with whole cores'),
    reasons.Code.TRAIT: (
        'does-not-fit', vocabulary.CPU_THREAD_POLICY.name,
        'use prefer, or hosts with SMT'),
}
_TOO_LARGE = ('does-not-fit', 'vcpus',
              'make the guest smaller, or give it more cells')


@dataclasses.dataclass(frozen=True)
class _HostKind:
    """Equal empty hosts.

    :ivar state: what each of them has
    :ivar unavoidable: the PCPUs that the planned flavors leave of it
    :ivar planned: their plans; one of those with equal processors and devices
    """

    names: tuple[str, ...]
    state: placement.HostState
    unavoidable: int
    planned: tuple[plans.PlannedHost, ...] = ()


def check_hosts(flavors: Sequence[flavor_model.Flavor],
                hosts: Mapping[str, placement.HostState],
                planned: Collection[flavor_model.Flavor] = (),
                planned_hosts: Mapping[str, plans.PlannedHost] | None = None,
                ) -> dict[str, tuple[lint.LintFinding, ...]]:
    """Check flavors against empty hosts.

    Flavors that Nova refuses are skipped, because they have a finding already.
    CPUs and devices are unused if none of the flavors can use them. What the
    plan of the hosts itself leaves is no finding: the plan has reported it.

    :param hosts: name -> what the host has without instances
    :param planned: the flavors that are planned for the hosts; they show how
        few CPUs need be unused
    :param planned_hosts: name -> the plan of a host, with its devices
    :returns: flavor -> what was found
    """
    known = _compile(flavors)
    fillers = _sort(known.values())
    own = _sort(_compile(planned).values())
    alike: dict[object, list[str]] = {}
    for name, state in hosts.items():
        alike.setdefault(placement.describe(state), []).append(name)
    kinds = []
    for names in alike.values():
        state = hosts[names[0]]
        rest = _fill_up(state, own) if own else 0
        kinds.append(_HostKind(tuple(names), state, rest, tuple(
            _list_different(names, planned_hosts or {}))))
    found = {}
    for flavor in flavors:
        guest = known.get(flavor.name)
        if guest is not None:
            found[flavor.name] = warning.gather(
                _check(flavor, guest, kinds, fillers, flavor in planned),
                'hosts')
    return found


def _list_different(names: Iterable[str],
                    planned: Mapping[str, plans.PlannedHost],
                    ) -> Iterable[plans.PlannedHost]:
    """List one host of each kind of processors and devices."""
    found: dict[object, plans.PlannedHost] = {}
    for name in names:
        if name in planned:
            host = planned[name]
            found.setdefault((id(host.host.wiring), host.host.processor,
                              host.host.address_bits, id(host.settings)), host)
    return found.values()


def _sort(found: Iterable[guests.Guest]) -> list[guests.Guest]:
    """Sort guests, the largest first."""
    return sorted(found, reverse=True, key=lambda guest: (
        guest.sums.pcpus, guest.sums.memory_mib))


def _compile(flavors: Iterable[flavor_model.Flavor],
             ) -> dict[str, guests.Guest]:
    """Compile the flavors that Nova accepts; the first of a name counts."""
    found: dict[str, guests.Guest] = {}
    for flavor in flavors:
        if flavor.name in found:
            continue
        try:
            found[flavor.name] = compiled_flavor.make(flavor)
        except exception.InvalidInput:
            continue
    return found


def _check(flavor: flavor_model.Flavor, guest: guests.Guest,
           kinds: Sequence[_HostKind], fillers: Sequence[guests.Guest],
           is_planned: bool) -> Iterator[lint.LintFinding]:
    limit = None if guest.demand.cells else 1
    fillings = [capacity.fill(guest, kind.state, limit) for kind in kinds]
    if not any(filling.count for filling in fillings):
        for kind, filling in zip(kinds, fillings, strict=True):
            yield _fits_nowhere(flavor, kind, filling.misfit)
        return
    yield from _find_width(flavor, guest, [
        kind for kind, filling in zip(kinds, fillings, strict=True)
        if filling.count])
    if is_planned:
        return
    yield from _find_many_candidates(flavor, guest, kinds)
    for kind, filling in zip(kinds, fillings, strict=True):
        if filling.count and limit is None:
            yield from _find_unused(flavor, guest, kind, filling, fillers)


def _fits_nowhere(flavor: flavor_model.Flavor, kind: _HostKind,
                  misfit: reasons.Misfit | None) -> lint.LintFinding:
    code, key, advice = _TOO_LARGE
    reason = ''
    if misfit is not None:
        code, key, advice = _NOWHERE.get(misfit.root, _TOO_LARGE)
        trait = misfit.details.get('trait')
        if trait == placement.SMT_TRAIT:
            code, key, advice = _OTHER_SMT[misfit.root]
        elif trait:
            key = vocabulary.TRAIT.at(group='', trait=trait)
        resource = misfit.details.get('resource', '')
        key = {'MEMORY_MB': 'ram', 'DISK_GB': 'disk'}.get(resource, key)
        if codec.is_device(resource):
            # A numbered group may request it.
            key = next(own for own in flavor.extra_specs
                       if vocabulary.RESOURCES.matches(own)
                       and own.endswith(f':{resource}'))
            advice = 'request fewer, or name these in the profile of hosts'
        reason = misfit.message
    return lint.LintFinding(code, lint.LintSeverity.ERROR, flavor.name, key,
                            f'no instance fits: {reason}', advice, kind.names)


def _find_width(flavor: flavor_model.Flavor, guest: guests.Guest,
                kinds: Iterable[_HostKind]) -> Iterator[lint.LintFinding]:
    """Find guests that need more addresses, as a plan warns of them.

    What libvirt refuses on all hosts is found without hosts.
    """
    if address_width.find_refusal(flavor.extra_specs) is not None:
        return
    for kind in kinds:
        found = address_width.find_problem(flavor, guest.shape, kind.planned)
        if found is not None:
            yield lint.LintFinding(
                'address-width', lint.LintSeverity.WARNING, flavor.name,
                found.key, found.what, found.advice or 'remove it',
                kind.names)


def _find_unused(flavor: flavor_model.Flavor, guest: guests.Guest,
                 kind: _HostKind, filling: capacity.Filling,
                 fillers: Sequence[guests.Guest],
                 ) -> Iterator[lint.LintFinding]:
    """Find CPUs and devices that no flavor can use beside this one."""
    if filling.count == 1:
        leave = 'the one instance that fits leaves'
    else:
        leave = f'the {filling.count} instances that fit leave'
    total = sum(len(cell.dedicated) for cell in kind.state.supply.cells)
    if guest.sums.pcpus and filling.free_pcpus:
        left = _fill_up(filling.host, fillers)
        if left > kind.unavoidable:
            yield lint.LintFinding(
                'strands-cpus', lint.LintSeverity.WARNING, flavor.name,
                'vcpus', f'{leave} {left} of {total} dedicated CPUs unused',
                'use a size that divides the cells of the host, or fill the '
                'rest with smaller guests', kind.names)
            return
    total, left = _count_devices(guest, kind.state, filling.host)
    if left:
        yield lint.LintFinding(
            'strands-devices', lint.LintSeverity.WARNING, flavor.name,
            'vcpus', f'{leave} {left} of {total} devices unused',
            'give each instance the same share of the cores of the host as of '
            'its devices', kind.names)


def _fill_up(host: placement.HostState,
             fillers: Sequence[guests.Guest]) -> int:
    """Fill a host with flavors, the largest first; count the PCPUs left."""
    for guest in fillers:
        if guest.sums.pcpus:
            host = capacity.fill(guest, host).host
    return sum(len(cell.free) for cell in host.supply.cells)


def _count_devices(guest: guests.Guest, empty: placement.HostState,
                   full: placement.HostState) -> tuple[int, int]:
    """Count the whole devices and vGPUs for a guest, and those that are left.

    Virtual functions are many, so that it does not matter if some are left;
    and a set of devices is chosen for its links, not for the cores.
    """
    if guest.demand.device_set is not None:
        return 0, 0
    total = left = 0
    for request in guest.demand.requests:
        own = [pool.free for pool in empty.supply.pools or ()
               if devices.serves(pool, request)]
        if not request.one_pool and max(own, default=0) > 1:
            continue
        total += sum(own)
        left += sum(pool.free for pool in full.supply.pools or ()
                    if devices.serves(pool, request))
    return total, left


def _find_many_candidates(flavor: flavor_model.Flavor, guest: guests.Guest,
                          kinds: Sequence[_HostKind],
                          ) -> Iterator[lint.LintFinding]:
    """Find sets with more candidates than nova-scheduler gets by default."""
    if guest.demand.device_set is None:
        return
    count = hosts = 0
    for kind in kinds:
        own = plan_warnings.count_on_host(guest.demand.requests,
                                          kind.state.supply.pools or ())
        count += own * len(kind.names)
        hosts += len(kind.names)
    if count > plan_warnings.DEFAULT_RESULTS:
        yield lint.LintFinding(
            'many-candidates', lint.LintSeverity.WARNING, flavor.name,
            vocabulary.PCI_ALIAS.name, f'on {hosts} hosts, a request has '
            f'{count} allocation candidates, and nova-scheduler gets '
            f'{plan_warnings.DEFAULT_RESULTS} by default',
            'set max_placement_results and max_allocation_candidates as '
            '"hpcvirt host config" writes them')
