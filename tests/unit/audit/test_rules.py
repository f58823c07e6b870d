# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit.reading.cpu import Frequency
from hpcvirt.audit.reading.kernel import Interrupt
from hpcvirt.audit.reading.kernel import Program
from hpcvirt.audit.reading.memory import Ksm
from hpcvirt.audit.rules import isolation
from hpcvirt.audit.rules import memory
from hpcvirt.deployment import host_files
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests.builders import audited
from tests.builders import hosts

CPUS = audited.HOST.cpus
EIGHT = frozenset(range(8))


class CpuTest(audited.Case):
    """SMT, frequency, C-states, microcode and cells."""

    def on(self, host, code, **fields):
        """Return the findings on another topology, without a profile."""
        facts = audited.replace(self.but(cpu=fields), host=host)
        return [severity for severity, _ in self.found(code, facts, None)]

    def frequency(self, governor='performance', preference=None,
                  driver='intel_pstate', boost=None):
        return {'frequencies': (Frequency(
            CPUS, driver, governor, preference, boost),)}

    def test_smt_as_the_profile_wants_it(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        for state, profile, expected in (
                ('on', audited.PROFILE, []), ('off', None, []),
                ('off', audited.PROFILE, ['warning']),
                ('forceoff', audited.PROFILE, ['warning']),
                ('notsupported', audited.PROFILE, []),
                (None, audited.PROFILE, []), ('on', leave, ['note'])):
            self.check('smt', expected, profile=profile, cpu={'smt': state})

    def test_a_sibling_that_is_offline(self):
        cell = audited.HOST.cells[0]
        lost = max(cell.siblings[0])
        broken = dataclasses.replace(
            cell, cpus=cell.cpus - {lost},
            siblings=(cell.siblings[0] - {lost}, *cell.siblings[1:]))
        host = dataclasses.replace(audited.HOST, cells=(
            broken, *audited.HOST.cells[1:]))
        self.assertEqual(['warning'], self.on(host, 'smt'))
        parked = audited.replace(self.but(nova={
            ('libvirt', 'cpu_power_management'): ('true',)}), host=host)
        self.check('smt', [], parked, profile=None)

    def test_governor(self):
        for fields, expected in (
                (self.frequency(), 0), (self.frequency('powersave'), 1),
                (self.frequency('powersave', 'performance'), 0),
                (self.frequency('powersave', 'performance',
                                'amd-pstate-epp'), 0),
                (self.frequency('powersave', 'performance', 'acpi-cpufreq'),
                 1),
                (self.frequency('powersave', 'balance_performance'), 1),
                (self.frequency('schedutil'), 1), ({'frequencies': ()}, 0)):
            self.check('governor', expected, cpu=fields)

    def test_nova_may_manage_the_governor(self):
        managed = {('libvirt', 'cpu_power_management'): ('True',)}
        slow = self.but(cpu=self.frequency('powersave'), nova=managed)
        self.check('governor', 1, slow)
        slow = self.but(slow, nova={
            ('libvirt', 'cpu_power_management_strategy'): ('governor',)})
        self.check('governor', 0, slow)

    def test_turbo(self):
        for fields, expected in (
                ({'no_turbo': True}, 1), ({'no_turbo': False}, 0),
                ({'no_turbo': None, 'boost': False}, 1),
                ({'no_turbo': None, 'boost': True}, 0),
                ({'no_turbo': None, 'boost': None}, 0),
                ({'no_turbo': None, **self.frequency(boost=False)}, 1),
                ({'no_turbo': None, **self.frequency(boost=True)}, 0)):
            self.check('turbo', expected, cpu=fields)

    def test_idle_states(self):
        most = kernel_settings.MAX_LATENCY_US
        for latency, limit, expected in (
                (most, None, 0), (most + 1, None, 1), (most + 1, most, 0),
                (most + 1, most + 1, 1)):
            states = {('C6', latency): CPUS}
            self.check('c-states', expected,
                       cpu={'idle_states': states, 'wake_limit_us': limit})

    def test_the_profile_of_host_config_allows_no_state_that_is_too_deep(self):
        text = audited.tree()[host_files.TUNED[0]]
        limit = int(re.search('^force_latency=(.*)$', text, re.MULTILINE)[1])
        server = dict.fromkeys((('POLL', 0), ('C1', 2), ('C1E', 10),
                                ('C6', 133)), CPUS)
        self.check('c-states', [], cpu={'idle_states': server,
                                        'wake_limit_us': limit})
        # What virtual-host alone allows there.
        self.check('c-states', ['warning'], cpu={'idle_states': server,
                                                 'wake_limit_us': 133})

    def test_microcode(self):
        two = {'1': frozenset({0}), '2': CPUS - {0}}
        self.check('microcode', 1, cpu={'microcode': two})
        self.check('microcode', 0, cpu={'microcode': two, 'is_guest': True})
        self.check('microcode', 0, cpu={'microcode': None})
        for name, state, expected in (
                ('mds', ('Vulnerable: Clear CPU buffers attempted, no '
                 'microcode; SMT vulnerable'), 1),
                ('gather_data_sampling', 'Vulnerable: No microcode', 1),
                ('old_microcode', 'Vulnerable', 1),
                ('old_microcode', 'Not affected', 0),
                ('spec_store_bypass', 'Vulnerable', 0)):
            self.check('microcode', expected,
                       kernel={'vulnerabilities': {name: state}})

    def test_sockets_have_as_many_cells(self):
        amd = {'vendor': 'AuthenticAMD'}
        uneven = hosts.build(3, 4, sockets=2)
        self.assertEqual(['warning'], self.on(uneven, 'cells-per-socket'))
        for host, expected in (
                (hosts.build(2, 8, llc_cores=2), ['note']),
                (hosts.build(2, 6, llc_cores=2), []),
                (hosts.build(8, 8, llc_cores=2, sockets=2), [])):
            self.assertEqual(expected, self.on(host, 'cells-per-socket',
                                               **amd))
        self.assertEqual([], self.on(hosts.build(2, 8, llc_cores=2),
                                     'cells-per-socket'))

    def test_cells_have_as_much_memory(self):
        for sizes, expected in (
                ((65536, 65536), []), ((65536, 58983), []),
                ((65536, 58982), ['warning']), ((4096, 3072), []),
                ((4096, 3071), ['warning'])):
            host = hosts.build(2, 4, mib=sizes)
            self.assertEqual(expected, self.on(host, 'cell-memory'), sizes)


FUNCTIONS = audited.GOOD.hardware.functions
ADDRESS = FUNCTIONS[0].address


class DevicesTest(audited.Case):
    """IOMMU and virtual functions."""

    def first(self, **fields):
        return {'functions': (dataclasses.replace(FUNCTIONS[0], **fields),
                              *FUNCTIONS[1:])}

    def test_devices_of_guests_need_an_iommu(self):
        self.check('iommu', ['error'], hardware={'iommus': ()})

    def test_who_passes_no_device_needs_none(self):
        plain = self.but(nova={('pci', 'device_spec'): None},
                         hardware={'functions': (), 'iommus': ()})
        self.check('iommu', [], plain, profile=profiles.DEFAULT)
        self.check('iommu', [], plain, profile=None)
        listed = self.but(plain, nova={('pci', 'device_spec'): ('{}',)})
        self.check('iommu', 1, listed, profile=None)

    def test_the_host_itself_is_not_translated(self):
        for types, expected in (({'DMA-FQ'}, 1), ({'DMA', 'identity'}, 0),
                                (set(), 0)):
            self.check('iommu-passthrough', expected,
                       hardware={'iommu_types': frozenset(types)})

    def test_no_parameter_of_x86_is_recommended_to_arm(self):
        for vendor, expected in (
                ('GenuineIntel', 'intel_iommu=on iommu.passthrough=1'),
                ('AuthenticAMD', 'iommu.passthrough=1'),
                (None, 'iommu.passthrough=1')):
            facts = self.but(cpu={'vendor': vendor}, hardware={
                'iommus': (), 'iommu_types': frozenset({'DMA'})})
            self.assertEqual(
                [expected, 'iommu.passthrough=1'],
                [item.change[-1] for item in audit.audit(facts).findings
                 if item.code.startswith('iommu')])

    def test_as_many_functions_as_the_flavors_need(self):
        self.assertEqual([('error', f'{ADDRESS} has 1 virtual functions')],
                         self.found('virtual-functions', self.but(
                             hardware=self.first(count=1))))
        for count in (2, 3):
            self.check('virtual-functions', [],
                       hardware=self.first(count=count))
        self.check('virtual-functions', [], profile=None,
                   hardware=self.first(count=0))

    def test_a_device_without_driver_creates_none(self):
        host = dataclasses.replace(audited.HOST, devices=tuple(
            dataclasses.replace(device, driver=None)
            for device in audited.HOST.devices))
        self.check('virtual-functions', 2,
                   audited.replace(audited.GOOD, host=host),
                   hardware=self.first(count=0))

    def test_cells_of_devices_are_known(self):
        self.check('device-cell', 1,
                   hardware=self.first(cells=frozenset({None})))
        lost = dataclasses.replace(audited.HOST, devices=(
            dataclasses.replace(audited.HOST.devices[0], cell=None),))
        facts = audited.replace(audited.GOOD, host=lost)
        self.check('device-cell', 1, facts, profile=None)

    def test_functions_are_created_at_boot(self):
        self.check('persistent-functions', 2, hardware={'creators': {}})
        text = audited.tree()[host_files.VFS]
        lost = audit.audit(self.but(hardware={'creators': {}}))
        for item in lost.findings:
            if item.code == 'persistent-functions':
                self.assertIn(item.change[-1], text)
        self.check('persistent-functions', 1,
                   hardware={'creators': {ADDRESS: ('/etc/rc.local',)}})
        self.check('persistent-functions', 0,
                   hardware={'creators': {'*': ('/etc/rc.local',)}})
        self.check('persistent-functions', 1,
                   hardware={'creators': {}, **self.first(count=0)})


class HugePagesTest(audited.Case):
    """Huge pages: as the flavors need them, on every cell."""

    def change(self, number, **fields):
        """Change one pool; pools are ordered by cell and name."""
        pools = list(audited.GOOD.memory.huge_pages)
        pools[number] = dataclasses.replace(pools[number], **fields)
        return self.but(memory={'huge_pages': tuple(pools)})

    def setUp(self):
        super().setUp()
        self.number, self.pool = next(
            (number, pool) for number, pool
            in enumerate(audited.GOOD.memory.huge_pages)
            if pool.cell == 1 and pool.size_kib == 2048)

    def test_fewer_than_the_flavors_need_is_an_error(self):
        facts = self.change(self.number, total=self.pool.total - 1)
        self.assertEqual(
            [('error', f'cell 1 has {self.pool.total - 1} pages of 2M')],
            self.found('huge-pages', facts))

    def test_more_than_they_need_is_a_warning(self):
        facts = self.change(self.number, total=self.pool.total + 1)
        self.check('huge-pages', ['warning'], facts)

    def test_another_size_is_a_warning(self):
        number = next(number for number, pool
                      in enumerate(audited.GOOD.memory.huge_pages)
                      if pool.cell == 0 and pool.size_kib == 1048576)
        self.assertEqual([('warning', 'cell 0 has 2 pages of 1G')],
                         self.found('huge-pages', self.change(number,
                                                              total=2)))

    def test_surplus_pages_are_not_reserved(self):
        facts = self.change(self.number, total=self.pool.total, surplus=1)
        self.check('huge-pages', 1, facts)

    def test_cells_are_even_within_five_percent(self):
        most = self.pool.total
        for count, expected in ((-(-most * 95 // 100), 0),
                                (most * 95 // 100 - 1, 1)):
            facts = self.change(self.number, total=count)
            self.check('huge-pages-even', expected, facts, profile=None)

    def test_none_at_all(self):
        facts = self.but(memory={'huge_pages': ()})
        self.assertEqual([('warning', 'no huge pages are reserved')],
                         self.found('huge-pages-even', facts, None))
        self.check('huge-pages-even', [], facts)


OWN = kernel_settings.make_state(planner.plan(
    [audited.HOST], audited.PROFILE).hosts[0]).housekeeping
ALL = audited.HOST.cpus
GUESTS = ALL - OWN
#: A dedicated CPU.
ONE = frozenset({min(GUESTS)})


class IsolationTest(audited.Case):
    """What runs on the dedicated CPUs."""

    def kernel(self, code, **fields):
        return self.found(code, self.but(kernel=fields))

    def interrupt(self, name='eth0', cpus=ONE):
        return {'interrupts': (Interrupt(9, name, cpus),)}

    def running(self, cpus, unit='system.slice', name='sshd'):
        return {'running': frozenset({Program(name, cpus, unit)})}

    def test_programs_stay_off_dedicated_cpus(self):
        self.check('isolation', [])
        self.assertEqual(
            [('warning', f'sshd may run on the dedicated CPU {min(ONE)}')],
            self.kernel('isolation', **self.running(OWN | ONE)))

    def test_what_is_advised_keeps_the_programs_off_that_are_found(self):
        slice_ = ['[Slice]', f'AllowedCPUs={cpuset.render(OWN)}']
        for unit, expected in (
                ('system.slice', slice_), ('machine.slice', []),
                ('', [*slice_, *slice_, '[Scope]', slice_[1]])):
            facts = self.but(kernel=self.running(ALL, unit))
            item, = (item for item in audit.audit(facts).findings
                     if item.code == 'isolation')
            self.assertEqual(expected, [line for line in item.change
                                        if not line.startswith('#')])
        self.assertIn(f'--cpuset-cpus={cpuset.render(OWN)}', str(
            audit.audit(self.but(kernel=self.running(ALL, 'machine.slice'))
                        ).findings))

    def test_isolcpus_keeps_programs_off_as_well(self):
        self.check('isolation', [],
                   kernel={**self.running(ALL), 'isolated': GUESTS})
        self.check('isolation', ['warning'],
                   kernel={**self.running(ALL), 'isolated': GUESTS - ONE})

    def test_a_host_that_keeps_no_cpu_cannot_isolate(self):
        every = self.but(nova={
            ('compute', 'cpu_dedicated_set'): (cpuset.render(ALL),),
            ('compute', 'cpu_shared_set'): None}, kernel=self.running(ALL))
        for code in ('isolation', 'nohz-full', 'rcu-callbacks',
                     'irq-affinity', 'irqbalance'):
            self.check(code, [], every, profile=None)

    def test_shared_cpus_must_not_be_isolated(self):
        shared = audited.GOOD.nova.get('compute', 'cpu_shared_set')
        self.assertEqual(
            [('error', f'the shared CPUs {shared} are isolated (isolcpus)')],
            self.kernel('isolated-shared', isolated=ALL))
        self.check('isolated-shared', [], kernel={'isolated': GUESTS})

    def test_ticks(self):
        self.check('nohz-full', [])
        self.check('nohz-full', ['note'], kernel={'nohz_full': frozenset()})
        self.check('nohz-full', ['warning'],
                   kernel={'nohz_full': GUESTS - ONE})
        self.check('nohz-full', ['warning'], kernel={'nohz_full': ALL})

    def test_a_parameter_that_the_kernel_ignores_is_not_advised(self):
        word = f'nohz_full={cpuset.render(GUESTS)}'
        for words, is_advised in (((), True), ((word,), False)):
            ignored = self.but(audited.GOOD, kernel={
                'command_line': words, 'nohz_full': frozenset()})
            (found,) = [item for item in audit.audit(ignored).findings
                        if item.code == 'nohz-full']
            self.assertEqual(is_advised, word in found.change)
            self.assertNotEqual(is_advised,
                                'CONFIG_NO_HZ_FULL' in found.change[0])

    def test_changes_last_where_the_kernel_or_systemd_reads_them(self):
        for path, value, words in (
                ('proc/sys/vm/zone_reclaim_mode', '1',
                 '"vm.zone_reclaim_mode = 0" in /etc/sysctl.d'),
                ('sys/module/kvm/parameters/halt_poll_ns', '0',
                 '"options kvm halt_poll_ns=200000" in /etc/modprobe.d'),
                (('sys/devices/system/clocksource/clocksource0/'
                  'current_clocksource'), 'hpet',
                 'clocksource=tsc on the kernel command line'),
                ('sys/kernel/mm/transparent_hugepage/khugepaged/defrag', '0',
                 ('"w! /sys/kernel/mm/transparent_hugepage/khugepaged/defrag '
                  '- - - - 1" in /etc/tmpfiles.d'))):
            facts = self.but(memory={'thp': 'always', 'huge_pages': ()})
            changes = [line for item in audit.audit(audited.replace(
                facts, **{path: value})).findings
                       for line in item.change]
            self.assertIn(f'# lasting: {words}', ''.join(changes), path)

    def test_callbacks(self):
        text = cpuset.render(GUESTS)
        off = {'nohz_full': frozenset()}
        self.check('rcu-callbacks', [], kernel={'command_line': ()})
        for word, expected in (
                ('quiet', ['note']), (f'rcu_nocbs={text}', []),
                ('rcu_nocbs=all', []), (f'rcu_nocbs={min(ONE)}', ['warning'])):
            self.check('rcu-callbacks', expected,
                       kernel={'command_line': (word,), **off})

    def test_interrupts(self):
        for fields, expected in (
                (self.interrupt(), 1), (self.interrupt(cpus=OWN), 0),
                (self.interrupt('nvme0q3'), 0),
                (self.interrupt('megasas0-msix12'), 0),
                (self.interrupt('mpt3sas0-msix3'), 0),
                (self.interrupt('qla2xxx0_qpair2'), 0),
                (self.interrupt('smartpqi'), 0),
                (self.interrupt('virtio0-req.2'), 0),
                # Of a file system of the hypervisor: it can be moved.
                (self.interrupt('virtio0-requests'), 1),
                (self.interrupt('virtio1-input.0'), 1),
                (self.interrupt('vfio-msix[0](0000:41:00.1)'), 0)):
            self.check('irq-affinity', expected, kernel=fields)

    def test_irqbalance_leaves_alone_what_it_is_told_or_what_is_quiet(self):
        for fields, expected in (
                ({}, 0), ({'nohz_full': GUESTS - ONE}, 1),
                ({'nohz_full': frozenset(), 'isolated': GUESTS}, 0),
                ({'nohz_full': frozenset(), 'banned_cpus': GUESTS}, 0),
                ({'banned_cpus': GUESTS - ONE}, 1),
                ({'nohz_full': frozenset(),
                  'programs': frozenset({'sshd'})}, 0)):
            self.check('irqbalance', expected,
                       kernel={'banned_cpus': None, **fields})

    def test_siblings_that_stay_idle_are_guarded_too(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        facts = audited.facts(audited.tree(profile=leave))
        self.assertNotIn('isolation', self.codes(facts, leave))
        dedicated = cpuset.parse(
            facts.nova.get('compute', 'cpu_dedicated_set'))
        sibling = next(core - dedicated for cell in audited.HOST.cells
                       for core in cell.siblings if core & dedicated)
        disturbed = self.but(facts, kernel={
            **self.running(OWN | sibling)})
        self.assertIn('isolation', self.codes(disturbed, leave))


class KernelTest(audited.Case):
    """KVM, tuned and mitigations."""

    def kernel(self, code, **fields):
        return self.found(code, self.but(kernel=fields))

    def test_kvm(self):
        self.assertEqual([('error', 'KVM cannot run guests on this host')],
                         self.kernel('kvm', has_kvm=False))

    def test_nested_paging(self):
        for name in ('kvm_intel.ept', 'kvm_amd.npt'):
            self.assertEqual(
                [('warning', f'nested paging is off ({name} is 0)')],
                self.kernel('nested-paging', nested_paging=(name, False)))
        for value in (('kvm_intel.ept', True), None):
            self.check('nested-paging', [], kernel={'nested_paging': value})

    def test_tuned_profiles(self):
        for profile, expected in (
                ('virtual-host', 0), ('cpu-partitioning', 0), ('site', 0),
                ('hpcvirt site', 0), ('balanced', 1), ('virtual-guest', 1),
                ('site powersave', 1), (None, 1)):
            self.check('tuned', expected, kernel={'tuned_profile': profile})

    def test_tuned_must_run_where_it_is_installed(self):
        self.check('tuned', 1, kernel={'programs': frozenset({'sshd'})})
        self.check('tuned', 0, kernel={
            'has_tuned': False, 'tuned_profile': None,
            'programs': frozenset()})

    def test_mitigations_that_cost_are_noted(self):
        for name, state, expected in (
                ('meltdown', 'Mitigation: PTI', 1),
                ('meltdown', 'Vulnerable', 0),
                ('meltdown', 'Not affected', 0),
                ('spectre_v2', ('Mitigation: Enhanced / Automatic IBRS; IBPB: '
                 'conditional'), 0),
                ('spectre_v2', 'Mitigation: Retpolines; IBPB: conditional', 1),
                ('spectre_v2', 'Mitigation: IBRS; IBPB: conditional', 1),
                ('gather_data_sampling', 'Mitigation: Microcode', 1),
                ('itlb_multihit', 'KVM: Mitigation: Split huge pages', 1),
                ('itlb_multihit', 'KVM: Mitigation: VMX disabled', 0),
                ('l1tf', ('Mitigation: PTE Inversion; VMX: conditional cache '
                 'flushes, SMT vulnerable'), 1),
                ('retbleed', 'Mitigation: Enhanced IBRS', 0),
                ('retbleed', ('Mitigation: untrained return thunk; SMT '
                 'enabled with STIBP protection'), 1),
                ('spec_rstack_overflow', 'Mitigation: Safe RET', 1),
                ('a_new_one', 'Mitigation: unheard of', 0)):
            self.check('mitigations', ['note'] * expected,
                       kernel={'vulnerabilities': {name: state}})


ONE_CELL = audited.facts(audited.tree(hosts.build(1, 8), profiles.DEFAULT))


class KsmTest(audited.Case):
    """KSM, THP, NUMA balancing, swap and what is left."""

    def ksm(self, facts=audited.GOOD, **fields):
        values = {'run': 0, 'merge_across_nodes': True, 'pages_shared': 0,
                  'pages_sharing': 0, 'full_scans': 0, **fields}
        return self.but(facts, memory={'ksm': Ksm(**values)})

    def test_it_must_not_merge_across_cells(self):
        self.assertEqual(
            [('warning', 'KSM runs, and merges pages of different cells')],
            self.found('ksm', self.ksm(run=1)))

    def test_within_a_cell_it_is_a_choice(self):
        for facts in (self.ksm(run=1, merge_across_nodes=False),
                      self.ksm(ONE_CELL, run=1)):
            self.assertEqual([('note', 'KSM runs')],
                             self.found('ksm', facts, None))

    def test_stopped_or_missing_is_fine(self):
        for facts in (self.ksm(), self.ksm(run=2),
                      self.but(memory={'ksm': None})):
            self.check('ksm', [], facts)

    def test_pages_are_separated_only_where_they_fit(self):
        """160 GiB that 40 GiB of pages stand for do not fit into 6 GiB."""
        scale = {'run': 1, 'pages_shared': 10 << 20}
        for sharing, expected in (
                (0, ['echo 2 > /sys/kernel/mm/ksm/run']),
                (256 * 1024, [
                    ('# merged pages need 1024 MiB to be separated, and 6150 '
                    'MiB are available'), 'echo 2 > /sys/kernel/mm/ksm/run']),
                (40 << 20, [
                    'echo 0 > /sys/kernel/mm/ksm/run',
                    ('# not 2: merged pages need 163840 MiB to be separated, '
                    'and 6150 MiB are available; move guests away before '
                    'that')])):
            item, = (item for item in audit.audit(self.ksm(
                pages_sharing=sharing, **scale)).findings
                if item.code == 'ksm')
            self.assertEqual(expected, list(item.change[:len(expected)]))
        for parts in ({'memory': {'available_mib': fact.UnknownFact(
                '/sys', 'is missing')}}, {'kernel': {
                    'programs': frozenset({'ksmtuned'})}}):
            full = self.but(self.ksm(pages_sharing=40 << 20, **scale), **parts)
            self.assertNotIn('echo 2 >', str([
                item.change for item in audit.audit(full).findings]))

    def test_pages_that_stay_merged_are_noted(self):
        self.assertEqual(
            [('note',
              'KSM is off, but 512 pages that it merged still save 4 MiB')],
            self.found('ksm', self.ksm(pages_shared=512, pages_sharing=1024)))

    def test_ksmtuned_starts_it(self):
        facts = self.but(kernel={'programs': frozenset({'ksmtuned'})})
        self.check('ksm', ['warning'], facts)

    def test_leaked_slab(self):
        for total, slab, scans, expected in (
                (65536, 1024, 9, 0), (65536, 1025, 9, 1), (65536, 1025, 0, 0),
                (131072, 2048, 9, 0), (131072, 2049, 9, 1)):
            facts = self.but(self.ksm(full_scans=scans), memory={
                'total_mib': total, 'slab_unreclaimable_mib': slab})
            self.check('ksm-slab', expected, facts)


class MemoryTest(audited.Case):
    def test_guests_with_normal_pages_need_transparent_huge_pages(self):
        small = profiles.build({'page_size': '4K'}, 'profile')
        for choice, expected in (('never', 1), ('madvise', 0), ('always', 0),
                                 (None, 0)):
            self.check('thp', expected, profile=small, memory={'thp': choice})
        self.check('thp', 0, memory={'thp': 'never'})

    def test_without_a_profile_huge_pages_say_which_guests_have(self):
        self.check('thp', 0, profile=None, memory={'thp': 'never'})
        self.check('thp', 1, profile=None,
                   memory={'thp': 'never', 'huge_pages': ()})

    def test_faults_must_not_wait_for_compaction(self):
        self.check('thp', 1, memory={'thp_defrag': 'always'})
        self.check('thp', 0, memory={'thp_defrag': 'defer'})
        self.check('thp', 0, memory={'thp': 'never', 'thp_defrag': 'always'})

    def test_numa_balancing(self):
        for mode, expected in ((0, 0), (1, 1), (2, 0), (3, 1), (None, 0)):
            self.check('numa-balancing', expected,
                       memory={'numa_balancing': mode})
        item, = (item for item in audit.audit(self.but(
            memory={'numa_balancing': 3})).findings
            if item.code == 'numa-balancing')
        self.assertEqual('sysctl kernel.numa_balancing=2', item.change[0])
        self.check('numa-balancing', 0, ONE_CELL, profile=None,
                   memory={'numa_balancing': 1})

    def test_numa_balancing_places_guests_that_float(self):
        balanced = self.but(memory={'numa_balancing': 1})
        self.check('numa-balancing', ['warning'], balanced)
        for options, expected in (
                ({}, ['note']), ({SHARED: None}, ['warning']),
                ({DEDICATED: None}, []),
                ({DEDICATED: None, SHARED: None}, [])):
            self.check('numa-balancing', expected, balanced, None,
                       nova=options)

    def test_the_tiering_of_memory_is_not_ended(self):
        tiers = audited.replace(audited.GOOD, host=hosts.build(
            2, 4, 2, memory_only=1))
        for mode, expected in ((1, 'sysctl kernel.numa_balancing=2'),
                               (3, 'sysctl kernel.numa_balancing=2')):
            item, = (item for item in audit.audit(self.but(
                tiers, memory={'numa_balancing': mode})).findings
                if item.code == 'numa-balancing')
            self.assertEqual(expected, item.change[0])
        self.check('numa-balancing', [], tiers, None,
                   memory={'numa_balancing': 2})

    def test_numad(self):
        facts = self.but(kernel={'programs': frozenset({'numad'})})
        self.assertEqual([('warning', 'numad runs')],
                         self.found('numad', facts))

    def test_swap(self):
        most = memory.MAX_SWAP_USED_MIB
        self.check('swap', 0, memory={'swap_used_mib': most})
        self.check('swap', 1, memory={'swap_used_mib': most + 1})

    def test_swappiness(self):
        most = memory.MAX_SWAPPINESS
        self.check('swappiness', 0, memory={'swappiness': most})
        self.check('swappiness', 1, memory={'swappiness': most + 1})
        self.check('swappiness', 0,
                   memory={'swappiness': 60, 'swap_total_mib': 0})

    def test_each_cell_has_half_of_what_the_host_keeps(self):
        for left, expected in ((1024, 0), (1023, 1)):
            self.check('host-memory', expected,
                       memory={'available_mib': {0: left, 1: 4096}})
        more = profiles.build({'host_reserve_mib_per_cell': 8192}, 'profile')
        for left, expected in ((4096, 0), (4095, 1)):
            self.check('host-memory', expected, profile=more,
                       memory={'available_mib': {0: 9999, 1: left}})


MEMORY = ('DEFAULT', 'reserved_host_memory_mb')
PAGES = ('DEFAULT', 'reserved_huge_pages')
PACK = ('compute', 'packing_host_numa_cells_allocation_strategy')
MODE = ('libvirt', 'cpu_mode')


class NovaTest(audited.Case):
    """The other options of nova-compute."""

    def test_no_configuration_is_unknown(self):
        for nova, expected in ((None, ['unknown']), (fact.UnknownFact(
                '/etc/nova/nova.conf', 'cannot be read'), [])):
            facts = audited.replace(audited.GOOD, nova=nova)
            self.check('nova-conf', expected, facts)

    def test_what_nova_cannot_read_is_an_error(self):
        nova = dataclasses.replace(audited.GOOD.nova, unreadable=('/etc/x',))
        self.check('nova-conf', ['error'],
                   audited.replace(audited.GOOD, nova=nova))

    def test_memory_of_the_plan(self):
        planned = int(audited.GOOD.nova.get(*MEMORY))
        for value, expected in ((planned, []), (planned - 64, []),
                                (planned - 65, ['warning']),
                                (planned + 64, []), (planned + 65, ['error']),
                                ('much', ['error'])):
            self.check('nova-memory', expected, nova={MEMORY: (str(value),)})
        self.check('nova-memory', ['warning'], nova={MEMORY: None})

    def test_memory_that_no_emulator_needs_is_compared_exactly(self):
        own = profiles.build({'guest_overhead_mib': 0}, 'profile')
        facts = audited.facts(audited.tree(profile=own))
        planned = int(facts.nova.get(*MEMORY))
        for value, expected in ((planned, []), (planned - 1, ['warning']),
                                (planned + 1, ['error'])):
            self.check('nova-memory', expected,
                       self.but(facts, nova={MEMORY: (str(value),)}),
                       profile=own)

    def test_memory_without_a_plan(self):
        huge = sum(pool.total * pool.size_kib // 1024
                   for pool in audited.GOOD.memory.huge_pages)
        left = audited.GOOD.memory.total_mib - huge
        for value, expected in ((1024, []), (1023, ['warning']), (left, []),
                                (left + 1, ['warning'])):
            self.check('nova-memory', expected, profile=None,
                       nova={MEMORY: (str(value),)})

    def test_reserved_pages_exist(self):
        total = audited.GOOD.host.cells[0].pool(2048).total
        for text, expected in (
                (f'node:0,size:2048,count:{total}', []),
                (f'node:0,size:2MB,count:{total}', []),
                (f'node:0,size:2048,count:{total + 1}', ['error']),
                ('node:7,size:2048,count:1', ['error']),
                ('node:0,size:big,count:1', ['error']), ('7', ['error'])):
            self.check('nova-reserved-pages', expected, profile=None,
                       nova={PAGES: (text,)})

    def test_reserved_pages_are_those_of_the_plan(self):
        self.check('nova-reserved-pages', ['warning'],
                   nova={PAGES: ('node:0,size:2048,count:1',)})
        own = profiles.build({'host_pages_per_cell': {'2M': 64}}, 'profile')
        facts = audited.facts(audited.tree(profile=own))
        self.assertEqual(2, len(facts.nova.all(*PAGES)))
        self.check('nova-reserved-pages', [], facts, profile=own)
        lacking = self.but(facts, nova={PAGES: facts.nova.all(*PAGES)[:1]})
        self.check('nova-reserved-pages', 1, lacking, profile=own)

    def test_packing(self):
        packed = profiles.build({'pack_cells': True}, 'profile')
        for value, profile, expected in (
                (None, audited.PROFILE, []), ('true', None, ['note']),
                ('True', audited.PROFILE, ['warning']),
                (None, packed, ['warning']), ('yes', packed, ['note']),
                ('false', None, [])):
            options = {PACK: value and (value,)}
            self.check('nova-packing', expected, profile=profile, nova=options)

    def test_guests_see_the_processor(self):
        for mode, expected in (
                ('host-passthrough', []), (None, ['note']),
                ('host-model', ['note']), ('custom', ['note']),
                ('none', ['warning'])):
            self.check('cpu-mode', expected, nova={MODE: mode and (mode,)})

    def test_filters_of_a_scheduler_on_this_host(self):
        option = ('filter_scheduler', 'enabled_filters')
        for text, expected in (
                (None, []), (('ComputeFilter, NUMATopologyFilter,'
                             'PciPassthroughFilter'), []),
                ('ComputeFilter,HPCTopologyFilter', []),
                ('ComputeFilter,NUMATopologyFilter', ['warning']),
                ('ComputeFilter', ['warning'] * 2)):
            self.check('nova-filters', expected,
                       nova={option: text and (text,)})
        plain = {option: ('ComputeFilter',), ('pci', 'device_spec'): None,
                 ('compute', 'cpu_dedicated_set'): None}
        self.check('nova-filters', [], profile=None, nova=plain)

    def test_live_migration(self):
        for options, expected in (
                ({}, []), ({'permit_post_copy': 'true'}, []),
                ({'permit_post_copy': 'true', 'parallel_connections': '4'},
                 ['warning']), ({'parallel_connections': '2'}, []),
                ({'permit_auto_converge': 'True'}, ['note']),
                ({'permit_auto_converge': '1'}, ['note']),
                ({'permit_auto_converge': 'false'}, []),
                ({'timeout_action': 'force_complete'}, ['note']),
                ({'timeout_action': 'abort'}, []),
                ({'timeout_action': 'force_complete',
                  'permit_post_copy': 'true'}, [])):
            self.check('live-migration', expected, nova={
                ('libvirt', f'live_migration_{name}'): (value,)
                for name, value in options.items()})
        giant = tuple(dataclasses.replace(pool, total=4)
                      for pool in audited.GOOD.memory.huge_pages)
        self.check('live-migration', ['note'], memory={'huge_pages': giant},
                   nova={('libvirt', 'live_migration_permit_post_copy'):
                         ('true',)})

    def test_guests_are_not_emulated(self):
        for kind, expected in (('kvm', []), ('qemu', ['error'])):
            self.check('cpu-mode', expected,
                       nova={('libvirt', 'virt_type'): (kind,)})


DEDICATED = ('compute', 'cpu_dedicated_set')
SHARED = ('compute', 'cpu_shared_set')
CORES = [core for cell in audited.HOST.cells for core in cell.siblings]


def words(cpus):
    return (cpuset.render(cpus),)


class NovaCpusTest(audited.Case):
    """The CPU sets of nova-compute against the topology."""

    def test_what_nova_compute_refuses(self):
        for options, expected in (
                ({}, 0), ({DEDICATED: ('2-x',)}, 1),
                ({DEDICATED: ('1,99',)}, 1), ({SHARED: ('99',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('3-4',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('4-5',)}, 0),
                ({DEDICATED: ('3,^3',)}, 1),
                ({('DEFAULT', 'vcpu_pin_set'): ('1-3',)}, 1)):
            self.check('nova-cpu-sets', ['error'] * expected, nova=options)

    def test_power_management_takes_dedicated_cpus_offline(self):
        asleep = {DEDICATED: ('1,99',),
                  ('libvirt', 'cpu_power_management'): ('true',)}
        self.check('nova-cpu-sets', [], nova=asleep)
        asleep['libvirt', 'cpu_power_management_strategy'] = ('governor',)
        self.check('nova-cpu-sets', ['error'], nova=asleep)

    def test_dedicated_cpus_are_set(self):
        for profile in (None, audited.PROFILE):
            self.check('nova-dedicated', ['error'], profile=profile,
                       nova={DEDICATED: None, SHARED: None})
            self.check('nova-dedicated', ['error' if profile else 'note'],
                       profile=profile, nova={DEDICATED: None})
            self.check('nova-dedicated', [], profile=profile)
        # Nothing says that this host is for guests with dedicated CPUs.
        plain = self.but(kernel={'nohz_full': frozenset()},
                         nova={DEDICATED: None, SHARED: None})
        self.check('nova-dedicated', ['note'], plain, None)
        self.check('nova-dedicated', ['error'], plain)
        self.check('nova-dedicated', ['error'], self.but(
            plain, kernel={'isolated': ONE}), None)

    def test_cpus_that_nova_has_parked_are_no_fault(self):
        """Nova takes dedicated CPUs offline that no guest has."""
        dedicated = cpuset.parse(audited.GOOD.nova.get(*DEDICATED))
        second = audited.HOST.cells[1]
        parked = second.cpus & dedicated - {max(second.cpus)}
        cell = dataclasses.replace(
            second, cpus=second.cpus - parked, siblings=tuple(
                core - parked for core in second.siblings if core - parked),
            llc=tuple(cache - parked for cache in second.llc))
        facts = audited.replace(self.but(nova={
            ('libvirt', 'cpu_power_management'): ('true',)}),
            host=dataclasses.replace(audited.HOST, cells=(
                audited.HOST.cells[0], cell)))
        self.assertEqual([], self.codes(facts, None))
        self.assertEqual(
            [('note', (f'Nova has taken the dedicated CPUs '
              f'{cpuset.render(parked)} offline, so that the host is judged '
              'without the profile'))],
            self.found('nova-planned-cpus', facts))
        self.assertTrue(audit.audit(facts, audited.PROFILE).is_clean)

    def test_sets_are_those_of_the_plan(self):
        dedicated = cpuset.parse(audited.GOOD.nova.get(*DEDICATED))
        for options, expected in (
                ({DEDICATED: words(dedicated - {min(dedicated)})}, ['error']),
                ({SHARED: None}, ['warning']), ({DEDICATED: None}, []),
                ({}, [])):
            self.check('nova-planned-cpus', expected, nova=options)
            self.check('nova-planned-cpus', [], profile=None, nova=options)

    def test_siblings_stay_together(self):
        first, second, *rest = CORES
        whole = frozenset().union(*rest)
        for dedicated, shared, expected in (
                (whole, first, 0), (whole | {min(second)}, first, 1),
                (whole | {min(second)}, first | {max(second)}, 1)):
            self.check('nova-siblings', ['warning'] * expected, profile=None,
                       nova={DEDICATED: words(dedicated),
                             SHARED: words(shared)})

    def test_one_change_joins_the_siblings_of_all_cells(self):
        first, *rest = CORES
        firsts = frozenset(min(core) for core in rest)
        whole = cpuset.render(frozenset().union(*rest))
        for options, change in (
                ({DEDICATED: words(firsts), SHARED: None},
                 f'cpu_dedicated_set = {whole}'),
                ({DEDICATED: words(firsts), SHARED: words(
                    first | frozenset(max(core) for core in rest))},
                 f'cpu_shared_set = {cpuset.render(first)}')):
            found = [item for item in audit.audit(self.but(
                nova=options)).findings if item.code == 'nova-siblings']
            self.assertEqual(2, len(found))
            self.assertEqual({('# nova.conf', '[compute]', change)},
                             {item.change for item in found})

    def test_a_wrong_set_is_the_only_fault_of_a_host_as_planned(self):
        """No other change follows the set that has to be changed."""
        for options, expected in (
                ({DEDICATED: '1-7', SHARED: '0'},
                 ['nova-planned-cpus'] * 2),
                ({SHARED: None}, ['nova-planned-cpus'])):
            self.assertEqual(expected, self.codes(self.but(nova=options)))

    def test_equal_cells_give_as_many_cpus(self):
        half = len(CORES) // 2
        for cores, expected in ((CORES[2:half] + CORES[half + 2:], 0),
                                (CORES[2:half] + CORES[half + 1:], 1)):
            cpus = frozenset().union(*cores)
            self.check('nova-cells', ['warning'] * expected, profile=None,
                       nova={DEDICATED: words(cpus)})

    def test_a_cell_without_shared_cpus_is_noted(self):
        self.check('nova-cells', ['note'], profile=None,
                   nova={SHARED: words(CORES[0])})

    def test_each_cell_has_a_cpu_for_the_host(self):
        half = len(CORES) // 2
        all_of_one = frozenset().union(*CORES[:half], *CORES[half + 1:])
        self.check('host-cpus', ['warning'], profile=None,
                   nova={DEDICATED: words(all_of_one)})
        self.check('host-cpus', [], profile=None)

    def test_emulator_threads_have_cpus_of_their_own(self):
        self.check('emulator-threads', ['warning'], profile=None,
                   nova={SHARED: None})
        # The rule nova-planned-cpus says so.
        self.check('emulator-threads', [], nova={SHARED: None})
        self.check('emulator-threads', [], profile=profiles.DENSE,
                   nova={SHARED: None})

    def test_connections_of_live_migration_need_cores(self):
        option = ('libvirt', 'live_migration_parallel_connections')
        # The plan leaves one core of each of the two cells.
        for text, expected in (('1', []), ('2', []), ('3', ['warning']),
                               ('many', [])):
            self.check('migration-cores', expected, nova={option: (text,)})


class KernelCpusTest(unittest.TestCase):
    """Lists of CPUs on the kernel command line."""

    def test_lists_as_the_kernel_documents_them(self):
        for text, expected in (
                ('2-5', {2, 3, 4, 5}), ('1,7', {1, 7}), ('all', EIGHT),
                ('N', {7}), ('4-N', {4, 5, 6, 7}), ('0-7:1/4', {0, 4}),
                ('0-7:2/4', {0, 1, 4, 5}), ('managed_irq,domain,2-3', {2, 3}),
                ('6-99', {6, 7}), ('', set()), ('nohz', set())):
            self.assertEqual(expected, isolation.parse_parameter(
                (f'isolcpus={text}',), 'isolcpus', EIGHT), text)

    def test_the_last_of_a_parameter_counts(self):
        line = ('quiet', 'rcu_nocbs=1', 'rcu_nocbs=2-3', 'rcu_nocb_poll')
        self.assertEqual({2, 3}, isolation.parse_parameter(
            line, 'rcu_nocbs', EIGHT))
        self.assertEqual(frozenset(), isolation.parse_parameter(
            line, 'isolcpus', EIGHT))
