# SPDX-License-Identifier: Apache-2.0

"""How the devices of a host are wired to its processors and to each other.

Devices and bridges are named by their PCI addresses. What a source does not
say is None, or is among the facts that a Wiring declares as unknown.
"""

import dataclasses
import enum
import functools
from collections.abc import Mapping

#: The controls of Access Control Services by bit, as lspci abbreviates them.
ACS_CONTROLS = ('SrcValid', 'TransBlk', 'ReqRedir', 'CmpltRedir',
                'UpstreamFwd', 'EgressCtrl', 'DirectTrans')


class PortKind(enum.StrEnum):
    """The kinds of bridges; the last is one to or from conventional PCI."""

    ROOT = 'root port'
    UPSTREAM = 'upstream port'
    DOWNSTREAM = 'downstream port'
    BRIDGE = 'PCI bridge'


class LinkKind(enum.StrEnum):
    """The kinds of links between devices."""

    NVLINK = 'NVLink'
    XGMI = 'xGMI'


class UnknownWiring(enum.StrEnum):
    """The facts that a source does not report about a wiring.

    A Wiring lacks them, or some of them.
    """

    PCIE_LINKS = 'PCIe links'
    IOMMU_GROUPS = 'IOMMU groups'
    DEVICE_LINKS = 'links between GPUs'


@dataclasses.dataclass(frozen=True, slots=True)
class PCIeLink:
    """The PCI Express link of a function.

    That of a root port or a downstream port leads down, others lead up.

    :ivar speed_gts: present speed of each lane in GT/s
    :ivar lanes: present number of lanes
    :ivar most_speed_gts: the highest speed that the function supports
    :ivar most_lanes: the most lanes that the function supports
    :ivar gb_per_s: present GB/s each way; only if the source says no more
    """

    speed_gts: float | None = None
    lanes: int | None = None
    most_speed_gts: float | None = None
    most_lanes: int | None = None
    gb_per_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Bridge:
    """A PCI bridge, such as a root port or a port of a switch.

    :ivar above: the bridge above it; None if it is on a root bus
    :ivar kind: None if it is unknown
    :ivar link: None if it has none, or if it is unknown
    :ivar acs: the ACS_CONTROLS that are on, none without the capability; None
        if they are unknown
    """

    address: str
    above: str | None = None
    kind: PortKind | None = None
    link: PCIeLink | None = None
    acs: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """How a device of a host is attached.

    :ivar address: the address of the device
    :ivar above: the bridge above it; None if it is on a root bus
    :ivar link: None if it has none, as virtual functions, or if it is unknown
    :ivar iommu_group: None without an IOMMU, or if it is unknown
    :ivar nvlinks: the GB/s of each of its NVLinks, 0 if it is not active;
        empty if it has none or they are unknown
    :ivar bars_mib: the MiB of each of its BARs of 1 MiB or more; empty if it
        has none or they are unknown
    """

    address: str
    above: str | None = None
    link: PCIeLink | None = None
    iommu_group: int | None = None
    nvlinks: tuple[float, ...] = ()
    bars_mib: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceLink:
    """A connection between two devices, direct or through switches.

    :ivar ends: the addresses of both devices, ascending
    :ivar count: the number of links that are joined; None if it is unknown
    """

    kind: LinkKind
    ends: tuple[str, str]
    count: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class FabricPartition:
    """A set of GPUs that NVIDIA's fabric manager can connect.

    :ivar devices: their addresses, ascending
    """

    number: int
    devices: tuple[str, ...]
    active: bool = False


@dataclasses.dataclass(frozen=True)
class Wiring:
    """How the devices of a host are wired.

    :ivar bridges: those above devices of the host, ascending by address
    :ivar attachments: one for each device of the host, ascending by address
    :ivar partitions: None if they are unknown
    """

    bridges: tuple[Bridge, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    links: tuple[DeviceLink, ...] = ()
    partitions: tuple[FabricPartition, ...] | None = None
    unknown: frozenset[UnknownWiring] = frozenset()

    @functools.cached_property
    def by_address(self) -> Mapping[str, Bridge]:
        return {bridge.address: bridge for bridge in self.bridges}

    def path(self, below: Bridge | Attachment) -> tuple[Bridge, ...]:
        """List the bridges above a bridge or a device, the root port first."""
        if below.above is None:
            return ()
        bridge = self.by_address[below.above]
        return (*self.path(bridge), bridge)
