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

"""Choose the devices of a host that guests get, and count them.

Nova calls a whole device ``type-PF`` if it supports SR-IOV and ``type-PCI``
otherwise, and a PCI alias has one of these types on all hosts.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.fit import devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model

TYPE_VF, TYPE_PF, TYPE_PCI = 'type-VF', 'type-PF', 'type-PCI'


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """A device that guests get, or a part of it.

    :ivar count: how many of what guests get it gives: 1 if they get it as a
        whole, otherwise virtual functions to create, or vGPUs
    """

    device: host_model.Device
    count: int


def device_type(wanted: profiles.Devices | None,
                hosts: Iterable[host_model.Host]) -> str:
    """Tell the ``device_type`` of the PCI alias."""
    if wanted is None or wanted.kind is profiles.Kind.VF:
        return TYPE_VF
    return TYPE_PF if any(
        device.total_vfs for host in hosts
        for device in matching(host, wanted)) else TYPE_PCI


def matching(host: host_model.Host, wanted: profiles.Devices,
             ) -> tuple[host_model.Device, ...]:
    """List the devices of a host that a profile means.

    A card whose virtual functions are known to be of another product than
    the profile says cannot give them. The vGPUs of a card with virtual
    functions belong to these, if they exist.
    """
    if wanted.kind is profiles.Kind.VF:
        return tuple(
            device for device in host.devices if device.total_vfs
            and wanted.vendor_id in (None, device.vendor_id)
            and (device.vf_product_id is None
                 or wanted.product_id in (None, device.vf_product_id)))
    found = [device for device in host.devices
             if (device.vendor_id, device.product_id)
             == (wanted.vendor_id, wanted.product_id)]
    virtual = [device for device in found if is_virtual(device, host)]
    if wanted.kind is profiles.Kind.VGPU and virtual:
        return tuple(virtual)
    return tuple(device for device in found if device not in virtual)


def is_virtual(device: host_model.Device, host: host_model.Host) -> bool:
    """Tell whether a device is a virtual function.

    A topology does not say to which device a virtual function belongs. If it
    does not say the product of the virtual functions of a device either, all
    functions of the vendor on its bus are taken for such.
    """
    return not device.total_vfs and any(
        other.total_vfs and other.vendor_id == device.vendor_id
        and (_bus(other) == _bus(device) if other.vf_product_id is None
             else other.vf_product_id == device.product_id)
        for other in host.devices)


def given(host: host_model.Host, wanted: profiles.Devices | None,
          type_: str) -> tuple[Given, ...]:
    """Choose the devices that guests get.

    :param type_: the type of the alias; whole devices of the other type
        cannot be had by it
    """
    if wanted is None:
        return ()
    found = matching(host, wanted)
    if wanted.kind is profiles.Kind.VF:
        return tuple(Given(device, min(device.total_vfs, wanted.vfs_per_device
                                       or device.total_vfs))
                     for device in found)
    if wanted.kind is profiles.Kind.VGPU:
        return tuple(Given(device, wanted.vgpus_per_device or 0)
                     for device in found)
    return tuple(Given(device, 1) for device in found
                 if bool(device.total_vfs) == (type_ == TYPE_PF))


def pools(found: Iterable[Given], wanted: profiles.Devices | None,
          number: int = 1) -> tuple[devices.Pool, ...]:
    """Describe the devices as the requests of guests see them.

    :param number: the vGPUs of each guest: Placement knows no cells, and takes
        all vGPUs of a guest from one card
    """
    if wanted is None:
        return ()
    if wanted.kind is profiles.Kind.VGPU:
        return tuple(devices.pool(None, item.count // number * number,
                                  resource_class=wanted.resource_class)
                     for item in found)
    if wanted.ports is profiles.Ports.NEUTRON:
        return tuple(devices.pool(item.device.cell, item.count,
                                  physnet=wanted.physical_network)
                     for item in found)
    return tuple(devices.pool(item.device.cell, item.count,
                              alias=wanted.alias) for item in found)


def per_cell(found: Iterable[Given]) -> Mapping[int | None, int]:
    """Count what guests get by the cells of the devices."""
    counts: dict[int | None, int] = {}
    for item in found:
        cell = item.device.cell
        counts[cell] = counts.get(cell, 0) + item.count
    return counts


def _bus(device: host_model.Device) -> str:
    return device.address.rpartition(':')[0]
