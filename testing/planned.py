# SPDX-License-Identifier: Apache-2.0

"""Configure machines by a plan of ``hpcvirt flavor plan``."""

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
    :param document: the output of ``--format json``
    :param vfs_per_device: number of virtual functions in the plan's profile
    :param vgpus_per_device: number of vGPUs of each card
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
    """Return ``[pci]alias`` of a plan, for nova-api and nova-scheduler."""
    aliases = set()
    for config in document['host_config'].values():
        aliases.update(map(json.dumps, config.get('pci_alias', ())))
    return sorted(aliases)
