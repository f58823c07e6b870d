# SPDX-License-Identifier: Apache-2.0

"""Choose the settings of the operating system of a host, each with a reason.

:mod:`hpcvirt.deployment` writes these values into files, and
:mod:`hpcvirt.audit` compares them with the values of a host.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator

from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset

#: ``/sys/kernel/mm/ksm/run``: ksmd stops, and merged pages are separated.
KSM_STOPPED = '2'

#: The units in which systemd runs everything but guests.
HOST_UNITS = ('system.slice', 'user.slice', 'init.scope')

#: The file with :func:`format_banned_cpus`.
IRQBALANCE = 'etc/systemd/system/irqbalance.service.d/90-hpcvirt.conf'

#: The longest time that an idle CPU may take to wake up. It is the limit of
#: TuneD's profile virtual-host for processors without a third idle state
#: (cstate.id_no_zero:3|70). On Intel servers the third state is C6, which
#: takes 133 to 290 us.
MAX_LATENCY_US = 70

#: The parameter with which the IOMMU does not translate the DMA of the host
#: itself. ``iommu=pt`` means the same, but only on x86.
HOST_DMA = 'iommu.passthrough=1'


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A value that a host should have.

    :ivar name: the name that the kernel or the module gives it
    :ivar why: one sentence
    :ivar source: the key of a document in the bibliography
    """

    name: str
    value: str
    why: str
    source: str

    def __str__(self) -> str:
        """Write it as the kernel and modprobe take it."""
        return f'{self.name}={self.value}'


@dataclasses.dataclass(frozen=True, slots=True)
class KernelSettings:
    """The settings of the operating system of a host.

    :ivar isolated: the dedicated CPUs and their SMT siblings
    :ivar housekeeping: the CPUs of the host's own processes and interrupts;
        empty if guests get all CPUs, which they then share with the host
    :ivar pages: cell -> page size in KiB -> the huge pages to reserve; every
        cell has an entry for every size of the host
    :ivar default_page_kib: the value of ``default_hugepagesz``; None without
        huge pages
    :ivar parameters: the parameters of the kernel command line, in its order
    :ivar sysctls: values of ``/proc/sys``
    :ivar module_options: module -> options
    """

    isolated: frozenset[int]
    housekeeping: frozenset[int]
    pages: dict[int, dict[int, int]]
    default_page_kib: int | None
    parameters: tuple[Value, ...]
    sysctls: tuple[Value, ...]
    module_options: dict[str, Value]


def make_state(planned: plans.PlannedHost) -> KernelSettings:
    """Choose the settings of a planned host."""
    dedicated = planned.settings.dedicated
    cores = itertools.chain.from_iterable(
        cell.siblings for cell in planned.host.cells)
    used_cores = [core for core in cores if core & dedicated]
    isolated = dedicated.union(*used_cores) - planned.settings.shared
    housekeeping = planned.host.cpus - isolated
    small = memory.small_page_kib(planned.host)
    every_size: set[int] = set()
    for numbers in planned.settings.pages.values():
        every_size.update(numbers)
    sizes = sorted(every_size - {small})
    pages = {cell: {size: found.get(size, 0) for size in sizes}
             for cell, found in planned.settings.pages.items()}
    used = [size for size in sizes
            if any(found[size] for found in pages.values())]
    default = used[0] if used else None
    if planned.page_kib in used:
        default = planned.page_kib
    sysctls = [Value('vm.swappiness', '1', 'The kernel swaps guests and '
                     'programs of the host out only if nothing else helps.',
                     'Linux-Vm')]
    # On a host with cells of slow memory, 0 would disable memory tiering.
    if all(cell.cpus for cell in planned.host.cells):
        sysctls.append(Value(
            'kernel.numa_balancing', '0', 'Guests have memory of their own '
            'cells, so scanning it for pages to migrate only causes page '
            'faults.', 'Linux-Kernel'))
    return KernelSettings(
        isolated, housekeeping, pages, default,
        (*_page_parameters(pages, used, default),
         *_parameters(planned, isolated, housekeeping)), tuple(sysctls),
        {module: Value(option, '1', 'With nested paging off, some jobs of '
                       'CERN took ten times as long.', 'CERN-HEPiX-2015')
         for module, option in (('kvm_intel', 'ept'), ('kvm_amd', 'npt'))})


def _page_parameters(pages: dict[int, dict[int, int]], used: list[int],
                     default: int | None) -> Iterator[Value]:
    if default is not None:
        yield Value('default_hugepagesz', memory.page_name(default).upper(),
                    'The pages of guests are the usual huge pages.',
                    'Linux-Hugetlb')
    for size in used:
        counts = ','.join(f'{cell}:{found[size]}' for cell, found
                          in pages.items() if found[size])
        yield Value('hugepagesz', memory.page_name(size).upper(),
                    'The next parameter is about pages of this size.',
                    'Linux-Hugetlb')
        yield Value('hugepages', counts, 'Each cell has the pages that its '
                    'guests and programs of the host need; Linux before 5.16 '
                    'does not know this form and reserves none.',
                    'Linux-Hugetlb')


def _parameters(planned: plans.PlannedHost, isolated: frozenset[int],
                housekeeping: frozenset[int]) -> Iterator[Value]:
    """Choose the parameters for CPUs, normal pages and devices."""
    if housekeeping and isolated:
        yield Value('nohz_full', cpuset.render(isolated), 'The timer does not '
                    'interrupt a dedicated CPU that runs one thread.',
                    'Tuned-Partitioning')
        yield Value('rcu_nocbs', cpuset.render(isolated), 'RCU callbacks run '
                    'on the CPUs of the host.', 'Tuned-Partitioning')
        yield Value('irqaffinity', cpuset.render(housekeeping), 'Interrupts '
                    'go to the CPUs of the host.', 'Linux-Parameters')
    if planned.page_kib != memory.small_page_kib(planned.host):
        yield Value('transparent_hugepage', 'madvise', 'Guests have reserved '
                    'huge pages; other programs of the host get huge pages '
                    'only if they ask for them.', 'Linux-Parameters')
    else:
        yield Value('transparent_hugepage', 'always', 'Guests have normal '
                    'pages, which the kernel joins to huge ones.',
                    'Linux-Parameters')
    if planned.settings.pci_device_spec:
        processor = planned.host.processor
        if processor is None or re.search('Intel|Xeon', processor):
            yield Value('intel_iommu', 'on', 'Guests get devices of the host; '
                        'IOMMUs of other vendors are always on.',
                        'Nova-Devices')
        name, value = HOST_DMA.split('=')
        yield Value(name, value, 'Devices of the host itself are not slowed '
                    'by the translation.', 'Linux-Parameters')


def format_allowed_cpus(unit: str, cpus: str) -> tuple[str, str]:
    """Write the lines that limit one of :data:`HOST_UNITS` to CPUs."""
    kind = unit.rpartition('.')[2].capitalize()
    return f'[{kind}]', f'AllowedCPUs={cpus}'


def format_banned_cpus(cpus: str) -> tuple[str, str]:
    """Write the lines of a drop-in that keep irqbalance off CPUs."""
    return '[Service]', f'Environment=IRQBALANCE_BANNED_CPULIST={cpus}'


def format_vf_rule(address: str, count: int) -> str:
    """Write the udev rule that creates the virtual functions of a device.

    Only a bound driver can create them. If the initramfs has bound the driver,
    udev of the root file system sees only the event "add"; otherwise, the
    virtual functions are created at the later event "bind".
    """
    return (f'ACTION=="add|bind", SUBSYSTEM=="pci", KERNEL=="{address}", '
            f'ATTR{{sriov_numvfs}}="{count}"')


#: What the rule of GUIDs runs, with the number of virtual functions. The
#: network device gets its name after the rules, so that $name and $devpath are
#: those of a device that is gone if the root file system has the driver; the
#: environment has the present ones. The driver ignores a number of virtual
#: functions that there are already. A GUID is that of the port, with the bit
#: of locally administered addresses and the number of the virtual function in
#: the two bytes that are the same on all ports.
_SET_GUIDS = (
    'n=$INTERFACE; count=$1; cd /sys$DEVPATH && '
    'echo $count >device/sriov_numvfs; '
    'IFS=:; set -- $(tail -c 24 address); unset IFS; '
    'first=$(printf %02x $((0x$1 ^ 2))); i=0; '
    'while [ $i -lt $count ]; do '
    'vf_id=$(printf %02x:%02x $(((i + 1) / 256)) $(((i + 1) % 256))); '
    'guid=$first:$2:$3:$vf_id:$6:$7:$8; '
    'ip link set dev $n vf $i node_guid $guid; '
    'ip link set dev $n vf $i port_guid $guid; '
    'ip link set dev $n vf $i state auto; i=$((i + 1)); done')


def format_guid_rule(address: str, count: int) -> str:
    """Write the udev rule that makes InfiniBand virtual functions usable.

    Without GUIDs and a policy, their ports stay down. Type 32 is InfiniBand:
    the rule does nothing for a card that is set to Ethernet, which a topology
    does not say.
    """
    script = _SET_GUIDS.replace('%', '%%').replace('$', '$$')
    return (f'ACTION=="add", SUBSYSTEM=="net", KERNELS=="{address}", '
            f'ATTR{{type}}=="32", RUN+="/bin/sh -c \'{script}\' sh {count}"')


#: The words of ethtool that end the moderation of interrupts.
UNMODERATED = {'adaptive-rx': 'off', 'rx-usecs': '0'}


def list_network_words(profile: profiles.Profile) -> dict[str, dict[str, str]]:
    """List what ethtool sets on each network device: option -> its words."""
    found = {}
    if not profile.moderate_interrupts:
        found['-C'] = UNMODERATED
    if profile.ring_entries is not None:
        entries = str(profile.ring_entries)
        found['-G'] = {'rx': entries, 'tx': entries}
    return found


def format_network_commands(profile: profiles.Profile, device: str) -> str:
    """Write the commands that set a network device; empty if none do."""
    commands = []
    for option, words in list_network_words(profile).items():
        pairs = ' '.join(f'{name} {value}' for name, value in words.items())
        commands.append(f'ethtool {option} {device} {pairs}')
    return '; '.join(commands)


def format_network_rule(profile: profiles.Profile) -> str:
    """Write the udev rule for the interrupts and rings of network devices.

    It is for functions of PCI devices. Their names are taken from the
    environment, as for GUIDs.

    :returns: empty if all is left to the drivers
    """
    commands = format_network_commands(profile, '$$INTERFACE')
    if not commands:
        return ''
    return ('ACTION=="add", SUBSYSTEM=="net", SUBSYSTEMS=="pci", '
            f'RUN+="/bin/sh -c \'{commands}\'"')
