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

"""Write a plan as a JSON document, for programs."""

from typing import Any

from hpcvirt.flavors import given_devices
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import settings
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model

SCHEMA_VERSION = 1


def document(plan: plans.Plan) -> dict[str, Any]:
    """Turn a plan into dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'hosts': [_host(planned) for planned in plan.hosts],
        'flavors': [_flavor(planned, plan) for planned in plan.flavors],
        'host_config': {
            planned.host.name: host_config(planned.settings, plan.profile)
            for planned in plan.hosts},
        'warnings': [{'code': item.code.value, 'message': item.message,
                      'subjects': list(item.subjects)}
                     for item in plan.warnings],
    }


def _host(planned: plans.PlannedHost) -> dict[str, Any]:
    host = planned.host
    return {
        'name': host.name,
        'packages': (len(host.packages)
                     if host_model.Unknown.PACKAGES not in host.unknown
                     else None),
        'cells': len(host.cells),
        'cells_with_cpus': sum(bool(cell.cpus) for cell in host.cells),
        'cpus': len(host.cpus),
        'dedicated_pcpus': len(planned.settings.dedicated),
        'memory_mib': sum(cell.memory_mib for cell in host.cells),
        'guest_memory_mib': planned.guest_memory_mib,
        'guest_page_kib': planned.page_kib,
        'guest_devices': planned.devices,
    }


def _flavor(planned: plans.PlannedFlavor,
            plan: plans.Plan) -> dict[str, Any]:
    flavor = planned.flavor
    return {
        'name': flavor.name,
        'vcpus': flavor.vcpus,
        'ram_mib': flavor.ram_mib,
        'disk_gib': flavor.disk_gib,
        'extra_specs': dict(flavor.extra_specs),
        'public': flavor.projects is None,
        'projects': list(flavor.projects or ()),
        'per_host': dict(planned.per_host),
        'stranded_pcpus': {host: left.pcpus
                           for host, left in planned.stranded.items()},
        'stranded_memory_mib': {
            host: left.memory_mib for host, left in planned.stranded.items()},
        'devices': sum(device.count for device in planned.guest.devices),
        'stranded_devices': {
            host: left.devices for host, left in planned.stranded.items()},
        'share': {host: share.words
                  for host, share in planned.shares.items()},
        'guest_cells': [{'vcpus': cell.cpus, 'memory_mib': cell.memory_mib}
                        for cell in planned.guest.cells],
        'loss': {host.name: [
            {'low_percent': loss.low, 'high_percent': loss.high,
             'configuration': loss.configuration,
             'measured': loss.study.measured,
             'source': loss.study.document.citation,
             'place': loss.place}
            for loss in planned.losses(host)]
            for host in plan.hosts},
    }


def host_config(host_settings: settings.Settings,
                profile: profiles.Profile) -> dict[str, Any]:
    """Write the settings of a host.

    ``device_counts`` says how many virtual functions or vGPUs each device
    gives. ``pci_alias`` is there only if the flavors name one, and
    ``mdev_types`` only if they have vGPUs.
    """
    wanted = profile.devices
    config: dict[str, Any] = {
        'cpu_dedicated_set': cpuset.render(host_settings.dedicated),
        'cpu_shared_set': cpuset.render(host_settings.shared),
        'reserved_host_memory_mb': host_settings.reserved_host_memory_mib,
        'reserved_huge_pages': [
            {'node': item.node, 'size': item.size_kib, 'count': item.count}
            for item in host_settings.reserved_pages],
        **({'packing_host_numa_cells_allocation_strategy': True}
           if profile.pack_cells else {}),
        'pages': {
            str(cell): {str(size): total for size, total in pages.items()}
            for cell, pages in host_settings.pages.items()},
        'pci_device_spec': [],
    }
    if wanted and wanted.kind is profiles.Kind.VGPU:
        config['mdev_types'] = [{
            'name': wanted.mdev_type,
            'device_addresses': [item.device.address
                                 for item in host_settings.devices],
            'mdev_class': wanted.resource_class}]
    else:
        config['pci_device_spec'] = [device_spec(item, wanted)
                                     for item in host_settings.devices]
    if host_settings.devices:
        config['device_counts'] = {item.device.address: item.count
                                   for item in host_settings.devices}
    if wanted and wanted.has_alias:
        config['pci_alias'] = [alias(wanted, host_settings.device_type)]
    return config


def device_spec(item: given_devices.Given,
                wanted: profiles.Devices | None) -> dict[str, str]:
    """Write an item of ``[pci]device_spec``.

    The address of a physical function also matches its virtual functions.
    The product id prevents that the physical function itself is assigned.
    """
    spec = {'address': item.device.address}
    product = (wanted and wanted.product_id) or item.device.vf_product_id
    if product is not None:
        spec['vendor_id'] = item.device.vendor_id
        spec['product_id'] = product
    if wanted and wanted.ports is profiles.Ports.NEUTRON:
        spec['physical_network'] = wanted.physical_network or ''
    return spec


def alias(wanted: profiles.Devices,
          device_type: str = given_devices.TYPE_VF) -> dict[str, str]:
    """Write an item of ``[pci]alias``, for all services of Nova."""
    return {
        'name': wanted.alias,
        'vendor_id': wanted.vendor_id or '',
        'product_id': wanted.product_id or '',
        'device_type': device_type,
        # Moves ignore the policy of the flavor and apply this one.
        'numa_policy': wanted.affinity.value,
    }
