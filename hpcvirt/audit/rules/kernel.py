# SPDX-License-Identifier: Apache-2.0

"""Rules about the kernel: KVM, TuneD, mitigations, single values, threads."""

import re
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt.audit import costs
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import join_first
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.audit.rules import isolation
from hpcvirt.audit.rules import memory

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


#: What takes back one of these mitigations only.
_SMALLER_CHANGE = (
    '# smaller, for the pages of guests only: see nx-huge-pages',)


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


#: A processor with this flag raises an exception for each split lock.
_SPLIT_FLAG = 'split_lock_detect'
_SPLIT_LOCKS = 'proc/sys/kernel/split_lock_mitigate'

#: The first kernel that lets a program wait at each split lock.
_WAITS_SINCE = (5, 19)


def _split_locks(subject: AuditSubject) -> Iterator[Violation]:
    cpu, kernel = subject.facts.cpu, subject.facts.kernel
    # KVM does not show the flag to guests.
    if _SPLIT_FLAG not in cpu.flags:
        return
    chosen = [word.partition('=')[2] for word in kernel.command_line
              if word.startswith(f'{_SPLIT_FLAG}=')][-1:]
    # With a limit of their rate, only locks of the bus are watched.
    if chosen and (chosen[0] == 'off' or chosen[0].startswith('ratelimit:')):
        return
    if chosen == ['fatal']:
        yield Violation(
            f'{_SPLIT_FLAG}=fatal ends programs and guests at their first '
            'split lock', f'{_SPLIT_FLAG}=warn with split_lock_mitigate=0, '
            'or off', (f'# {_SPLIT_FLAG}=off on the kernel command line',))
        return
    value = subject.facts.setting(_SPLIT_LOCKS)
    version = re.match('([0-9]{1,3})[.]([0-9]{1,3})', kernel.release)
    if value is None and version and (
            int(version[1]), int(version[2])) >= _WAITS_SINCE:
        yield Violation(
            'the kernel lets guests wait at each split lock, and has no '
            'switch for it (split_lock_mitigate)',
            f'{_SPLIT_FLAG}=off', (
                f'# {_SPLIT_FLAG}=off on the kernel command line',))
    elif value not in (None, '0'):
        yield Violation(
            f'/{_SPLIT_LOCKS} is {value}', '0, unless tenants that are not '
            'trusted may slow down others',
            (f'echo 0 > /{_SPLIT_LOCKS}',
             f'# lasting: {_make_lasting(_SPLIT_LOCKS, "0")}'))


_NX_HUGE_PAGES = 'sys/module/kvm/parameters/nx_huge_pages'


def _nx_huge_pages(subject: AuditSubject) -> Iterator[Violation]:
    state = subject.facts.kernel.vulnerabilities.get('itlb_multihit', '')
    is_needless = state == 'Not affected'
    if not is_needless and 'Split huge pages' not in state:
        return
    value = subject.facts.setting(_NX_HUGE_PAGES)
    if value in ('Y', 'auto'):
        condition = () if is_needless else (
            ('# only if no tenant of the host would crash it; it leaves all '
             'other mitigations, unlike mitigations=off:'),)
        yield Violation(
            f'/{_NX_HUGE_PAGES} is {value}',
            'off' if is_needless else 'a decision between speed and the '
            'protection of the host from crashes',
            (*condition, f'echo off > /{_NX_HUGE_PAGES}',
             f'# lasting: {_make_lasting(_NX_HUGE_PAGES, "off")}'),
            None if is_needless else Severity.NOTE)


def _mitigations(subject: AuditSubject) -> Iterator[Violation]:
    states = subject.facts.kernel.vulnerabilities
    costly = [f'{name} ({states[name]})' for name, pattern in COSTS.items()
              if name in states and re.search(pattern, states[name])]
    if costly:
        yield Violation(
            'mitigations that cost: ' + '; '.join(costly),
            'a decision between speed and isolation',
            (('# only if all tenants of the host trust each other: '
             'mitigations=off on the kernel command line'),
             *_SMALLER_CHANGE * any(
                 each.startswith('itlb_multihit') for each in costly)))


def _setting(code: str, severity: Severity, path: str, bad: str,
             good: str, matters: Callable[[AuditSubject], object], where: str,
             why: str, source: str) -> Rule:
    """Make a rule about a file with one value.

    :param bad: a pattern of the values that violate it
    :param good: the value to set
    :param matters: whether it matters on a host
    :param where: where it does, for the documentation
    """
    def find(subject: AuditSubject) -> Iterator[Violation]:
        # A kernel without the file has no value.
        value = subject.facts.setting(path) if matters(subject) else None
        if value and re.fullmatch(bad, value):
            yield Violation(
                f'/{path} is {value}', good,
                (f'echo {good} > /{path}',
                 f'# lasting: {_make_lasting(path, good)}'))
    return Rule(code, severity, f'``/{path}`` is {good} {where}.', why,
                (source,), find)


def _make_lasting(path: str, value: str) -> str:
    """Say what sets a value again at each boot, or load of its module."""
    match path.split('/'):
        case 'proc', 'sys', *names:
            return f'"{".".join(names)} = {value}" in /etc/sysctl.d'
        case 'sys', 'module', module, 'parameters', name:
            return f'"options {module} {name}={value}" in /etc/modprobe.d'
    if path == _CLOCK:
        return (f'clocksource={value} on the kernel command line; '
                'dmesg | grep -i tsc says why the kernel chose another')
    return f'"w! /{path} - - - - {value}" in /etc/tmpfiles.d'


def _joins_small_pages(subject: AuditSubject) -> bool:
    return (subject.facts.memory.thp in ('always', 'madvise')
            and memory.has_small_pages(subject))


_CLOCK = 'sys/devices/system/clocksource/clocksource0/current_clocksource'


def _pause_loops(subject: AuditSubject) -> Iterator[Violation]:
    vendor = subject.facts.cpu.vendor
    if vendor is None or bool(subject.dedicated) == bool(subject.shared):
        return
    module, name, usual = (('kvm_amd', 'pause_filter_count', '3000')
                           if vendor == 'AuthenticAMD'
                           else ('kvm_intel', 'ple_gap', '128'))
    value = subject.facts.setting(f'sys/module/{module}/parameters/{name}')
    if value and (value == '0') == bool(subject.shared):
        good = usual if subject.shared else '0'
        yield Violation(
            f'{module}.{name} is {value}, and '
            f'{"all" if subject.shared else "no"} guests share CPUs', good,
            (f'# "options {module} {name}={good}" in /etc/modprobe.d',),
            Severity.WARNING if subject.shared else None)


#: Threads of the kernel that follow the cells or the interrupts, or belong to
#: guests.
_OWN_PLACE = re.compile('kswapd|kcompactd|vhost-|kvm-|irq/')


def _kernel_threads(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    kernel = subject.facts.kernel
    quiet = subject.guests - kernel.isolated
    names = sorted({item.name for item in kernel.running
                    if item.is_kernel and item.cpus & quiet
                    and not _OWN_PLACE.match(item.name)})
    if quiet & kernel.worker_cpus:
        names.insert(0, 'unbound work')
    if names:
        yield Violation(
            f'{join_first(names)} of the kernel may run on dedicated CPUs',
            f'only on {cpu_words(subject.others)}',
            (('# now: taskset -pc, and '
              '/sys/devices/virtual/workqueue/cpumask; lasting:'),
             *isolation.make_tickless(subject)))


#: Parameters that check each object or page, or hide hardware.
_DEBUGGING = re.compile(
    r'kasan(?!\w*=(0|off)).*|sl[ua]b_debug(?!=-).*|mem=(?!nopentium).+|'
    r'(debug_pagealloc|page_poison|page_owner|kmemleak)=(1|on|y)|notsc|'
    r'tsc=unstable|numa=(off|fake=.*)|swiotlb=(.*,)?force|acpi=off')


def _debugging(subject: AuditSubject) -> Iterator[Violation]:
    release = subject.facts.kernel.release
    if re.search('[+.-]debug$', release):
        yield Violation(
            f'the kernel is a debugging kernel ({release})', 'another one',
            ('# choose another in the boot loader',), cost=costs.DEBUG_KERNEL)
    for word in filter(_DEBUGGING.fullmatch,
                       subject.facts.kernel.command_line):
        yield Violation(
            f'{word} is on the kernel command line', 'not this parameter',
            ('# remove it, then reboot',),
            cost=costs.DEBUG_KERNEL if word.startswith('kasan') else None)


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
    _setting('zone-reclaim', Severity.WARNING, 'proc/sys/vm/zone_reclaim_mode',
             '[1-9].*', '0', memory.has_many_cells,
             'on a host with several cells', 'a program that needs memory '
             'otherwise waits until a full cell frees some, although another '
             'cell has free memory', 'Linux-Vm'),
    _setting('clocksource', Severity.WARNING, _CLOCK,
             'hpet|acpi_pm|.*jiffies|pit', 'tsc', lambda subject: (
                 not subject.facts.cpu.is_guest and subject.facts.cpu.vendor),
             'on an x86 host',
             'other clocks are devices that must be read for each time stamp, '
             'and guests then get no fast clock', 'RHEL-RT-Timestamps'),
    _setting('nmi-watchdog', Severity.NOTE, 'proc/sys/kernel/nmi_watchdog',
             '1', '0', lambda subject: (
                 subject.facts.kernel.watched_cpus & subject.guests),
             'where the watchdog watches dedicated CPUs (nohz_full leaves '
             'them out)', 'it interrupts busy CPUs every few seconds, and '
             'takes a performance counter from guests', 'Linux-Kernel'),
    _setting('khugepaged', Severity.WARNING,
             'sys/kernel/mm/transparent_hugepage/khugepaged/defrag', '0', '1',
             _joins_small_pages, 'where guests have normal pages',
             'memory that was in pieces is otherwise not joined to huge '
             'pages', 'Linux-Thp'),
    _setting('halt-polling', Severity.NOTE,
             'sys/module/kvm/parameters/halt_poll_ns', '0|.{7,}', '200000',
             lambda subject: subject.guests,
             'where CPUs are dedicated, or another number from 1 to 999999',
             'without polling, a virtual CPU that '
             'waits for a message goes through the scheduler; polling for '
             'milliseconds takes time from its sibling',
             'Linux-Halt-Polling'),
    Rule('nx-huge-pages', Severity.WARNING,
         '``/sys/module/kvm/parameters/nx_huge_pages`` is off where the '
         'processor is not affected by iTLB multihit (a note where it is).',
         'code of guests otherwise runs from pages of 4 KiB; on an affected '
         'processor this keeps guests from crashing the host, and switching '
         'it off is a smaller change than ``mitigations=off``',
         ('Linux-Vulnerabilities',), _nx_huge_pages),
    Rule('split-locks', Severity.WARNING,
         'Where the processor detects split locks, neither '
         '``kernel.split_lock_mitigate`` nor ``split_lock_detect=fatal`` '
         'punishes guests for them.',
         'a guest otherwise waits at each atomic access across two cache '
         'lines, one CPU of the host at a time, and some programs take '
         'many times as long; without that, such accesses slow down others '
         'on the host', ('Linux-Kernel', 'Linux-Parameters'), _split_locks),
    Rule('pause-loops', Severity.NOTE,
         'KVM intercepts spinning (``ple_gap``, ``pause_filter_count``) if '
         'all guests share CPUs (a warning if not), and not if none does.',
         'a virtual CPU that spins should let others run, but on a CPU of its '
         'own the exits are wasted', ('Tuned-Partitioning',), _pause_loops),
    Rule('kernel-threads', Severity.NOTE,
         'Threads and unbound work of the kernel do not run on dedicated '
         'CPUs, unless they belong to a CPU, cell, interrupt or guest.',
         'they take the time of a guest', ('Linux-Nohz',), _kernel_threads),
    Rule('debugging', Severity.WARNING,
         'The kernel is not a debugging kernel, and has no parameters that '
         'enable debugging or hide hardware.',
         'they slow down or shrink the host',
         ('Linux-Parameters', 'Linux-Kasan'), _debugging),
)
