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

"""Find the warnings about the devices of a host, and where they are."""

from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.flavors import given_devices
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import subjects
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model


def on(planned: plans.PlannedHost,
       wanted: profiles.Devices) -> Iterator[warning.PlanWarning]:
    """Find the warnings about a host of which guests get devices."""
    if wanted.kind is profiles.Kind.WHOLE:
        yield from _other_type(planned, wanted)
        yield from _unsure_type(planned)
    if not planned.settings.devices:
        yield missing(planned.host, wanted)
    yield from (_vgpus(planned) if wanted.kind is profiles.Kind.VGPU
                else _without_cell(planned, wanted))
    if wanted.kind is profiles.Kind.VF:
        yield from _unknown_products(planned, wanted)


def missing(host: host_model.Host,
            wanted: profiles.Devices) -> warning.PlanWarning:
    """Warn about a host without the devices, or with unknown ones."""
    unknown = (host_model.Unknown.VFS if wanted.kind is profiles.Kind.VF
               else host_model.Unknown.DEVICES) in host.unknown
    return warning.PlanWarning(
        warning.Code.DEVICES_MISSING,
        ('the topology does not say whether the host has a device' if unknown
         else 'the host has no device')
        + (' with virtual functions' if wanted.kind is profiles.Kind.VF
           else ' that can be given')
        + (f' of vendor {wanted.vendor_id}' if wanted.vendor_id else '')
        + (f' and product {wanted.product_id}' if wanted.product_id else ''),
        (host.name,))


def not_shared(host: str, found: Sequence[given_devices.Given],
               ) -> warning.PlanWarning:
    """Warn about a host of which no guest gets a share of the devices."""
    number = sum(item.count for item in found)
    return warning.PlanWarning(
        warning.Code.DEVICES_NOT_SHARED,
        f'devices.per_instance is not the share of any size in the {number} '
        'devices of the host; choose another number', (host,))


def _other_type(planned: plans.PlannedHost,
                wanted: profiles.Devices) -> Iterator[warning.PlanWarning]:
    chosen = {item.device for item in planned.settings.devices}
    others = [device.address
              for device in given_devices.matching(planned.host, wanted)
              if device not in chosen]
    if others:
        yield warning.PlanWarning(
            warning.Code.DEVICE_TYPE_DIFFERS,
            f'{_addresses(others)} cannot be given, because Nova calls other '
            f'devices of this product {planned.settings.device_type}, which '
            'support SR-IOV, and a PCI alias has one type', (planned.name,))


def _unsure_type(planned: plans.PlannedHost,
                 ) -> Iterator[warning.PlanWarning]:
    """Warn if the topology has neither drivers nor VFs, as from lstopo."""
    unknown = host_model.Unknown.VFS in planned.host.unknown or not any(
        device.driver or device.total_vfs for device in planned.host.devices)
    if planned.settings.devices and unknown:
        yield warning.PlanWarning(
            warning.Code.DEVICE_TYPE_UNSURE,
            'the topology does not say whether devices support SR-IOV; if '
            'they do, Nova calls them type-PF: read the topology from sysfs',
            (planned.name,))


def _without_cell(planned: plans.PlannedHost,
                  wanted: profiles.Devices) -> Iterator[warning.PlanWarning]:
    unknown = [item.device.address for item in planned.settings.devices
               if item.device.cell is None]
    if unknown and len(planned.partition.cells) > 1:
        yield warning.PlanWarning(
            warning.Code.DEVICE_WITHOUT_CELL,
            f'the cell of {_addresses(unknown)} is unknown, so that the '
            f'affinity {wanted.affinity} promises nothing for '
            f'{"it" if len(unknown) == 1 else "them"}', (planned.name,))


def _unknown_products(planned: plans.PlannedHost, wanted: profiles.Devices,
                      ) -> Iterator[warning.PlanWarning]:
    for item in planned.settings.devices:
        if wanted.product_id is None and item.device.vf_product_id is None:
            yield warning.PlanWarning(
                warning.Code.VF_PRODUCT_UNKNOWN,
                'the product id of the virtual functions of '
                f'{item.device.address} is unknown, so that its device_spec '
                'gives the card itself to instances as well; set '
                'devices.product_id (lspci -nn shows it once a virtual '
                'function exists)', (planned.name,))


def _vgpus(planned: plans.PlannedHost) -> Iterator[warning.PlanWarning]:
    given = planned.settings.devices
    if given and len(planned.partition.cells) > 1:
        yield warning.PlanWarning(
            warning.Code.VGPU_AFFINITY,
            'Nova takes the vGPUs of an instance from any card, whatever '
            'the cells of its CPUs and its memory; if that matters, give '
            'whole devices or virtual functions', (planned.name,))
    sriov = [item.device.address for item in given if item.device.total_vfs]
    if sriov:
        yield warning.PlanWarning(
            warning.Code.VGPU_ON_SRIOV,
            f'{_addresses(sriov)} can have virtual functions; if the vGPU '
            'types belong to these, create them, read the topology again, '
            'and name their product with vgpus_per_device: 1',
            (planned.name,))


def _addresses(devices: Sequence[str]) -> str:
    return subjects.in_words(devices, 'devices')
