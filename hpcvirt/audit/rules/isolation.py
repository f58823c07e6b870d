# SPDX-License-Identifier: Apache-2.0

"""Rules about other work on the dedicated CPUs of guests."""

import itertools
import re
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import join_first
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import kernel_settings
from hpcvirt.model import cpuset

#: Interrupts that belong to a guest, or to the CPU of their queue (the kernel
#: manages those of these drivers, and refuses to move them).
_OWN = re.compile(
    r'vfio|nvme|megasas|mpt3sas|qla2xxx|smartpqi|virtio[0-9]+-req\.')


def _programs(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.others:
        return  # The rule host-cpus says so.
    kernel = subject.facts.kernel
    quiet = subject.guests - kernel.isolated
    found = [item for item in kernel.running
             if item.cpus & quiet and not item.is_kernel]
    if found:
        disturbed = frozenset().union(*(item.cpus for item in found)) & quiet
        yield Violation(
            f'{join_first(sorted({item.name for item in found}))} may run on '
            f'the dedicated {cpu_words(disturbed)}',
            f'only on {cpu_words(subject.others)}',
            tuple(_limits({item.unit for item in found},
                          cpuset.render(subject.others))))


def _limits(units: set[str], cpus: str) -> Iterator[str]:
    """Write what keeps the programs of control groups on CPUs."""
    for unit in kernel_settings.HOST_UNITS:
        if unit in units or '' in units:
            yield f'# /etc/systemd/system/{unit}.d/90-hpcvirt.conf'
            yield from kernel_settings.format_allowed_cpus(unit, cpus)
    for unit in sorted(units.difference(kernel_settings.HOST_UNITS, {''})):
        yield f'# for the containers in {unit}: --cpuset-cpus={cpus}'
    yield '# then reboot'


def _isolated(subject: AuditSubject) -> Iterator[Violation]:
    isolated = subject.facts.kernel.isolated
    stuck = isolated & subject.shared
    if stuck:
        yield Violation(
            f'the shared {cpu_words(stuck)} are isolated (isolcpus)',
            'only dedicated CPUs are isolated',
            ('# on the kernel command line',
             f'isolcpus={cpuset.render(isolated - subject.shared)}'
             if isolated - subject.shared else '# no isolcpus'))


def make_tickless(subject: AuditSubject) -> tuple[str, ...]:
    """Write how to make the dedicated CPUs ``nohz_full``."""
    word = f'nohz_full={cpuset.render(subject.guests)}'
    if word in subject.facts.kernel.command_line:
        return (('# boot a kernel with CONFIG_NO_HZ_FULL, which this one, as '
                 'the generic one of Ubuntu 22.04, does not have'),)
    return '# on the kernel command line', word


def _ticks(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    quiet = subject.facts.kernel.nohz_full
    change = make_tickless(subject)
    disturbed, wrong = subject.guests - quiet, quiet & subject.shared
    if wrong:
        yield Violation(
            f'the shared {cpu_words(wrong)} are in nohz_full',
            'only dedicated CPUs', change)
    if disturbed and quiet & subject.guests:
        yield Violation(
            f'the dedicated {cpu_words(disturbed)} are not in nohz_full, the '
            'others are', 'all dedicated CPUs or none', change)
    elif disturbed:
        yield Violation('no dedicated CPU is in nohz_full',
                        'all dedicated CPUs', change, Severity.NOTE)


def _callbacks(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    kernel = subject.facts.kernel
    # nohz_full implies it.
    covered = kernel.nohz_full | parse_parameter(
        kernel.command_line, 'rcu_nocbs', subject.host.cpus)
    disturbed = subject.guests - covered
    if disturbed:
        yield Violation(
            f'RCU callbacks run on the dedicated {cpu_words(disturbed)}',
            'on none of them',
            ('# on the kernel command line',
             f'rcu_nocbs={cpuset.render(subject.guests)}'),
            Severity.WARNING if covered & subject.guests else Severity.NOTE)


def _interrupts(subject: AuditSubject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    found = [item for item in subject.facts.kernel.interrupts
             if not _OWN.match(item.name) and item.cpus & subject.guests]
    if found:
        cpus = subject.guests.intersection(
            itertools.chain.from_iterable(item.cpus for item in found))
        named = join_first([f'{item.name} ({item.number})' for item in found])
        numbers = ' '.join(str(item.number) for item in found)
        others = cpuset.render(subject.others)
        yield Violation(
            f'{named}: interrupts go to the dedicated '
            f'{cpu_words(cpus)}',
            f'interrupts only on {cpu_words(subject.others)}',
            ((f'for i in {numbers}; do echo {others} > '
             '/proc/irq/$i/smp_affinity_list; done'),
             f'# lasting: irqaffinity={others} on the kernel command line'))


def _irqbalance(subject: AuditSubject) -> Iterator[Violation]:
    kernel = subject.facts.kernel
    if ('irqbalance' not in kernel.programs or not subject.guests
            or not subject.others):
        return
    banned = kernel.banned_cpus
    if banned is None:  # what it leaves alone by itself
        banned = kernel.isolated | kernel.nohz_full
    open_to = subject.guests - banned
    if open_to:
        yield Violation(
            f'irqbalance may move interrupts to the dedicated '
            f'{cpu_words(open_to)}', 'it leaves dedicated CPUs alone',
            (f'# /{kernel_settings.IRQBALANCE}',
             *kernel_settings.format_banned_cpus(
                 cpuset.render(subject.guests)),
             '# then', 'systemctl daemon-reload',
             'systemctl restart irqbalance'))


RULES = (
    Rule('isolation', Severity.WARNING,
         'No program may run on dedicated CPUs, except guests: '
         '``AllowedCPUs`` of the slices, the cpusets of containers or '
         '``isolcpus`` keep them off. ``CPUAffinity`` alone is lost.',
         'a service that runs on the CPU of a guest takes its time, and a '
         'parallel job waits for the slowest CPU',
         ('CERN-HEPiX-2015', 'Systemd-Cpusets-2022'), _programs),
    Rule('isolated-shared', Severity.ERROR,
         'No shared CPU is isolated by ``isolcpus``.',
         'the scheduler does not balance isolated CPUs, so that all emulator '
         'threads and vCPUs that float stay on one of them',
         ('Linux-Parameters',), _isolated),
    Rule('nohz-full', Severity.WARNING,
         'All dedicated CPUs are in ``nohz_full`` and no shared CPU is (a '
         'note if none is).',
         'the timer tick makes guests exit up to 1000 times per second; a '
         'CPU that several threads share needs it',
         ('Linux-Nohz',), _ticks),
    Rule('rcu-callbacks', Severity.WARNING,
         'All dedicated CPUs are in ``rcu_nocbs`` or ``nohz_full`` (a note '
         'if none is).',
         'the kernel otherwise runs its callbacks on the CPUs of guests',
         ('Linux-Parameters',), _callbacks),
    Rule('irq-affinity', Severity.WARNING,
         'Dedicated CPUs get no interrupts of devices; the devices of guests '
         'and the queues of disks that the kernel itself spreads are left '
         'out.',
         'each interrupt makes the guest on this CPU exit',
         ('Linux-Irq',), _interrupts),
    Rule('irqbalance', Severity.WARNING,
         'irqbalance, if it runs, leaves dedicated CPUs alone.',
         'it moves interrupts to CPUs that seem idle, and those of guests may '
         'seem so', ('Irqbalance-Manual',), _irqbalance),
)


_TERM = re.compile(r'(all|N|[0-9]{1,5})(?:-(N|[0-9]{1,5})'
                   r'(?::([0-9]{1,5})/([1-9][0-9]{0,4}))?)?')


def parse_parameter(command_line: Iterable[str], name: str,
                    existing: frozenset[int]) -> frozenset[int]:
    """Return the CPUs of a parameter, whose last use counts.

    ``all`` is every CPU, ``N`` the last one, ``0-15:2/4`` the first two of
    every four. Flags before the list are skipped
    (``isolcpus=managed_irq,2-7``).

    :param existing: the CPUs of the host
    :returns: none if the parameter is not given
    """
    text = ''
    for word in command_line:
        if word.partition('=')[0] == name:
            text = word.partition('=')[2]
    last = max(existing, default=0)
    found: set[int] = set()
    for term in text.split(','):
        match = _TERM.fullmatch(term)
        if match is None:
            continue
        if match[1] == 'all':
            return existing
        low = last if match[1] == 'N' else int(match[1])
        high = low
        if match[2] is not None:
            high = last if match[2] == 'N' else int(match[2])
        used, group = int(match[3] or 1), int(match[4] or 1)
        found.update(cpu for cpu in existing
                     if low <= cpu <= high and (cpu - low) % group < used)
    return frozenset(found)
