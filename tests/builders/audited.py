# SPDX-License-Identifier: Apache-2.0

"""A host on which an audit finds nothing, as files and as facts."""

import copy
import dataclasses
import functools
import pathlib
import tempfile
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import host as reading
from hpcvirt.deployment import host_files
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from tests.builders import hosts
from tests.builders import sysfs_files
from tests.builders import writers

CPU = 'sys/devices/system/cpu'
NODE = 'sys/devices/system/node'
EDAC = 'sys/devices/system/edac/mc'
NOVA = 'etc/kolla/nova-compute/nova.conf'

#: Two sockets with SMT and a network card of 2 virtual functions on each.
HOST = hosts.build(2, 4, 2, vfs={0: 2, 1: 2})

PROFILE = profiles.build({'devices': [{
    'vendor_id': '15b3', 'product_id': '101e'}]}, 'profile')


def tree(host: host_model.Host = HOST,
         profile: profiles.Profile = PROFILE) -> dict[str, str]:
    """Write the files of a host that is configured for a profile.

    Its /etc is what ``host config`` writes, its /proc and /sys are what that
    leads to.
    """
    plan = planner.plan([host], profile)
    planned = plan.hosts[0]
    state = kernel_settings.make_state(planned)
    own, guests = (cpuset.render(cpus)
                   for cpus in (state.housekeeping, state.isolated))
    memory_kib = sum(cell.memory_mib for cell in host.cells) * 1024
    files = writers.sysfs(host)
    for cell in host.cells:
        here = f'{NODE}/node{cell.id}'
        total = cell.memory_mib * 1024
        files[f'{here}/meminfo'] = '\n'.join(
            f'Node {cell.id} {name}: {kib} kB' for name, kib in (
                ('MemTotal', total), ('MemFree', 3 << 20),
                ('Active(file)', 1024), ('Inactive(file)', 1024),
                ('SReclaimable', 1024)))
        for size, count in state.pages[cell.id].items():
            pool = f'{here}/hugepages/hugepages-{size}kB'
            files |= {f'{pool}/nr_hugepages': str(count),
                      f'{pool}/free_hugepages': str(count),
                      f'{pool}/surplus_hugepages': '0'}
    counts = {item.device.address: item.count for item in planned.offered}
    for device in host.devices:
        files |= _functions(device, counts.get(device.address, 0))
    files['output/lspci'] = ''.join(
        f'{device.address} Ethernet controller: x\n'
        '\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0\n'
        '\t\t\tRlxdOrd+ ExtTag+\n'
        '\t\t\tMaxPayload 512 bytes, MaxReadReq 4096 bytes\n'
        for device in host.devices)
    for cpu in host.cpus:
        here = f'{CPU}/cpu{cpu}/cpuidle/state1'
        files |= {f'{here}/name': 'C1', f'{here}/latency': '2',
                  f'{here}/disable': '0',
                  f'{CPU}/cpu{cpu}/microcode/version': '0x2b000571'}
    return files | sysfs_files.WHOLE | {
        f'{CPU}/smt/control': 'on', f'{CPU}/isolated': '',
        f'{CPU}/nohz_full': guests,
        f'{CPU}/vulnerabilities/meltdown': 'Not affected',
        f'{CPU}/intel_pstate/no_turbo': '0',
        f'{CPU}/cpufreq/policy0/affected_cpus': ' '.join(
            str(cpu) for cpu in sorted(host.cpus)),
        f'{CPU}/cpufreq/policy0/scaling_driver': 'intel_pstate',
        f'{CPU}/cpufreq/policy0/scaling_governor': 'performance',
        f'{CPU}/cpufreq/policy0/scaling_max_freq': '3600000',
        f'{CPU}/cpufreq/policy0/cpuinfo_max_freq': '3600000',
        f'{CPU}/intel_pstate/max_perf_pct': '100',
        **{f'{CPU}/cpu0/thermal_throttle/{part}_throttle_{what}': '0'
           for part in ('core', 'package')
           for what in ('count', 'total_time_ms')},
        **_memory_controllers(), **_settings(own),
        'proc/sys/kernel/watchdog_cpumask': own,
        'sys/devices/virtual/workqueue/cpumask':
            f'{sum(1 << cpu for cpu in cpuset.parse(own)):x}' if own else '0',
        'proc/uptime': '864000.00 12345678.00',
        'sys/class/iommu/dmar0/type': '', 'sys/class/misc/kvm/dev': '10:232',
        'sys/kernel/iommu_groups/1/type': 'identity',
        'sys/kernel/mm/ksm/run': '0',
        'sys/kernel/mm/ksm/merge_across_nodes': '1',
        'sys/kernel/mm/ksm/pages_shared': '0',
        'sys/kernel/mm/ksm/pages_sharing': '0',
        'sys/kernel/mm/ksm/full_scans': '0',
        'sys/kernel/mm/transparent_hugepage/enabled':
            'always [madvise] never',
        'sys/kernel/mm/transparent_hugepage/defrag':
            'always defer defer+madvise [madvise] never',
        'sys/module/kvm_intel/parameters/ept': 'Y',
        'proc/cmdline': f'ro {host_files.command_line(state)}',
        'proc/cpuinfo': 'processor\t: 0\nvendor_id\t: GenuineIntel\n'
                        'flags\t\t: fpu vmx split_lock_detect',
        'proc/meminfo': f'MemTotal: {memory_kib} kB\n'
                        'SwapTotal: 8388608 kB\nSwapFree: 8388608 kB\n'
                        'SUnreclaim: 900000 kB',
        'proc/1/comm': 'systemd', 'proc/40/comm': 'kthreadd',
        'proc/40/status': f'Name:\tkthreadd\nKthread:\t1\n'
                          f'Cpus_allowed_list:\t{own}',
        'proc/40/stat': '40 (kthreadd) S 0 0 0 0 -1 2129984 0 0',
        **process(1, 'systemd', own, 'init.scope'),
        **process(2, 'tuned', own), **process(3, 'irqbalance', own),
        'proc/irq/24/smp_affinity_list': own,
        'proc/irq/24/effective_affinity_list': own,
        'proc/irq/24/mlx5_async0/x': '',
        'proc/sys/kernel/hostname': host.name,
        'proc/sys/kernel/osrelease': '6.1.0',
        'proc/sys/kernel/numa_balancing': '0',
        'proc/sys/vm/swappiness': '1',
        'etc/tuned/active_profile': 'hpcvirt',
        **{file.path: file.text
           for file in host_files.system(planned)},
        NOVA: (next(host_files.nova(planned, plan)).text
               + '[libvirt]\ncpu_mode = host-passthrough'),
    }


def _memory_controllers() -> dict[str, str]:
    """Write what EDAC shows of two controllers with two channels."""
    files = {}
    for number in range(2):
        here = f'{EDAC}/mc{number}'
        files |= {f'{here}/ce_count': '0', f'{here}/ue_count': '0'}
        for channel in range(2):
            dimm = f'{here}/dimm{channel}'
            files |= {f'{dimm}/dimm_location': f'channel {channel} slot 0 ',
                      f'{dimm}/dimm_mem_type': 'Registered-DDR5',
                      f'{dimm}/size': '32768'}
    return files


def _settings(own: str) -> dict[str, str]:
    """Write the files with one value that rules look at."""
    return {
        'proc/sys/vm/zone_reclaim_mode': '0',
        'proc/sys/kernel/nmi_watchdog': '1',
        'proc/sys/kernel/split_lock_mitigate': '0',
        'sys/devices/system/clocksource/clocksource0/current_clocksource':
            'tsc',
        'sys/kernel/mm/transparent_hugepage/khugepaged/defrag': '1',
        'sys/module/kvm/parameters/halt_poll_ns': '200000',
        'sys/module/kvm/parameters/nx_huge_pages': 'N',
        'sys/module/kvm_amd/parameters/pause_filter_count': '3000',
        'sys/module/kvm_intel/parameters/ple_gap': '128' if own else '0'}


SETTINGS = tuple(_settings(''))


def process(number: int, name: str, cpus: str,
            group: str = 'system.slice/a.service') -> dict[str, str]:
    """Write the files of a process of root."""
    return {f'proc/{number}/comm': name,
            f'proc/{number}/cgroup': f'0::/{group}',
            f'proc/{number}/status': f'Name:\t{name}\nVmSize:\t1 kB\n'
                                     f'Cpus_allowed_list:\t{cpus}'}


def _functions(device: host_model.Device, count: int) -> dict[str, str]:
    bus = device.address.rpartition(':')[0]
    here = f'sys/devices/pci0000:00/{device.address}'
    files = {f'{here}/sriov_numvfs': str(count),
             **_port(int(bus[-2:], 16)),
             f'{here}/current_link_speed': '16.0 GT/s PCIe',
             f'{here}/current_link_width': '16',
             f'{here}/max_link_speed': '16.0 GT/s PCIe',
             f'{here}/max_link_width': '16'}
    for number in range(count):
        address = f'{bus}:01.{number}'
        files |= {
            f'{here}/virtfn{number}': sysfs_files.Link(f'../{address}'),
            f'sys/devices/pci0000:00/{address}/numa_node':
                str(device.cell)}
    return files


def facts(files: dict[str, str]):
    """Read files as the facts of a host, all of them."""
    where = '/dev/shm' if pathlib.Path('/dev/shm').is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as root:
        sysfs_files.lay_out(files, root)
        found = reading.read(pathlib.Path(root))
        values(found)
        return found


def values(group: files_module.FactGroup):
    """Read all facts: name -> value, or the reason why it is not known."""
    names = [name for name, each in vars(type(group)).items()
             if isinstance(each, files_module.Fact)]
    found = {name: fact.fact(functools.partial(getattr, group, name))
             for name in names}
    if isinstance(group, reading.HostFacts):
        found |= {path: fact.fact(functools.partial(group.setting, path))
                  for path in SETTINGS}
    return {name: values(value) if isinstance(value, files_module.FactGroup)
            else value for name, value in found.items()}


def replace(group: files_module.FactGroup, **fields):
    """Copy facts with other values; an UnknownFact is one that is not known.

    The other facts are those of the group, as far as it has read them.
    """
    other = copy.copy(group)
    other.known = {**group.known, **fields}
    return other


def _port(bus: int) -> dict[str, str]:
    """Write the files of the port above a bus."""
    here = f'sys/bus/pci/devices/0000:00:{bus // 32:02x}.0'
    return {f'{here}/class': '0x060400', f'{here}/vendor': '0x8086',
            f'{here}/device': '0x352a',
            f'{here}/secondary_bus_number': str(bus),
            f'{here}/max_link_speed': '32.0 GT/s PCIe',
            f'{here}/max_link_width': '16'}


#: Read once: most tests change some of these facts.
GOOD = facts(tree())


class Case(unittest.TestCase):
    """A test of rules."""

    def found(self, code, facts, profile=PROFILE):
        """Return what the findings of a rule say.

        :returns: (severity, what was found) of each
        """
        return [(item.severity.value, item.found) for item
                in audit.audit(facts, profile).findings if item.code == code]

    def check(self, code, expected, facts=GOOD, profile=PROFILE, **parts):
        """Check how severe the findings of a rule are.

        :param expected: their severities, or only how many there are
        :param parts: changes of the facts, see :meth:`but`
        """
        found = [severity for severity, _ in self.found(
            code, self.but(facts, **parts), profile)]
        self.assertEqual(
            expected, found if isinstance(expected, list) else len(found),
            parts)

    def codes(self, facts, profile=PROFILE):
        """Return the codes of all findings."""
        return [item.code for item in audit.audit(facts, profile).findings]

    def but(self, facts=GOOD, nova=None, **parts):
        """Change facts: ``memory={'swappiness': 11}``.

        :param nova: (group, option) -> its values; None takes it away
        """
        changed = {part: replace(getattr(facts, part), **fields)
                   for part, fields in parts.items()}
        if nova is not None:
            options = {**facts.nova.options, **nova}
            changed['nova'] = dataclasses.replace(facts.nova, options={
                name: values for name, values in options.items()
                if values is not None})
        return replace(facts, **changed)


#: The CPUs that the host keeps, those of guests, and one of the latter.
HOUSEKEEPING = kernel_settings.make_state(
    planner.plan([HOST], PROFILE).hosts[0]).housekeeping
GUESTS = HOST.cpus - HOUSEKEEPING
ONE = frozenset({min(GUESTS)})
