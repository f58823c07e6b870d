# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""KVM, tuned and mitigations."""

from tests import audited


class KernelTest(audited.Case):

    def kernel(self, code, **fields):
        return self.found(code, self.but(kernel=fields))

    def test_kvm(self):
        self.assertEqual([('error', 'KVM cannot run guests on this host')],
                         self.kernel('kvm', has_kvm=False))

    def test_nested_paging(self):
        for name in ('kvm_intel.ept', 'kvm_amd.npt'):
            self.assertEqual(
                [('warning', f'nested paging is off ({name} is 0)')],
                self.kernel('nested-paging', nested_paging=False,
                            nested_parameter=name))
        for value in (True, None):
            self.assertEqual([], self.kernel('nested-paging',
                                             nested_paging=value))

    def test_tuned_profiles(self):
        for profile, expected in (
                ('virtual-host', 0), ('cpu-partitioning', 0), ('site', 0),
                ('hpcvirt site', 0), ('balanced', 1), ('virtual-guest', 1),
                ('site powersave', 1), (None, 1)):
            self.assertEqual(expected, len(self.kernel(
                'tuned', tuned_profile=profile)), profile)

    def test_tuned_must_run_where_it_is_installed(self):
        self.assertEqual(1, len(self.kernel('tuned',
                                            programs=frozenset({'sshd'}))))
        self.assertEqual(0, len(self.kernel(
            'tuned', has_tuned=False, tuned_profile=None,
            programs=frozenset())))

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
            found = self.kernel('mitigations', vulnerabilities={name: state})
            self.assertEqual(['note'] * expected,
                             [severity for severity, _ in found], state)
