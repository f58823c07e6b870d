# SPDX-License-Identifier: Apache-2.0

"""Choose the devices of a host that guests get, and the sizes that share them.

Nova calls a whole device ``type-PF`` if it supports SR-IOV and ``type-PCI``
otherwise, and a PCI alias has one of these types on all hosts.

Whole devices and vGPUs are few and expensive, so a guest gets them in
proportion to its cores: on a cell of 20 cores with 4 GPUs, a guest with one
GPU has 5 cores, and one with two has 10. If the policy does not tie devices to
cells, as with vGPUs, the devices of all cells are divided among all cells.
There are many virtual functions, so every size gets the same number. With sets
of devices, a guest gets one of the sizes of sets.
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.topology import pci

TYPE_VF, TYPE_PF, TYPE_PCI = 'type-VF', 'type-PF', 'type-PCI'


@dataclasses.dataclass(frozen=True, slots=True)
class OfferedDevice:
    """A device that guests get as a whole or in parts.

    :ivar count: the virtual functions or vGPUs to create; 1 for a whole device
    :ivar wanted: the entry of the profile that it matches
    """

    device: host_model.Device
    count: int
    wanted: device_choice.Devices = dataclasses.field(
        default_factory=device_choice.Devices)


def device_type(wanted: device_choice.Devices | None,
                hosts: Iterable[host_model.Host]) -> str:
    """Return the ``device_type`` of the PCI alias."""
    if wanted is None or wanted.kind is device_choice.DeviceKind.VF:
        return TYPE_VF
    for host in hosts:
        if any(device.total_vfs for device in find_matching(host, wanted)):
            return TYPE_PF
    return TYPE_PCI


def find_matching(host: host_model.Host, wanted: device_choice.Devices,
                  ) -> tuple[host_model.Device, ...]:
    """List the devices of a host that match a profile.

    A card does not match if its virtual functions are known to be of another
    product. If virtual functions of a card exist, vGPUs belong to these.
    """
    if wanted.kind is device_choice.DeviceKind.VF:
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
    if wanted.kind is device_choice.DeviceKind.VGPU and virtual:
        return tuple(virtual)
    return tuple(device for device in found if device not in virtual)


def choose_devices(host: host_model.Host, wanted: device_choice.Devices | None,
                   type_: str) -> tuple[OfferedDevice, ...]:
    """Choose the devices that guests get.

    :param type_: the type of the alias, which does not match whole devices of
        the other type
    """
    if wanted is None:
        return ()
    found = find_matching(host, wanted)
    if wanted.kind is device_choice.DeviceKind.VF:
        return tuple(
            OfferedDevice(device, min(
                device.total_vfs,
                wanted.vfs_per_device or device.total_vfs), wanted)
            for device in found)
    if wanted.kind is device_choice.DeviceKind.VGPU:
        return tuple(
            OfferedDevice(device, wanted.vgpus_per_device or 0, wanted)
            for device in found)
    return tuple(OfferedDevice(device, 1, wanted) for device in found
                 if bool(device.total_vfs) == (type_ == TYPE_PF))


def count_per_cell(found: Iterable[OfferedDevice]) -> Mapping[int | None, int]:
    """Count the devices for guests on each cell; None is an unknown cell."""
    counts: collections.Counter[int | None] = collections.Counter()
    for item in found:
        counts[item.device.cell] += item.count
    return counts


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CellPortion:
    """A size of guests that together use up a cell and its devices.

    :ivar cores: the cores of each guest
    :ivar devices: the devices of each guest
    :ivar guests: the number of guests
    """

    cores: int
    devices: int
    guests: int


def cell_portions(partition: cpu_partition.Partition,
                  found: Sequence[OfferedDevice],
                  wanted: device_choice.Devices | None,
                  ) -> tuple[CellPortion, ...]:
    """List the sizes that use up both a cell and its devices."""
    cells = len(partition.cells)
    if (wanted is None or wanted.kind is device_choice.DeviceKind.VF
            or not cells):
        return ()
    by_cell = count_per_cell(found)
    # Guests get devices of their own cells only.
    is_tied = (
        wanted.kind is device_choice.DeviceKind.WHOLE
        and wanted.affinity is not shape_model.PCIAffinity.PREFERRED)
    loose = [] if is_tied else [
        (-(-guests // cells), devices)
        for guests, devices in _guests_of_host(found, wanted)
        if guests >= cells and (wanted.per_instance or guests % cells == 0)]
    pairs = set()
    for share in partition.cells:
        tied = [] if wanted.kind is device_choice.DeviceKind.VGPU else [
            *_guests(by_cell.get(share.id, 0), wanted)]
        width = len(share.cores)
        pairs |= {CellPortion(width // guests, devices, guests)
                  for guests, devices in (*tied, *loose)
                  if 0 < guests <= width}
    return tuple(sorted(pairs))


def device_numbers(partition: cpu_partition.Partition,
                   size: cpu_partition.GuestSize,
                   found: Sequence[OfferedDevice],
                   wanted: device_choice.Devices | None,
                   ) -> Mapping[int, int | None]:
    """List the numbers of devices that a guest of a size may get.

    There are several if cells or sockets have different numbers of devices.

    :returns: number -> the guests that use up a cell; None if that follows
        from the cores
    """
    if wanted is None:
        return {0: None}
    if wanted.kind is device_choice.DeviceKind.VF:
        return {wanted.per_instance or 1: None}
    if len(size.cores) == 1:
        return {part.devices: part.guests
                for part in cell_portions(partition, found, wanted)
                if part.cores == size.cores[0]}
    return dict.fromkeys(sorted(_of_several_cells(partition, size, found,
                                                  wanted)))


def _of_several_cells(partition: cpu_partition.Partition,
                      size: cpu_partition.GuestSize,
                      found: Sequence[OfferedDevice],
                      wanted: device_choice.Devices) -> Iterator[int]:
    by_cell = count_per_cell(found)
    for group in _groups(partition, size):
        ids = {share.id for share in group}
        devices = (sum(by_cell.get(cell, 0) for cell in ids)
                   if len(ids) < len(partition.cells)
                   else sum(by_cell.values()))
        cores = sum(len(share.cores) for share in group)
        own = sum(size.trimmed_from or size.cores)
        number, rest = divmod(devices * own, cores)
        if number and not rest and wanted.allows(number):
            yield number


def _groups(partition: cpu_partition.Partition, size: cpu_partition.GuestSize,
            ) -> Iterable[Sequence[cpu_partition.CellShare]]:
    """List the sets of cells, sockets or hosts that the guest divides."""
    if not (size.one_socket or size.share.is_socket):
        return [partition.cells]
    sockets: dict[int, list[cpu_partition.CellShare]] = {}
    for share in partition.cells:
        sockets.setdefault(share.socket, []).append(share)
    return sockets.values()


def _guests(devices: int, wanted: device_choice.Devices,
            ) -> Iterator[tuple[int, int]]:
    """Divide devices: yield the number of guests and the devices of each."""
    if wanted.sets is not None:
        for number in wanted.sizes:
            yield devices // number, number
        return
    if wanted.per_instance is not None:
        yield devices // wanted.per_instance, wanted.per_instance
        return
    for number in range(1, devices + 1):
        if devices % number == 0:
            yield devices // number, number


def _guests_of_host(found: Sequence[OfferedDevice],
                    wanted: device_choice.Devices,
                    ) -> Iterator[tuple[int, int]]:
    if wanted.kind is device_choice.DeviceKind.VGPU:
        number = wanted.per_instance or 1
        yield sum(item.count // number for item in found), number
        return
    yield from _guests(sum(item.count for item in found), wanted)
