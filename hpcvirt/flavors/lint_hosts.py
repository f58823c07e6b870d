# SPDX-License-Identifier: Apache-2.0

"""Check whether flavors fit on hosts, and which CPUs they leave unused.

A host is divided as for a plan. The huge pages that it has reserved now do
not matter, unless the operator says that guests get exactly these.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices as device_supply
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.flavors import legal_sets
from hpcvirt.flavors import lint
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import placement_limits
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.model import usage as usage_model
from hpcvirt.specs import codec
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary


def check_hosts(flavor: flavor_model.Flavor, hosts: Iterable[host_model.Host],
                profile: profiles.Profile,
                part: host_part.HostPart = host_part.WHOLE,
                ) -> tuple[lint.LintFinding, ...]:
    """Check one flavor against hosts; equal hosts are checked only once.

    Flavors that Nova refuses and flavors without NUMA cells are skipped: the
    former have a finding already, and the latter need only enough in total.

    :param part: the part of each host that guests may have
    :raises InvalidInput: if a host lacks CPUs or pages of the part
    """
    hosts = tuple(hosts)
    device_type = offered_devices.device_type(profile.device, hosts)
    pools = _plan_pools(hosts, profile, part) if profile.has_sets else {}
    found = warning.gather((
        lint.LintFinding(code, severity, flavor.name, key, problem, advice,
                         tuple(host.name for host in same))
        for same in host_model.group_twins(
            hosts, legal_sets.make_key if profile.has_sets else None)
        for code, severity, key, problem, advice
        in _check(flavor, same[0], profile, part, device_type,
                  pools.get(same[0].name))), 'hosts')
    return (*found, *_many_candidates(flavor, pools))


@functools.lru_cache(maxsize=16)
def _plan_pools(hosts: tuple[host_model.Host, ...], profile: profiles.Profile,
                part: host_part.HostPart,
                ) -> Mapping[str, Sequence[device_supply.Pool]]:
    """Return the devices of hosts in sets, which all flavors share."""
    return {planned.name: planned.supply.pools or ()
            for planned in planner.plan(hosts, profile, part).hosts}


def _many_candidates(flavor: flavor_model.Flavor,
                     pools: Mapping[str, Sequence[device_supply.Pool]],
                     ) -> Iterator[lint.LintFinding]:
    """Find sets with more candidates than nova-scheduler gets by default.

    :param pools: host -> its devices in sets
    """
    with contextlib.suppress(exception.InvalidInput):
        requests = demands.compile_shape(codec.decode(
            flavor.vcpus, flavor.ram_mib, flavor.extra_specs)).requests
        count = sum(placement_limits.count_on_host(requests, own)
                    for own in pools.values())
        if requests and count > placement_limits.DEFAULT_RESULTS:
            yield lint.LintFinding(
                'many-candidates', lint.LintSeverity.WARNING, flavor.name,
                vocabulary.PCI_ALIAS.name, f'on {len(pools)} hosts, a request '
                f'has {count} allocation candidates, and nova-scheduler gets '
                f'{placement_limits.DEFAULT_RESULTS} by default',
                'set max_placement_results and max_allocation_candidates as '
                '"hpcvirt host config" writes them')


def _check(flavor: flavor_model.Flavor, host: host_model.Host,
           profile: profiles.Profile, part: host_part.HostPart,
           device_type: str,
           set_pools: Sequence[device_supply.Pool] | None,
           ) -> Iterator[lint.Problem]:
    try:
        guest = codec.decode(flavor.vcpus, flavor.ram_mib,
                             flavor.extra_specs)
    except exception.InvalidInput:
        return
    if not guest.cells:
        return
    host_part.check(host, part)
    profile = host_part.choices(profile, part)
    partition = cpu_partition.divide(host, profile, part)
    yield from _page_sizes(guest, host)
    if (guest.thread_policy is shape_model.ThreadPolicy.ISOLATE
            and host.threads_per_core > 1):
        yield ('isolate-on-smt', lint.LintSeverity.ERROR,
               vocabulary.CPU_THREAD_POLICY.name,
               'the host has SMT, where Nova refuses isolate',
               'use require with whole cores')
    devices = _counted(flavor, guest, profile.device)
    pools = offered_devices.pools(
        offered_devices.choose_devices(host, profile.device, device_type),
        profile.device, sum(device.count for device in devices) or 1)
    if set_pools is not None and guest.device_set is not None:
        devices, pools = guest.devices, tuple(set_pools)
    else:
        guest = dataclasses.replace(guest, device_set=None)
    filling = capacity.fill(_without_pages(guest, devices),
                            _supply(partition, profile, pools))
    dedicated = len(partition.dedicated)
    if not filling.count:
        reason = filling.misfit.message if filling.misfit else ''
        yield ('does-not-fit', lint.LintSeverity.ERROR, 'vcpus',
               f'no instance fits: {reason}',
               'make the guest smaller, or give it more cells')
    elif (guest.cpu_policy is not shape_model.CPUPolicy.SHARED
          and filling.free_pcpus):
        yield 'strands-cpus', lint.LintSeverity.WARNING, 'vcpus', (
            f'{_fitting(filling.count)} '
            f'{filling.free_pcpus} of {dedicated} dedicated CPUs unused'), (
            'use a size that divides the cells of the host, or fill the '
            'rest with smaller guests')
    left = sum(pool.free for pool in filling.supply.pools or ())
    if (filling.count and devices and left and guest.device_set is None
            and profile.device
            and profile.device.kind is not device_choice.DeviceKind.VF):
        yield 'strands-devices', lint.LintSeverity.WARNING, 'vcpus', (
            f'{_fitting(filling.count)} {left} of '
            f'{sum(pool.free for pool in pools)} devices unused'), (
            'give each instance the same share of the cores of the host as of '
            'its devices')


def _fitting(count: int) -> str:
    return ('the one instance that fits leaves' if count == 1
            else f'the {count} instances that fit leave')


def _counted(flavor: flavor_model.Flavor, guest: shape_model.Shape,
             wanted: device_choice.Devices | None,
             ) -> tuple[shape_model.GuestDevices, ...]:
    """List the devices of a flavor that the profile describes.

    A flavor without an affinity policy gets that of the alias.
    """
    if wanted is None:
        return ()
    if wanted.kind is device_choice.DeviceKind.VGPU:
        number = resources.read(wanted.resource_class, flavor.extra_specs)
        return (shape_model.GuestDevices(
            None, number, resource_class=wanted.resource_class),
            ) if number else ()
    return tuple(
        dataclasses.replace(device,
                            affinity=device.affinity or wanted.affinity)
        for device in guest.devices
        if wanted.has_alias and device.alias == wanted.alias)


def _page_sizes(guest: shape_model.Shape,
                host: host_model.Host) -> Iterator[lint.Problem]:
    page_kib = guest.cells[0].page_kib
    if page_kib is None or page_kib < 0:
        return
    sizes = {pool.size_kib for cell in host.cells for pool in cell.pages}
    if len(sizes) > 1 and page_kib not in sizes:
        yield ('no-such-pages', lint.LintSeverity.ERROR,
               vocabulary.MEM_PAGE_SIZE.name,
               f'the host has no pages of {memory.page_name(page_kib)}',
               'use one of ' + ', '.join(
                   memory.page_name(size) for size in sorted(sizes)))


def _without_pages(guest: shape_model.Shape,
                   devices: tuple[shape_model.GuestDevices, ...],
                   ) -> shape_model.Shape:
    """Drop page sizes and other devices, which do not count here."""
    return dataclasses.replace(guest, devices=devices, cells=tuple(
        dataclasses.replace(cell, page_kib=None) for cell in guest.cells))


def _guest_mib(partition: cpu_partition.Partition, cell: host_model.Cell,
               profile: profiles.Profile) -> int:
    given_kib = partition.part.memory_kib(cell)
    if given_kib is not None:
        return given_kib // 1024
    return cell.memory_mib - memory.reserve_mib(profile, cell)


def _supply(partition: cpu_partition.Partition,
            profile: profiles.Profile,
            pools: Sequence[device_supply.Pool]) -> supplies.Supply:
    host = partition.host
    cells = tuple(dataclasses.replace(
        cell, pages=(),
        memory_mib=max(0, _guest_mib(partition, cell, profile)))
        for cell in host.cells)
    usage = usage_model.Usage(tuple(
        usage_model.CellUsage(cell.id, cell.cpus & partition.dedicated,
                              cell.cpus & partition.shared)
        for cell in host.cells))
    return supplies.make_supply(dataclasses.replace(host, cells=cells), usage,
                                pools, profile.pack_cells)
