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

"""Rules about what else runs on the dedicated CPUs of guests."""

from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.audit import facts
from hpcvirt.audit import finding
from hpcvirt.audit import kernel_cpus
from hpcvirt.audit.fact import known
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Subject
from hpcvirt.audit.rule import Violation
from hpcvirt.model import cpuset

_ERROR = finding.Severity.ERROR
_WARNING = finding.Severity.WARNING
_NOTE = finding.Severity.NOTE

#: Interrupts that belong to the CPU of their queue, or to a guest.
_OWN = ('nvme', 'vfio')


def _services(subject: Subject) -> Iterator[Violation]:
    if not subject.others:
        return  # The rule host-cpus says so.
    kernel = subject.facts.kernel
    disturbed = (known(kernel.init_cpus) & subject.guests
                 ) - known(kernel.isolated)
    if disturbed:
        yield Violation(
            f'services may run on the dedicated {cpu_words(disturbed)}',
            f'only on {cpu_words(subject.others)}',
            ('# /etc/systemd/system.conf.d/90-hpcvirt.conf', '[Manager]',
             f'CPUAffinity={cpuset.render(subject.others)}',
             '# then reboot'))


def _isolated(subject: Subject) -> Iterator[Violation]:
    isolated = known(subject.facts.kernel.isolated)
    stuck = isolated & subject.shared
    if stuck:
        yield Violation(
            f'the shared {cpu_words(stuck)} are isolated (isolcpus)',
            'only dedicated CPUs are isolated',
            ('# on the kernel command line',
             f'isolcpus={cpuset.render(isolated - subject.shared)}'
             if isolated - subject.shared else '# no isolcpus'))


def _ticks(subject: Subject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    quiet = known(subject.facts.kernel.nohz_full)
    change = ('# on the kernel command line',
              f'nohz_full={cpuset.render(subject.guests)}')
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
                        'all dedicated CPUs', change, _NOTE)


def _callbacks(subject: Subject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    kernel = subject.facts.kernel
    # nohz_full implies it.
    covered = known(kernel.nohz_full) | kernel_cpus.of_parameter(
        known(kernel.command_line), 'rcu_nocbs', subject.host.cpus)
    disturbed = subject.guests - covered
    if disturbed:
        yield Violation(
            f'RCU callbacks run on the dedicated {cpu_words(disturbed)}',
            'on none of them',
            ('# on the kernel command line',
             f'rcu_nocbs={cpuset.render(subject.guests)}'),
            _WARNING if covered & subject.guests else _NOTE)


def _disturbing(subject: Subject) -> Sequence[facts.Interrupt]:
    return [item for item in known(subject.facts.kernel.interrupts)
            if not item.name.startswith(_OWN) and subject.guests & (
                item.allowed if item.effective is None else item.effective)]


def _interrupts(subject: Subject) -> Iterator[Violation]:
    if not subject.guests or not subject.others:
        return
    found = _disturbing(subject)
    if found:
        cpus = frozenset().union(*(
            item.allowed if item.effective is None else item.effective
            for item in found)) & subject.guests
        named = ', '.join(f'{item.name} ({item.number})' for item in found[:3])
        more = f' and {len(found) - 3} more' if len(found) > 3 else ''
        numbers = ' '.join(str(item.number) for item in found)
        others = cpuset.render(subject.others)
        yield Violation(
            f'{named}{more}: interrupts go to the dedicated '
            f'{cpu_words(cpus)}',
            f'interrupts only on {cpu_words(subject.others)}',
            ((f'for i in {numbers}; do echo {others} > '
             '/proc/irq/$i/smp_affinity_list; done'),
             f'# lasting: irqaffinity={others} on the kernel command line'))


def _irqbalance(subject: Subject) -> Iterator[Violation]:
    kernel = subject.facts.kernel
    if ('irqbalance' not in known(kernel.programs) or not subject.guests
            or not subject.others):
        return
    banned = known(kernel.banned_cpus)
    if banned is None:  # what it leaves alone by itself
        banned = known(kernel.isolated) | known(kernel.nohz_full)
    open_to = subject.guests - banned
    if open_to:
        yield Violation(
            f'irqbalance may move interrupts to the dedicated '
            f'{cpu_words(open_to)}', 'it leaves dedicated CPUs alone',
            ('# /etc/default/irqbalance or /etc/sysconfig/irqbalance',
             f'IRQBALANCE_BANNED_CPULIST={cpuset.render(subject.guests)}',
             '# then', 'systemctl restart irqbalance'))


RULES = (
    Rule('isolation', _WARNING,
         'systemd and all services are kept off dedicated CPUs, by '
         '``CPUAffinity``, ``AllowedCPUs`` of the slices, or ``isolcpus``.',
         'a service that runs on the CPU of a guest takes its time, and a '
         'parallel job waits for the slowest CPU',
         ('CERN-HEPiX-2015', 'Systemd-Manager'), _services),
    Rule('isolated-shared', _ERROR,
         'No shared CPU is isolated by ``isolcpus``.',
         'the scheduler does not balance isolated CPUs, so that all emulator '
         'threads and vCPUs that float stay on one of them',
         ('Linux-Parameters',), _isolated),
    Rule('nohz-full', _WARNING,
         'All dedicated CPUs are in ``nohz_full`` and no shared CPU is (a '
         'note if none is).',
         'the timer tick makes guests exit up to 1000 times per second; a '
         'CPU that several threads share needs it',
         ('Linux-Nohz',), _ticks),
    Rule('rcu-callbacks', _WARNING,
         'All dedicated CPUs are in ``rcu_nocbs`` or ``nohz_full`` (a note '
         'if none is).',
         'the kernel otherwise runs its callbacks on the CPUs of guests',
         ('Linux-Parameters',), _callbacks),
    Rule('irq-affinity', _WARNING,
         'Dedicated CPUs get no interrupts of devices; queues of NVMe and '
         'the devices of guests are left out.',
         'each interrupt makes the guest on this CPU exit',
         ('Linux-Irq',), _interrupts),
    Rule('irqbalance', _WARNING,
         'irqbalance, if it runs, leaves dedicated CPUs alone.',
         'it moves interrupts to CPUs with little to do, which it takes '
         'those of guests for', ('Irqbalance-Manual',), _irqbalance),
)
