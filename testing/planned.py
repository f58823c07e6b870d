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

"""Machines configured as a plan of ``hpcvirt flavor plan`` says."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from hpcvirt.model import host as host_model
from testing import libvirt
from testing import settings


def machine(host: host_model.Host, document: Mapping[str, Any],
            vfs_per_device: int | None = None,
            vgpus_per_device: int = 0) -> libvirt.Machine:
    """Configure a host like an operator who follows the plan.

    :param host: the host as it was read
    :param document: what ``--format json`` prints
    :param vfs_per_device: the virtual functions that the plan's profile
        asks for
    :param vgpus_per_device: the vGPUs that each card gives
    """
    config = document['host_config'][host.name]
    mdev, = config.get('mdev_types') or [
        {'name': None, 'device_addresses': (), 'mdev_class': 'VGPU'}]
    return libvirt.Machine(
        dataclasses.replace(host, cells=tuple(
            dataclasses.replace(cell, pages=tuple(
                host_model.PagePool(int(size), total) for size, total
                in config['pages'][str(cell.id)].items()))
            for cell in host.cells)),
        settings.ComputeSettings(
            cpu_dedicated_set=config['cpu_dedicated_set'] or None,
            cpu_shared_set=config['cpu_shared_set'] or None,
            reserved_host_memory_mb=config['reserved_host_memory_mb'],
            reserved_huge_pages=tuple(
                f'node:{item["node"]},size:{item["size"]},'
                f'count:{item["count"]}'
                for item in config['reserved_huge_pages']),
            device_spec=tuple(map(json.dumps, config['pci_device_spec'])),
            mdev_type=mdev['name'],
            mdev_addresses=tuple(mdev['device_addresses']),
            mdev_class=mdev['mdev_class']),
        vfs_per_device, vgpus_per_device)


def pci_aliases(document: Mapping[str, Any]) -> list[str]:
    """``[pci]alias`` of a plan, for nova-api and nova-scheduler."""
    return sorted({
        json.dumps(alias) for config in document['host_config'].values()
        for alias in config.get('pci_alias', ())})
