# SPDX-License-Identifier: Apache-2.0

"""Make one set of flavors that serves all hosts of a fleet, and name them.

The parts of a name are::

    hpc.16c1n2t.2m        hpc.36c3n.2m.skt.vf1
    |   | | |   |
    |   | | |   pages of 2 MiB (1g: 1 GiB, 64k: 64 KiB)
    |   | | SMT: threads of each guest core, if more than one
    |   | guest NUMA cells; then 1s: guest sockets, if not one per cell
    |   guest cores: vCPUs, if each core has one thread
    prefix of the profile

Some flavors have more parts: ``skt`` (the cells share a socket), ``emu``
(emulator threads have a dedicated CPU), ``vf2`` (two VFs with the affinity
policy preferred; ``vf2r``: required, ``vf2s``: socket, ``vf2l``: legacy). VFs
of a PCI alias other than hpc-vf have its name, such as ``ib-1``, and so have
whole devices (``gpu-4``); VFs of Neutron ports are ``port1``, and vGPUs are
``vgpu1``. Sets of devices have the name of their kind (``gpu4``). Unequal
cells add ``x`` and six hexadecimal digits of a digest.

Flavors of one plan that would have the same name get their memory as well
(``31g``, or ``1920m`` if it is not in whole GiB).
"""

import collections
import dataclasses
import hashlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary

#: Machines of one model differ by less, in the memory of their firmware.
MIN_REDUCTION_PERCENT = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """A guest that was sized for one or more hosts.

    :ivar shares: host -> the share of it that the guest takes
    """

    guest: shape_model.Shape
    shares: Mapping[str, cpu_partition.HostShare]


def merge(offers: Iterable[Offer],
          tolerance_percent: int) -> tuple[Offer, ...]:
    """Merge offers that differ only a little in memory.

    Hosts of one model differ slightly in memory. Guests that are equal except
    for their memory, and whose memory is within the tolerance of the smallest,
    become one guest with the smallest memory, which fits on all their hosts.
    """
    alike: dict[shape_model.Shape, list[Offer]] = {}
    for offer in offers:
        alike.setdefault(_without_memory(offer.guest), []).append(offer)
    merged = []
    for group in alike.values():
        clusters: list[list[Offer]] = []
        for offer in sorted(group, key=lambda offer: offer.guest.memory_mib):
            least = clusters[-1][0].guest.memory_mib if clusters else 0
            if clusters and offer.guest.memory_mib * 100 <= least * (
                    100 + tolerance_percent):
                clusters[-1].append(offer)
            else:
                clusters.append([offer])
        merged += [_poorest(cluster) for cluster in clusters]
    return tuple(sorted(merged, key=_order))


def _list_memory(offers: Iterable[Offer], guest: shape_model.Shape,
                 tolerance_percent: int) -> dict[str, int]:
    """List the memory of the offers like a guest, within the tolerance.

    :returns: host -> MiB
    """
    least = guest.memory_mib
    found: dict[str, int] = {}
    for offer in offers:
        mib = offer.guest.memory_mib
        if (_without_memory(offer.guest) == _without_memory(guest)
                and least * 100 <= mib * 100
                <= least * (100 + tolerance_percent)):
            found |= dict.fromkeys(offer.shares, mib)
    return found


def warn_reducing(offers: Iterable[Offer], merged: Iterable[Offer],
                  tolerance_percent: int, cpus: Mapping[str, int],
                  numbers: Mapping[str, int]) -> Iterator[warning.PlanWarning]:
    """Warn about few hosts that make the flavors of many others smaller.

    If a machine lacks a DIMM and the difference is within the tolerance, the
    flavors of all machines of its class have less memory.

    :param cpus: host -> its dedicated CPUs
    :param numbers: host -> the number of hosts like it
    """
    given = list(offers)
    costs: dict[tuple[str, ...], tuple[int, int]] = {}
    for offer in merged:
        least = offer.guest.memory_mib
        own = _list_memory(given, offer.guest, tolerance_percent)
        poor = tuple(host for host, mib in own.items() if mib == least)
        rich = [host for host in own if host not in poor]
        others = sum(numbers[host] for host in rich)
        if not poor or sum(numbers[host] for host in poor) >= others:
            continue
        better = min(own[host] for host in rich)
        count = min(cpus[host] for host in rich) // offer.guest.pcpus
        if (better - least) * 100 >= better * MIN_REDUCTION_PERCENT:
            costs[poor] = max(costs.get(poor, (0, 0)),
                              ((better - least) * count, others))
    for poor, (mib, others) in costs.items():
        yield warning.PlanWarning(
            warning.WarningCode.HOST_MAKES_FLAVORS_SMALLER,
            'has less memory than other hosts with the same flavors, which '
            f'therefore give guests up to {mib / 1024:.0f} GiB less on each '
            f'of {others} hosts; check its memory, or plan it in a class of '
            'its own', poor)


def _without_memory(guest: shape_model.Shape) -> shape_model.Shape:
    return dataclasses.replace(guest, cells=tuple(
        dataclasses.replace(cell, memory_mib=0) for cell in guest.cells))


def _poorest(cluster: Sequence[Offer]) -> Offer:
    guests = [offer.guest for offer in cluster]
    cells = tuple(
        dataclasses.replace(same[0], memory_mib=min(
            cell.memory_mib for cell in same))
        for same in zip(*(guest.cells for guest in guests), strict=True))
    shares: dict[str, cpu_partition.HostShare] = {}
    for offer in cluster:
        for host, share in offer.shares.items():
            shares.setdefault(host, share)
    return Offer(dataclasses.replace(guests[0], cells=cells), shares)


def _order(offer: Offer) -> tuple[int, int, int, str]:
    guest = offer.guest
    return (guest.cpus, len(guest.cells), guest.memory_mib, str(guest.cells))


#: Nova's limit of the value of an extra spec.
MAX_VALUE = 255


def find_long(guest: shape_model.Shape) -> str | None:
    """Say that Nova cannot store the aliases of a guest with a set."""
    length = 0 if guest.device_set is None else len(codec.write_devices(
        guest.devices)[vocabulary.PCI_ALIAS.name])
    return (f'the aliases of its {len(guest.devices)} devices take {length} '
            f'characters, and Nova allows {MAX_VALUE}; choose shorter aliases'
            if length > MAX_VALUE else None)


def flavor(guest: shape_model.Shape, profile: profiles.Profile,
           name: str = '') -> flavor_model.Flavor:
    """Write a guest as a flavor.

    ``hw:cpu_max_threads`` prevents images from presenting SMT siblings that
    do not exist. hpcvirt's mark has a digest, by which a later run recognizes
    its own flavors and detects changes.
    """
    specs = codec.encode(dataclasses.replace(guest, devices=tuple(
        device for device in guest.devices if device.alias is not None)))
    for device in guest.devices:
        if device.affinity is not None:
            specs[vocabulary.PCI_NUMA_AFFINITY_POLICY.name] = (
                device.affinity.value)
        if device.resource_class is not None:
            specs.update(codec.write_resource(
                device.resource_class, device.count,
                profile.device.traits if profile.device else ()))
    if guest.topology is not None:
        specs[vocabulary.CPU_MAX_THREADS.name] = str(guest.topology.threads)
    if guest.device_set is not None:
        specs[vocabulary.GROUP_POLICY.name] = 'none'
    specs.update(profile.extra_specs)
    content = (guest.cpus, guest.memory_mib, profile.disk_gib)
    return flavor_model.Flavor(
        name, *content, mark_specs(*content, specs), profile.projects)


def mark_specs(vcpus: int, ram_mib: int, disk_gib: int,
               extra_specs: Mapping[str, str]) -> dict[str, str]:
    """Add hpcvirt's mark for this content to extra specs, and sort them."""
    row = vocabulary.GENERATED_BY
    specs = {key: value for key, value in extra_specs.items()
             if key != row.name}
    digest = content_digest(vcpus, ram_mib, disk_gib, specs)
    specs[row.name] = f'{vocabulary.GENERATED_MARK}+{digest}'
    return dict(sorted(specs.items()))


USUAL_ALIAS = 'hpc-vf'

#: Nova's limit.
_LONGEST_NAME = 255


def assign_names(guests: Sequence[shape_model.Shape], prefix: str,
                 disk_gib: int, form: str = profiles.TEMPLATE,
                 ) -> tuple[str, ...]:
    """Give the guests of a plan different names.

    :param guests: guests with dedicated CPUs and an explicit page size
    :raises InvalidInput: if a name is longer than Nova allows
    """
    names = [make_name(guest, prefix, disk_gib, form) for guest in guests]
    for suffixes in ([memory_name(guest.memory_mib) for guest in guests],
                     ['x' + _digest(guest) for guest in guests]):
        uses = collections.Counter(names)
        names = [f'{name}.{suffix}' if uses[name] > 1 else name
                 for name, suffix in zip(names, suffixes, strict=True)]
    for name in names:
        if len(name) > _LONGEST_NAME:
            raise exception.InvalidInput(
                'name_template', f'makes a name of {len(name)} characters; '
                f'Nova allows {_LONGEST_NAME}')
    return tuple(names)


def make_name(guest: shape_model.Shape, prefix: str = 'hpc', disk_gib: int = 0,
              form: str = profiles.TEMPLATE) -> str:
    """Name a guest, regardless of other guests."""
    return form.format_map(_fields(guest, prefix, disk_gib))


def _fields(guest: shape_model.Shape, prefix: str,
            disk_gib: int) -> dict[str, str]:
    cells = len(guest.cells)
    threads = guest.topology.threads if guest.topology else 1
    sockets = guest.topology.sockets if guest.topology else cells
    cores = guest.cpus // threads
    return {
        'prefix': prefix,
        'shape': f'{cores}c{cells}n'
        + (f'{sockets}s' if sockets != cells else '')
        + (f'{threads}t' if threads > 1 else ''),
        'cores': str(cores), 'vcpus': str(guest.cpus), 'cells': str(cells),
        'sockets': str(sockets), 'threads': str(threads),
        'memory': memory_name(guest.memory_mib),
        'memory_mib': str(guest.memory_mib), 'disk': f'{disk_gib}d',
        'page': memory.page_name(guest.cells[0].page_kib or 0),
        'options': ''.join(f'.{word}' for word in _options(guest)),
    }


def _options(guest: shape_model.Shape) -> Iterator[str]:
    if guest.numa_scope is shape_model.NUMAScope.SOCKET:
        yield 'skt'
    if guest.emulator_threads is shape_model.EmulatorThreads.ISOLATE:
        yield 'emu'
    if guest.devices:
        yield _devices_name(guest.devices, guest.device_set)
    if not _is_usual(guest):
        yield 'x' + _digest(guest)


def memory_name(memory_mib: int) -> str:
    """Write an amount of memory: ``31g`` in whole GiB, or ``1920m``."""
    if memory_mib % 1024:
        return f'{memory_mib}m'
    return f'{memory_mib // 1024}g'


def content_digest(vcpus: int, ram_mib: int, disk_gib: int,
                   extra_specs: Mapping[str, str]) -> str:
    """Return a digest of the content of a flavor, in hexadecimal digits."""
    lines = [f'{vcpus} {ram_mib} {disk_gib}']
    lines += [f'{key}={value}' for key, value in sorted(extra_specs.items())]
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()[:12]


def _is_usual(guest: shape_model.Shape) -> bool:
    """Whether the name identifies this guest without a digest."""
    topology = guest.topology
    if topology is None:
        return False
    return (
        len(set(guest.cells)) == 1 and not guest.cells[0].vcpus
        and guest.cpu_policy is shape_model.CPUPolicy.DEDICATED
        and guest.thread_policy is (shape_model.ThreadPolicy.REQUIRE
                                    if topology.threads > 1 else None)
        and topology.cores == guest.cpus // (
            topology.sockets * topology.threads)
        and (len(guest.devices) < 2 or guest.device_set is not None))


def _devices_name(wanted: Sequence[shape_model.GuestDevices],
                  kind: str | None) -> str:
    affinity = wanted[0].affinity or shape_model.PCIAffinity.LEGACY
    letter = ('' if affinity is shape_model.PCIAffinity.PREFERRED
              else affinity.value[0])
    if kind is not None:
        return kind + letter
    alias = wanted[0].alias
    if wanted[0].resource_class is not None:
        return f'vgpu{wanted[0].count}'
    word = f'{alias}-'
    if alias is None:
        word = 'port'
    elif alias == USUAL_ALIAS:
        word = 'vf'
    return f'{word}{wanted[0].count}{letter}'


def _digest(guest: shape_model.Shape) -> str:
    # A new field of a class would change its repr(), and thereby the names of
    # existing flavors.
    topology = guest.topology
    words = [
        *(f'{cell.pcpus}+{cell.vcpus}/{cell.memory_mib}/{cell.page_kib}'
          for cell in guest.cells),
        str(guest.cpu_policy), str(guest.thread_policy),
        str(guest.emulator_threads),
        *(f'{device.alias}:{device.count}:{device.affinity}:{device.physnet}'
          for device in guest.devices),
        *((str(topology.sockets), str(topology.cores),
           str(topology.threads)) if topology else ()),
        str(guest.numa_scope), str(guest.exclusive_cells),
        *([guest.device_set] if guest.device_set is not None else [])]
    return hashlib.sha256(' '.join(words).encode()).hexdigest()[:6]
