# SPDX-License-Identifier: Apache-2.0

"""Rules about memory: huge pages, KSM, THP, NUMA balancing, swap, the rest."""

from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import costs
from hpcvirt.audit import fact
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.reading.memory import Ksm
from hpcvirt.audit.reading.nova import NovaFacts
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile as profiles

#: CERN saw KSM leave more than 1 GB of slab that the kernel never freed.
LEAK_MIB = 1024
#: The slab of a large host is larger: one part in 64 of its memory is usual.
USUAL_SLAB_SHARE = 64

#: The idle services of any host leave less than this in swap space.
MAX_SWAP_USED_MIB = 100

#: The profiles throughput-performance and virtual-host of TuneD set it.
MAX_SWAPPINESS = 10

_KSM = '/sys/kernel/mm/ksm/run'
_THP = '/sys/kernel/mm/transparent_hugepage'
_BALANCING = 1  # NUMA_BALANCING_NORMAL
_TIERING = 2  # NUMA_BALANCING_MEMORY_TIERING: hot memory leaves slow cells

#: Cells differ by a few pages that the kernel or the firmware took.
UNEVEN_PERCENT = 5


def _reserved(subject: AuditSubject) -> Mapping[int, Mapping[int, int]]:
    """Count pages: size in KiB -> cell -> pages that stay reserved."""
    found: dict[int, dict[int, int]] = {}
    for pool in subject.facts.memory.huge_pages:
        found.setdefault(pool.size_kib, {})[pool.cell] = (
            pool.total - pool.surplus)
    return found


def _command(cell: int, size: int, count: int) -> str:
    place = f'/sys/devices/system/node/node{cell}/hugepages'
    return f'echo {count} > {place}/hugepages-{size}kB/nr_hugepages'


def _as_needed(subject: AuditSubject) -> Iterator[Violation]:
    plan = subject.plan
    if plan is None:
        return
    lasting = ' '.join(
        f'{item.name}={item.value}' for item in kernel_settings.make_state(
            plan).parameters if 'hugepages' in item.name)
    small = memory.small_page_kib(plan.host)
    reserved = _reserved(subject)
    needed: dict[tuple[int, int], int] = {}
    for cell, pages in plan.settings.pages.items():
        for size, count in pages.items():
            if size != small:
                needed[cell, size] = count
    present: dict[tuple[int, int], int] = {}
    for size, cells in reserved.items():
        for cell, count in cells.items():
            present[cell, size] = count
    for cell, size in sorted(needed.keys() | present.keys()):
        count, has = needed.get((cell, size), 0), present.get((cell, size), 0)
        if count != has:
            name = memory.page_name(size).upper()
            yield Violation(
                f'cell {cell} has {has} pages of {name}',
                f'{count} pages, as the flavors need them',
                (_command(cell, size, count),
                 ('# lasting, on the kernel command line of Linux 5.16 or '
                  f'newer: {lasting or "no hugepages="}')),
                Severity.ERROR if has < count else Severity.WARNING)


def _even(subject: AuditSubject) -> Iterator[Violation]:
    if subject.plan:
        return  # Each cell is compared with its plan.
    cells = {cell.id: len(cell.cpus & subject.dedicated or cell.cpus)
             for cell in subject.host.cells if cell.cpus}
    found = False
    for size, counts in sorted(_reserved(subject).items()):
        found = found or any(counts.values())
        own = {cell: counts.get(cell, 0) for cell in cells}
        most = max(own.values(), default=0)
        if (len(set(cells.values())) == 1
                and min(own.values()) * 100 < most * (100 - UNEVEN_PERCENT)):
            name = memory.page_name(size).upper()
            least = min(own, key=lambda cell: own[cell])
            yield Violation(
                f'cell {least} has {own[least]} pages of {name}, another has '
                f'{most}', 'the same number on each cell',
                (_command(least, size, most),
                 ('# lasting: hugepages=CELL:COUNT,... on the kernel command '
                  'line of Linux 5.16 or newer')))
    if not found and subject.dedicated:
        yield Violation(
            'no huge pages are reserved', 'huge pages for the memory of '
            'guests',
            ('# hpcvirt host audit --profile default says how many',),
            cost=costs.SMALL_PAGES)


def has_many_cells(subject: AuditSubject) -> bool:
    """Whether several cells have CPUs."""
    return sum(bool(cell.cpus) for cell in subject.host.cells) > 1


def _stop_ksm(subject: AuditSubject, ksm: Ksm) -> tuple[str, ...]:
    """Write how to stop KSM, and to separate merged pages if they fit."""
    need_mib = _merged_mib(subject, ksm)
    left = fact.fact(lambda: subject.facts.memory.available_mib)
    has_mib = (-1 if isinstance(left, fact.UnknownFact)
               else sum(left.values()))
    need = (f'merged pages need {need_mib} MiB to be separated, and '
            f'{"an unknown number of" if has_mib < 0 else has_mib} MiB are '
            'available')
    if need_mib and need_mib >= has_mib:
        return (f'echo 0 > {_KSM}',
                f'# not 2: {need}; move guests away before that')
    return (*((f'# {need}',) if need_mib else ()), f'echo 2 > {_KSM}')


def _merged_mib(subject: AuditSubject, ksm: Ksm) -> int:
    if not ksm.pages_sharing:
        return 0
    return -(-ksm.pages_sharing * memory.small_page_kib(subject.host) // 1024)


def _ksm(subject: AuditSubject) -> Iterator[Violation]:
    ksm = subject.facts.memory.ksm
    if ksm is None:
        return
    stop = _stop_ksm(subject, ksm)
    if ksm.run == 1 and ksm.merge_across_nodes and has_many_cells(subject):
        yield Violation(
            'KSM runs, and merges pages of different cells',
            'KSM off, or merge_across_nodes 0',
            (*stop, '# as soon as no page is merged',
             'echo 0 > /sys/kernel/mm/ksm/merge_across_nodes'))
    elif ksm.run == 1:
        yield Violation('KSM runs', 'KSM off', stop, Severity.NOTE)
    elif ksm.pages_sharing:
        yield Violation(
            f'KSM is off, but {ksm.pages_shared} pages that it merged still '
            f'save {_merged_mib(subject, ksm)} MiB',
            'no merged pages', stop, Severity.NOTE)
    if 'ksmtuned' in subject.facts.kernel.programs:
        yield Violation(
            'ksmtuned runs, which starts KSM when memory gets short',
            'neither ksmtuned nor KSM runs',
            ('systemctl disable --now ksmtuned',
             'systemctl disable --now ksm', *stop))


def _ksm_slab(subject: AuditSubject) -> Iterator[Violation]:
    facts = subject.facts.memory
    ksm = facts.ksm
    if ksm is None or not ksm.full_scans:
        return
    slab_mib = facts.slab_unreclaimable_mib
    usual_mib = max(LEAK_MIB, facts.total_mib // USUAL_SLAB_SHARE)
    if slab_mib > usual_mib:
        yield Violation(
            f'{slab_mib} MiB of slab cannot be reclaimed, and KSM has run '
            'since the boot', f'at most {usual_mib} MiB',
            (*_stop_ksm(subject, ksm), '# if the slab stays, reboot the host'))


def has_small_pages(subject: AuditSubject) -> bool:
    """Whether guests have pages of the normal size."""
    plan = subject.plan
    if plan:
        return plan.page_kib == memory.small_page_kib(plan.host)
    return not any(pool.total for pool in subject.facts.memory.huge_pages)


def _thp(subject: AuditSubject) -> Iterator[Violation]:
    choice = subject.facts.memory.thp
    if choice is None:
        return
    if choice == 'never' and has_small_pages(subject):
        yield Violation(
            'transparent huge pages are off, and guests have normal pages',
            'madvise or always, or guests with huge pages',
            (f'echo madvise > {_THP}/enabled',
             ('# lasting: transparent_hugepage=madvise on the kernel command '
              'line')), cost=costs.SMALL_PAGES)
    if choice != 'never' and subject.facts.memory.thp_defrag == 'always':
        yield Violation(
            'a page fault waits until memory is compacted (defrag is always)',
            'defrag madvise, or another that does not wait',
            (f'echo madvise > {_THP}/defrag',
             (f'# lasting: "w! {_THP}/defrag - - - - madvise" in '
              '/etc/tmpfiles.d')))


def _balancing(subject: AuditSubject) -> Iterator[Violation]:
    mode = subject.facts.memory.numa_balancing
    if not mode or not mode & _BALANCING or not has_many_cells(subject):
        return
    floats = not subject.profile and isinstance(
        fact.fact(lambda: subject.nova), NovaFacts)
    if floats and not subject.dedicated:
        return  # Guests that float over all cells need it.
    tiers = mode & _TIERING or not all(
        cell.cpus for cell in subject.host.cells)
    yield Violation(
        'automatic NUMA balancing is on',
        'only the tiering of memory' if tiers else 'off',
        (f'sysctl kernel.numa_balancing={_TIERING if tiers else 0}',
         '# lasting: the same line in /etc/sysctl.d'),
        Severity.NOTE if floats and subject.shared else None)


def _numad(subject: AuditSubject) -> Iterator[Violation]:
    if 'numad' in subject.facts.kernel.programs:
        yield Violation('numad runs', 'it does not run',
                        ('systemctl disable --now numad',))


def _swap(subject: AuditSubject) -> Iterator[Violation]:
    used_mib = subject.facts.memory.swap_used_mib
    if used_mib > MAX_SWAP_USED_MIB:
        yield Violation(
            f'{used_mib} MiB are swapped out',
            f'at most {MAX_SWAP_USED_MIB} MiB',
            (('# keep more memory for the host: host_reserve_mib_per_cell in '
             'the profile, fewer huge pages'), 'swapoff -a && swapon -a'))


def _swappiness(subject: AuditSubject) -> Iterator[Violation]:
    value = subject.facts.memory.swappiness
    if subject.facts.memory.swap_total_mib and value > MAX_SWAPPINESS:
        yield Violation(
            f'vm.swappiness is {value}, and there is swap space',
            f'at most {MAX_SWAPPINESS}',
            (f'sysctl vm.swappiness={MAX_SWAPPINESS}',
             '# lasting: the same line in /etc/sysctl.d'))


def _left(subject: AuditSubject) -> Iterator[Violation]:
    available = subject.facts.memory.available_mib
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
    Rule('huge-pages', Severity.ERROR,
         'With a profile: each cell has as many huge pages as its flavors '
         'need (a warning if it has more).',
         'Nova refuses guests that find no pages, and pages that no guest '
         'can use are lost to the host', ('Nova-Hugepages',), _as_needed),
    Rule('huge-pages-even', Severity.WARNING,
         'Without a profile: there are huge pages, and cells with as many '
         f'CPUs have as many of them (within {UNEVEN_PERCENT} %).',
         'guests are sized for equal cells; pages of 1 GB were uneven over '
         'the cells when memory was nearly full',
         ('CERN-HEPiX-2015', 'VMware-Memory-2010', 'Linux-Hugetlb'),
         _even),
    Rule('ksm', Severity.WARNING,
         'KSM is off; a note if it runs but merges only within a cell, or if '
         'pages are still merged.',
         'KSM takes CPU time and memory from guests that hardly share pages, '
         'and a page that is merged across cells is far from one of its '
         'guests', ('CERN-HEPiX-2015', 'Linux-Ksm'), _ksm),
    Rule('ksm-slab', Severity.WARNING,
         'Where KSM has run, the slab that cannot be reclaimed is at most '
         f'{LEAK_MIB} MiB, or 1/{USUAL_SLAB_SHARE} of the memory.',
         'KSM leaked more than 1 GB of slab, which remained when it was '
         'switched off', ('CERN-HEPiX-2015',), _ksm_slab),
    Rule('thp', Severity.WARNING,
         'Transparent huge pages are on where guests have normal pages, and '
         'no page fault waits for compaction.',
         'the TLB has no room for many small pages, and a guest waits while '
         'its host compacts memory',
         ('VMware-Memory-2010', 'Linux-Thp'), _thp),
    Rule('numa-balancing', Severity.WARNING,
         'Automatic NUMA balancing is off on a host with several cells, but '
         'for the tiering of memory; without a profile, a note if there are '
         'shared CPUs, and nothing if all are.',
         'it repeatedly unmaps memory of guests to see who uses it, although '
         'guests that are bound to cells already have their memory there',
         ('Linux-Kernel', 'Tuned-Partitioning'), _balancing),
    Rule('numad', Severity.WARNING, 'numad does not run.',
         'it moves processes and memory against the placement of Nova',
         ('Nova-Cpus',), _numad),
    Rule('swap', Severity.WARNING,
         f'No more than {MAX_SWAP_USED_MIB} MiB are swapped out.',
         'a host that kept 2 GB on paper had only 672 MiB left, and swapped',
         ('CERN-HEPiX-2015',), _swap),
    Rule('swappiness', Severity.WARNING,
         f'``vm.swappiness`` is at most {MAX_SWAPPINESS} where there is swap '
         'space.',
         'the kernel otherwise swaps emulators out to keep a larger page '
         'cache', ('Tuned-Partitioning', 'Linux-Vm'), _swappiness),
    Rule('host-memory', Severity.WARNING,
         'Each cell has half of what a host keeps (2048 MiB, or an eighth of '
         'the cell, or ``host_reserve_mib_per_cell``) really left.',
         'a host that kept 2 GB on paper had only 672 MiB left, and swapped',
         ('CERN-HEPiX-2015',), _left),
)
