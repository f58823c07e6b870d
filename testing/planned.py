# SPDX-License-Identifier: Apache-2.0

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
