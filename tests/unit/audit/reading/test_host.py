# SPDX-License-Identifier: Apache-2.0

import contextlib
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
        whole = '\n'.join(f'0x{start:016x} 0x{end:016x} 0x{flags:016x}'
                         for start, end, flags in (
            (0x13002000000, 0x13002ffffff, 0x14220c), (0, 0, 0),
            (0x14000000000, 0x15fffffffff, 0x14220c), (0, 0, 0),
            (0x13000000000, 0x13001ffffff, 0x14220c), (0, 0, 0),
            (0, 1 << 42, 0x46200), (0, 1 << 43, 0x14220c)))
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
        self.assertTrue(intel.cpu.is_guest)

    def test_a_machine_whose_audio_function_has_its_driver(self):
        above = 'sys/devices/pci0000:80/0000:80:01.0'
        for driver, expected in (('snd_hda_intel', ['error']),
                                 ('vfio-pci', [])):
            files = {}
            for place, code, device, bound in (
                    ('', '0x060400', '0x347a', 'pcieport'),
                    ('/0000:86:00.0', '0x030000', '0x2204', 'vfio-pci'),
                    ('/0000:86:00.1', '0x040300', '0x1aef', driver)):
                here = f'{above}{place}'
                address = here.rpartition('/')[2]
                vendor = '0x10de' if place else '0x8086'
                files |= {
                    f'{here}/class': code, f'{here}/vendor': vendor,
                    f'{here}/device': device, f'{here}/numa_node': '1',
                    f'{here}/driver': sysfs_files.Link(
                        f'/sys/bus/pci/drivers/{bound}'),
                    f'sys/bus/pci/devices/{address}': sysfs_files.Link(
                        f'../../../../{here}'),
                    f'sys/kernel/iommu_groups/66/devices/{address}':
                        sysfs_files.Link(f'../../../../../{here}')}
            found = audit.audit(self.read('intel-2s-tuned', files)).findings
            self.assertEqual(expected, [
                item.severity for item in found
                if item.code == 'device-groups'])


class RunningTest(unittest.TestCase):
    def test_this_machine_is_read(self):
        facts = host.read()
        self.assertIsInstance(facts.kernel.programs, frozenset)
        self.assertIsInstance(facts.memory.total_mib, int)
        self.assertTrue(facts.host.cells)
