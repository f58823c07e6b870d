# SPDX-License-Identifier: Apache-2.0

"""Read from Nova and Placement which cells and devices an instance has.

Nova shows host cells only to administrators. Placement knows the PCI devices
that nova-compute reports to it (``[pci]report_in_placement``).
"""

from typing import Any

from hpcvirt.cloud import placement as placement_api
from hpcvirt.cloud import session
from hpcvirt.instance_topology import description


def read_cells(nova: Any, server: Any) -> list[description.InstanceCell]:
    """Read the cells of an instance; one of all vCPUs if it has no topology.

    :param server: a server of novaclient
    """
    with session.one_line_errors():
        nodes = nova.servers.topology(server)['nodes'] or [
            {'vcpu_set': range(server.flavor['vcpus'])}]
    return [description.InstanceCell(
        node.get('host_node'), tuple(map(frozenset, node.get('siblings') or [
            (cpu,) for cpu in node['vcpu_set']]))) for node in nodes]


def read_devices(placement: placement_api.PlacementClient,
                 server: Any) -> list[description.HeldDevice]:
    """Read the devices of an instance."""
    return [*map(description.HeldDevice, placement.list_devices(server.id))]


def get_node(server: Any) -> str | None:
    """Return the compute node of a server; None if Nova does not show it."""
    return getattr(server, 'OS-EXT-SRV-ATTR:hypervisor_hostname', None)
