# SPDX-License-Identifier: Apache-2.0

"""The facts of a host that an audit judges.

A field is :class:`~hpcvirt.audit.fact.UnknownFact` if it cannot be read. It is
None if the host does not have the thing: without cpufreq, for example, there
is no governor. CPU numbers, cells and units are those of
:mod:`hpcvirt.model.host`.
"""

import dataclasses
from collections.abc import Mapping

from hpcvirt.audit.fact import UnknownFact
from hpcvirt.model import host as host_model
from hpcvirt.topology import hardware_state

Cpus = frozenset[int]

#: Files with one value each that rules look at.
SETTINGS = (
    'proc/sys/vm/zone_reclaim_mode',
    'proc/sys/kernel/nmi_watchdog',
    'sys/devices/system/clocksource/clocksource0/current_clocksource',
    'sys/kernel/mm/transparent_hugepage/khugepaged/defrag',
    'sys/module/kvm/parameters/halt_poll_ns',
    'sys/module/kvm/parameters/nx_huge_pages',
    'sys/module/kvm_amd/parameters/pause_filter_count',
    'sys/module/kvm_intel/parameters/ple_gap',
)


@dataclasses.dataclass(frozen=True, slots=True)
class IdleState:
    """A C-state of a CPU.

    :ivar latency_us: the time it takes to leave the state
    :ivar cpus: the CPUs that may enter it
    """

    name: str
    latency_us: int
    cpus: Cpus


@dataclasses.dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency scaling of CPUs.

    :ivar preference: the energy performance preference, None without one
    :ivar boost: of this policy, None if the driver has one switch for all
    """

    cpus: Cpus
    driver: str
    governor: str
    preference: str | None
    boost: bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class CpuFacts:
    """The CPUs.

    :ivar vendor: ``GenuineIntel``, ``AuthenticAMD``; None on other
        architectures than x86
    :ivar is_guest: whether the machine is itself a guest
    :ivar smt: ``on``, ``off``, ``forceoff``, ``notsupported`` and so on; None
        if the architecture has no such control
    :ivar no_turbo: of intel_pstate, None without this driver
    :ivar boost: of cpufreq, None without such a switch
    :ivar microcode: version -> CPUs, None without such versions
    :ivar wake_limit_us: the longest exit latency that a program allows at
        present, None if no program limits it
    """

    vendor: str | UnknownFact | None
    is_guest: bool | UnknownFact
    smt: str | UnknownFact | None
    frequencies: tuple[Frequency, ...] | UnknownFact
    no_turbo: bool | UnknownFact | None
    boost: bool | UnknownFact | None
    idle_states: tuple[IdleState, ...] | UnknownFact
    wake_limit_us: int | UnknownFact | None
    microcode: Mapping[str, Cpus] | UnknownFact | None


@dataclasses.dataclass(frozen=True, slots=True)
class Ksm:
    """Kernel samepage merging.

    :ivar run: 0 stopped, 1 running, 2 stopped and everything unmerged
    :ivar merge_across_nodes: None on a kernel without NUMA
    :ivar pages_shared: pages that are merged now
    :ivar pages_sharing: pages that the merging saves now
    :ivar full_scans: how often it has scanned all memory since the boot
    """

    run: int
    merge_across_nodes: bool | None
    pages_shared: int
    pages_sharing: int
    full_scans: int


@dataclasses.dataclass(frozen=True, slots=True)
class HugePagePool:
    """A pool of huge pages of a cell.

    :ivar surplus: pages above the reservation, which the kernel gives back
    """

    cell: int
    size_kib: int
    total: int
    free: int
    surplus: int


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The memory.

    :ivar ksm: None for a kernel without it
    :ivar thp: ``always``, ``madvise`` or ``never``; None without them
    :ivar available_mib: cell -> memory that programs can still get there:
        free, in the page cache, or in slabs that can be reclaimed
    :ivar numa_balancing: None on a kernel without it
    """

    total_mib: int | UnknownFact
    swap_total_mib: int | UnknownFact
    swap_used_mib: int | UnknownFact
    slab_unreclaimable_mib: int | UnknownFact
    available_mib: Mapping[int, int] | UnknownFact
    huge_pages: tuple[HugePagePool, ...] | UnknownFact
    ksm: Ksm | UnknownFact | None
    thp: str | UnknownFact | None
    thp_defrag: str | UnknownFact | None
    swappiness: int | UnknownFact
    numa_balancing: int | UnknownFact | None


@dataclasses.dataclass(frozen=True, slots=True)
class Interrupt:
    """A device interrupt.

    :ivar name: of the driver or queue; empty if nothing uses it
    :ivar allowed: the CPUs that may be chosen for it
    :ivar effective: the CPUs that get it, None on a kernel that does not say
    """

    number: int
    name: str
    allowed: Cpus
    effective: Cpus | None


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program or a thread of the kernel that runs beside the guests.

    :ivar cpus: the CPUs on which any of its threads may run
    :ivar unit: the uppermost control group, such as ``system.slice``; empty
        if it has none
    """

    name: str
    cpus: Cpus
    unit: str
    is_kernel: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class KernelFacts:
    """The kernel, and the programs that run beside the guests.

    :ivar command_line: the parameters, each NAME or NAME=VALUE, in order
    :ivar nested_paging: whether KVM uses EPT, NPT or the like; None if KVM is
        not loaded or its architecture always has it
    :ivar nested_parameter: ``kvm_intel.ept``, or None likewise
    :ivar has_kvm: whether KVM can run guests
    :ivar running: all programs but guests, and the threads of the kernel that
        can be kept on other CPUs than they may use
    :ivar watched_cpus: those that the watchdogs watch; none without watchdogs
    :ivar worker_cpus: those of unbound work of the kernel, likewise
    :ivar interrupts: without those of single CPUs
    :ivar banned_cpus: the CPUs to which irqbalance gives no interrupts by its
        configuration, None if that names none
    :ivar programs: the names of all programs that root runs
    :ivar vulnerabilities: name -> state, as the kernel words it
    :ivar tuned_profile: None without an active profile
    :ivar has_tuned: whether tuned is installed
    """

    release: str | UnknownFact
    command_line: tuple[str, ...] | UnknownFact
    has_kvm: bool | UnknownFact
    nested_paging: bool | UnknownFact | None
    nested_parameter: str | UnknownFact | None
    isolated: Cpus | UnknownFact
    nohz_full: Cpus | UnknownFact
    running: frozenset[Program] | UnknownFact
    watched_cpus: Cpus | UnknownFact
    worker_cpus: Cpus | UnknownFact
    interrupts: tuple[Interrupt, ...] | UnknownFact
    banned_cpus: Cpus | UnknownFact | None
    programs: frozenset[str] | UnknownFact
    vulnerabilities: Mapping[str, str] | UnknownFact
    has_tuned: bool | UnknownFact
    tuned_profile: str | UnknownFact | None


@dataclasses.dataclass(frozen=True, slots=True)
class VirtualFunctions:
    """The virtual functions of a device.

    :ivar count: how many exist
    :ivar cells: the cells that they say they are near to
    """

    address: str
    count: int
    cells: frozenset[int | None]


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The devices.

    :ivar iommus: their names
    :ivar iommu_types: the types of the default domains of the groups:
        ``identity``, ``DMA``, ``DMA-FQ``; empty on a kernel that does not say
    :ivar functions: of each device that supports SR-IOV
    :ivar creators: device address -> the files that create its virtual
        functions at boot; ``*`` for files that name no device
    :ivar firmware: ``BIOS`` or the model of a device -> the version, or the
        versions of several such devices
    """

    iommus: tuple[str, ...] | UnknownFact
    iommu_types: frozenset[str] | UnknownFact
    functions: tuple[VirtualFunctions, ...] | UnknownFact
    creators: Mapping[str, tuple[str, ...]] | UnknownFact
    firmware: Mapping[str, str] | UnknownFact


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryController:
    """A memory controller that EDAC watches, with its errors since the boot.

    :ivar channels: (type of the memory, channel) -> its MiB; empty if the
        driver does not say
    """

    name: str
    corrected: int
    uncorrected: int
    channels: Mapping[tuple[str, str], int]


@dataclasses.dataclass(frozen=True, slots=True)
class HardwareFacts:
    """How well the hardware does.

    :ivar limits: the percentage of their highest frequency that CPUs may have
        -> CPUs
    :ivar throttled: the longest time since the boot for which a CPU was
        throttled, in seconds, or how often if the kernel only counts that;
        None if it does neither
    :ivar links: of storage, network and display devices and accelerators
    :ivar controllers: empty without a driver of EDAC
    """

    uptime_s: int | UnknownFact
    limits: Mapping[int, Cpus] | UnknownFact
    throttled: int | UnknownFact | None
    links: tuple[hardware_state.PcieLink, ...] | UnknownFact
    controllers: tuple[MemoryController, ...] | UnknownFact


@dataclasses.dataclass(frozen=True, slots=True)
class NovaFacts:
    """The options of nova-compute.

    :ivar files: the files that were read, in the order in which a later one
        has the last word
    :ivar options: (group, option) -> its values, in order
    :ivar unreadable: those of the files that the user nova cannot read
    """

    files: tuple[str, ...]
    options: Mapping[tuple[str, str], tuple[str, ...]]
    unreadable: tuple[str, ...] = ()

    def all(self, group: str, name: str) -> tuple[str, ...]:
        """Return every value of an option that may be repeated."""
        return self.options.get((group, name), ())

    def get(self, group: str, name: str, default: str = '') -> str:
        """Return the value of an option that has one."""
        values = self.all(group, name)
        return values[-1] if values else default

    def is_true(self, group: str, name: str) -> bool:
        """Whether a switch is on, as oslo.config reads it."""
        return self.get(group, name).lower() in ('true', '1', 'on', 'yes')


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """A host.

    :ivar host: the topology
    :ivar settings: the text of each of :data:`SETTINGS`, None if the kernel
        does not have the file
    :ivar nova: None if no configuration of nova-compute is there
    """

    name: str
    host: host_model.Host | UnknownFact
    cpu: CpuFacts
    memory: MemoryFacts
    kernel: KernelFacts
    devices: DeviceFacts
    hardware: HardwareFacts
    settings: Mapping[str, str | UnknownFact | None]
    nova: NovaFacts | UnknownFact | None
