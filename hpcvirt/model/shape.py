# SPDX-License-Identifier: Apache-2.0

"""The requirements of a guest, independent of the strings of any API."""

import dataclasses
import enum

#: A kind of sets of devices, in ``hpcvirt:device_set`` and in the tag
#: ``hpcvirt_device_sets``.
DEVICE_SET_KIND = r'[A-Za-z0-9_-]{1,32}'


class CPUPolicy(enum.StrEnum):
    """``hw:cpu_policy``: how vCPUs are assigned to host CPUs."""

    DEDICATED = 'dedicated'
    MIXED = 'mixed'
    SHARED = 'shared'


class ThreadPolicy(enum.StrEnum):
    """``hw:cpu_thread_policy``: how vCPUs use SMT siblings."""

    PREFER = 'prefer'
    REQUIRE = 'require'
    ISOLATE = 'isolate'


class EmulatorThreads(enum.StrEnum):
    """``hw:emulator_threads_policy``; isolate needs one more PCPU."""

    ISOLATE = 'isolate'
    SHARE = 'share'


class PageClass(enum.IntEnum):
    """Page sizes requested by class; the values are Nova's."""

    SMALL = -1
    LARGE = -2
    ANY = -3


class PCIAffinity(enum.StrEnum):
    """``hw:pci_numa_affinity_policy``: on which cells devices may be."""

    LEGACY = 'legacy'
    PREFERRED = 'preferred'
    REQUIRED = 'required'
    SOCKET = 'socket'


class NUMAScope(enum.StrEnum):
    """``hpcvirt:numa_scope``: the scope that all host cells of a guest share.

    ``socket``: all host cells that the claim will use belong to one physical
    socket. ``host`` sets no condition.
    """

    HOST = 'host'
    SOCKET = 'socket'


@dataclasses.dataclass(frozen=True, slots=True)
class GuestCell:
    """A guest NUMA cell.

    :ivar pcpus: dedicated vCPUs, each of which gets its own host CPU
    :ivar vcpus: shared vCPUs, which float over the shared CPUs of the host
    :ivar memory_mib: memory of the cell
    :ivar page_kib: explicit page size in KiB, a :class:`PageClass`, or None
        if the guest requests none
    """

    pcpus: int
    vcpus: int
    memory_mib: int
    page_kib: int | PageClass | None = None

    @property
    def cpus(self) -> int:
        return self.pcpus + self.vcpus


@dataclasses.dataclass(frozen=True, slots=True)
class GuestDevices:
    """Devices of one kind that a guest needs.

    :ivar alias: the name of Nova's PCI alias; None for a Neutron port and
        for vGPUs
    :ivar count: number of devices
    :ivar affinity: the policy; None for Nova's default, which is ``legacy``
    :ivar physnet: physical network of an SR-IOV port; None for an alias
    :ivar resource_class: the class of vGPUs in Placement
    """

    alias: str | None
    count: int = 1
    affinity: PCIAffinity | None = None
    physnet: str | None = None
    resource_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class GuestTopology:
    """The CPU topology that the guest sees (``hw:cpu_sockets`` and so on)."""

    sockets: int
    cores: int
    threads: int


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The NUMA requirements of a guest.

    :ivar cells: guest NUMA cells in guest order; empty if the guest has no
        NUMA topology
    :ivar device_set: the kind of the set that all its devices belong to; None
        if they may be any
    """

    cells: tuple[GuestCell, ...]
    cpu_policy: CPUPolicy = CPUPolicy.SHARED
    thread_policy: ThreadPolicy | None = None
    emulator_threads: EmulatorThreads | None = None
    devices: tuple[GuestDevices, ...] = ()
    topology: GuestTopology | None = None
    numa_scope: NUMAScope = NUMAScope.HOST
    exclusive_cells: bool = False
    device_set: str | None = None

    @property
    def cpus(self) -> int:
        return sum(cell.cpus for cell in self.cells)

    @property
    def pcpus(self) -> int:
        """Dedicated CPUs, including that of isolated emulator threads."""
        own = sum(cell.pcpus for cell in self.cells)
        isolated = self.emulator_threads is EmulatorThreads.ISOLATE
        return own + (1 if own and isolated else 0)

    @property
    def memory_mib(self) -> int:
        return sum(cell.memory_mib for cell in self.cells)
