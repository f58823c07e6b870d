# SPDX-License-Identifier: Apache-2.0

"""Capture the files of /proc, /sys and /etc that describe this machine.

    python3 capture.py [FILE]

The program needs only Python, so that it runs on any machine. It writes one
file per line, as ``tests/data/hosts/README.rst`` describes.
"""

import os
import pathlib
import re
import sys
from collections.abc import Iterator

#: The files, as regular expressions of their real paths.
WANTED = re.compile('|'.join((
    '/etc/.*',
    '/proc/(cmdline|cpuinfo|interrupts|meminfo|modules|slabinfo|stat|swaps)',
    '/proc/(version|vmstat|irq/default_smp_affinity|irq/[0-9]+/[a-z_]*list)',
    '/proc/sys/vm/.*',
    '/proc/sys/kernel/(hostname|osrelease|numa_.*|sched_.*|.*watchdog.*)',
    '/proc/[0-9]+/(comm|cmdline)',
    '/sys/devices/system/cpu/[^/]*',
    '/sys/devices/system/cpu/(smt|vulnerabilities|intel_pstate|cpuidle)/.*',
    '/sys/devices/system/cpu/cpu[0-9]+/(topology|cache|microcode|cpuidle)/.*',
    '/sys/devices/system/cpu/cpu[0-9]+/(online|thermal_throttle/.*)',
    '/sys/devices/system/cpu/(cpufreq|cpu[0-9]+/cpufreq)/.*',
    '/sys/devices/system/node/[^/]*',
    '/sys/devices/system/node/node[0-9]+/(cpulist|distance|meminfo|vmstat)',
    '/sys/devices/system/node/node[0-9]+/hugepages/.*/(nr|free)_hugepages',
    '/sys/devices/system/(clocksource/clocksource0|edac)/.*',
    '/sys/kernel/mm/(hugepages|ksm|transparent_hugepage)/.*',
    '/sys/module/(kvm.*|nvme|vfio.*|intel_idle|processor)/parameters/.*',
    '/sys/devices/virtual/dmi/id/(bios|board|chassis|product|sys)_.*',
    ('/sys/devices/pci[^/]*/(.*/)?[0-9a-f:]{10}\\.[0-7]/'
     '(class|device|vendor|numa_node|sriov_.*|local_cpulist|driver|uevent'
     '|subsystem_.*|physfn|virtfn[0-9]+|msi_irqs/.*|iommu_group)'),
    '/sys/devices/pci.*/net/[^/]+/(address|operstate|device|mtu|speed)',
    '/sys/kernel/iommu_groups/[0-9]+/(type|devices/.*)',
    '/sys/(bus/pci/devices|class/net|class/iommu|class/dmi)/[^/]*',
)))

#: Values that differ between equal machines.
UNWANTED = re.compile(
    '/etc/(group|ld.so.cache|passwd)|/proc/sys/vm/stat_refresh'
    '|/sys/devices/system/cpu/cpu[0-9]+|.*/(uevent|id)|.*/power/.*'
    '|.*/(core|package|die|cluster|thread)_(cpus|siblings)|.*/shared_cpu_map')

TOPS = ('/etc', '/proc/irq', '/proc/sys/kernel', '/proc/sys/vm',
        '/sys/bus/pci/devices', '/sys/class/dmi', '/sys/class/iommu',
        '/sys/class/net', '/sys/devices/system', '/sys/devices/virtual/dmi',
        '/sys/kernel/iommu_groups', '/sys/kernel/mm', '/sys/module')
MAX_BYTES = 128 * 1024


def lines() -> Iterator[str]:
    """Describe each wanted file or link in one line."""
    for path in sorted(set(_paths())):
        name = path[1:]
        if os.path.islink(path):
            yield f'{name} -> {os.readlink(path)}'
            continue
        try:
            with open(path, 'rb') as stream:
                data = stream.read(MAX_BYTES)
        except OSError:
            continue
        text = data.decode(errors='replace').strip('\n')
        content = text.replace('\n', '\\n').replace('\0', ' ')
        yield f'{name} = {content}'.rstrip()


def _paths() -> Iterator[str]:
    tops = [*TOPS, *map(str, pathlib.Path('/sys/devices').glob('pci*')),
            *_programs()]
    for top in tops:
        for directory, directories, files in os.walk(top):
            links = [name for name in directories
                     if os.path.islink(os.path.join(directory, name))]
            for name in files + links:
                path = os.path.join(directory, name)
                if WANTED.fullmatch(path) and not UNWANTED.fullmatch(path):
                    yield path
    for path in map(str, pathlib.Path('/proc').iterdir()):
        if WANTED.fullmatch(path):
            yield path


def _programs() -> Iterator[str]:
    """List the processes, but no thread of the kernel and not this one."""
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            if path.read_bytes() and path.parent.name != str(os.getpid()):
                yield str(path.parent)
        except OSError:  # it has ended
            continue


def main() -> int:
    """Write the lines to the file, or to the standard output."""
    text = ''.join(f'{line}\n' for line in lines())
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
