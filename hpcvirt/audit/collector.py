# SPDX-License-Identifier: Apache-2.0

"""Write the script that captures a host for an audit.

The script runs where there is no Python. What it takes stands here: a test
compares it with the files that an audit and a topology read.
"""

import pathlib

from hpcvirt.audit.reading import devices
from hpcvirt.audit.reading import nova

_SCRIPT = pathlib.Path(__file__).with_suffix('.sh')

#: Files that are copied as they are.
_COPIED = """
etc/default/irqbalance etc/hostname etc/sysconfig/irqbalance
etc/tuned/active_profile etc/tuned/tuned-main.conf
proc/cpuinfo proc/meminfo
proc/[0-9]*/cgroup proc/[0-9]*/comm proc/[0-9]*/status
proc/[0-9]*/task/*/status
proc/irq/*/effective_affinity_list proc/irq/*/smp_affinity_list
proc/sys/kernel/hostname proc/sys/kernel/numa_balancing
proc/sys/kernel/osrelease proc/sys/vm/swappiness
sys/bus/pci/devices/*/class sys/bus/pci/devices/*/device
sys/bus/pci/devices/*/numa_node sys/bus/pci/devices/*/sriov_numvfs
sys/bus/pci/devices/*/sriov_totalvfs sys/bus/pci/devices/*/sriov_vf_device
sys/bus/pci/devices/*/uevent sys/bus/pci/devices/*/vendor
sys/bus/pci/devices/*/virtfn*/numa_node
sys/class/dmi/id/bios_date sys/class/dmi/id/bios_vendor
sys/class/dmi/id/bios_version
sys/class/dmi/id/product_name sys/class/dmi/id/sys_vendor
sys/class/infiniband/*/board_id sys/class/infiniband/*/fw_ver
sys/class/nvme/*/firmware_rev sys/class/nvme/*/model
sys/devices/system/cpu/* sys/devices/system/cpu/cpu*/cache/*/level
sys/devices/system/cpu/cpu*/cache/*/shared_cpu_list
sys/devices/system/cpu/cpu*/cache/*/shared_cpu_map
sys/devices/system/cpu/cpu*/cache/*/type
sys/devices/system/cpu/cpu*/cpuidle/*/disable
sys/devices/system/cpu/cpu*/cpuidle/*/latency
sys/devices/system/cpu/cpu*/cpuidle/*/name
sys/devices/system/cpu/cpu*/microcode/version
sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us
sys/devices/system/cpu/cpu*/topology/core_cpus
sys/devices/system/cpu/cpu*/topology/core_cpus_list
sys/devices/system/cpu/cpu*/topology/physical_package_id
sys/devices/system/cpu/cpu*/topology/thread_siblings
sys/devices/system/cpu/cpu*/topology/thread_siblings_list
sys/devices/system/cpu/cpufreq/boost
sys/devices/system/cpu/cpufreq/*/affected_cpus
sys/devices/system/cpu/cpufreq/*/boost
sys/devices/system/cpu/cpufreq/*/energy_performance_preference
sys/devices/system/cpu/cpufreq/*/scaling_driver
sys/devices/system/cpu/cpufreq/*/scaling_governor
sys/devices/system/cpu/intel_pstate/no_turbo
sys/devices/system/cpu/smt/control sys/devices/system/cpu/vulnerabilities/*
sys/devices/system/node/online sys/devices/system/node/*/cpulist
sys/devices/system/node/*/cpumap sys/devices/system/node/*/distance
sys/devices/system/node/*/hugepages/*/free_hugepages
sys/devices/system/node/*/hugepages/*/nr_hugepages
sys/devices/system/node/*/hugepages/*/surplus_hugepages
sys/devices/system/node/*/meminfo sys/devices/system/node/*/vmstat
sys/kernel/iommu_groups/*/type
sys/kernel/mm/hugepages/*/free_hugepages
sys/kernel/mm/hugepages/*/nr_hugepages
sys/kernel/mm/hugepages/*/surplus_hugepages
sys/kernel/mm/ksm/full_scans sys/kernel/mm/ksm/merge_across_nodes
sys/kernel/mm/ksm/pages_shared sys/kernel/mm/ksm/run
sys/kernel/mm/transparent_hugepage/defrag
sys/kernel/mm/transparent_hugepage/enabled
sys/module/kvm*/parameters/*
"""

#: Folders that are only named.
_FOLDERS = 'proc/irq/*/*/ sys/class/iommu/*/ sys/class/misc/*/ sys/module/*/'


def make_script() -> str:
    """Write the script."""
    names = {name for (_, option), before in nova.OPTIONS.items()
             for name in (option, *(old for _, old in before))}
    table = [('copy', name) for name in _COPIED.split()]
    table += [('folder', name) for name in _FOLDERS.split()]
    table += [('nova', name) for name in nova.PATTERNS]
    table += [('creator', name) for name in devices.PATTERNS]
    table += [('parameters', 'proc/cmdline'),
              ('latency', 'dev/cpu_dma_latency')]
    text = _SCRIPT.read_text()
    for word, value in (
            ('OPTIONS', ' '.join(sorted(names))),
            ('WORDS', f'{devices.WORDS.pattern}|{devices.ADDRESS.pattern}'),
            ('TABLE', '\n'.join(map(' '.join, table)))):
        text = text.replace(f'@{word}@', value)
    return text
