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

"""Rules about memory: KSM, THP, NUMA balancing, swap, what is left."""

from collections.abc import Iterator

from hpcvirt.audit import finding
from hpcvirt.audit.fact import known
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Subject
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile as profiles

_WARNING = finding.Severity.WARNING
_NOTE = finding.Severity.NOTE

#: CERN saw KSM leave more than 1 GB of slab that was not given back.
LEAK_MIB = 1024
#: The slab of a large host is larger anyway: a part of 64 is usual.
USUAL_SLAB_SHARE = 64

#: Less is what idle services of any host leave there.
MOST_SWAP_USED_MIB = 100

#: The profiles throughput-performance and virtual-host of TuneD set it.
MOST_SWAPPINESS = 10

_KSM = '/sys/kernel/mm/ksm/run'
_THP = '/sys/kernel/mm/transparent_hugepage'
_BALANCING = 1  # NUMA_BALANCING_NORMAL; 2 moves cold memory to slow cells


def _many_cells(subject: Subject) -> bool:
    return sum(bool(cell.cpus) for cell in subject.host.cells) > 1


def _ksm(subject: Subject) -> Iterator[Violation]:
    ksm = known(subject.facts.memory.ksm)
    if ksm is None:
        return
    if ksm.run == 1 and ksm.merge_across_nodes and _many_cells(subject):
        yield Violation(
            'KSM runs, and merges pages of different cells',
            'KSM off, or merge_across_nodes 0',
            (f'echo 2 > {_KSM}',
             'echo 0 > /sys/kernel/mm/ksm/merge_across_nodes'))
    elif ksm.run == 1:
        yield Violation('KSM runs', 'KSM off', (f'echo 2 > {_KSM}',), _NOTE)
    if 'ksmtuned' in known(subject.facts.kernel.programs):
        yield Violation(
            'ksmtuned runs, which starts KSM when memory gets short',
            'neither ksmtuned nor KSM runs',
            ('systemctl disable --now ksmtuned',
             'systemctl disable --now ksm', f'echo 2 > {_KSM}'))


def _ksm_slab(subject: Subject) -> Iterator[Violation]:
    facts = subject.facts.memory
    ksm = known(facts.ksm)
    if ksm is None or not ksm.full_scans:
        return
    slab_mib = known(facts.slab_unreclaimable_mib)
    usual_mib = max(LEAK_MIB, known(facts.total_mib) // USUAL_SLAB_SHARE)
    if slab_mib > usual_mib:
        yield Violation(
            f'{slab_mib} MiB of slab cannot be reclaimed, and KSM has run '
            'since the boot', f'at most {usual_mib} MiB',
            (f'echo 2 > {_KSM}', '# if the slab stays, reboot the host'))


def _has_small_pages(subject: Subject) -> bool:
    """Whether guests have pages of the normal size."""
    plan = subject.plan
    if plan:
        return plan.page_kib == memory.small_page_kib(plan.host)
    return not any(pool.total for pool in known(
        subject.facts.memory.huge_pages))


def _thp(subject: Subject) -> Iterator[Violation]:
    choice = known(subject.facts.memory.thp)
    if choice is None:
        return
    if choice == 'never' and _has_small_pages(subject):
        yield Violation(
            'transparent huge pages are off, and guests have normal pages',
            'madvise or always, or guests with huge pages',
            (f'echo madvise > {_THP}/enabled',
             ('# lasting: transparent_hugepage=madvise on the kernel command '
             'line')))
    if choice != 'never' and known(
            subject.facts.memory.thp_defrag) == 'always':
        yield Violation(
            'a page fault waits until memory is compacted (defrag is always)',
            'defrag madvise, or another that does not wait',
            (f'echo madvise > {_THP}/defrag',))


def _balancing(subject: Subject) -> Iterator[Violation]:
    mode = known(subject.facts.memory.numa_balancing)
    if mode and mode & _BALANCING and _many_cells(subject):
        yield Violation(
            'automatic NUMA balancing is on', 'off',
            ('sysctl kernel.numa_balancing=0',
             '# lasting: the same line in /etc/sysctl.d'))


def _numad(subject: Subject) -> Iterator[Violation]:
    if 'numad' in known(subject.facts.kernel.programs):
        yield Violation('numad runs', 'it does not run',
                        ('systemctl disable --now numad',))


def _swap(subject: Subject) -> Iterator[Violation]:
    used_mib = known(subject.facts.memory.swap_used_mib)
    if used_mib > MOST_SWAP_USED_MIB:
        yield Violation(
            f'{used_mib} MiB are swapped out',
            f'at most {MOST_SWAP_USED_MIB} MiB',
            (('# keep more memory for the host: host_reserve_mib_per_cell in '
             'the profile, fewer huge pages'), 'swapoff -a && swapon -a'))


def _swappiness(subject: Subject) -> Iterator[Violation]:
    value = known(subject.facts.memory.swappiness)
    if known(subject.facts.memory.swap_total_mib) and value > MOST_SWAPPINESS:
        yield Violation(
            f'vm.swappiness is {value}, and there is swap space',
            f'at most {MOST_SWAPPINESS}',
            (f'sysctl vm.swappiness={MOST_SWAPPINESS}',
             '# lasting: the same line in /etc/sysctl.d'))


def _left(subject: Subject) -> Iterator[Violation]:
    available = known(subject.facts.memory.available_mib)
    profile = subject.profile or profiles.DEFAULT
    for cell in subject.host.cells:
        least = memory.reserve_mib(profile, cell) // 2
        if cell.cpus and cell.id in available and available[cell.id] < least:
            yield Violation(
                f'cell {cell.id} has {available[cell.id]} MiB left for the '
                'host and the emulators of its guests',
                f'at least {least} MiB, half of what a host keeps',
                (('# reserve fewer huge pages on this cell, and keep more by '
                 'host_reserve_mib_per_cell in the profile'),))


RULES = (
    Rule('ksm', _WARNING,
         'KSM is off; a note if it runs but merges only within a cell.',
         'KSM takes CPU time and memory from guests that hardly share pages, '
         'and a page that is merged across cells is far from one of its '
         'guests', ('CERN-HEPiX-2015', 'Linux-Ksm'), _ksm),
    Rule('ksm-slab', _WARNING,
         'Where KSM has run, the slab that cannot be reclaimed is at most '
         f'{LEAK_MIB} MiB, or 1/{USUAL_SLAB_SHARE} of the memory.',
         'KSM leaked more than 1 GB of slab, which remained when it was '
         'switched off', ('CERN-HEPiX-2015',), _ksm_slab),
    Rule('thp', _WARNING,
         'Transparent huge pages are on where guests have normal pages, and '
         'no page fault waits for compaction.',
         'random access to memory takes twice as long with pages of 4 KiB, '
         'and a guest waits while its host compacts memory',
         ('VMware-Memory-2010', 'Linux-Thp'), _thp),
    Rule('numa-balancing', _WARNING,
         'Automatic NUMA balancing is off on a host with several cells.',
         'it unmaps memory of guests again and again to see who uses it, '
         'although guests with cells of their own are where they should be',
         ('Linux-Kernel', 'Tuned-Partitioning'), _balancing),
    Rule('numad', _WARNING, 'numad does not run.',
         'it moves processes and memory against the placement of Nova',
         ('Nova-Cpus',), _numad),
    Rule('swap', _WARNING,
         f'No more than {MOST_SWAP_USED_MIB} MiB are swapped out.',
         'a host that kept 2 GB on paper had 672 MiB in truth and swapped, '
         'with 20 to 30 % of iowait in guests', ('CERN-HEPiX-2015',), _swap),
    Rule('swappiness', _WARNING,
         f'``vm.swappiness`` is at most {MOST_SWAPPINESS} where there is swap '
         'space.',
         'the kernel otherwise swaps emulators out to keep a larger page '
         'cache', ('Tuned-Partitioning', 'Linux-Vm'), _swappiness),
    Rule('host-memory', _WARNING,
         'Each cell has half of what a host keeps (2048 MiB, or an eighth of '
         'the cell, or ``host_reserve_mib_per_cell``) really left.',
         'a host that kept 2 GB on paper had 672 MiB in truth and swapped',
         ('CERN-HEPiX-2015',), _left),
)
