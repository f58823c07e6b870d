# SPDX-License-Identifier: Apache-2.0

import contextlib
import json
import pathlib
import random
import shutil
import unittest

from hpcvirt import exception
from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit.reading import cpu as reading_cpu
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import host
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles
from hpcvirt.topology import capture
from tests.builders import audited
from tests.builders import sysfs_files
from tests.unit.topology import test_sysfs_wiring

#: What the page on audits told users to copy before there was a script.
FORMER = """
etc/nova etc/tuned proc/cmdline proc/cpuinfo proc/meminfo proc/irq
proc/[0-9]*/comm proc/[0-9]*/status proc/[0-9]*/cgroup
proc/sys/kernel/osrelease proc/sys/kernel/hostname
proc/sys/kernel/numa_balancing proc/sys/vm/swappiness sys/devices/system/cpu
sys/devices/system/node sys/kernel/mm sys/module/kvm*
"""


class ReadingTest(audited.Case):
    """Hosts as they are read: copies, emulated machines, damaged files."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self), 'good')
        sysfs_files.lay_out(audited.tree(), self.root)

    def changed(self, change):
        """Return the codes of findings while files are changed.

        :param change: path -> its text; None takes a file or folder away
        """
        with contextlib.ExitStack() as back:
            for number, (name, text) in enumerate(change.items()):
                path = self.root / name
                if path.exists():
                    away = self.root / f'away{number}'
                    path.rename(away)
                    back.callback(away.rename, path)
                if text is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text + '\n')
                    back.callback(path.unlink)
            return set(self.codes(host.read(self.root)))

    def test_each_file_leads_to_its_finding(self):
        mm, cpu = 'sys/kernel/mm', audited.CPU
        for name, text, code in (
                (f'{mm}/ksm/run', '1', 'ksm'),
                (f'{mm}/transparent_hugepage/defrag',
                 '[always] defer madvise never', 'thp'),
                ('proc/sys/vm/swappiness', '60', 'swappiness'),
                ('proc/sys/kernel/numa_balancing', '1', 'numa-balancing'),
                ('proc/meminfo', ('MemTotal: 134217728 kB\nSwapTotal: 999999 '
                 'kB\nSwapFree: 0 kB\nSUnreclaim: 9 kB'), 'swap'),
                ('proc/9/comm', 'numad', 'numad'),
                ('proc/9/comm', 'ksmtuned', 'ksm'),
                ('sys/module/kvm_intel/parameters/ept', 'N',
                 'nested-paging'),
                ('proc/1/status', ('Name:\tsystemd\nVmSize:\t1 kB\n'
                 'Cpus_allowed_list:\t0-15'), 'isolation'),
                (f'{cpu}/nohz_full', '(null)', 'nohz-full'),
                (f'{cpu}/isolated', '0-15', 'isolated-shared'),
                ('proc/irq/24/effective_affinity_list', '1', 'irq-affinity'),
                ('etc/default/irqbalance',
                 'IRQBALANCE_BANNED_CPUS=00000000,00000002', 'irqbalance'),
                ('etc/sysconfig/irqbalance', 'IRQBALANCE_BANNED_CPULIST=1',
                 'irqbalance'),
                ('etc/default/irqbalance',
                 f'IRQBALANCE_BANNED_CPUS={"f" * 100_000}', 'unknown-fact'),
                (kernel_settings.IRQBALANCE, ('[Service]\nEnvironment='
                 'IRQBALANCE_BANNED_CPULIST=1'), 'irqbalance'),
                (f'{cpu}/cpufreq/policy0/scaling_governor', 'ondemand',
                 'governor'),
                (f'{cpu}/intel_pstate/no_turbo', '1', 'turbo'),
                (f'{cpu}/cpu3/cpuidle/state1/latency', '133',
                 'unknown-fact'),
                (f'{cpu}/cpu3/microcode/version', '0x1', 'microcode'),
                ('etc/tuned/active_profile', 'balanced', 'tuned'),
                ('sys/kernel/iommu_groups/1/type', 'DMA-FQ',
                 'iommu-passthrough'),
                ('sys/class/iommu', None, 'iommu'),
                ('sys/devices/pci0000:00/0000:41:00.0/sriov_numvfs', '1',
                 'virtual-functions'),
                ('sys/devices/pci0000:00/0000:41:01.0/numa_node', '-1',
                 'device-cell'),
                ('etc/udev/rules.d', None, 'persistent-functions'),
                (audited.NOVA, '[compute]\ncpu_dedicated_set = 2-9',
                 'nova-planned-cpus'),
                (audited.NOVA, None, 'nova-conf'),
                (audited.NOVA, 'no group', 'unknown-fact'),
                ('sys/class/misc/kvm', None, 'kvm')):
            if (name, text) == ('sys/class/misc/kvm', None):
                change = {name: None, 'sys/class/misc/fuse/dev': '10:229'}
            elif (name, text) == ('sys/class/iommu', None):
                change = {name: None, 'sys/class/net/lo/x': ''}
            else:
                change = {name: text}
            self.assertIn(code, self.changed(change), name)

    def test_each_new_state_leads_to_its_finding(self):
        mc, kvm = f'{audited.EDAC}/mc1', 'sys/module/kvm/parameters'
        card = 'sys/devices/pci0000:00/0000:41:00.0'
        policy = f'{audited.CPU}/cpufreq/policy0'
        line = audited.tree()['proc/cmdline']
        for name, text, code in (
                (f'{policy}/scaling_max_freq', '2400000', 'frequency-limit'),
                (f'{policy}/bios_limit', '2400000', 'frequency-limit'),
                (f'{audited.CPU}/intel_pstate/max_perf_pct', '60',
                 'frequency-limit'),
                (f'{card}/current_link_width', '8', 'pcie-link'),
                (f'{card}/current_link_speed', '8.0 GT/s PCIe', 'pcie-link'),
                (f'{mc}/ce_count', '1', 'memory-errors'),
                (f'{mc}/ue_count', '1', 'memory-errors'),
                (f'{mc}/dimm1/size', '16384', 'memory-channels'),
                (f'{mc}/dimm1', None, 'memory-channels'),
                (audited.EDAC, None, 'memory-errors'),
                ((f'{audited.CPU}/cpu0/thermal_throttle/'
                 'package_throttle_total_time_ms'), '3600000', 'throttling'),
                (('sys/devices/system/clocksource/clocksource0/'
                 'current_clocksource'), 'hpet', 'clocksource'),
                ('proc/sys/vm/zone_reclaim_mode', '1', 'zone-reclaim'),
                ('proc/sys/kernel/watchdog_cpumask', '0-15', 'nmi-watchdog'),
                (f'{kvm}/halt_poll_ns', '0', 'halt-polling'),
                (f'{kvm}/halt_poll_ns', '5000000', 'halt-polling'),
                ('sys/devices/virtual/workqueue/cpumask', 'ffff',
                 'kernel-threads'),
                ('proc/cmdline', f'{line} kasan_multi_shot', 'debugging'),
                ('proc/cmdline', f'{line} slub_debug', 'debugging'),
                ('proc/cmdline', f'{line} mem=64G', 'debugging'),
                ('proc/sys/kernel/osrelease', '5.14.0-503.el9.x86_64+debug',
                 'debugging')):
            self.assertEqual({code}, self.changed({name: text}), (name, text))

    def test_a_slot_limits_its_card(self):
        card = 'sys/devices/pci0000:00/0000:41:00.0'
        port = 'sys/bus/pci/devices/0000:00:02.0'
        for lanes, slot, found in ((16, 16, []), (8, 16, ['warning']),
                                   (8, 8, ['note'])):
            facts = audited.facts({
                **audited.tree(), f'{port}/max_link_width': str(slot),
                f'{card}/current_link_width': str(lanes)})
            self.assertEqual(found, [item.severity for item in audit.audit(
                facts).findings if item.code == 'pcie-link'])
        # A chip on a root bus has no slot.
        self.assertEqual(set(), self.changed({
            port: None, f'{card}/current_link_width': '8'}))

    def lacking(self, name):
        """Return the codes of a copy without a file or folder."""
        listed = sysfs_files.WHOLE[capture.LIST] + f'!{name}\n'
        return self.changed({name: None, capture.LIST: listed})

    def test_each_setting_that_a_copy_lacks_is_unknown(self):
        idle = {'kvm_amd/parameters/pause_filter_count',  # this is Intel
                'khugepaged/defrag',
                'parameters/nx_huge_pages',  # the processor is affected
                'nmi_watchdog',  # it leaves dedicated CPUs out
                'ple_gap'}  # there are dedicated CPUs and shared ones
        for name in (*audited.SETTINGS,
                     'proc/sys/kernel/watchdog_cpumask',
                     'sys/devices/virtual/workqueue/cpumask'):
            self.assertEqual(set() if name.endswith(tuple(idle)) else
                             {audit.UNKNOWN}, self.lacking(name), name)
        files = audited.tree()
        defrag = next(name for name in files if 'khugepaged' in name)
        files[capture.LIST] += f'!{defrag}\n'
        del files[defrag]
        small = profiles.build({'page_size': '4K'}, 'profile')
        self.assertIn(audit.UNKNOWN, self.codes(audited.facts(files), small))

    def test_each_fact_of_the_hardware_that_a_copy_lacks_is_unknown(self):
        card = 'sys/bus/pci/devices/0000:41:00.0'
        policy = f'{audited.CPU}/cpufreq/policy0'
        for name in (f'{policy}/scaling_max_freq',
                     f'{policy}/cpuinfo_max_freq',
                     f'{audited.CPU}/intel_pstate/max_perf_pct',
                     f'{card}/max_link_width', f'{card}/max_link_speed',
                     f'{card}/current_link_width', f'{card}/class',
                     f'{audited.EDAC}/mc0/ce_count',
                     f'{audited.EDAC}/mc0/ue_count',
                     f'{audited.EDAC}/mc0/dimm0/size',
                     f'{audited.EDAC}/mc0/dimm0/dimm_location',
                     f'{audited.CPU}/cpu0/thermal_throttle',
                     (f'{audited.CPU}/cpu0/thermal_throttle/'
                      'core_throttle_count'),
                     'proc/cmdline', 'proc/sys/kernel/osrelease'):
            self.assertEqual({audit.UNKNOWN}, self.lacking(name), name)

    def test_a_limit_for_one_cpu_keeps_it_from_deep_states(self):
        cpu = f'{audited.CPU}/cpu3'
        deep = {f'{cpu}/cpuidle/state1/latency': '133'}
        limit = f'{cpu}/power/pm_qos_resume_latency_us'
        for text, expected in (('0', {'unknown-fact'}), ('50', set()),
                               ('n/a', set()), ('133', {'unknown-fact'})):
            self.assertEqual(expected, self.changed({**deep, limit: text}))

    def test_programs_that_run_on_any_cpu_are_found(self):
        for name, group, cpus, found in (
                ('ovs-vswitchd', 'system.slice/ovs.service', '0-15', True),
                ('ovs-vswitchd', 'system.slice/ovs.service', '0', False),
                ('conmon', 'machine.slice/libpod-1.scope', '0-15', True),
                ('qemu-system-x86', 'machine.slice/x.scope', '0-15', False),
                ('swtpm', r'machine.slice/machine-qemu\x2d1.scope', '0-15',
                 False),
                ('swtpm', 'machine/qemu-1.libvirt-qemu', '0-15', False)):
            self.assertEqual(found, 'isolation' in self.changed(
                audited.process(99, name, cpus, group)), (name, group))
        files = audited.process(99, 'dpdk', '0')
        thread = {'proc/99/task/100/status': 'Cpus_allowed_list:\t0-15'}
        self.assertIn('isolation', self.changed({**files, **thread}))

    def test_files_of_hpcvirt_alone_do_not_mean_that_tuned_is_there(self):
        facts = audited.facts({name: text for name, text
                               in audited.tree().items()
                               if name != 'etc/tuned/active_profile'})
        self.assertFalse(facts.kernel.has_tuned)
        self.assertNotIn('tuned', self.codes(facts))
        self.assertTrue(audited.facts({
            **audited.tree(), 'etc/tuned/tuned-main.conf': 'daemon = 1',
        }).kernel.has_tuned)

    def test_a_part_of_the_processes_says_nothing_about_the_others(self):
        """TuneD may run on a host of which a copy has some processes."""
        found = self.changed({'proc/2': None, 'proc/40': None})
        self.assertNotIn('tuned', found)
        self.assertIn(audit.UNKNOWN, found)
        self.assertIn('tuned', self.changed({'proc/2': None}))

    def test_the_boost_of_acpi_cpufreq_is_above_all_limits(self):
        """An EPYC 7742 has 2.25 GHz, and 3.4 GHz with boost."""
        policy = f'{audited.CPU}/cpufreq/policy0'
        amd = {f'{policy}/scaling_driver': 'acpi-cpufreq',
               f'{policy}/cpuinfo_max_freq': '3391845',
               f'{policy}/bios_limit': '2250000',
               f'{policy}/scaling_available_frequencies':
                   '2250000 1800000 1500000'}
        for limit, expected in (('2250000', set()),
                                ('1800000', {'frequency-limit'})):
            self.assertEqual(expected, self.changed({
                **amd, f'{policy}/scaling_max_freq': limit}))
        del amd[f'{policy}/scaling_available_frequencies']
        self.assertEqual({audit.UNKNOWN}, self.changed(amd))

    def test_the_cpus_that_get_an_interrupt_or_may_get_it(self):
        irq = 'proc/irq/24'
        for allowed, effective, expected in (
                ('0-15', '0', set()), ('0-15', '1', {'irq-affinity'}),
                ('0-15', None, {'irq-affinity'}), ('0', None, set())):
            self.assertEqual(expected, self.changed({
                f'{irq}/smp_affinity_list': allowed,
                f'{irq}/effective_affinity_list': effective}))

    def test_policies_whose_cpus_are_all_offline_are_left_out(self):
        class Parked(files_module.Files):
            def need(self, name, owners=None):
                if name.endswith('policy9/affected_cpus'):
                    raise files_module.make_unknown(
                        name, 'cannot be read (Device or resource busy)')
                return super().need(name, owners)

        sysfs_files.lay_out({
            f'{audited.CPU}/cpufreq/policy9/scaling_driver': 'intel_pstate'},
            self.root)
        found = reading_cpu.CpuFacts(Parked(self.root))
        self.assertEqual([audited.HOST.cpus], [
            item.cpus for item in found.frequencies])

    def test_threads_of_the_kernel_that_can_be_moved(self):
        """Linux 6.1 with nohz_full: workers may run on all CPUs for ever."""
        for name, cpus, flags, found in (
                ('kauditd', '0-15', 2097216, {'kernel-threads'}),
                ('kauditd', '0,4,8,12', 2097216, set()),
                ('kworker/R-rcu_gp', '0-15', 69238880, set()),
                ('migration/5', '5', 69238848, set())):
            files = {'proc/99/status': f'Name:\t{name}\nPPid:\t2\n'
                                       f'Cpus_allowed_list:\t{cpus}'}
            stat = {'proc/99/stat': f'99 ({name}) I 2 0 0 0 -1 {flags} 0 0'}
            self.assertEqual(found, self.changed({**files, **stat}), name)
        self.assertEqual(set(), self.changed(files))
        self.assertEqual({audit.UNKNOWN}, self.changed({
            'proc/99/status': files['proc/99/status'] + '-15'}))

    def test_threads_of_the_kernel_are_no_programs(self):
        self.assertEqual(set(), self.changed({
            'proc/99/status': 'Name:\tkworker/5:1\n'
                              'Cpus_allowed_list:\t5'}))

    def test_what_creates_functions_is_recognised(self):
        rule = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
        for name, text in (
                ('etc/systemd/system/vfs.service',
                 'ExecStart=/opt/site/enable-SRIOV'),
                ('etc/NetworkManager/system-connections/a.nmconnection',
                 '[sriov]\ntotal-vfs=2'),
                ('etc/netplan/01.yaml', 'virtual-function-count: 2'),
                ('etc/os-net-config/sriov_config.yaml', 'numvfs: 2'),
                ('etc/systemd/network/1.link', 'SR-IOVVirtualFunctions=2'),
                ('etc/modprobe.d/igb.conf', 'options igb max_vfs=2'),
                ('etc/rc.local', 'echo 2 > /sys/x/sriov_numvfs')):
            self.assertEqual(set(), self.changed({rule: None, name: text}),
                             name)
        self.assertEqual({'persistent-functions'}, self.changed({
            rule: 'KERNEL=="0000:41:00.0", ATTR{sriov_numvfs}="2"'}))

    def test_what_gives_guids_is_recognised(self):
        card = '0000:41:00.0'
        for text, found in (
                (kernel_settings.format_guid_rule(card, 2), {card}),
                ('echo Follow > /sys/x/mlx5_0/device/sriov/0/policy', {'*'}),
                ('ip link set dev ib0 vf 0 port_guid 11:22', {'*'}),
                ('echo 2 > sriov_numvfs', set())):
            self.assertEqual(found, set(audited.facts(audited.tree() | {
                'etc/udev/rules.d/70-hpcvirt-vfs.rules': '',
                'etc/rc.local': text}).hardware.guids), text)

    def test_what_is_masked_creates_nothing_and_is_known(self):
        rule = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
        for name, code in (('etc/systemd/system/sriov.service', set()),
                           ('etc/systemd/network/sriov.link', set()),
                           (rule, {'persistent-functions'})):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to('/dev/null')
            self.assertEqual(code, self.changed({}), name)

    def test_what_is_missing_is_unknown(self):
        for name in ('proc', 'proc/meminfo', 'proc/sys/vm', 'proc/1',
                     'proc/1/status'):
            self.assertIn(audit.UNKNOWN, self.changed({name: None}), name)

    def unknown(self, root):
        """Return the files of facts that are not known, and the reasons."""
        found = audit.audit(host.read(root), audited.PROFILE)
        return dict(item.found.split(': ', 1) for item in found.findings
                    if item.code == audit.UNKNOWN)

    def test_what_a_copy_does_not_list_is_not_known_to_be_missing(self):
        self.assertEqual({}, self.unknown(self.root))
        (self.root / capture.LIST).write_text('proc/**\nsys/**\n')
        found = self.unknown(self.root)
        for name in ('/etc/udev/rules.d', '/etc/default/irqbalance'):
            self.assertEqual('was not captured', found[name])

    def test_a_copy_of_the_former_page_vouches_for_little(self):
        root = self.root.with_name('former')
        for pattern in FORMER.split():
            for path in self.root.glob(pattern):
                shutil.copytree(path, root / path.relative_to(self.root),
                                dirs_exist_ok=True) if path.is_dir() else (
                    sysfs_files.lay_out({str(path.relative_to(
                        self.root)): path.read_text()}, root))
        self.assertEqual('was not captured', self.unknown(root)['/proc'])
        facts = host.read(root)
        values = audited.values(facts)
        for part, name in (
                ('kernel', 'programs'), ('kernel', 'banned_cpus'),
                ('kernel', 'interrupts'), ('hardware', 'iommus'),
                ('hardware', 'creators'), ('hardware', 'functions')):
            self.assertEqual('was not captured', values[part][name].problem)
        # What is there is judged.
        self.assertEqual(1, facts.memory.swappiness)

    def test_firmware_has_the_versions_of_each_model(self):
        def card(number, version):
            here = f'sys/class/infiniband/mlx5_{number}'
            return {f'{here}/board_id': 'MT_1', f'{here}/fw_ver': version}

        dmi, nvme = 'sys/class/dmi/id/bios', 'sys/class/nvme/nvme0'
        self.assertEqual(
            {'BIOS': 'Dell 1.2 2026', 'MT_1': '16, 20', 'nvme0': 'A'},
            audited.facts({
                **audited.tree(), **card(0, '20'), **card(1, '16'),
                **card(2, '20'), f'{nvme}/firmware_rev': 'A',
                f'{dmi}_vendor': 'Dell', f'{dmi}_version': '1.2',
                f'{dmi}_date': '2026'}).hardware.firmware)
        self.assertEqual({}, audited.GOOD.hardware.firmware)

    def test_how_devices_transfer_is_in_a_capture_or_their_files(self):
        good = audited.tree()
        cards = [device.address for device in audited.HOST.devices
                 if device.total_vfs]
        self.assertEqual(dict.fromkeys(cards, (True, None)),
                         audited.GOOD.hardware.controls)
        printed = f'{cards[0]} x\n\tRlxdOrd-\n\tATSCtl:\tEnable+, x\n'
        self.assertEqual({cards[0]: (False, True)}, audited.facts(
            good | {'output/lspci': printed}).hardware.controls)
        (self.root / 'output/lspci').write_text(printed)
        config = self.root / f'sys/bus/pci/devices/{cards[0]}/config'
        config.write_bytes(test_sysfs_wiring.make_config(0))
        self.assertEqual({cards[0]: (False, None)},
                         host.read(self.root).hardware.controls)

    def test_the_largest_bar_of_a_published_device(self):
        """An H20 of NVIDIA has 128 GiB."""
        card = 'sys/bus/pci/devices/0000:41:00.0/resource'
        bars = ((0x13002000000, 0x13002ffffff, 0x14220c), (0, 0, 0),
                (0x14000000000, 0x15fffffffff, 0x14220c), (0, 0, 0),
                (0x13000000000, 0x13001ffffff, 0x14220c), (0, 0, 0),
                (0, 1 << 42, 0x46200), (0, 1 << 43, 0x14220c))
        whole = '\n'.join(f'0x{start:016x} 0x{end:016x} 0x{flags:016x}'
                          for start, end, flags in bars)
        for text, expected in (
                (whole, 131072), (whole.replace('14220c', '040101'), 0),
                ('', 0), ('x', 0), ('0x0 0x', 0)):
            (self.root / card).write_text(text)
            self.assertEqual(expected, host.read(
                self.root).hardware.bars['0000:41:00.0'])

    def test_hooks_that_activate_partitions(self):
        self.assertEqual(((), None), (audited.GOOD.hardware.activators,
                                      audited.GOOD.hardware.fabric_mode))
        call = 'subprocess.check_output("/usr/bin/fmpm -l --hostname " + IP)'
        hooks = 'etc/libvirt/hooks/qemu'
        mode = 'usr/share/nvidia/nvswitch/fabricmanager.cfg'
        found = audited.facts(audited.tree() | {
            hooks: '#!/bin/sh\nlogger started\n', f'{hooks}.d/50-gpu': call,
            f'{hooks}.d/win10/prepare/begin/start.sh': call,
            mode: '# FABRIC_MODE=0\nLOG_LEVEL=4\nFABRIC_MODE=1\n'}).hardware
        self.assertEqual(((f'/{hooks}.d/50-gpu',), 1),
                         (found.activators, found.fabric_mode))

    def test_what_lspci_did_not_print_is_unknown(self):
        for change in ({'output/lspci': None}, {'output/lspci': ''}):
            found = self.changed(change)
            self.assertEqual({audit.UNKNOWN}, found)

    def test_a_fact_is_read_when_it_is_needed_and_only_once(self):
        swappiness = self.root / 'proc/sys/vm/swappiness'
        text = swappiness.read_text()
        facts = host.read(self.root)
        swappiness.unlink()  # after the host was found, before it is read
        for _ in range(2):
            with self.assertRaises(fact.NotKnown):
                facts.memory.swappiness  # noqa: B018
            swappiness.write_text(text)
        self.assertEqual(1, host.read(self.root).memory.swappiness)

    def test_a_directory_that_is_no_host_is_refused(self):
        root = pathlib.Path(sysfs_files.scratch(self))
        self.assertRaises(exception.InvalidInput, host.read, root)

    def test_files_of_any_content_are_read_or_unknown(self):
        dice = random.Random(7)
        good = audited.tree()
        names = [name for name, text in sorted(good.items())
                 if not isinstance(text, sysfs_files.Link)]
        for _ in range(10):
            for name in dice.sample(names, 25):
                (self.root / name).write_text(dice.choice((
                    '', '-1', '9' * 40, 'x\0y', '[', '\u202e', '0-99999999',
                    'a: b\n c', '1' * 70000)))
            result = audit.audit(host.read(self.root), profiles.DEFAULT)
            self.assertFalse(result.is_clean)


class EmulatedTest(audited.Case):
    """Machines of tests/data/hosts."""

    def read(self, name, more=None):
        root = pathlib.Path(sysfs_files.scratch(self), name)
        sysfs_files.lay_out(sysfs_files.emulated(name) | (more or {})
                            | sysfs_files.WHOLE, root)
        return host.read(root)

    def test_a_machine_that_nobody_tuned(self):
        codes = self.codes(self.read('intel-2s-untuned'), None)
        for code in ('ksm', 'numa-balancing', 'swappiness'):
            self.assertIn(code, codes)

    def test_a_machine_with_pages_and_quiet_cpus(self):
        facts = self.read('intel-2s-tuned')
        codes = self.codes(facts, None)
        for code in ('ksm', 'numa-balancing', 'swappiness', 'nohz-full',
                     'huge-pages-even', 'irq-affinity', 'nova-cpu-sets',
                     'isolated-shared', 'iommu', 'device-cell'):
            self.assertNotIn(code, codes)
        self.assertIn('persistent-functions', codes)
        self.assertEqual([2, 2], [item.count for item
                                  in facts.hardware.functions])

    def test_vendors_and_their_nested_paging(self):
        self.assertEqual(('kvm_amd.npt', True),
                         self.read('amd-2s').kernel.nested_paging)
        self.assertEqual('AuthenticAMD', self.read('amd-2s').cpu.vendor)
        intel = self.read('intel-2s-smt')
        self.assertEqual('GenuineIntel', intel.cpu.vendor)
        self.assertEqual(40, intel.cpu.address_bits)
        self.assertTrue(intel.cpu.is_guest)

    def test_groups_of_the_public_are_judged(self):
        for case, (functions, specs, expected) in PUBLIC_GROUPS.items():
            files = write_functions(functions)
            if specs:
                files['etc/nova/nova.conf'] = '[pci]\n' + ''.join(
                    f'device_spec = {json.dumps(spec)}\n' for spec in specs)
            found = audit.audit(self.read('intel-2s-tuned', files)).findings
            with self.subTest(case):
                said = [f'{item.severity}: {item.found} -> {item.change[0]}'
                        for item in found if item.code == 'device-groups']
                self.assertEqual(len(expected), len(said), said)
                for (severity, *parts), text in zip(
                        expected, sorted(said), strict=True):
                    self.assertTrue(text.startswith(f'{severity}: '), text)
                    for part in parts:
                        self.assertIn(part, text)

    def test_a_card_of_vfio_on_a_host_without_iommu(self):
        # G10: without groups, vfio-pci is in its mode without IOMMU.
        files = write_functions([
            ('82:00.0', '030000', '10de:2184', 'vfio-pci', None)])
        machine = sysfs_files.emulated('intel-2s-smt') | files
        root = pathlib.Path(sysfs_files.scratch(self), 'none')
        sysfs_files.lay_out(machine | sysfs_files.WHOLE, root)
        found = audit.audit(host.read(root)).findings
        self.assertIn('no IOMMU is enabled, but guests get devices',
                      [item.found for item in found])


def write_functions(functions):
    """Write PCI functions below a root bus of their own.

    :param functions: the address without its domain, the class, the ids of
        vendor and product, the driver, the IOMMU group, and more files
    """
    files = {}
    for short, code, ids, driver, group, *more in functions:
        address = f'0000:{short}'
        here = f'sys/devices/pci0000:80/{address}'
        vendor, product = ids.split(':')
        files |= {
            f'{here}/class': f'0x{code}', f'{here}/vendor': f'0x{vendor}',
            f'{here}/device': f'0x{product}', f'{here}/numa_node': '1',
            f'sys/bus/pci/devices/{address}': sysfs_files.Link(
                f'../../../../{here}')}
        if driver is not None:
            files[f'{here}/driver'] = sysfs_files.Link(
                f'/sys/bus/pci/drivers/{driver}')
        if group is not None:
            files[f'sys/kernel/iommu_groups/{group}/devices/{address}'] = (
                sysfs_files.Link(f'../../../../../{here}'))
        for extra in more:
            files |= {f'{here}/{name}': text for name, text in extra.items()}
    return files


VFIO = 'vfio-pci'
OVERRIDE = 'driverctl set-override 0000:'
ANOTHER = '# ACS on in the firmware, or the card in another slot'
WHOLE = '# without ACS in the card, a guest gets it whole'
#: A network card with two virtual functions.
ABLE = {'sriov_numvfs': '2', 'sriov_totalvfs': '8', 'sriov_vf_device': '1016'}

#: Hosts of strangers, by the numbers of tests/data/public-cases.csv: the PCI
#: functions, the items of device_spec, and for each finding its severity and
#: parts of its text.
PUBLIC_GROUPS = {
    'G1': ([('81:00.0', '060400', '8086:0c01', 'pcieport', 101),
            ('82:00.0', '030000', '10de:1187', VFIO, 101),
            ('82:00.1', '040300', '10de:0e0a', 'snd_hda_intel', 101)], [], [
        ('error', '0000:82:00.1, the audio function of the same card in ',
         'group 101 of 0000:82:00.0, is bound', f'{OVERRIDE}82:00.1')]),
    'G2': ([('81:00.0', '060400', '8086:1901', 'pcieport', 102),
            ('82:00.0', '030000', '10de:2184', VFIO, 102),
            ('82:00.1', '040300', '10de:1aeb', VFIO, 102),
            ('82:00.2', '0c0330', '10de:1aec', 'xhci_hcd', 102),
            ('82:00.3', '0c8000', '10de:1aed', 'nvidia-gpu', 102)], [], [
        ('error', '82:00.2, the USB controller of the same card'),
        ('error', '82:00.3, the bus controller of the same card')]),
    # Only device_spec says that guests get the GPU; it has no driver yet.
    'G3': ([('86:00.0', '030000', '10de:2231', None, 106),
            ('86:00.1', '040300', '10de:1aef', 'snd_hda_intel', 106)],
           [{'vendor_id': '10de', 'product_id': '2231'}], [
        ('error', '86:00.1, the audio function of the same card')]),
    # Guests get a function of a class that no topology lists.
    'G4': ([('80:1d.0', '0c0300', '8086:3a34', 'uhci_hcd', 108),
            ('80:1d.2', '0c0300', '8086:3a36', VFIO, 108),
            ('80:1d.7', '0c0320', '8086:3a3a', 'ehci-pci', 108)],
           [{'address': '0000:80:1d.2'}], [
        ('error', '0000:80:1d.0, the USB controller of the same card',
         'group 108 of 0000:80:1d.2, is bound to the host driver uhci_hcd'),
        ('error', '0000:80:1d.7, the USB controller')]),
    'G5': ([('81:00.0', '0c0330', '1022:43d0', 'xhci_hcd', 112),
            ('81:00.1', '010601', '1022:43c8', 'ahci', 112),
            ('81:00.2', '060400', '1022:43c6', 'pcieport', 112),
            ('87:00.0', '020000', '10ec:8168', 'r8169', 112),
            ('88:00.0', '030000', '1002:67df', VFIO, 112)], [], [
        ('error', '81:00.0, the USB controller of the host', ANOTHER),
        ('error', '81:00.1, the SATA controller of the host', ANOTHER),
        ('error', '87:00.0, the network function of the host', 'r8169',
         ANOTHER)]),
    'G6': ([('81:00.0', '020000', '15b3:1015', 'mlx5_core', 113, ABLE),
            ('81:00.1', '020000', '15b3:1015', 'mlx5_core', 113, ABLE),
            ('81:00.2', '020000', '15b3:1016', 'mlx5_core', 113),
            ('81:00.3', '020000', '15b3:1016', 'mlx5_core', 113)],
           [{'vendor_id': '15b3', 'product_id': '1016'}], [
        ('error', '0000:81:00.0, 0000:81:00.1, the network functions of the ',
         'group 113 of 0000:81:00.2, 0000:81:00.3, are bound', ANOTHER),
        ('warning', '81:00.2, 0000:81:00.3 share IOMMU group 113')]),
    # A host that keeps its other ports may not lose their driver.
    'G7': ([('81:00.0', '020000', '8086:15ff', 'i40e', 114),
            ('81:00.1', '020000', '8086:15ff', 'i40e', 114),
            ('81:00.3', '020000', '8086:104e', VFIO, 114)], [], [
        ('error', '0000:81:00.0, 0000:81:00.1, the network functions of the ',
         'group 114 of 0000:81:00.3, are bound', 'i40e', WHOLE)]),
    'G8': ([('80:02.0', '060000', '1022:1537', None, 115),
            ('80:02.2', '060400', '1022:1439', 'pcieport', 115),
            ('81:00.0', '020000', '8086:157b', 'igb', 115),
            ('82:00.0', '020000', '8086:157b', 'igb', 115),
            ('84:00.0', '028000', '168c:003c', VFIO, 115)], [], [
        ('error', '81:00.0, 0000:82:00.0, the network functions of the host',
         'in IOMMU group 115 of 0000:84:00.0', ANOTHER)]),
    'G9': ([('81:00.0', '060400', '1022:1483', 'pcieport', 116),
            ('27:00.0', '030200', '10de:1db4', VFIO, 116),
            ('28:00.0', '030200', '10de:1db4', VFIO, 116),
            ('44:00.0', '030200', '10de:1db4', VFIO, 117)],
           [{'vendor_id': '10de', 'product_id': '1db4'}], [
        ('warning', '27:00.0, 0000:28:00.0 share IOMMU group 116')]),
    # As G5, with what else the host keeps in a group of its chipset.
    'G5a': ([('80:01.0', '060000', '8086:4660', 'igen6_edac', 118),
             ('80:1f.0', '060100', '8086:a303', 'lpc_ich', 118),
             ('80:1f.4', '0c0500', '8086:a323', 'i801_smbus', 118),
             ('81:00.0', '010802', '144d:a80a', 'nvme', 118),
             ('82:00.0', '030200', '10de:20b0', VFIO, 118)], [], [
        ('error', '80:01.0, the host bridge of the host'),
        ('error', '80:1f.0, the ISA bridge of the host'),
        ('error', '80:1f.4, the SMBus controller of the host'),
        ('error', '81:00.0, the NVMe controller of the host')]),
    # Groups that are as they should be.
    'G1a': ([('81:00.0', '060400', '8086:0c01', 'pcieport', 119),
             ('82:00.0', '030200', '10de:20b0', VFIO, 119),
             ('82:00.1', '040300', '10de:1aef', 'pci-stub', 119),
             ('82:00.2', '0c0330', '10de:1aec', None, 119),
             ('83:00.0', '040300', '8086:a348', 'snd_hda_intel', 120)], [],
            []),
}


class RunningTest(unittest.TestCase):
    def test_this_machine_is_read(self):
        facts = host.read()
        self.assertIsInstance(facts.kernel.programs, frozenset)
        self.assertIsInstance(facts.memory.total_mib, int)
        self.assertTrue(facts.host.cells)
