# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the CPUs: sysfs and ``/proc/cpuinfo``."""

import re
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import facts
from hpcvirt.audit.fact import fact
from hpcvirt.audit.fact import NotKnown
from hpcvirt.audit.reading import files as files_module

Files = files_module.Files

_CPU = 'sys/devices/system/cpu'

#: Far more than one CPU has in cpuinfo, and far less than all have.
_CPUINFO_BYTES = 32 * 1024

_LATENCY = 'dev/cpu_dma_latency'

#: The value that the kernel reports while no program limits the latency:
#: PM_QOS_CPU_LATENCY_DEFAULT_VALUE in include/linux/pm_qos.h.
_NO_LIMIT_US = 2_000_000_000

_HYPERVISORS = re.compile('QEMU|KVM|VMware|Xen|Virtual Machine|OpenStack',
                          re.IGNORECASE)


def read(files: Files, online: Callable[[], frozenset[int]],
         ) -> facts.CpuFacts:
    """Read the CPUs.

    :param online: returns the CPUs that are online
    """
    return facts.CpuFacts(
        vendor=fact(lambda: _vendor(files)),
        is_guest=fact(lambda: _is_guest(files)),
        smt=fact(lambda: files.text(f'{_CPU}/smt/control', _CPU)),
        frequencies=fact(lambda: tuple(_frequencies(files))),
        no_turbo=fact(lambda: files.flag(f'{_CPU}/intel_pstate/no_turbo',
                                         _CPU)),
        boost=fact(lambda: files.flag(f'{_CPU}/cpufreq/boost', _CPU)),
        idle_states=fact(lambda: _idle_states(files, online())),
        wake_limit_us=fact(lambda: _wake_limit_us(files)),
        microcode=fact(lambda: _microcode(files, online())))


def _info(files: Files) -> str:
    return files.beginning('proc/cpuinfo', _CPUINFO_BYTES)


def _vendor(files: Files) -> str | None:
    match = re.search(r'^vendor_id\s*:\s*(\S+)$', _info(files), re.MULTILINE)
    return match[1] if match else None


def _is_guest(files: Files) -> bool:
    flags = re.search(r'^flags\s*:(.*)$', _info(files), re.MULTILINE)
    if flags:
        return 'hypervisor' in flags[1].split()
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


def _frequencies(files: Files) -> Iterator[facts.Frequency]:
    for here, cpus in policies(files):
        yield facts.Frequency(
            cpus, files.need(f'{here}/scaling_driver'),
            files.need(f'{here}/scaling_governor'),
            files.text(f'{here}/energy_performance_preference', here),
            files.flag(f'{here}/boost', here))


def _idle_states(files: Files,
                 online: frozenset[int]) -> tuple[facts.IdleState, ...]:
    cpus: dict[tuple[str, int], set[int]] = {}
    for cpu in sorted(online):
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
    return tuple(facts.IdleState(name, latency_us, frozenset(members))
                 for (name, latency_us), members in cpus.items())


def _own_limit_us(files: Files, cpu: int) -> int | None:
    """Read the longest latency that is set for one CPU."""
    here = f'{_CPU}/cpu{cpu}/power/pm_qos_resume_latency_us'
    text = files.text(here, _CPU)
    if text == 'n/a':  # none is tolerated
        return 0
    return (files.number(here, _CPU) or None) if text else None


def _wake_limit_us(files: Files) -> int | None:
    """Read the limit set by the programs that hold the device."""
    number = files.latency_us(_LATENCY)
    return None if number >= _NO_LIMIT_US else number


def _microcode(files: Files, online: frozenset[int],
               ) -> Mapping[str, frozenset[int]] | None:
    versions: dict[str, set[int]] = {}
    for cpu in sorted(online):
        version = files.text(f'{_CPU}/cpu{cpu}/microcode/version', _CPU)
        if version is None:
            return None
        versions.setdefault(version, set()).add(cpu)
    return {version: frozenset(cpus) for version, cpus in versions.items()}
