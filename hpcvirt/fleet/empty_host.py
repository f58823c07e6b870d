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

"""What a host has for guests before any instance is on it."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import host_settings
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import usage as usage_model


def of(host: host_model.Host,
       settings: host_settings.HostSettings) -> state.State:
    """Describe the empty host as nova-compute reports it with its settings.

    :raises InvalidInput: if host and settings contradict each other
    """
    _check(host, settings)
    configured = dataclasses.replace(host, cells=tuple(
        dataclasses.replace(cell, pages=tuple(
            host_model.PagePool(int(size), total) for size, total
            in settings.pages[str(cell.id)].items()))
        for cell in host.cells))
    usage = usage_model.Usage(tuple(
        usage_model.CellUsage(
            cell.id, cell.cpus & settings.dedicated,
            cell.cpus & settings.shared,
            pages=tuple(
                usage_model.PageUsage(item.size, reserved=item.count)
                for item in settings.reserved_huge_pages
                if item.node == cell.id))
        for cell in host.cells))
    memory_mib = sum(cell.memory_mib for cell in host.cells)
    return state.State(
        supplies.of_host(configured, usage,
                         tuple(pool for _, pool in pools(host, settings))),
        guests.Sums(len(settings.dedicated), len(settings.shared),
                    memory_mib - settings.reserved_host_memory_mb,
                    guests.UNKNOWN_DISK_GIB))


def pools(host: host_model.Host, settings: host_settings.HostSettings,
          ) -> Iterator[tuple[str, devices.Pool]]:
    """Yield the devices for guests, each with its address on the host.

    Where the plan does not say how many virtual functions a device gives,
    it gives all, unless the alias asks for physical ones.

    :raises InvalidInput: for a device that the host does not have
    """
    alias: Mapping[str, str] = next(iter(settings.pci_alias), {})
    virtual = alias.get('device_type') != 'type-PF'
    for spec in settings.pci_device_spec:
        device = _device(host, spec.get('address', ''))
        count = settings.device_counts.get(
            device.address, device.total_vfs if virtual else 1)
        yield device.address, devices.pool(
            device.cell, count or 1, alias=alias.get('name'),
            physnet=spec.get('physical_network'))
    for mdev in settings.mdev_types:
        for address in mdev.device_addresses:
            device = _device(host, address)
            if device.address not in settings.device_counts:
                raise exception.InvalidInput(
                    host.name, f'the plan does not say how many vGPUs '
                    f'{device.address} gives; plan it again')
            # Placement knows no cells, but which card has what.
            yield device.address, devices.pool(
                None, settings.device_counts[device.address],
                resource_class=mdev.mdev_class,
                )._replace(provider=device.address)


def _device(host: host_model.Host, address: str) -> host_model.Device:
    for device in host.devices:
        if device.address == address.lower():
            return device
    raise exception.InvalidInput(
        host.name, f'has no device {address[:40]}, which the plan gives to '
        'guests')


def _check(host: host_model.Host,
           settings: host_settings.HostSettings) -> None:
    missing = (settings.dedicated | settings.shared) - host.cpus
    if missing:
        raise exception.InvalidInput(
            host.name, f'has no CPU {cpuset.render(missing)}, which the plan '
            'gives to guests')
    for cell in host.cells:
        sizes = settings.pages.get(str(cell.id))
        if sizes is None:
            raise exception.InvalidInput(
                host.name, f'the plan has no pages of its cell {cell.id}')
        for size in sizes:
            if not (size.isascii() and size.isdigit() and int(size) > 0):
                raise exception.InvalidInput(
                    host.name, f'the plan names pages of {size[:20]!r} KiB')
