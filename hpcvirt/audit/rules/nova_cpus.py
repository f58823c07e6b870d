# SPDX-License-Identifier: Apache-2.0

"""Rules about the CPU options of nova-compute against the topology."""

from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset

_DEDICATED = 'cpu_dedicated_set'
_SHARED = 'cpu_shared_set'


def _assignment(name: str, cpus: frozenset[int]) -> tuple[str, ...]:
    return ('# nova.conf', '[compute]', f'{name} = {cpuset.render(cpus)}')


def _valid(subject: AuditSubject) -> Iterator[Violation]:
    """Find values with which nova-compute refuses to start."""
    if (nova := subject.nova) is None:
        return
    sets = {}
    for name in (_DEDICATED, _SHARED):
        text = nova.get('compute', name)
        try:
            sets[name] = cpus = cpuset.parse(text, name)
        except exception.InvalidInput as exc:
            yield Violation(f'[compute]{name}: {exc.what}', 'a list of CPUs',
                            ('# correct nova.conf',))
            continue
        missing = cpus - subject.host.cpus
        if missing and not (subject.parks_cpus and name == _DEDICATED):
            yield Violation(
                f'[compute]{name} names {cpu_words(missing)}, which the host '
                'does not have online', 'CPUs that are online',
                _assignment(name, cpus & subject.host.cpus))
        if text and not cpus:
            yield Violation(f'[compute]{name} is {text!r}, which is no CPU',
                            'at least one CPU', ('# correct nova.conf',))
    both = sets.get(_DEDICATED, frozenset()) & sets.get(_SHARED, frozenset())
    if both:
        yield Violation(
            f'{cpu_words(both)} in both cpu_dedicated_set and cpu_shared_set',
            'each CPU in one of them at most',
            _assignment(_SHARED, sets[_SHARED] - both))
    if nova.get('DEFAULT', 'vcpu_pin_set') and nova.get('compute',
                                                        _DEDICATED):
        yield Violation('vcpu_pin_set and cpu_dedicated_set are both set',
                        'only cpu_dedicated_set',
                        ('# remove vcpu_pin_set from nova.conf',))


def _set(subject: AuditSubject) -> Iterator[Violation]:
    if subject.nova is None:
        return
    given = subject.option_cpus(_DEDICATED)
    if given is None:
        cpus = subject.plan.settings.dedicated if subject.plan else None
        yield Violation(
            'cpu_dedicated_set is not set', 'the CPUs of guests',
            _assignment(_DEDICATED, cpus) if cpus else
            ('# hpcvirt host audit --profile default says which',),
            Severity.NOTE if _serves_shared_guests(subject) else None)


def _serves_shared_guests(subject: AuditSubject) -> bool:
    """Whether nothing says that guests should have CPUs of their own."""
    if subject.profile:
        return False
    kernel = subject.facts.kernel
    return bool(subject.shared) or not kernel.isolated | kernel.nohz_full


def _as_planned(subject: AuditSubject) -> Iterator[Violation]:
    plan, nova = subject.plan, subject.nova
    if subject.profile and nova and subject.parked:
        yield Violation(
            f'Nova has taken the dedicated {cpu_words(subject.parked)} '
            'offline, so that the host is judged without the profile',
            'an audit with --profile while all CPUs are online', (),
            Severity.NOTE)
    if plan is None or nova is None:
        return
    for name, wanted in ((_DEDICATED, plan.settings.dedicated),
                         (_SHARED, plan.settings.shared)):
        given = subject.option_cpus(name)
        if (given or frozenset()) == wanted or (
                given is None and name == _DEDICATED):
            continue
        yield Violation(
            f'[compute]{name} is '
            + (cpuset.render(given) if given else 'not set'),
            cpuset.render(wanted) if wanted else 'not set',
            _assignment(name, wanted) if wanted else
            (f'# remove {name} from nova.conf',),
            Severity.ERROR if name == _DEDICATED else Severity.WARNING)


def _siblings(subject: AuditSubject) -> Iterator[Violation]:
    dedicated, shared = subject.dedicated, subject.shared
    leaves = (subject.profile is not None
              and subject.profile.smt is profiles.SMT.LEAVE)
    mixed: dict[int, frozenset[int]] = {}
    lost: dict[int, frozenset[int]] = {}
    for cell in subject.host.cells:
        for core in cell.siblings:
            if core & dedicated and core & shared:
                mixed[cell.id] = mixed.get(cell.id, core) | core
            elif core & dedicated and core - dedicated and not leaves:
                lost[cell.id] = lost.get(cell.id, core) | core
    for number, cpus in mixed.items():
        yield Violation(
            f'cores of cell {number} with a dedicated and a shared thread: '
            f'{cpu_words(cpus)}', 'all threads of a core in one set',
            _assignment(_SHARED, shared.difference(*mixed.values())))
    for number, cpus in lost.items():
        yield Violation(
            f'{cpu_words(cpus - dedicated)} of cell {number} not dedicated, '
            'but an SMT sibling is',
            'all threads of a core in one set, or smt: leave in the profile',
            _assignment(_DEDICATED, dedicated.union(*lost.values())))


def _cells(subject: AuditSubject) -> Iterator[Violation]:
    dedicated = subject.dedicated
    if not dedicated or subject.plan or subject.parked:
        return  # The plan is compared CPU by CPU.
    cells = [cell for cell in subject.host.cells if cell.cpus]
    counts = {cell.id: len(cell.cpus & dedicated) for cell in cells}
    if len({len(cell.cpus) for cell in cells}) == 1 and len(
            set(counts.values())) > 1:
        yield Violation(
            'cells give guests different numbers of CPUs: ' + ', '.join(
                f'cell {cell} {count}' for cell, count in counts.items()),
            'the same number in each cell',
            ('# hpcvirt host audit --profile default says which',))
    without = [cell.id for cell in cells if not cell.cpus & subject.shared]
    if subject.shared and without:
        yield Violation(
            f'no shared CPU on cell {cpuset.render(without)}',
            'shared CPUs on each cell',
            ('# hpcvirt host audit --profile default says which',),
            Severity.NOTE)


def _host(subject: AuditSubject) -> Iterator[Violation]:
    if subject.plan or not subject.dedicated:
        return
    bare = [cell.id for cell in subject.host.cells
            if cell.cpus and cell.cpus <= subject.dedicated]
    if bare:
        yield Violation(
            f'all CPUs of cell {cpuset.render(bare)} are dedicated',
            'at least a core of each cell for the host',
            ('# hpcvirt host audit --profile default says which',))


def _emulators(subject: AuditSubject) -> Iterator[Violation]:
    if subject.dedicated and not subject.plan and not subject.shared:
        yield Violation(
            'no shared CPUs: the IOThread and the emulator threads of a '
            'guest run on its own CPUs',
            'cpu_shared_set, and hw:emulator_threads_policy=share in flavors',
            _assignment(_SHARED, subject.others) if subject.others else ())


def _migration(subject: AuditSubject) -> Iterator[Violation]:
    nova = subject.nova
    text = nova.get('libvirt', 'live_migration_parallel_connections',
                    '1') if nova else '1'
    connections = words.read_whole(text)
    if connections is None:
        return
    cores = 0
    for cell in subject.host.cells:
        cores += sum(not core & subject.dedicated for core in cell.siblings)
    if connections > max(1, cores):
        yield Violation(
            f'{connections} connections for a live migration, and {cores} '
            'cores that are not dedicated',
            'no more connections than such cores',
            ('# nova.conf', '[libvirt]',
             f'live_migration_parallel_connections = {max(1, cores)}'))


RULES = (
    Rule('nova-cpu-sets', Severity.ERROR,
         'nova-compute accepts its CPU sets: they are lists of CPUs that are '
         'online, without overlap, and without ``vcpu_pin_set``.',
         'nova-compute does not start, or refuses every guest',
         ('Nova-Options',), _valid),
    Rule('nova-dedicated', Severity.ERROR,
         '``cpu_dedicated_set`` is set; a note on a host for guests that '
         'share CPUs: there is no profile, and ``cpu_shared_set`` is set or '
         'the kernel keeps no CPU free.',
         'without it no guest can have CPUs of its own',
         ('Nova-Cpus',), _set),
    Rule('nova-planned-cpus', Severity.ERROR,
         'With a profile: the CPU sets are those of the plan (a warning for '
         '``cpu_shared_set``). A note if Nova has taken CPUs offline, and '
         'there is no plan.',
         'the flavors are sized for these CPUs', ('Nova-Cpus',),
         _as_planned),
    Rule('nova-siblings', Severity.WARNING,
         'Without a profile: all threads of a core are in one set.',
         'what runs on a sibling takes half of the core of a guest, and Nova '
         'gives guests only whole cores', ('Nova-Cpus',),
         _siblings),
    Rule('nova-cells', Severity.WARNING,
         'Without a profile: equal cells give guests the same number of CPUs; '
         'a note if a cell has no shared CPU.',
         'a guest that spans cells needs the same number of CPUs in each',
         ('LBNL-Partitioning', 'Nova-Cpus'), _cells),
    Rule('host-cpus', Severity.WARNING,
         'Without a profile: each cell has a CPU for the host.',
         'the host and its interrupts otherwise run on the CPUs of guests',
         ('CERN-HEPiX-2015',), _host),
    Rule('emulator-threads', Severity.WARNING,
         'Without a profile: there are shared CPUs for emulator threads and '
         'IOThreads.',
         'since Nova 2026.1 each guest has an IOThread, which runs where its '
         'emulator threads run', ('Nova-Gazpacho', 'Nova-Cpus'),
         _emulators),
    Rule('migration-cores', Severity.WARNING,
         'There is a core that is not dedicated for each of '
         '``live_migration_parallel_connections``.',
         'each connection can keep one core busy, above all with TLS',
         ('Nova-Options',), _migration),
)
