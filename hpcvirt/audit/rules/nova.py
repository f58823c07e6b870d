# SPDX-License-Identifier: Apache-2.0

"""Rules about the other options of nova-compute."""

from collections.abc import Iterator

from hpcvirt import words
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import address_width
from hpcvirt.flavors import host_settings
from hpcvirt.specs import vocabulary

_PACK = 'packing_host_numa_cells_allocation_strategy'

#: The default of reserved_host_memory_mb.
DEFAULT_RESERVE = '512'
#: The memory that hpcvirt keeps for the host on one cell by default.
MIN_RESERVE_MIB = 1024
#: Kernels, and boots of one kernel, leave a few MiB more or less to the host.
MEMORY_TOLERANCE_MIB = 64


def _found(subject: AuditSubject) -> Iterator[Violation]:
    if subject.nova is None:
        yield Violation(
            'no configuration of nova-compute was found',
            'one in /etc/nova, or where kolla-ansible, RHOSO, TripleO or '
            'DevStack have it', (), Severity.UNKNOWN)
        return
    for path in subject.nova.unreadable:
        yield Violation(
            f'the user nova cannot read {path}',
            'a file that it can read, in folders that it can enter',
            (f'# namei -l {path}',), Severity.ERROR)


def _reserved_memory(subject: AuditSubject) -> Iterator[Violation]:
    nova, plan = subject.nova, subject.plan
    if nova is None:
        return
    text = nova.get('DEFAULT', 'reserved_host_memory_mb', DEFAULT_RESERVE)
    reserved = words.read_whole(text)
    if reserved is None:
        yield Violation(f'reserved_host_memory_mb is {text[:40]!r}',
                        'a whole number', ('# correct nova.conf',),
                        Severity.ERROR)
        return
    if plan:
        wanted = plan.settings.reserved_host_memory_mb
        # Too large a reserve takes the last guest's memory once it exceeds
        # what the plan leaves for the emulator of one guest.
        tolerance = min(MEMORY_TOLERANCE_MIB, plan.profile.guest_overhead_mib)
        if abs(reserved - wanted) > tolerance:
            yield Violation(
                f'reserved_host_memory_mb is {reserved}', str(wanted),
                _memory_lines(wanted),
                Severity.ERROR if reserved > wanted else Severity.WARNING)
        return
    huge_mib = sum(pool.total * pool.size_kib // 1024
                   for pool in subject.facts.memory.huge_pages)
    total_mib = subject.facts.memory.total_mib
    least = MIN_RESERVE_MIB
    if reserved < least:
        yield Violation(
            f'reserved_host_memory_mb is {reserved}', f'at least {least}',
            _memory_lines(least))
    if huge_mib and reserved + huge_mib > total_mib:
        yield Violation(
            f'reserved_host_memory_mb is {reserved}, and {huge_mib} MiB of '
            f'{total_mib} MiB are huge pages',
            f'at most {total_mib - huge_mib}',
            _memory_lines(total_mib - huge_mib))


def _memory_lines(mib: int) -> tuple[str, ...]:
    return '# nova.conf', '[DEFAULT]', f'reserved_host_memory_mb = {mib}'


def _reserved_pages(subject: AuditSubject) -> Iterator[Violation]:
    nova, plan = subject.nova, subject.plan
    if nova is None:
        return
    given: dict[tuple[int, int], int] = {}
    for text in nova.all('DEFAULT', 'reserved_huge_pages'):
        item = host_settings.read_reserved_pages(text)
        if item is None:
            yield Violation(
                f'reserved_huge_pages has {text!r}',
                'node:N,size:KIB,count:N', ('# correct nova.conf',))
            return
        given[item.node, item.size] = item.count
    totals: dict[tuple[int, int], int] = {}
    for cell in subject.host.cells:
        for pool in cell.pages:
            totals[cell.id, pool.size_kib] = pool.total
    for place, count in given.items():
        if count > totals.get(place, 0):
            yield Violation(
                f'reserved_huge_pages keeps {count} pages of {place[1]} KiB '
                f'of cell {place[0]}, which has {totals.get(place, 0)}',
                'no more than there are', ('# correct nova.conf',))
    if plan is None:
        return
    wanted = {(item.node, item.size): item.count
              for item in plan.settings.reserved_huge_pages}
    if given != wanted:
        lines = [f'reserved_huge_pages = node:{node},size:{size},'
                 f'count:{count}' for (node, size), count in wanted.items()]
        yield Violation(
            'reserved_huge_pages is ' + (_pages_words(given) or 'not set'),
            _pages_words(wanted) or 'not set',
            ('# nova.conf', '[DEFAULT]', *lines) if lines else
            ('# remove reserved_huge_pages from nova.conf',), Severity.WARNING)


def _pages_words(pages: dict[tuple[int, int], int]) -> str:
    return ' '.join(f'node:{node},size:{size},count:{count}'
                    for (node, size), count in sorted(pages.items()))


def _packing(subject: AuditSubject) -> Iterator[Violation]:
    if (nova := subject.nova) is None:
        return
    packs = nova.is_true('compute', _PACK)
    if subject.profile and packs != subject.profile.pack_cells:
        wanted = str(subject.profile.pack_cells).lower()
        yield Violation(
            f'{_PACK} is {str(packs).lower()}', f'{wanted}, as the profile '
            'has it, here and in nova-scheduler',
            ('# nova.conf', '[compute]', f'{_PACK} = {wanted}'))
    elif packs:
        yield Violation(
            f'{_PACK} is true', 'the same in nova-scheduler, which an audit '
            'of this host cannot see',
            ('# compare nova.conf of nova-scheduler',), Severity.NOTE)


def _cpu_mode(subject: AuditSubject) -> Iterator[Violation]:
    if (nova := subject.nova) is None:
        return
    kind = nova.get('libvirt', 'virt_type', 'kvm')
    mode = nova.get('libvirt', 'cpu_mode', 'host-model').lower()
    change = ('# nova.conf', '[libvirt]', 'cpu_mode = host-passthrough')
    if kind not in ('kvm', 'parallels', 'lxc'):
        yield Violation(f'[libvirt]virt_type is {kind}', 'kvm',
                        ('# nova.conf', '[libvirt]', 'virt_type = kvm'),
                        Severity.ERROR)
    if mode == 'none':
        yield Violation(
            '[libvirt]cpu_mode is none: guests get the default model of QEMU',
            'host-passthrough', change)
    elif mode == 'custom':
        models = nova.get('libvirt', 'cpu_models') or 'no model'
        yield Violation(
            f'[libvirt]cpu_mode is custom ({models})',
            'host-passthrough, unless guests migrate between different '
            'processors', change, Severity.NOTE)
    elif mode == 'host-model':
        yield Violation(
            '[libvirt]cpu_mode is host-model', 'host-passthrough, unless '
            'guests migrate between different processors', change,
            Severity.NOTE)


def _address_width(subject: AuditSubject) -> Iterator[Violation]:
    bits = subject.facts.cpu.address_bits
    if bits is None:
        return
    specs = dict(subject.profile.extra_specs if subject.profile else ())
    mode = specs.get(vocabulary.MAXPHYSADDR_MODE.name)
    key = vocabulary.MAXPHYSADDR_BITS.name
    if mode == 'emulate':
        if address_width.read_bits(specs) > bits:
            yield Violation(
                f'{key} of the profile is {specs.get(key)}, and the processor '
                f'has {bits} bits', f'{bits} or less: libvirt refuses more',
                ('# in extra_specs of the profile:', f'# {key}: {bits}'),
                Severity.ERROR)
    elif mode is None and bits < address_width.DEFAULT_BITS and (
            subject.nova and subject.nova.get('libvirt', 'cpu_mode')
            != 'host-passthrough'):
        yield Violation(
            f'QEMU gives guests addresses of {address_width.DEFAULT_BITS} '
            f'bits, and the processor has {bits}', f'{bits} or less',
            ('# in extra_specs of the profile:',
             f'# {vocabulary.MAXPHYSADDR_MODE.name}: emulate',
             f'# {key}: {bits}'))


def _filters(subject: AuditSubject) -> Iterator[Violation]:
    nova = subject.nova
    text = nova.get('filter_scheduler', 'enabled_filters') if nova else ''
    if nova is None or not text or 'HPCTopologyFilter' in text:
        return  # nova-scheduler has its configuration elsewhere.
    for name, needed in (
            ('NUMATopologyFilter', subject.dedicated),
            ('PciPassthroughFilter', nova.all('pci', 'device_spec'))):
        if needed and name not in text:
            yield Violation(
                f'enabled_filters has no {name}', f'{name}, or '
                'HPCTopologyFilter in its place',
                ('# nova.conf of nova-scheduler', '[filter_scheduler]',
                 f'enabled_filters = {text},{name}'))


#: A fault after a post-copy waits for the whole page.
_MAX_POST_COPY_KIB = 32 * 1024


def _live_migration(subject: AuditSubject) -> Iterator[Violation]:
    nova, prefix = subject.nova, 'live_migration_'
    if nova is None:
        return
    copies_later = nova.is_true('libvirt', f'{prefix}permit_post_copy')
    for is_bad, found, good, severity in (
            (copies_later and nova.get(
                'libvirt', f'{prefix}parallel_connections', '1') != '1',
             ('post-copy and several connections for a live migration, which '
             'QEMU before 10.1 refuses'), 'parallel_connections = 1', None),
            (copies_later and any(
                pool.total and pool.size_kib > _MAX_POST_COPY_KIB
                for pool in subject.facts.memory.huge_pages),
             'post-copy, and there are pages of 1 GiB',
             'permit_post_copy = false', Severity.NOTE),
            (not copies_later and nova.is_true(
                'libvirt', f'{prefix}permit_auto_converge'),
             'a slow live migration slows the CPUs of the guest down',
             'permit_auto_converge = false', Severity.NOTE),
            (not copies_later and nova.get(
                'libvirt', f'{prefix}timeout_action') == 'force_complete',
             'a slow live migration pauses the guest',
             'timeout_action = abort', Severity.NOTE)):
        if is_bad:
            yield Violation(found, f'{prefix}{good}', (
                '# nova.conf', '[libvirt]', f'{prefix}{good}'), severity)


RULES = (
    Rule('nova-conf', Severity.UNKNOWN,
         'The configuration of nova-compute can be found; an error if nova '
         'cannot read it.',
         'without it the CPU sets of guests are not known',
         ('Nova-Options',), _found),
    Rule('nova-memory', Severity.WARNING,
         '``reserved_host_memory_mb`` is that of the plan (an error if it is '
         f'more); without a profile, at least {MIN_RESERVE_MIB} MiB and no '
         'more than huge pages leave.',
         'Placement otherwise offers memory that the host needs, or less '
         'than the flavors fill', ('CERN-HEPiX-2015', 'Nova-Options'),
         _reserved_memory),
    Rule('nova-reserved-pages', Severity.ERROR,
         '``reserved_huge_pages`` keeps no more pages than there are; with a '
         'profile, those of the plan (a warning).',
         'Nova otherwise offers no pages of a cell, or those of the host',
         ('Nova-Hugepages',), _reserved_pages),
    Rule('nova-packing', Severity.WARNING,
         f'``{_PACK}`` is that of the profile; a note if it is on, because '
         'nova-scheduler must have the same.',
         'the claim of the compute host otherwise takes other cells than the '
         'scheduler has checked', ('Nova-Options',), _packing),
    Rule('cpu-mode', Severity.WARNING,
         'Guests are run by KVM (an error if not), and see the processor of '
         'the host; a note if only its model.',
         'a guest without KVM is emulated, and one that does not see AVX-512 '
         'or the caches computes slower',
         ('Nova-Options', 'Nova-Cpus'), _cpu_mode),
    Rule('address-width', Severity.WARNING,
         'Guests have no wider physical addresses than the processor (an '
         'error if the profile sets them).',
         'a guest that uses an address which its host does not have, or no '
         'longer after a live migration, fails',
         ('Nova-Cpus',), _address_width),
    Rule('nova-filters', Severity.WARNING,
         'Where this host has ``enabled_filters``, they are those that guests '
         'with dedicated CPUs and with devices need.',
         'the scheduler otherwise chooses hosts that nova-compute refuses',
         ('Nova-Options', 'Nova-Cpus', 'Nova-Devices'), _filters),
    Rule('live-migration', Severity.WARNING,
         'Post-copy is not used with several connections; notes on post-copy '
         'with pages of 1 GiB, auto-converge and ``force_complete``.',
         'a job waits for the guest that is slowed down, paused or waits for '
         'a page of 1 GiB', ('Nova-Options',), _live_migration),
)
