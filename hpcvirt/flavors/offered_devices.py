# SPDX-License-Identifier: Apache-2.0

"""Choose the devices of a host that guests get, and the sizes that share them.

Nova calls a whole device ``type-PF`` if it supports SR-IOV and ``type-PCI``
otherwise, and a PCI alias has one of these types on all hosts.

Whole devices and vGPUs are few, and dear. A guest gets them with the cores
that are their share: of a cell of 20 cores with 4 GPUs a guest with one GPU
has 5 cores, and one with two has 10. Where the policy does not tie devices to
cells, as with vGPUs, those of all cells are shared among all cells. Virtual
functions are many, so that every size gets the same number.
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import devices
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import sizes
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.topology import pci

TYPE_VF, TYPE_PF, TYPE_PCI = 'type-VF', 'type-PF', 'type-PCI'


@dataclasses.dataclass(frozen=True, slots=True)
class OfferedDevice:
    """A device that guests get, or a part of it.

    :ivar count: how many of what guests get it gives: 1 if they get it as a
        whole, otherwise virtual functions to create, or vGPUs
    """

    device: host_model.Device
    count: int


def device_type(wanted: profiles.Devices | None,
                hosts: Iterable[host_model.Host]) -> str:
    """Tell the ``device_type`` of the PCI alias."""
    if wanted is None or wanted.kind is profiles.DeviceKind.VF:
        return TYPE_VF
    return TYPE_PF if any(
        device.total_vfs for host in hosts
        for device in find_matching(host, wanted)) else TYPE_PCI


def find_matching(host: host_model.Host, wanted: profiles.Devices,
                  ) -> tuple[host_model.Device, ...]:
    """List the devices of a host that a profile means.

    A card whose virtual functions are known to be of another product than
    the profile says cannot give them. The vGPUs of a card with virtual
    functions belong to these, if they exist.
    """
    if wanted.kind is profiles.DeviceKind.VF:
        return tuple(
            device for device in host.devices if device.total_vfs
            and wanted.vendor_id in (None, device.vendor_id)
            and (device.vf_product_id is None
                 or wanted.product_id in (None, device.vf_product_id)))
    found = [device for device in host.devices
             if (device.vendor_id, device.product_id)
             == (wanted.vendor_id, wanted.product_id)]
    all_virtual = pci.list_virtual(host.devices)
    virtual = [device for device in found if device in all_virtual]
    if wanted.kind is profiles.DeviceKind.VGPU and virtual:
        return tuple(virtual)
    return tuple(device for device in found if device not in virtual)


def choose_devices(host: host_model.Host, wanted: profiles.Devices | None,
                   type_: str) -> tuple[OfferedDevice, ...]:
    """Choose the devices that guests get.

    :param type_: the type of the alias; whole devices of the other type
        cannot be had by it
    """
    if wanted is None:
        return ()
    found = find_matching(host, wanted)
    if wanted.kind is profiles.DeviceKind.VF:
        return tuple(OfferedDevice(device,
                                   min(device.total_vfs, wanted.vfs_per_device
                                               or device.total_vfs))
                     for device in found)
    if wanted.kind is profiles.DeviceKind.VGPU:
        return tuple(OfferedDevice(device, wanted.vgpus_per_device or 0)
                     for device in found)
    return tuple(OfferedDevice(device, 1) for device in found
                 if bool(device.total_vfs) == (type_ == TYPE_PF))


def pools(found: Iterable[OfferedDevice], wanted: profiles.Devices | None,
          number: int = 1) -> tuple[devices.Pool, ...]:
    """Describe the devices as the requests of guests see them.

    :param number: the vGPUs of each guest: Placement knows no cells, and takes
        all vGPUs of a guest from one card
    """
    if wanted is None:
        return ()
    request = wanted.make_request(number)
    tags = request.alias, request.physnet, request.resource_class
    if wanted.kind is profiles.DeviceKind.VGPU:
        return tuple(devices.pool(None, item.count // number * number, *tags)
                     for item in found)
    return tuple(devices.pool(item.device.cell, item.count, *tags)
                 for item in found)


def count_per_cell(found: Iterable[OfferedDevice]) -> Mapping[int | None, int]:
    """Count what guests get by the cells of the devices."""
    counts: collections.Counter[int | None] = collections.Counter()
    for item in found:
        counts[item.device.cell] += item.count
    return counts


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CellPortion:
    """A guest of one cell; a number of them use up a cell and its devices.

    :ivar devices: of each guest
    """

    cores: int
    devices: int
    guests: int


def cell_portions(partition: cpu_partition.Partition,
                  found: Sequence[OfferedDevice],
                  wanted: profiles.Devices | None) -> tuple[CellPortion, ...]:
    """List the guests of one cell by which devices and cells run out."""
    if wanted is None or wanted.kind is profiles.DeviceKind.VF:
        return ()
    by_cell = count_per_cell(found)
    cells = len(partition.cells)
    # Whether a guest gets only devices of its own cells.
    is_tied = (wanted.kind is profiles.DeviceKind.WHOLE and wanted.affinity
               is not shape_model.PCIAffinity.PREFERRED)
    loose = [] if is_tied else [
        (-(-guests // cells), devices)
        for guests, devices in _guests_of_host(found, wanted)
        if guests >= cells and (wanted.per_instance or guests % cells == 0)]
    pairs = set()
    for share in partition.cells:
        tied = [] if wanted.kind is profiles.DeviceKind.VGPU else [
            *_guests(by_cell.get(share.id, 0), wanted)]
        width = len(share.cores)
        pairs |= {CellPortion(width // guests, devices, guests)
                  for guests, devices in (*tied, *loose)
                  if 0 < guests <= width}
    return tuple(sorted(pairs))


def device_numbers(partition: cpu_partition.Partition, size: sizes.GuestSize,
                   found: Sequence[OfferedDevice],
                   wanted: profiles.Devices | None,
                   ) -> Mapping[int, int | None]:
    """List the numbers of devices that a guest of a size may get.

    Cells or sockets with different numbers of devices give it different
    numbers.

    :returns: number -> the guests that use up a cell, None if its cores alone
        say how many
    """
    if wanted is None:
        return {0: None}
    if wanted.kind is profiles.DeviceKind.VF:
        return {wanted.per_instance or 1: None}
    if len(size.cores) == 1:
        return {part.devices: part.guests
                for part in cell_portions(partition, found, wanted)
                if part.cores == size.cores[0]}
    return dict.fromkeys(sorted(_of_several_cells(partition, size, found,
                                                  wanted)))


def _of_several_cells(partition: cpu_partition.Partition,
                      size: sizes.GuestSize,
                      found: Sequence[OfferedDevice],
                      wanted: profiles.Devices) -> Iterator[int]:
    by_cell = count_per_cell(found)
    for group in _groups(partition, size):
        ids = {share.id for share in group}
        devices = (sum(by_cell.get(cell, 0) for cell in ids)
                   if len(ids) < len(partition.cells)
                   else sum(by_cell.values()))
        cores = sum(len(share.cores) for share in group)
        number, rest = divmod(devices * sum(size.cores), cores)
        if number and not rest and wanted.per_instance in (None, number):
            yield number


def _groups(partition: cpu_partition.Partition, size: sizes.GuestSize,
            ) -> Iterable[Sequence[cpu_partition.CellShare]]:
    """List the sets of cells of which the guest is a part."""
    if not (size.one_socket or size.share.is_socket):
        return [partition.cells]
    sockets: dict[int, list[cpu_partition.CellShare]] = {}
    for share in partition.cells:
        sockets.setdefault(share.socket, []).append(share)
    return sockets.values()


def _guests(devices: int, wanted: profiles.Devices,
            ) -> Iterator[tuple[int, int]]:
    """Divide devices: yield numbers of guests and of the devices of each."""
    if wanted.per_instance is not None:
        yield devices // wanted.per_instance, wanted.per_instance
        return
    for number in range(1, devices + 1):
        if devices % number == 0:
            yield devices // number, number


def _guests_of_host(found: Sequence[OfferedDevice],
                    wanted: profiles.Devices) -> Iterator[tuple[int, int]]:
    if wanted.kind is profiles.DeviceKind.VGPU:
        number = wanted.per_instance or 1
        yield sum(item.count // number for item in found), number
        return
    yield from _guests(sum(item.count for item in found), wanted)
