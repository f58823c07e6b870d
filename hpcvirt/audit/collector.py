# SPDX-License-Identifier: Apache-2.0

"""Write the script that captures a host for an audit.

The script runs where there is no Python. What it takes stands here: a test
compares it with the files that an audit and a topology read.
"""

import pathlib
from collections.abc import Iterator

from hpcvirt.audit.reading import hardware
from hpcvirt.audit.reading import nova
from hpcvirt.topology import tool_output

_SCRIPT = pathlib.Path(__file__).with_suffix('.sh')

#: Files that are copied as they are: a folder, and names in it.
_COPIED = """
etc/default irqbalance
etc hostname
etc/sysconfig irqbalance
etc/systemd/system/irqbalance.service.d 90-hpcvirt.conf
etc/tuned active_profile tuned-main.conf
proc cpuinfo meminfo uptime
proc/[0-9]* cgroup comm stat status task/*/status
proc/irq/* effective_affinity_list smp_affinity_list
proc/sys/kernel hostname nmi_watchdog numa_balancing osrelease
proc/sys/kernel split_lock_mitigate watchdog_cpumask
proc/sys/vm swappiness zone_reclaim_mode
sys/bus/pci/devices/* class current_link_speed current_link_width device
sys/bus/pci/devices/* max_link_speed max_link_width numa_node
sys/bus/pci/devices/* resource secondary_bus_number sriov_numvfs sriov_totalvfs
sys/bus/pci/devices/* sriov_vf_device uevent vendor virtfn*/numa_node
sys/class/dmi/id bios_date bios_vendor bios_version product_name sys_vendor
sys/class/infiniband/* board_id fw_ver
sys/class/nvme/* firmware_rev model
sys/devices/system/clocksource/clocksource0 current_clocksource
sys/devices/system/cpu * smt/control vulnerabilities/*
sys/devices/system/cpu intel_pstate/max_perf_pct intel_pstate/no_turbo
sys/devices/system/cpu/cpu*/cache/* level shared_cpu_list shared_cpu_map type
sys/devices/system/cpu/cpu*/cpuidle/* disable latency name
sys/devices/system/cpu/cpu* microcode/version power/pm_qos_resume_latency_us
sys/devices/system/cpu/cpu*/thermal_throttle core_throttle_count
sys/devices/system/cpu/cpu*/thermal_throttle core_throttle_total_time_ms
sys/devices/system/cpu/cpu*/thermal_throttle package_throttle_count
sys/devices/system/cpu/cpu*/thermal_throttle package_throttle_total_time_ms
sys/devices/system/cpu/cpu*/topology core_cpus core_cpus_list
sys/devices/system/cpu/cpu*/topology physical_package_id
sys/devices/system/cpu/cpu*/topology thread_siblings thread_siblings_list
sys/devices/system/cpu/cpufreq boost
sys/devices/system/cpu/cpufreq/* affected_cpus bios_limit boost
sys/devices/system/cpu/cpufreq/* cpuinfo_max_freq scaling_max_freq
sys/devices/system/cpu/cpufreq/* scaling_available_frequencies scaling_driver
sys/devices/system/cpu/cpufreq/* energy_performance_preference scaling_governor
sys/devices/system/edac/mc/mc* ce_count ue_count
sys/devices/system/edac/mc/mc*/* dimm_location dimm_mem_type size
sys/devices/system/node online
sys/devices/system/node/* cpulist cpumap distance meminfo vmstat
sys/devices/system/node/*/hugepages/* free_hugepages nr_hugepages
sys/devices/system/node/*/hugepages/* surplus_hugepages
sys/devices/virtual/workqueue cpumask
sys/kernel/iommu_groups/* type
sys/kernel/mm/hugepages/* free_hugepages nr_hugepages surplus_hugepages
sys/kernel/mm/ksm full_scans merge_across_nodes pages_shared pages_sharing run
sys/kernel/mm/transparent_hugepage defrag enabled khugepaged/defrag
sys/module/kvm*/parameters *
"""


def _list_copied() -> Iterator[str]:
    """Yield the patterns of the copied files."""
    for line in _COPIED.strip().splitlines():
        folder, *names = line.split()
        for name in names:
            yield f'{folder}/{name}'


COPIED = tuple(_list_copied())

#: Folders that are only named.
_FOLDERS = ('proc/irq/*/*/', 'sys/class/iommu/*/', 'sys/class/misc/*/',
            'sys/kernel/iommu_groups/*/devices/*/', 'sys/module/*/')


def make_script() -> str:
    """Write the script."""
    options: set[str] = set()
    for (_, option), before in nova.OPTIONS.items():
        options.add(option)
        options.update(old for _, old in before)
    rows: list[str] = []
    for how, patterns in (
            ('copy', COPIED), ('folder', _FOLDERS), ('nova', nova.PATTERNS),
            ('creator', hardware.PATTERNS), ('parameters', ('proc/cmdline',)),
            ('latency', ('dev/cpu_dma_latency',))):
        rows += [f'{how} {pattern}' for pattern in patterns]
    text = _SCRIPT.read_text()
    for word, value in (
            ('OPTIONS', ' '.join(sorted(options))),
            ('WORDS', '|'.join(
                words.pattern for words in (
                    hardware.WORDS, hardware.GUIDS,
                    hardware.ACTIVATION, hardware.MODE,
                    hardware.ADDRESS))),
            ('TABLE', '\n'.join(rows)), ('TOOLS', '\n'.join(
                ' '.join((name, *how)) for name, how
                in tool_output.COMMANDS.items()))):
        text = text.replace(f'@{word}@', value)
    return text
