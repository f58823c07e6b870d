# SPDX-License-Identifier: Apache-2.0

"""The rules about the kernel: its settings, threads and command line."""

from hpcvirt.audit import audit
from hpcvirt.audit.reading.kernel import Program
from hpcvirt.flavors import profile as profiles
from tests.builders import audited

SMALL = profiles.build({'page_size': '4K'}, 'profile')


class KernelTest(audited.Case):
    def with_settings(self, facts=audited.GOOD, **values):
        """Change settings, named by the end of their paths."""
        return audited.replace(facts, **{
            name: value for name in audited.SETTINGS
            for end, value in values.items() if name.endswith(end)})

    def test_what_a_kernel_does_not_have_is_fine(self):
        nothing = audited.replace(
            audited.GOOD, **dict.fromkeys(audited.SETTINGS))
        self.assertEqual([], self.codes(
            self.but(nothing, kernel={'release': '5.10.0'})))

    def test_khugepaged_matters_to_guests_with_normal_pages(self):
        for profile, thp, expected in ((SMALL, 'always', 1),
                                       (SMALL, 'never', 0),
                                       (audited.PROFILE, 'always', 0)):
            self.check('khugepaged', expected, self.with_settings(
                **{'khugepaged/defrag': '0'}), profile, memory={'thp': thp})

    def test_huge_pages_are_split_where_the_processor_needs_it(self):
        for value, state, expected in (
                ('Y', 'Not affected', ['warning']), ('N', 'Not affected', []),
                ('never', 'Not affected', []),
                ('Y', 'KVM: Mitigation: Split huge pages', ['note']),
                ('N', 'KVM: Mitigation: Split huge pages', []),
                ('Y', 'KVM: Vulnerable', [])):
            self.check('nx-huge-pages', expected,
                       self.with_settings(nx_huge_pages=value), kernel={
                           'vulnerabilities': {'itlb_multihit': state}})

    def test_the_split_pages_alone_are_a_smaller_change(self):
        facts = self.but(self.with_settings(nx_huge_pages='Y'), kernel={
            'vulnerabilities': {
                'itlb_multihit': 'KVM: Mitigation: Split huge pages',
                'mds': 'Mitigation: Clear CPU buffers'}})
        changes = {item.code: item.change for item
                   in audit.audit(facts, audited.PROFILE).findings}
        self.assertIn('see nx-huge-pages', changes['mitigations'][-1])
        self.assertIn('echo off > /sys/module/kvm/parameters/nx_huge_pages',
                      changes['nx-huge-pages'])

    def test_guests_wait_at_split_locks(self):
        able = frozenset({'fpu', 'split_lock_detect'})
        for flags, value, line, release, expected in (
                (able, '1', (), '6.8.0', ['warning']),
                (able, '0', (), '6.8.0', []),
                # The locks are not detected.
                (frozenset({'fpu'}), '1', (), '6.8.0', []),
                (able, '1', ('split_lock_detect=off',), '6.8.0', []),
                (able, '1', ('split_lock_detect=ratelimit:9',), '6.8.0', []),
                (able, '1', ('split_lock_detect=off',
                             'split_lock_detect=warn'), '6.8.0',
                 ['warning']),
                # The first lock ends a guest.
                (able, '0', ('split_lock_detect=fatal',), '6.8.0',
                 ['warning']),
                # Kernels that have no switch; the older ones let none wait.
                (able, None, (), '6.0.0-1', ['warning']),
                (able, None, (), '5.15.0-91-generic', []),
                (able, None, ('split_lock_detect=off',), '6.0.0-1', [])):
            self.check(
                'split-locks', expected,
                self.with_settings(split_lock_mitigate=value),
                cpu={'flags': flags},
                kernel={'command_line': line, 'release': release})

    def test_the_clock_of_x86_hosts(self):
        for clock, vendor, guest, expected in (
                ('tsc', 'GenuineIntel', False, 0),
                ('hpet', 'AuthenticAMD', False, 1),
                ('acpi_pm', 'GenuineIntel', False, 1),
                ('hpet', 'AuthenticAMD', True, 0),
                ('kvm-clock', 'GenuineIntel', True, 0),
                ('arch_sys_counter', None, False, 0)):
            self.check('clocksource', expected, self.with_settings(
                current_clocksource=clock),
                cpu={'vendor': vendor, 'is_guest': guest})

    def test_spinning_is_intercepted_where_cpus_are_shared(self):
        dedicated = ('compute', 'cpu_dedicated_set')
        shared = ('compute', 'cpu_shared_set')
        for vendor, name in (('GenuineIntel', 'ple_gap'),
                             ('AuthenticAMD', 'pause_filter_count')):
            for value, without, expected in (
                    ('128', (), []), ('0', (), []),
                    ('128', (shared,), ['note']), ('0', (shared,), []),
                    ('0', (dedicated,), ['warning']),
                    ('128', (dedicated,), []),
                    ('128', (dedicated, shared), []), (None, (shared,), [])):
                facts = self.but(
                    self.with_settings(**{name: value}),
                    cpu={'vendor': vendor}, nova=dict.fromkeys(without))
                self.check('pause-loops', expected, facts, None)

    def test_threads_of_the_kernel(self):
        one = min(audited.HOST.cpus - audited.GOOD.kernel.watched_cpus)
        for name, cpus, isolated, expected in (
                ('kauditd', audited.HOST.cpus, (), 1),
                ('kauditd', frozenset({0}), (), 0),
                ('kauditd', frozenset({0, one}), {one}, 0),
                ('kswapd1', audited.HOST.cpus, (), 0),
                ('vhost-1234', audited.HOST.cpus, (), 0)):
            facts = self.but(kernel={
                'isolated': frozenset(isolated), 'running': frozenset({
                    Program(name, cpus, '', is_kernel=True)})})
            self.check('kernel-threads', expected, facts)
            self.check('isolation', 0, facts)

    def test_unbound_work_of_the_kernel(self):
        own = audited.GOOD.kernel.worker_cpus
        for cpus, expected in ((own, []), (audited.HOST.cpus, ['note']),
                               (frozenset(), [])):
            self.check('kernel-threads', expected,
                       kernel={'worker_cpus': cpus})

    def test_parameters_for_debugging(self):
        for word, expected in (
                ('quiet', 0), ('kasan=off', 0), ('kasan.fault=report', 1),
                ('slub_debug=FZP', 1), ('slab_debug', 1), ('slub_debug=-', 0),
                ('page_poison=1', 1), ('debug_pagealloc=off', 0),
                ('mem=64G', 1), ('mem=nopentium', 0), ('memmap=1G!4G', 0),
                ('numa=off', 1), ('numa=fake=4', 1), ('numa=noacpi', 0),
                ('swiotlb=force', 1), ('swiotlb=65536,force', 1),
                ('swiotlb=65536', 0), ('tsc=unstable', 1), ('tsc=reliable', 0),
                ('init_on_alloc=1', 0), ('numa_balancing=disable', 0)):
            self.check('debugging', expected, kernel={'command_line': (
                'ro', word)})

    def test_kernels_for_debugging(self):
        for release, expected in (
                ('6.1.0-18-amd64', 0), ('5.14.0-503.el9.x86_64', 0),
                ('5.14.0-503.el9.x86_64+debug', 1), ('6.4.0-9-debug', 1),
                ('5.14.0-503.el9.x86_64+rt-debug', 1)):
            self.check('debugging', expected, kernel={'release': release})


class MitigationsTest(audited.Case):
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
