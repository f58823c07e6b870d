# SPDX-License-Identifier: Apache-2.0

"""Samples of machines in files."""

import unittest

from hpcvirt import exception
from hpcvirt.health import sampler
from tests.builders import folders

FILES = {
    'proc/uptime': '1234.56 999.0\n',
    'proc/sys/kernel/random/boot_id': 'abc-def\n',
    'proc/stat': 'cpu  100 20 30 4000 5 6 7 8 90 1\ncpu0 1 2 3 4 5 6 7 8 9 1\n'
                 'intr 987654 1 2 3\nctxt 1\n',
    'proc/interrupts':
        '            CPU0       CPU1\n'
        '  0:         10         20   IO-APIC   2-edge      timer\n'
        'TLB:       1000       2345   TLB shootdowns\n'
        'ERR:          7\n',
    'proc/vmstat': 'nr_free_pages 1\npswpin 30\npswpout 12\n',
    'proc/meminfo': 'MemTotal:       65536 kB\nSUnreclaim:      1292408 kB\n',
    'sys/devices/system/cpu/online': '0-2,4\n',
    'sys/devices/system/cpu/isolated': '2,4\n',
    'sys/kernel/mm/ksm/pages_sharing': '77\n',
    'sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages':
        '512\n',
    'sys/devices/system/node/node0/hugepages/hugepages-2048kB/'
    'free_hugepages': '12\n',
    'sys/devices/system/edac/mc/mc0/ce_count': '3\n',
    'sys/devices/system/edac/mc/mc1/ce_count': '4\n',
    'sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count': '5\n',
    'sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count':
        '6\n',
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

    def test_everything_is_read(self):
        sample = self.sampler.take()
        self.assertEqual(('abc-def', 1234.56, '0-2,4', 4), (
            sample.boot_id, sample.uptime_s, sample.online, sample.cpus))
        # Guest time is in user time already.
        self.assertEqual((4176, 43, 5, 8), (
            sample.cpu_time.total, sample.cpu_time.system,
            sample.cpu_time.iowait, sample.cpu_time.steal))
        self.assertEqual(
            (987654, 3345, 42, 77, 1292408, 65536, 7, 11), (
                sample.interrupts, sample.shootdowns, sample.swapped_pages,
                sample.ksm_pages, sample.slab_kib, sample.memory_kib,
                sample.corrected_errors, sample.throttles))
        (pages,) = sample.huge_pages
        self.assertEqual((0, 2048, 512, 12), (
            pages.cell, pages.size_kib, pages.total, pages.free))

    def test_what_is_missing_is_unknown(self):
        for name in FILES:
            if 'uptime' not in name and 'online' not in name:
                (self.root / name).unlink()
        sample = self.sampler.take()
        for name in ('cpu_time', 'interrupts', 'shootdowns', 'swapped_pages',
                     'ksm_pages', 'slab_kib', 'memory_kib', 'foreign_tasks_s',
                     'corrected_errors', 'throttles', 'busiest'):
            self.assertIsNone(getattr(sample, name), name)
        self.assertEqual((), sample.huge_pages)

    def test_damaged_files_are_unknown(self):
        for name in FILES:
            if 'uptime' not in name and 'online' not in name:
                self.write(name, 'x\n\0 y z')
        self.assertIsNone(self.sampler.take().cpu_time)

    def test_without_a_proc_there_is_no_sample(self):
        (self.root / 'proc/uptime').unlink()
        with self.assertRaisesRegex(exception.Unreachable, 'proc/uptime'):
            self.sampler.take()

    def test_foreign_tasks_on_dedicated_cpus_are_counted(self):
        self.run_task(10, 10, 'backup) 1 (', 100, 2)
        self.run_task(11, 11, 'cron', 100, 0)
        self.assertEqual((2, 0.0), (self.sampler.take().dedicated,
                                    self.sampler.take().foreign_tasks_s))
        self.run_task(10, 10, 'backup) 1 (', 250, 2)
        self.run_task(11, 11, 'cron', 900, 0)
        self.run_task(12, 12, 'new', 50, 4)
        sample = self.sampler.take()
        self.assertEqual((2.0, 'backup) 1 ('),
                         (sample.foreign_tasks_s, sample.busiest))
        # Another process with the same number, and one that has ended.
        self.run_task(10, 10, 'other', 30, 2, start=900)
        (self.root / 'proc/12/task/12/stat').unlink()
        self.assertEqual(2.3, self.sampler.take().foreign_tasks_s)

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
            before = self.sampler.take().foreign_tasks_s
            self.run_task(number, number, 'CPU 0/KVM', 200, 2)
            sample = self.sampler.take()
            self.assertEqual((1.0, 'CPU 0/KVM'), (
                round(sample.foreign_tasks_s - before, 9), sample.busiest))

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
                sample = self.sampler.take()
            self.assertEqual(0.0, sample.foreign_tasks_s)

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
            sample = self.sampler.take()
        self.assertEqual(2.0, sample.foreign_tasks_s)

    def test_dedicated_cpus_may_be_named(self):
        self.run_task(11, 11, 'cron', 100, 0)
        named = sampler.HostSampler(self.root, frozenset({0, 1, 2}))
        named.take()
        self.run_task(11, 11, 'cron', 130, 0)
        sample = named.take()
        self.assertEqual((3, 0.3), (sample.dedicated, sample.foreign_tasks_s))
