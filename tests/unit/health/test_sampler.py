# SPDX-License-Identifier: Apache-2.0

"""Samples of machines in files."""

import os
import pathlib
import unittest

from hpcvirt import exception
from hpcvirt.health import sampler
from hpcvirt.health.signature import Quantity
from tests.builders import folders

FILES = {
    'proc/uptime': '1234.56 999.0\n',
    'proc/stat': 'cpu  100 20 30 4000 5 6 7 8 90 1\n'
                 'cpu0 10 2 3 400 5 6 7 8 9 1\ncpu2 1 0 0 900 0 0 0 0 0 0\n'
                 'intr 987654 1 2 3\nctxt 1\n',
    'proc/interrupts':
        '            CPU0       CPU2\n'
        '  0:         10         20   IO-APIC   2-edge      timer\n'
        'TLB:       1000       2345   TLB shootdowns\n'
        'ERR:          7\n',
    'proc/vmstat': 'nr_free_pages 1\npswpin 30\npswpout 12\n',
    'proc/meminfo': 'MemTotal:       65536 kB\nSUnreclaim:      16384 kB\n',
    'sys/devices/system/cpu/isolated': '\n',
    'sys/devices/system/cpu/nohz_full': '2,4\n',
    'sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq': '1200000\n',
    'sys/devices/system/cpu/cpu0/cpufreq/base_frequency': '2400000\n',
    'sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq': '3600000\n',
    'sys/devices/system/cpu/cpu2/acpi_cppc/nominal_freq': '2400\n',
    'sys/kernel/mm/ksm/pages_sharing': '77\n',
    'sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages':
        '512\n',
    'sys/devices/system/node/node0/hugepages/hugepages-2048kB/'
    'free_hugepages': '12\n',
    'sys/devices/system/edac/mc/mc0/ce_count': '3\n',
    'sys/devices/system/edac/mc/mc1/ce_count': '4\n',
    'sys/devices/system/edac/mc/mc1/ue_count': '1\n',
    'sys/devices/system/cpu/cpu0/thermal_throttle/'
    'core_throttle_total_time_ms': '5000\n',
    'sys/devices/system/cpu/cpu0/thermal_throttle/'
    'package_throttle_total_time_ms': '6000\n',
}


def task(number, name, ticks, cpu, flags=0x400000, start=500):
    """The stat line of a task [proc(5)]."""
    fields = ['S', *['0'] * 49]
    fields[6], fields[19], fields[36] = str(flags), str(start), str(cpu)
    fields[11], fields[12] = str(ticks - ticks // 3), str(ticks // 3)
    return f'{number} ({name}) {" ".join(fields)}\n'


class SamplerTest(unittest.TestCase):
    def setUp(self):
        self.root = folders.make(self)
        for name, text in FILES.items():
            self.write(name, text)
        self.sampler = sampler.HostSampler(self.root)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_task(self, process, number, *what, **more):
        self.write(f'proc/{process}/task/{number}/stat',
                   task(number, *what, **more))

    def foreign_s(self, source=None):
        """The time of foreign tasks on all dedicated CPUs."""
        sample = (source or self.sampler).take()
        return sum(sample.values[Quantity.FOREIGN_TASKS].values())

    def test_everything_is_read_unit_by_unit(self):
        sample = self.sampler.take()
        self.assertEqual((1234.56, 77, 16384), (
            sample.uptime_s, sample.ksm_pages, sample.slab_kib))
        self.assertEqual({
            # Guest time is in user time already.
            'busy': {'cpu0': 0.36, 'cpu2': 0.01},
            'system': {'cpu0': 0.16, 'cpu2': 0.0},
            'iowait': {'cpu0': 0.05, 'cpu2': 0.0},
            'steal': {'cpu0': 0.08, 'cpu2': 0.0},
            'interrupts': {'cpu0': 1010, 'cpu2': 2365},
            'shootdowns': {'cpu0': 1000, 'cpu2': 2345},
            'swapped': {'': 42}, 'major_faults': {}, 'slab': {'': 0.25},
            'foreign_tasks': {'cpu2': 0.0, 'cpu4': 0.0},
            'slowdown': {'cpu0': 0.5, 'cpu2': 1.5},
            'throttled_s': {'cpu0-core': 5.0, 'cpu0-package': 6.0},
            'corrected_errors': {'mc0': 3, 'mc1': 4},
            'uncorrected_errors': {'mc1': 1}},
            {name.value: {unit: round(value, 9)
                          for unit, value in each.items()}
             for name, each in sample.values.items()})
        self.assertEqual({('0', '2048'): (512, 12)}, sample.huge_pages)

    def test_what_is_missing_or_damaged_is_unknown(self):
        for damage in (lambda name: (self.root / name).unlink(),
                       lambda name: self.write(name, 'x\n\0 y z')):
            for name in FILES:
                if 'uptime' not in name:
                    damage(name)
            sample = self.sampler.take()
            # There is no guest: that is known.
            self.assertEqual({Quantity.MAJOR_FAULTS: {}}, sample.values)
            self.assertEqual(({}, None, None), (
                sample.huge_pages, sample.ksm_pages, sample.slab_kib))

    def test_the_major_faults_of_each_guest_are_read(self):
        name = 'machine-qemu\\x2d1\\x2dinstance\\x2d2a.scope'
        for number, group, place in (
                (20, f'0::/machine.slice/{name}/libvirt/emulator',
                 f'machine.slice/{name}'),
                (21, '7:memory:/machine/qemu-1-a.libvirt-qemu\n0::/',
                 'memory/machine/qemu-1-a.libvirt-qemu')):
            self.run_task(number, number, 'CPU 0/KVM', 1, 0)
            self.write(f'proc/{number}/cgroup', f'{group}\n')
            self.write(f'sys/fs/cgroup/{place}/memory.stat',
                       f'anon 1\npgmajfault {number}\n')
        self.assertEqual(
            {'machine-qemu-1-instance-2a.scope': 20,
             'qemu-1-a.libvirt-qemu': 21},
            self.sampler.take().values[Quantity.MAJOR_FAULTS])

    def test_a_guest_whose_group_cannot_be_read_is_unknown(self):
        self.run_task(20, 20, 'CPU 0/KVM', 1, 0)
        for group in ('machine.slice/a.scope', '../machine.slice/a.scope'):
            self.write('proc/20/cgroup', f'0::/{group}\n')
            self.assertNotIn(Quantity.MAJOR_FAULTS,
                             self.sampler.take().values)

    def test_this_machine_is_read(self):
        real = sampler.HostSampler(pathlib.Path('/'), frozenset({0}))
        values = real.take().values
        cpus = {f'cpu{cpu}' for cpu in os.sched_getaffinity(0)}
        for name in (Quantity.SYSTEM, Quantity.BUSY, Quantity.INTERRUPTS):
            self.assertLessEqual(cpus, values[name].keys())
            later = real.take().values[name]
            self.assertTrue(all(later[cpu] >= values[name][cpu]
                                for cpu in cpus), name)

    def test_without_a_proc_there_is_no_sample(self):
        (self.root / 'proc/uptime').unlink()
        with self.assertRaisesRegex(exception.Unreachable, 'proc/uptime'):
            self.sampler.take()

    def test_foreign_tasks_on_dedicated_cpus_are_counted(self):
        self.run_task(10, 10, 'backup) 1 (', 100, 2)
        self.run_task(11, 11, 'cron', 100, 0)
        self.assertEqual(0.0, self.foreign_s())
        self.run_task(10, 10, 'backup) 1 (', 250, 2)
        self.run_task(11, 11, 'cron', 900, 0)
        self.run_task(12, 12, 'new', 50, 4)
        sample = self.sampler.take()
        self.assertEqual({'cpu2': 1.5, 'cpu4': 0.5},
                         sample.values[Quantity.FOREIGN_TASKS])
        # Another process with the same number, and one that has ended.
        self.run_task(10, 10, 'other', 30, 2, start=900)
        (self.root / 'proc/12/task/12/stat').unlink()
        self.assertEqual(2.3, self.foreign_s())

    def test_isolated_cpus_are_dedicated_too(self):
        self.write('sys/devices/system/cpu/isolated', '0\n')
        self.assertEqual({0, 2, 4}, self.sampler.find_dedicated())

    def test_a_task_that_is_named_like_a_vcpu_is_foreign_all_the_same(self):
        for number, groups in enumerate(start=20, iterable=(
                None, '', '0::/\n', '0::/user.slice/user-1000.slice\n',
                '0::/system.slice/cron.service\n', '0::/machine.slices\n',
                '0::/user.slice/user-1000.slice/docker-0f3a.scope\n',
                '0::/user.slice/user-1000.slice/machine.slice/machine\n',
                '3:cpu:/\n0::/user.slice/machine/qemu-1.libvirt-qemu\n')):
            if groups is not None:
                self.write(f'proc/{number}/cgroup', groups)
            self.run_task(number, number, 'CPU 0/KVM', 100, 2)
            self.sampler.take()
            before = self.foreign_s()
            self.run_task(number, number, 'CPU 0/KVM', 200, 2)
            self.assertEqual(1.0, round(self.foreign_s() - before, 9))

    def test_guests_in_any_group_of_guests_are_not_foreign(self):
        for number, groups in enumerate(start=20, iterable=(
                '0::/machine.slice/machine-qemu\\x2d1.scope/libvirt/vcpu0\n',
                '9:cpu,cpuacct:/machine/qemu-1-a.libvirt-qemu/vcpu0\n0::/\n',
                '0::/system.slice/docker-1.scope/machine/qemu-1-a\n',
                '0::/system.slice/docker-0f3a.scope\n', '0::/docker/0f3a\n',
                '0::/system.slice/libvirtd.service\n',
                '0::/system.slice/virtqemud.service\n')):
            self.write(f'proc/{number}/cgroup', groups)
            for ticks in (100, 200):
                self.run_task(number, number, 'CPU 0/KVM', ticks, 2)
                used_s = self.foreign_s()
            self.assertEqual(0.0, used_s)

    def test_guests_and_bound_kernel_threads_are_no_foreign_tasks(self):
        self.write('proc/20/cgroup', '0::/machine.slice/a.scope\n')
        threads = (
            (20, 20, 'qemu-system-x86', 0x400000),
            (20, 21, 'CPU 0/KVM', 0x400000),
            (20, 22, 'IO iothread1', 0x400000),
            (30, 30, 'ksoftirqd/2', 0x04208040),
            (31, 31, 'kworker/2:1', 0x04208060))
        foreign = ((40, 40, 'kworker/u8:3', 0x04208060),
                   (41, 41, 'ksmd', 0x00208040))
        for ticks in (100, 200):
            for process, number, name, flags in (*threads, *foreign):
                self.run_task(process, number, name, ticks, 2, flags=flags)
            used_s = self.foreign_s()
        self.assertEqual(2.0, used_s)

    def test_dedicated_cpus_may_be_named(self):
        self.run_task(11, 11, 'cron', 100, 0)
        named = sampler.HostSampler(self.root, frozenset({0, 1, 2}))
        named.take()
        self.run_task(11, 11, 'cron', 130, 0)
        self.assertEqual(0.3, self.foreign_s(named))
