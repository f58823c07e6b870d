# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the CPUs: sysfs and ``/proc/cpuinfo``."""

import dataclasses
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit.fact import NotKnown
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.files import Fact
from hpcvirt.audit.reading.files import FactGroup
from hpcvirt.audit.reading.files import Files

_CPU = 'sys/devices/system/cpu'

#: Far more than one CPU has in cpuinfo, and far less than all have.
_CPUINFO_BYTES = 32 * 1024

#: The value that the kernel reports while no program limits the latency:
#: PM_QOS_CPU_LATENCY_DEFAULT_VALUE in include/linux/pm_qos.h.
_NO_LIMIT_US = 2_000_000_000

_HYPERVISORS = re.compile('QEMU|KVM|VMware|Xen|Virtual Machine|OpenStack',
                          re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency scaling of CPUs.

    :ivar preference: the energy performance preference, None without one
    :ivar boost: of this policy, None if the driver has one switch for all
    """

    cpus: frozenset[int]
    driver: str
    governor: str
    preference: str | None
    boost: bool | None


def _info(files: Files) -> str:
    return files.beginning('proc/cpuinfo', _CPUINFO_BYTES)


def _vendor(files: Files) -> str | None:
    match = re.search(r'^vendor_id\s*:\s*(\S+)$', _info(files), re.MULTILINE)
    return match[1] if match else None


def _flags(files: Files) -> frozenset[str]:
    flags = re.search(r'^flags\s*:(.*)$', _info(files), re.MULTILINE)
    return frozenset(flags[1].split() if flags else ())


def _address_bits(files: Files) -> int | None:
    match = re.search(r'^address sizes\s*:\s*([0-9]{1,3}) bits physical',
                      _info(files), re.MULTILINE)
    return int(match[1]) if match else None


def _is_guest(files: Files) -> bool:
    flags = _flags(files)
    if flags:
        return 'hypervisor' in flags
    # Arm has no such flag; the firmware of a guest names the hypervisor.
    names = [files.text(f'sys/class/dmi/id/{name}', _CPU) or ''
             for name in ('sys_vendor', 'product_name')]
    return any(_HYPERVISORS.search(name) for name in names)


def policies(files: Files) -> Iterator[tuple[str, frozenset[int]]]:
    """List the folders of cpufreq, each with its CPUs."""
    for name in files.names(f'{_CPU}/cpufreq', _CPU):
        if not re.fullmatch('policy[0-9]+', name):
            continue
        here = f'{_CPU}/cpufreq/{name}'
        try:
            text = files.need(f'{here}/affected_cpus')
        except NotKnown as exc:  # Linux 5.19 gives no file if all are offline
            if 'busy' in exc.unknown.problem:
                continue
            raise
        cpus = files_module.parse_cpus(','.join(text.split()),
                                       f'{here}/affected_cpus')
        if cpus:
            yield here, cpus


def _frequencies(files: Files) -> tuple[Frequency, ...]:
    return tuple(Frequency(
        cpus, files.need(f'{here}/scaling_driver'),
        files.need(f'{here}/scaling_governor'),
        files.text(f'{here}/energy_performance_preference', here),
        files.flag(f'{here}/boost', here)) for here, cpus in policies(files))


def _idle_states(files: Files) -> Mapping[tuple[str, int], frozenset[int]]:
    cpus: dict[tuple[str, int], set[int]] = {}
    for cpu in sorted(files.topology().cpus):
        here = f'{_CPU}/cpu{cpu}/cpuidle'
        limit_us = _own_limit_us(files, cpu)
        for state in files.names(here, _CPU):
            if not re.fullmatch('state[0-9]+', state):
                continue
            latency_us = files.need_number(f'{here}/{state}/latency')
            if (not files.need_number(f'{here}/{state}/disable')
                    and (limit_us is None or latency_us <= limit_us)):
                cpus.setdefault((files.need(f'{here}/{state}/name'),
                                 latency_us), set()).add(cpu)
    return {state: frozenset(members) for state, members in cpus.items()}


def _own_limit_us(files: Files, cpu: int) -> int | None:
    """Read the longest latency that is set for one CPU."""
    here = f'{_CPU}/cpu{cpu}/power/pm_qos_resume_latency_us'
    text = files.text(here, _CPU)
    if text == 'n/a':  # none is tolerated
        return 0
    return (files.number(here, _CPU) or None) if text else None


def _wake_limit_us(files: Files) -> int | None:
    """Read the limit set by the programs that hold the device."""
    number = files.latency_us('dev/cpu_dma_latency')
    return None if number >= _NO_LIMIT_US else number


def _microcode(files: Files) -> Mapping[str, frozenset[int]] | None:
    versions: dict[str, set[int]] = {}
    for cpu in sorted(files.topology().cpus):
        version = files.text(f'{_CPU}/cpu{cpu}/microcode/version', _CPU)
        if version is None:
            return None
        versions.setdefault(version, set()).add(cpu)
    return {version: frozenset(cpus) for version, cpus in versions.items()}


class CpuFacts(FactGroup):
    """The CPUs."""

    #: ``GenuineIntel``, ``AuthenticAMD``; None on other architectures than
    #: x86.
    vendor = Fact(_vendor)
    #: The features of the processor, in the words of the kernel; none on
    #: other architectures.
    flags = Fact(_flags)
    #: The width of physical addresses; None on other architectures.
    address_bits = Fact(_address_bits)
    #: Whether the machine is itself a guest.
    is_guest = Fact(_is_guest)
    #: ``on``, ``off``, ``forceoff``, ``notsupported`` and so on; None if the
    #: architecture has no such control.
    smt = Fact(Files.text, f'{_CPU}/smt/control', _CPU)
    frequencies = Fact(_frequencies)
    #: Of intel_pstate, None without this driver.
    no_turbo = Fact(Files.flag, f'{_CPU}/intel_pstate/no_turbo', _CPU)
    #: Of cpufreq, None without such a switch.
    boost = Fact(Files.flag, f'{_CPU}/cpufreq/boost', _CPU)
    #: The name of a C-state, and the microseconds that it takes to leave it ->
    #: the CPUs that may enter it.
    idle_states = Fact(_idle_states)
    #: The longest exit latency that a program allows at present, None if no
    #: program limits it.
    wake_limit_us = Fact(_wake_limit_us)
    #: Version -> CPUs, None without such versions.
    microcode = Fact(_microcode)
