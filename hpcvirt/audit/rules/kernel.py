# SPDX-License-Identifier: Apache-2.0

"""Rules about the kernel: KVM, tuned, mitigations."""

import re
from collections.abc import Iterator

from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation

#: Profiles of TuneD that save power, or are for desktops and guests.
UNFIT_PROFILES = frozenset({
    'aws', 'balanced', 'balanced-battery', 'cpu-partitioning-powersave',
    'default', 'desktop', 'desktop-powersave', 'laptop-ac-powersave',
    'laptop-battery-powersave', 'powersave', 'realtime-virtual-guest',
    'sap-hana-kvm-guest', 'server-powersave', 'spindown-disk',
    'virtual-guest', 'atomic-guest'})

#: The words of the kernel for mitigations that cost time: at each system call,
#: each exit of a guest, each indirect jump or each gather instruction.
COSTS = {
    'gather_data_sampling': 'Mitigation: Microcode',
    'itlb_multihit': 'Split huge pages',
    'l1tf': 'cache flushes',
    'mds': 'Clear CPU buffers',
    'meltdown': 'Mitigation: PTI',
    'mmio_stale_data': 'Clear CPU buffers',
    'reg_file_data_sampling': 'Clear Register File',
    'retbleed': 'Mitigation: (?!Enhanced)',
    'spec_rstack_overflow': 'Mitigation: .*(Safe RET|safe RET|IBPB)',
    'spectre_v2': 'Mitigation: (IBRS|Retpolines)',
    'srbds': 'Mitigation: Microcode',
    'tsa': 'Clear CPU buffers',
    'tsx_async_abort': 'Clear CPU buffers',
    'vmscape': 'IBPB before exit',
}


def _kvm(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.facts.kernel.has_kvm:
        yield Violation(
            'KVM cannot run guests on this host', 'KVM',
            ('# virtualization on in the firmware (VT-x, AMD-V), then',
             'modprobe kvm_intel || modprobe kvm_amd'))


def _nested(subject: AuditSubject) -> Iterator[Violation]:
    parameter, is_on = subject.facts.kernel.nested_paging or ('', True)
    if not is_on:
        module, _, name = parameter.partition('.')
        yield Violation(
            f'nested paging is off ({parameter} is 0)', 'on',
            ((f'echo "options {module} {name}=1" > '
             '/etc/modprobe.d/hpcvirt-kvm.conf'),
             '# without guests on the host:',
             f'modprobe -r {module} && modprobe {module}'))


_FIT_PROFILES = ('hpcvirt of host config, cpu-partitioning or one of your own '
                 'for guests')
_SELECT = ('# after hpcvirt host config --apply /',
           'tuned-adm profile hpcvirt')


def _tuned(subject: AuditSubject) -> Iterator[Violation]:
    kernel = subject.facts.kernel
    if not kernel.has_tuned:
        return
    names = (kernel.tuned_profile or '').split()
    unfit = UNFIT_PROFILES.intersection(names)
    if not names:
        yield Violation('tuned is installed without an active profile',
                        _FIT_PROFILES, _SELECT)
    elif unfit:
        yield Violation(
            f'the tuned profile is {" ".join(names)}',
            _FIT_PROFILES, _SELECT)
    elif 'tuned' not in kernel.programs:
        yield Violation(
            f'the tuned profile is {" ".join(names)}, but tuned does not run',
            'tuned runs', ('systemctl enable --now tuned',))


def _mitigations(subject: AuditSubject) -> Iterator[Violation]:
    states = subject.facts.kernel.vulnerabilities
    costly = [f'{name} ({states[name]})' for name, pattern in COSTS.items()
              if name in states and re.search(pattern, states[name])]
    if costly:
        yield Violation(
            'mitigations that cost: ' + '; '.join(costly),
            'a decision between speed and isolation',
            (('# only if all tenants of the host trust each other: '
             'mitigations=off on the kernel command line'),))


RULES = (
    Rule('kvm', Severity.ERROR, 'KVM can run guests.',
         'guests are otherwise emulated, or do not start at all',
         ('Nova-Options',), _kvm),
    Rule('nested-paging', Severity.WARNING,
         'KVM runs guests with nested paging (EPT, NPT).',
         'the host follows each change of the page tables of guests; CERN saw '
         'more than 100,000 interrupts per second, while the guest looked '
         'healthy', ('CERN-HEPiX-2015',), _nested),
    Rule('tuned', Severity.WARNING,
         'Where tuned is installed it runs, with a profile that saves no '
         'power and is not for guests.',
         'other profiles lower the frequency and allow deep idle states',
         ('Tuned-Partitioning',), _tuned),
    Rule('mitigations', Severity.NOTE,
         'No mitigation of a processor defect costs time.',
         'they slow down system calls, the exits of guests or gather '
         'instructions; whether they are needed depends on the tenants',
         ('Linux-Vulnerabilities',), _mitigations),
)
