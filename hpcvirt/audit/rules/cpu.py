# SPDX-License-Identifier: Apache-2.0

"""Rules about CPUs: SMT, frequency, C-states, microcode, cells."""

import collections
from collections.abc import Iterator

from hpcvirt.audit.finding import Severity
from hpcvirt.audit.reading.cpu import Frequency
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors.kernel_settings import MAX_LATENCY_US

#: If the memory of cells differs by more than both of these, the cells have
#: different modules; firmware and kernel alone take less from one cell.
UNEVEN_PERCENT = 10
UNEVEN_MIB = 1024

#: If one cell has this number of last-level caches, the processor can usually
#: be divided into cells.
MANY_CACHES = 4


def _smt(subject: AuditSubject) -> Iterator[Violation]:
    state = subject.facts.cpu.smt
    odd: frozenset[int] = frozenset()
    for cell in subject.host.cells:
        odd = odd.union(*(core for core in cell.siblings
                          if len(core) < cell.threads_per_core))
    if odd and not subject.parks_cpus:
        yield Violation(
            f'the SMT sibling of {cpu_words(odd)} is offline',
            'all siblings online, or none',
            ('echo on > /sys/devices/system/cpu/smt/control',
             '# or SMT off in the firmware'))
    if subject.profile is None:
        return
    if (subject.profile.smt is profiles.SMT.USE
            and state in ('off', 'forceoff')):
        yield Violation(
            f'SMT is switched off by the kernel ({state}); the profile has '
            'smt: use', 'SMT on, or smt: leave in the profile',
            ('# remove nosmt from the kernel command line, then',
             'echo on > /sys/devices/system/cpu/smt/control'))
    if (subject.profile.smt is profiles.SMT.LEAVE
            and subject.host.threads_per_core > 1):
        yield Violation(
            'SMT is on; the profile has smt: leave',
            'nothing runs on the siblings of dedicated CPUs, or SMT is off',
            ('# in the firmware, or nosmt on the kernel command line',),
            Severity.NOTE)


def _performs(item: Frequency) -> bool:
    return (item.governor == 'performance'
            or (item.preference == 'performance'
                and item.driver in ('intel_pstate', 'amd-pstate-epp')))


def _governor(subject: AuditSubject) -> Iterator[Violation]:
    nova = subject.nova
    if nova and nova.is_true('libvirt', 'cpu_power_management') and nova.get(
            'libvirt', 'cpu_power_management_strategy') == 'governor':
        return  # Nova sets the governors itself.
    slow: dict[str, set[int]] = {}
    for item in subject.facts.cpu.frequencies:
        if not _performs(item):
            slow.setdefault(item.governor, set()).update(item.cpus)
    for governor, cpus in slow.items():
        yield Violation(
            f'{cpu_words(frozenset(cpus))} with the governor {governor}',
            'the governor performance',
            ('cpupower frequency-set -g performance',
             '# lasting: a tuned profile with governor=performance'))


def _turbo(subject: AuditSubject) -> Iterator[Violation]:
    cpu = subject.facts.cpu
    if cpu.no_turbo:
        yield Violation(
            'turbo is off (intel_pstate/no_turbo is 1)', 'turbo on',
            ('echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo',))
    elif cpu.boost is False:
        yield Violation(
            'boost is off (cpufreq/boost is 0)', 'boost on',
            ('echo 1 > /sys/devices/system/cpu/cpufreq/boost',))
    else:
        slow = frozenset().union(*(
            item.cpus for item in cpu.frequencies if item.boost is False))
        if slow:
            yield Violation(
                f'{cpu_words(slow)} without boost', 'boost on',
                (('for f in /sys/devices/system/cpu/cpufreq/policy*/boost; '
                 'do echo 1 > $f; done'),))


def _idle(subject: AuditSubject) -> Iterator[Violation]:
    cpu = subject.facts.cpu
    deep = {state: cpus for state, cpus in cpu.idle_states.items()
            if state[1] > MAX_LATENCY_US}
    if not deep:
        return
    limit = cpu.wake_limit_us
    if limit is not None and limit <= MAX_LATENCY_US:
        return
    name, latency_us = max(deep, key=lambda state: state[1])
    yield Violation(
        f'{cpu_words(frozenset().union(*deep.values()))} may enter {name}, '
        f'which takes {latency_us} us to leave',
        f'no state that takes more than {MAX_LATENCY_US} us to leave',
        (f'cpupower idle-set -D {MAX_LATENCY_US}',
         f'# lasting: a tuned profile with force_latency={MAX_LATENCY_US}'))


def _microcode(subject: AuditSubject) -> Iterator[Violation]:
    cpu = subject.facts.cpu
    if cpu.is_guest:
        return  # The host of this machine has the microcode.
    versions = cpu.microcode or {}
    if len(versions) > 1:
        yield Violation(
            'CPUs have different microcode: ' + '; '.join(
                f'{cpu_words(cpus)} {version}'
                for version, cpus in sorted(versions.items())),
            'one version on all CPUs', _NEW_MICROCODE)
    lacking = sorted(
        name for name, state in subject.facts.kernel.vulnerabilities.items()
        if 'no microcode' in state.lower()
        or (name == 'old_microcode' and state.startswith('Vulnerable')))
    if lacking:
        yield Violation(
            'the microcode is too old: ' + ', '.join(lacking),
            'the current microcode of the vendor', _NEW_MICROCODE)


_NEW_MICROCODE = (
    ('# install the package of the vendor (intel-microcode, amd64-microcode, '
     'microcode_ctl, linux-firmware) or update the firmware, then reboot'),)


def _cells(subject: AuditSubject) -> Iterator[Violation]:
    cells = [cell for cell in subject.host.cells if cell.cpus]
    per_socket = collections.Counter(cell.socket for cell in cells)
    if len(set(per_socket.values())) > 1:
        yield Violation(
            'sockets have different numbers of cells: ' + ', '.join(
                f'socket {socket} has {count}'
                for socket, count in sorted(per_socket.items())),
            'the same NPS or SNC setting for all sockets', _FIRMWARE)
    elif (set(per_socket.values()) == {1}
            and subject.facts.cpu.vendor == 'AuthenticAMD'
            and min(len(cell.llc) for cell in cells) >= MANY_CACHES):
        yield Violation(
            f'one cell per socket (NPS1) with {len(cells[0].llc)} '
            'last-level caches',
            'several cells per socket (NPS4), if guests are smaller than a '
            'socket', _FIRMWARE, Severity.NOTE)


_FIRMWARE = ('# in the firmware: NPS (AMD), SNC (Intel)',)


def _uneven(subject: AuditSubject) -> Iterator[Violation]:
    sizes = {cell.id: cell.memory_mib for cell in subject.host.cells
             if cell.cpus}
    most = max(sizes.values(), default=0)
    poor = {cell: mib for cell, mib in sizes.items()
            if mib * 100 < most * (100 - UNEVEN_PERCENT)
            and mib < most - UNEVEN_MIB}
    for cell, mib in poor.items():
        yield Violation(
            f'cell {cell} has {mib} MiB of memory, another has {most} MiB',
            'the same memory on all cells',
            ((f'# look for a missing or disabled module of cell {cell}: '
             'dmidecode --type memory'),))


RULES = (
    Rule('smt', Severity.WARNING,
         'SMT is as the profile wants it, and all cores have all siblings.',
         'a guest that gets whole cores needs both siblings of each core, and '
         'is slower while something else runs on one of them',
         ('Nova-Cpus',), _smt),
    Rule('governor', Severity.WARNING,
         'The frequency governor is ``performance``, or the energy '
         'preference is.',
         'other governors lower the frequency of CPUs whose guest waits for '
         'messages', ('Tuned-Partitioning', 'Linux-Cpufreq'), _governor),
    Rule('turbo', Severity.WARNING, 'Turbo (Intel) or boost (AMD, Arm) is on.',
         'without it, the CPUs stay at their base frequency',
         ('Linux-Pstate', 'Linux-Cpufreq'), _turbo),
    Rule('c-states', Severity.WARNING,
         'No CPU may enter an idle state that takes more than '
         f'{MAX_LATENCY_US} microseconds to leave.',
         'a guest that waits for a message waits for its CPU to wake up as '
         'well', ('Tuned-Partitioning', 'Linux-Cpuidle'), _idle),
    Rule('microcode', Severity.WARNING,
         'All CPUs have the same microcode, and it is not too old.',
         'CPUs with different microcode differ in speed and features, and '
         'without a new one the kernel falls back to costlier mitigations',
         ('Linux-Vulnerabilities',), _microcode),
    Rule('cells-per-socket', Severity.WARNING,
         'All sockets have the same number of cells (NPS, SNC); a note if an '
         'AMD processor is one cell.',
         'flavors are sized for equal cells, and in a cell with many caches '
         'Nova may give a guest cores of several of them',
         ('AMD-HPC-2023', 'Nova-Cpus'), _cells),
    Rule('cell-memory', Severity.WARNING,
         f'The memory of cells differs by no more than {UNEVEN_PERCENT} %, '
         f'or {UNEVEN_MIB} MiB.',
         'a missing module takes bandwidth and room for guests from one cell',
         ('AMD-HPC-2023',), _uneven),
)
